"""Which rows hold which term: the index for words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray


@dataclass(frozen=True)
class Postings:
    """Which rows hold which term how often, and the number of terms of every row.

    ``hashes`` are the distinct terms in order; what stands at ``starts[i]`` to ``starts[i + 1]`` of ``rows`` and
    ``counts`` is of term ``i``.
    """

    hashes: NDArray[np.uint64]
    starts: NDArray[np.int64]
    rows: NDArray[np.int32]
    counts: NDArray[np.float32]
    lengths: NDArray[np.float32]

    @classmethod
    def build(cls, packed: Sequence[bytes]) -> Self:
        """Postings of rows whose packed terms these are."""
        lengths = np.fromiter(map(len, packed), np.int64, len(packed)) // 8
        said = np.frombuffer(b"".join(packed), dtype="<u8").astype(np.uint64, copy=False)
        hashes = _distinct(said)
        bits = np.uint64(len(packed).bit_length())
        owners = np.repeat(np.arange(len(packed), dtype=np.uint64), lengths)
        keys = (said >> bits << bits) | owners
        keys.sort()  # by term, then row: five times as fast as to sort the terms and carry the rows along
        if np.count_nonzero(_first(keys >> bits)) != len(hashes):  # two terms differ only in the bits cut off
            keys = np.searchsorted(hashes, said).astype(np.uint64) << bits | owners
            keys.sort()
        heads = np.flatnonzero(_first(keys))
        counts = np.diff(heads, append=len(keys)).astype(np.float32)
        keys = keys[heads]
        starts = np.append(np.flatnonzero(_first(keys >> bits)), len(keys))
        rows = (keys & ((np.uint64(1) << bits) - np.uint64(1))).astype(np.int32)
        return cls(hashes, starts, rows, counts, lengths.astype(np.float32))

    @cached_property
    def total(self) -> float:
        """Terms of all rows."""
        return float(self.lengths.sum())

    @property
    def nbytes(self) -> int:
        """Memory that it takes."""
        return sum(each.nbytes for each in (self.hashes, self.starts, self.rows, self.counts, self.lengths))

    def find(self, hashes: NDArray[np.uint64]) -> list[slice]:
        """Where each term stands in the arrays; an empty slice if nowhere."""
        at, held = self._places(hashes)
        first, last = self.starts[at], self.starts[at + held]
        return [slice(one, other) for one, other in zip(first.tolist(), last.tolist(), strict=True)]

    def take(self, order: NDArray[np.int64]) -> Self:
        """The postings of these rows alone, numbered in this order."""
        place = np.full(len(self.lengths), -1, np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        rows = place[self.rows]
        kept = rows >= 0
        starts = np.concatenate(([0], np.cumsum(kept)))[self.starts]
        held = np.diff(starts) > 0
        starts = np.append(starts[:-1][held], starts[-1])
        return type(self)(self.hashes[held], starts, rows[kept], self.counts[kept], self.lengths[order])

    def extend(self, other: Self) -> Self:
        """These rows, then those of ``other``."""
        place, held = self._places(other.hashes)
        hashes = np.insert(self.hashes, place[~held], other.hashes[~held])
        sizes = np.zeros(len(hashes), np.int64)
        for each in (self, other):
            sizes[np.searchsorted(hashes, each.hashes)] += np.diff(each.starts)
        at = np.repeat(self.starts[place + held], np.diff(other.starts))
        return type(self)(
            hashes,
            np.concatenate(([0], np.cumsum(sizes))),
            np.insert(self.rows, at, other.rows + np.int32(len(self.lengths))),
            np.insert(self.counts, at, other.counts),
            np.concatenate((self.lengths, other.lengths)),
        )

    def _places(self, hashes: NDArray[np.uint64]) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Where each term stands or would stand, and whether it is there."""
        place = np.searchsorted(self.hashes, hashes)
        held = place < len(self.hashes)
        held[held] = self.hashes[place[held]] == hashes[held]
        return place, held


def _first(ordered: NDArray[np.uint64]) -> NDArray[np.bool_]:
    """Marks what differs from what stands before it."""
    marks = np.ones(len(ordered), np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=marks[1:])
    return marks


def _distinct(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    ordered = np.sort(values)
    return ordered[_first(ordered)]
