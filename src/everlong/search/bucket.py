"""The live rows of one stored scope and kind, as they are kept in memory.

A bucket never changes: a delta makes a new one, so a search that runs keeps what it began with.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property, reduce
from math import isqrt
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from everlong.search.segment import Segment, by_session, joined

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from everlong.protocols import IndexRows
    from everlong.search.segment import Array

_LATEST: Final = 128
_LARGE: Final = 4096
_ROOTS: Final = 4
"""The latest rows stay apart, in a large bucket from the start, until they are more than so many, and more than so many
times the square root of the others: a new row costs a copy of the latest, and now and then one of all, and the sum of
both is least near there."""

COUNTED: Final = ("session", "speaker", "role")
_PLACES: Final = 8
"""Bytes a row of the order by conversation and its reverse."""


@dataclass(frozen=True)
class Bucket:
    """Rows by position, creation and id, in one segment or two: the second holds the latest, so that what is said, and
    embedded soon after, costs no copy of all that was said before."""

    segments: tuple[Segment, ...]

    @classmethod
    def build(cls, rows: IndexRows, dimensions: int) -> Self:
        """A bucket of those of ``rows`` that are live.

        Raises:
            SchemaMismatch: a vector does not have ``dimensions`` numbers a piece.
        """
        if len(rows.ids) > _LARGE:
            first = Segment.build(_part(rows, 0, -_LATEST), dimensions)
            last = Segment.build(_part(rows, -_LATEST, len(rows.ids)), dimensions)
            if first.ids and last.ids:
                return cls((first, last) if first.span[1] < last.span[0] else (first.updated((), last),))
        return cls((Segment.build(rows, dimensions),))

    def updated(self, rows: IndexRows, dimensions: int, *, within_session: bool = False) -> Self:
        """This bucket after the changes in ``rows``: changed rows replaced, those no longer live dropped.

        ``within_session`` says that an id names a row in its conversation only, as those of messages do.
        """
        sessions = rows.session if within_session else None
        first, *latest = self.segments
        fresh = Segment.build(rows, dimensions)
        behind = not first.ids or (bool(fresh.ids) and fresh.span[0] < first.span[1])
        if behind or not first.known.isdisjoint(rows.ids):
            return type(self)((reduce(Segment.extend, latest, first).updated(rows.ids, fresh, sessions),))
        end = latest[0].updated(rows.ids, fresh, sessions) if latest else fresh
        if len(end.ids) > max(_LATEST, _ROOTS * isqrt(len(first.ids))):
            return type(self)((first.updated((), end),))
        return type(self)((first, end) if end.ids else (first,))

    @cached_property
    def ids(self) -> list[str]:
        """Of all rows, in order."""
        return self.segments[0].ids if len(self.segments) == 1 else [i for part in self.segments for i in part.ids]

    @cached_property
    def _joined(self) -> tuple[dict[str, Array], dict[str, list[str]]]:
        return joined(self.segments)

    @cached_property
    def by_session(self) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """Rows conversation by conversation, and where each row stands there."""
        return by_session(self.columns["session"])

    @cached_property
    def counts(self) -> dict[str, NDArray[np.int64]]:
        """How many rows there are by conversation, speaker and role."""
        return {name: np.bincount(self.columns[name], minlength=len(self.names[name])) for name in COUNTED}

    @property
    def columns(self) -> dict[str, Array]:
        """Aligned with ``ids``; those of conversations, speakers and the like hold ordinals into ``names``."""
        return self._joined[0]

    @property
    def names(self) -> dict[str, list[str]]:
        """What the ordinals mean."""
        return self._joined[1]

    @property
    def nbytes(self) -> int:
        """Memory that it takes, about; what is joined of two segments is counted before it is."""
        joint = self.segments if len(self.segments) > 1 else ()
        return sum(each.nbytes for each in self.segments) + sum(each.light for each in joint) + _PLACES * len(self)

    def __len__(self) -> int:
        """How many rows there are."""
        return sum(len(each.ids) for each in self.segments)


def _part(rows: IndexRows, first: int, last: int) -> IndexRows:
    return replace(rows, **{each.name: getattr(rows, each.name)[first:last] for each in fields(rows)})
