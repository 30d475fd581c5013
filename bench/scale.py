"""What one user's question costs among many users: flat, however many the others are.

    python bench/scale.py [--stores sqlite postgresql] [--users 100 1000 10000] [--rows 100] [--json]

Every user has the same number of turns. Asked are 200 users in turn: ``warm`` when their buckets are in memory, ``cold``
when each must come from the store, ``within the budget`` when a tenth of what they need may be kept. ``recall`` is the public call less the embedding of the question.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from typing import TYPE_CHECKING

import synthetic
from latency import Figures, alone, opened, table, urls
from synthetic import Asked, portion, shares, undisturbed

from everlong.records import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.memory import Memory

ASKED = 200


def parts(users: int, rows: int, dimensions: int) -> Iterator[synthetic.Portion]:
    """The rows of one user after those of another."""
    return (portion(user * rows, rows, dimensions) for user in range(users))


def owner(first: int, rows: int) -> Scope:
    """Whose row it is."""
    return Scope(user=f"u{first // rows:06}")


def filled(url: str, users: int, rows: int, dimensions: int) -> Figures:
    """Puts all in, the rows of one user in one transaction."""
    memory = opened(url, [], dimensions)
    with undisturbed():
        seconds = synthetic.fill(
            memory.parts.store, parts(users, rows, dimensions), lambda part: owner(part.first, rows)
        )
    memory.close()
    return {"rows put in a second": round(users * rows / seconds)}


def asking(users: int, rows: int, dimensions: int, *, row: int) -> list[tuple[Scope, Asked]]:
    """One question of each of 200 users, spread over all, about a row of theirs."""
    made = []
    for user in range(0, users, max(1, users // ASKED)):
        part = portion(user * rows, rows, dimensions)
        words = part.texts[row].strip("。.").replace("，", " ").split()[:4]
        made.append((owner(part.first, rows), Asked(" ".join(words), part.vectors[row], part.first + row)))
    return made[:ASKED]


def measured(url: str, users: int, rows: int, dimensions: int) -> Figures:
    """Every figure of a store that is full."""
    pairs = asking(users, rows, dimensions, row=rows // 2)
    others = asking(users, rows, dimensions, row=rows // 3)
    asked = [one for _, one in pairs + others]
    memory = opened(url, asked, dimensions)
    figures: Figures = {"cold": shares(_each(memory, pairs)), "the same again": shares(_each(memory, pairs))}
    figures["warm"] = shares(_each(memory, others))
    kept = memory.parts.index.nbytes
    memory.close()
    budget = max(kept // 10, 1 << 20)
    memory = opened(url, asked, dimensions, budget=budget)
    figures["within the budget"] = shares(_each(memory, pairs))
    figures["bytes kept / budget"] = round(memory.parts.index.nbytes / budget, 2)
    memory.close()
    return figures | {"KiB a user": round(kept / len(pairs) / 1024, 1)}


def _each(memory: Memory, pairs: list[tuple[Scope, Asked]]) -> list[float]:
    """Milliseconds of each question; every one must find its row, and none of another user's."""
    taken = []
    with undisturbed():
        for scope, one in pairs:
            started = time.perf_counter()
            answer = memory.at(scope).recall(one.text)
            taken.append(1000 * (time.perf_counter() - started) - answer.trace.milliseconds.get("embed", 0.0))
            if f"msg_{one.row:08}" not in {hit.id for hit in answer.hits}:
                raise SystemExit(f"{scope} did not find row {one.row}")
            if any(hit.record.scope != scope for hit in answer.hits):
                raise SystemExit(f"{scope} saw what is another's")
    return taken


def measure(store: str, users: int, rows: int, dimensions: int) -> Figures:
    """Every figure of one store of so many users."""
    with tempfile.TemporaryDirectory() as folder, urls(store, folder) as (url, used):
        figures = alone(filled, url, users, rows, dimensions)
        figures["bytes on disk / of the vectors"] = round(used() / (4 * dimensions * users * rows), 2)
        return figures | alone(measured, url, users, rows, dimensions)


def main() -> None:
    """Prints a table for each store, or JSON."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--stores", nargs="+", default=["sqlite"], choices=["sqlite", "postgresql"])
    options.add_argument("--users", type=int, nargs="+", default=[100, 1000, 10_000])
    options.add_argument("--rows", type=int, default=100)
    options.add_argument("--dimensions", type=int, default=256)
    options.add_argument("--json", action="store_true", help="print JSON")
    given = options.parse_args()
    answers: dict[str, dict[int, Figures]] = {}
    for store in given.stores:
        answers[store] = {users: measure(store, users, given.rows, given.dimensions) for users in given.users}
        if not given.json:
            print(f"{store}, {given.rows} rows a user; columns are users")
            print(*table(answers[store]), sep="\n", flush=True)
    if given.json:
        print(
            json.dumps({"dimensions": given.dimensions, "rows": given.rows, "unit": "ms", "stores": answers}, indent=1)
        )


if __name__ == "__main__":
    main()
