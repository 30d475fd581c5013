"""Conversations that never were, for measuring speed: the same on every run, put in through the store's own statements.

Vectors are unit vectors of random directions, the worst there is for any index that guesses where neighbours are. Turns
are some twelve words drawn by a steep law from 5,000, in English and Chinese alternately, thirty turns a conversation,
worded for search as the product words them. A question is near to one turn, whose words it repeats in part.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # one thread for all: the floor, the peers and everlong

import gc
import random
import time
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import numpy as np

from everlong.protocols import Indexed
from everlong.records import Message, Scope
from everlong.testing.fakes import TableEmbedder
from everlong.text import terms
from everlong.wording import lexical_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from numpy.typing import NDArray

    from everlong.protocols import Store

START = datetime(2025, 1, 1, tzinfo=UTC)
MODEL = "random"
PORTION = 3000
"""Rows that are made, and committed, together."""
TURNS = 30
TOP = 10

_SYLLABLES = [first + second for first in "bdfgklmnprstvz" for second in ("a", "e", "i", "o", "u")]
_ENGLISH = [a + b for a in _SYLLABLES for b in _SYLLABLES]
_CHINESE = [chr(0x4E00 + 7 * n) + chr(0x5000 + 11 * n % 8000) for n in range(2500)]


@dataclass(frozen=True, slots=True)
class Portion:
    """Rows ``first`` to ``first + len(texts)``."""

    first: int
    texts: list[str]
    vectors: NDArray[np.float32]

    @property
    def ids(self) -> list[str]:
        """Such as ``msg_00000042``."""
        return [f"msg_{self.first + n:08}" for n in range(len(self.texts))]


def portion(first: int, count: int, dimensions: int) -> Portion:
    """Rows from ``first`` on, a function of the arguments alone."""
    numbers, draw = np.random.default_rng([first, dimensions]), random.Random(first)
    vectors = numbers.standard_normal((count, dimensions), np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return Portion(first, [_text(first + n, draw) for n in range(count)], vectors)


def portions(size: int, dimensions: int) -> Iterator[Portion]:
    """All rows of a store of ``size``."""
    for first in range(0, size, PORTION):
        yield portion(first, min(PORTION, size - first), dimensions)


def matrix(size: int, dimensions: int) -> NDArray[np.float32]:
    """The vectors of all rows."""
    made = np.empty((size, dimensions), np.float32)
    for part in portions(size, dimensions):
        made[part.first : part.first + len(part.texts)] = part.vectors
    return made


def _text(row: int, draw: random.Random) -> str:
    words = _CHINESE if row % 2 else _ENGLISH[:2500]
    chosen = [words[int(len(words) * draw.random() ** 3)] for _ in range(12)]
    return "，".join(chosen) + "。" if row % 2 else " ".join(chosen) + "."


@dataclass(frozen=True, slots=True)
class Asked:
    """A question: four words of one row, and a vector near that row's (cosine about 0.7)."""

    text: str
    vector: NDArray[np.float32]
    row: int


def questions(size: int, dimensions: int, count: int) -> list[Asked]:
    """Questions about rows all over a store of ``size``."""
    numbers = np.random.default_rng([size, count])
    made = []
    for row in numbers.choice(size, min(count, size), replace=False, shuffle=False).tolist():
        first = row // PORTION * PORTION
        part = portion(first, min(PORTION, size - first), dimensions)
        noise = numbers.standard_normal(dimensions).astype(np.float32)
        vector = part.vectors[row - first] + noise / np.linalg.norm(noise)
        words = part.texts[row - first].strip("。.").replace("，", " ").split()[:4]
        made.append(Asked(("，" if row % 2 else " ").join(words), vector / np.linalg.norm(vector), row))
    return made


def embedder(asked: Sequence[Asked], dimensions: int) -> TableEmbedder:
    """Gives each question its vector."""
    return TableEmbedder({each.text: each.vector.tolist() for each in asked}, dimensions, model=MODEL)


def messages(part: Portion, home: Scope) -> list[tuple[Scope, list[Message], list[Indexed]]]:
    """The rows as turns of conversations of ``home``, indexed, a conversation an entry."""
    made = []
    for start in range(0, len(part.texts), TURNS):
        session = f"s{(part.first + start) // TURNS:07}"
        turns = [
            Message(
                id=name,
                scope=home,
                session=session,
                role="user",
                content=text,
                created_at=START + timedelta(minutes=part.first + start + n),
                speaker=("Ann", "李雷")[n % 2],
            )
            for n, (name, text) in enumerate(
                zip(part.ids[start : start + TURNS], part.texts[start : start + TURNS], strict=True)
            )
        ]
        indexed = [
            Indexed(
                terms=terms(lexical_text(turn.content, speaker=turn.speaker, created_at=turn.created_at)),
                model=MODEL,
                vectors=part.vectors[start + n : start + n + 1],
            )
            for n, turn in enumerate(turns)
        ]
        made.append((Scope(org=home.org, agent=home.agent, user=home.user, session=session), turns, indexed))
    return made


def fill(store: Store, parts: Iterator[Portion], home: Callable[[Portion], Scope]) -> float:
    """Puts all in, each portion in one transaction; returns the seconds that the store took."""
    taken = 0.0
    for part in parts:
        made = messages(part, home(part))
        started = time.perf_counter()
        with store.write() as tx:
            for session, turns, indexed in made:
                tx.messages.append(session, turns, indexed)
        taken += time.perf_counter() - started
    with store.write() as tx:
        tx.sessions.fence(Scope())  # nothing waits for extraction, as in a store that was in use for long
    return taken


def best(scores: NDArray[np.float32]) -> NDArray[np.int64]:
    """The rows of the ten best scores, best first."""
    top = np.argpartition(-scores, TOP - 1)[:TOP]  # twenty times as fast from this side where most scores are zero
    return top[np.argsort(-scores[top])]


@contextmanager
def undisturbed() -> Iterator[None]:
    """Without the collector of cycles, which a large heap of the bench's own would make slow."""
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.unfreeze()


def shares(milliseconds: Sequence[float]) -> dict[str, float]:
    """Median and 95th percentile."""
    return {f"p{share}": round(float(np.percentile(milliseconds, share)), 3) for share in (50, 95)}


def timed(
    work: Callable[[Asked], object],
    asked: Sequence[Asked],
    repeat: int,
    clock: Callable[[], float] = time.perf_counter,
) -> dict[str, float]:
    """Milliseconds of ``work`` over ``repeat`` questions, the list begun again as often as needed."""
    taken = []
    with undisturbed():
        for n in range(repeat):
            one = asked[n % len(asked)]
            started = clock()
            work(one)
            taken.append(1000 * (clock() - started))
    return shares(taken)
