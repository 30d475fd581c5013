"""Recall quality through the real parts: store, index, reader. Prints R@5/@10/@20 and MRR beside known figures.

    python bench/recall.py --data DIR [--json FILE] [--embedder e5] [--sets locomo_dev ...] [--ablate]

``--ablate`` prints what is left of R@10 when one part of the ranking is taken out.

The data is read from DIR (default: the environment's EVERLONG_BENCH_DATA) and never copied; see bench/README.md.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
import time
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from everlong import text
from everlong.models import open_embedder
from everlong.protocols import Embedder, Indexed
from everlong.read.reader import Reader
from everlong.read.weights import Weights
from everlong.records import Fact, Message, Query, Scope
from everlong.search import BucketIndex
from everlong.store import open_store
from everlong.testing.fakes import CountingIds, FakeClock
from everlong.wording import lexical_text, vector_text

KNOWN = {  # R@5, R@10, R@20, MRR
    "locomo_dev": {"BM25": (55.4, 64.0, 69.9, 49.1), "formula, USE": (71.7, 79.7, 86.0, 60.0)},
    "memorybank_zh_dev": {"BM25": (83.9, 91.1, None, 65.0), "formula, USE": (92.3, 98.8, None, 77.0)},
    "madial_zh_dev": {"BM25": (46.4, 57.3, 63.4, None), "formula, USE": (61.7, 68.1, 80.7, None)},
    "madial_en_dev": {"BM25": (46.1, 57.8, 71.2, None), "formula, USE": (62.0, 71.9, 84.1, None)},
}
DEPTHS = (5, 10, 20)
PARTS = {
    "all parts": (),
    "without words": ("lexical", "noted_lexical"),
    "without neighbours": ("before", "answers", "after", "second_before", "second_after"),
    "without the conversation": ("session", "session_words"),
    "without the named speaker": ("named_speaker",),
    "without who speaks in the question": ("about",),
    "without the kind of turn": ("user_turn", "asks"),
    "without times told": ("tells_time", "asked_time"),
    "without dates": ("on_date", "noted_date"),
    "without spread": ("spread",),
}
"""Weights that are set to zero, by what that takes out."""


class Remembering:
    """An embedder that embeds a question once, however many readers ask it."""

    def __init__(self, embedder: Embedder) -> None:
        self.embedder, self.known = embedder, {}
        self.model, self.dimensions = embedder.model, embedder.dimensions
        self.calibration = embedder.calibration

    def embed(self, texts, *, query=False):
        """Vectors of ``texts``."""
        key = (*texts, query)
        if key not in self.known:
            self.known[key] = self.embedder.embed(texts, query=query)
        return self.known[key]


def when(stamp: str | None) -> datetime | None:
    return datetime.fromisoformat(stamp).replace(tzinfo=UTC) if stamp else None


def indexed(words: list[str], meanings: list[str], embedder: Embedder) -> list[Indexed]:
    groups = [text.pieces(meaning) or [meaning] for meaning in meanings]
    vectors = embedder.embed([piece for group in groups for piece in group])
    parts = np.split(vectors, np.cumsum([len(group) for group in groups])[:-1])
    return [
        Indexed(terms=text.terms(word), model=embedder.model, vectors=part)
        for word, part in zip(words, parts, strict=True)
    ]


def feed(store, scope: Scope, collection: dict, embedder: Embedder) -> str:
    """Turns of conversations become messages; notes without speakers become facts. Returns the kind."""
    docs = collection["docs"]
    if not collection["speakers"]:
        rows = indexed([d["text"] for d in docs], [d["text"] for d in docs], embedder)
        with store.write() as tx:
            for doc, row in zip(docs, rows, strict=True):
                at = when(doc["ts"])
                tx.facts.add(
                    Fact(id=doc["id"], scope=scope, content=doc["text"], created_at=at, updated_at=at,
                         session=doc["session"]), row,
                )  # fmt: skip
        return "fact"
    messages = [
        Message(id=d["id"], scope=scope, session=d["session"], role="user", content=d["text"], created_at=when(d["ts"]),
                speaker=d["speaker"], metadata={"caption": d["caption"]} if d["caption"] else {})
        for d in docs
    ]  # fmt: skip
    rows = indexed(
        [lexical_text(m.content, speaker=m.speaker, created_at=m.created_at, caption=m.metadata.get("caption", ""))
         for m in messages],
        [vector_text(m.content, speaker=m.speaker, caption=m.metadata.get("caption", "")) for m in messages],
        embedder,
    )  # fmt: skip
    with store.write() as tx:
        for session in dict.fromkeys(m.session for m in messages):
            pairs = [(m, r) for m, r in zip(messages, rows, strict=True) if m.session == session]
            here = Scope(user=scope.user, session=session)
            tx.messages.append(here, [m for m, _ in pairs], [r for _, r in pairs])
    return "message"


def measure(path: Path, embedder: Embedder, weights: Weights | None = None) -> dict:
    found, ranks, times = [], [], []
    for number, line in enumerate(gzip.decompress(path.read_bytes()).decode().splitlines()):
        collection = json.loads(line)
        clock, ids = FakeClock(), CountingIds()
        store = open_store("sqlite://", clock=clock, new_id=ids)
        index = BucketIndex(model=embedder.model, dimensions=embedder.dimensions)
        reader = Reader(
            store=store, index=index, embedder=embedder, counter=text.estimate_tokens, clock=clock, new_id=ids,
            weights=weights,
        )  # fmt: skip
        scope = Scope(user=f"u{number}")
        kind = feed(store, scope, collection, embedder)
        for asked in collection["queries"]:
            if asked["category"] == "adversarial" or not asked["gold"]:
                continue
            query = Query(text=asked["text"], kinds=(kind,), limit=20, min_score=0.0, at=when(asked["ts"]))
            started = time.perf_counter()
            hits = [hit.id for hit in reader.recall(scope, query).hits]
            times.append((time.perf_counter() - started) * 1000)
            gold = set(asked["gold"])
            found.append([len(gold & set(hits[:depth])) / len(gold) for depth in DEPTHS])
            ranks.append(next((1 / place for place, hit in enumerate(hits, 1) if hit in gold), 0.0))
        store.close()
    figures = [round(float(100 * value), 1) for value in (*np.mean(found, axis=0), np.mean(ranks))]
    return {
        "questions": len(found), "R@5": figures[0], "R@10": figures[1], "R@20": figures[2], "MRR": figures[3],
        "ms_p50": round(float(np.median(times)), 2), "ms_p95": round(float(np.percentile(times, 95)), 2),
    }  # fmt: skip


def ablate(folder: Path, sets: list[str], embedder: Embedder) -> dict:
    """R@10 by part taken out and set, printed as a table."""
    remembering, table = Remembering(embedder), {}
    print(f"{'R@10':<36}" + "".join(f"{name:>20}" for name in sets))
    for part, names in PARTS.items():
        weights = replace(Weights(), **dict.fromkeys(names, 0.0))
        table[part] = {name: measure(folder / f"{name}.jsonl.gz", remembering, weights)["R@10"] for name in sets}
        print(f"{part:<36}" + "".join(f"{value:>20}" for value in table[part].values()), flush=True)
    return table


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--data", default=os.environ.get("EVERLONG_BENCH_DATA", ""))
    options.add_argument("--sets", nargs="*", default=list(KNOWN))
    options.add_argument("--json", default="")
    options.add_argument("--embedder", default="use", choices=["use", "e5"])
    options.add_argument("--ablate", action="store_true")
    given = options.parse_args()
    if not given.data:
        sys.exit("name the data: --data DIR or EVERLONG_BENCH_DATA")
    embedder, results = open_embedder(given.embedder), {}
    if given.ablate:
        results = ablate(Path(given.data), given.sets, embedder)
    for name in () if given.ablate else given.sets:
        results[name] = result = measure(Path(given.data) / f"{name}.jsonl.gz", embedder)
        print(f"{name} ({result['questions']} questions)        R@5   R@10   R@20    MRR")
        for label, figures in KNOWN.get(name, {}).items():
            print(f"  {label:<24}" + "".join(f"{'–' if f is None else f:>7}" for f in figures))
        print("  everlong                " + "".join(f"{result[key]:>7}" for key in ("R@5", "R@10", "R@20", "MRR"))
              + f"   {result['ms_p50']} ms p50, {result['ms_p95']} ms p95", flush=True)  # fmt: skip
    if given.json:
        Path(given.json).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
