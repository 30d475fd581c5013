"""How long one question takes in the search index, beside one plain pass over the same vectors in the same run.

    python bench/latency.py [--sizes 1000 10000 100000] [--dimensions 256] [--repeat 200] [--json]

Rows are synthetic: unit vectors of random directions, 18 terms a row drawn from 5,000 words by a steep law. No
database takes part: the figures are those of a warm bucket, of a cold one from rows already read, and of one changed
row taken in. The plain pass is ``matrix @ vector`` and the best ten, the least that any exact search could do here.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from everlong.protocols import IndexRows, Revision
from everlong.records import Scope
from everlong.search import Bucket, BucketIndex
from everlong.text import pack_terms

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from everlong.records import Kind

START = datetime(2026, 1, 1, tzinfo=UTC)
WORDS = [f"w{number}" for number in range(5000)]
QUESTION = ["w1", "w20", "w300", "w400"]
TOP = 10


class OneBucket:
    """The index shelf of a store that holds one bucket."""

    def __init__(self, scope: Scope, rows: IndexRows) -> None:
        self.index = self
        self.scope, self.kept = scope, rows
        self.revision = Revision(epoch="bench", number=len(rows.ids))

    def revisions(self, scope: Scope, kinds: Sequence[Kind]) -> dict[tuple[Scope, Kind], Revision]:
        """The one bucket's."""
        return {(self.scope, kind): self.revision for kind in kinds if self.scope.covers(scope)}

    def rows(self, bucket: Scope, kind: Kind, *, model: str, after: int = 0) -> IndexRows:
        """All of them."""
        del bucket, kind, model, after
        return self.kept


def synthetic(first: int, count: int, dimensions: int) -> IndexRows:
    """Rows with positions from ``first``, drawn from a fixed seed."""
    draw, numbers = random.Random(first), np.random.default_rng(first)
    vectors = numbers.standard_normal((count, dimensions)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    places = range(first, first + count)
    return IndexRows(
        ids=[f"msg_{place:08}" for place in places],
        revision=[place + 1 for place in places],
        live=[True] * count,
        terms=[pack_terms([WORDS[int(len(WORDS) * draw.random() ** 3)] for _ in range(18)]) for _ in places],
        vectors=[vector.tobytes() for vector in vectors],
        session=[f"s{place // 30}" for place in places],
        speaker=[("Ann", "李雷")[place % 2] for place in places],
        role=["user"] * count,
        category=[""] * count,
        created_at=[START + timedelta(minutes=place) for place in places],
        position=[place + 1 for place in places],
        length=[90] * count,
        question=[False] * count,
        confidence=[0.5] * count,
        origin=["user"] * count,
        trust=[0.9] * count,
        valid_from=[-math.inf] * count,
        valid_until=[math.inf] * count,
    )


def best(scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """The rows of the ten best scores, best first."""
    top = np.argpartition(scores, -TOP)[-TOP:]
    return top[np.argsort(-scores[top])]


def timed(work: Callable[[], object], repeat: int) -> dict[str, float]:
    """Milliseconds of ``work``: median and 95th percentile."""
    taken = []
    for _ in range(repeat):
        start = time.perf_counter()
        work()
        taken.append(1000 * (time.perf_counter() - start))
    return {"p50": round(float(np.percentile(taken, 50)), 3), "p95": round(float(np.percentile(taken, 95)), 3)}


def measure(size: int, dimensions: int, repeat: int) -> dict[str, dict[str, float]]:
    """Every figure for one size."""
    scope = Scope(user="ann")
    rows, change = synthetic(0, size, dimensions), synthetic(size, 1, dimensions)
    middle = synthetic(size // 2, 1, dimensions)
    store = OneBucket(scope, rows)
    index = BucketIndex(model="bench", dimensions=dimensions, budget_bytes=1 << 40)
    corpus = index.corpus(store, scope, "message")
    vector = np.random.default_rng(1).standard_normal(dimensions).astype(np.float32)
    vector /= np.linalg.norm(vector)
    matrix = np.frombuffer(b"".join(filter(None, rows.vectors)), np.float32).reshape(size, dimensions)
    bucket = Bucket.build(rows, dimensions)

    def recall() -> None:
        seen = index.corpus(store, scope, "message")
        fused = 0.7 * seen.cosine(vector) + 0.3 * seen.bm25(QUESTION)
        [seen.ids[row] for row in best(fused)]

    seldom = max(5, min(repeat, 200_000 // size))
    return {
        "plain pass": timed(lambda: best(matrix @ vector), repeat),
        "vector top-10": timed(lambda: best(corpus.cosine(vector)), repeat),
        "bm25 top-10": timed(lambda: best(corpus.bm25(QUESTION)), repeat),
        "recall (hybrid top-10 ids)": timed(recall, repeat),
        "cold build": timed(lambda: Bucket.build(rows, dimensions), seldom),
        "one row added": timed(lambda: bucket.updated(change, dimensions), seldom),
        "one row changed": timed(lambda: bucket.updated(middle, dimensions), seldom),
    }


def main() -> None:
    """Prints a table, or JSON."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", type=int, nargs="+", default=[1000, 10_000, 100_000])
    options.add_argument("--dimensions", type=int, default=256)
    options.add_argument("--repeat", type=int, default=200)
    options.add_argument("--json", action="store_true", help="print JSON")
    given = options.parse_args()
    found = {size: measure(size, given.dimensions, given.repeat) for size in given.sizes}
    if given.json:
        print(json.dumps({"dimensions": given.dimensions, "unit": "ms", "sizes": found}, indent=2))
        return
    print(f"{'ms, p50 / p95':28}" + "".join(f"{size:>20,}" for size in found))
    for name in next(iter(found.values())):
        print(f"{name:28}" + "".join(f"{each[name]['p50']:>11} /{each[name]['p95']:>7}" for each in found.values()))


if __name__ == "__main__":
    main()
