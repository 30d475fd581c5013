"""Which candidates become hits, and why the others do not. Records are read of hits alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isnan
from typing import TYPE_CHECKING, Final

import numpy as np

from everlong.records import Considered, Hit

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from everlong.protocols import Corpus
    from everlong.read.neighbours import Shelves
    from everlong.records import Fact, Kind, Message, Passage

    Floats = NDArray[np.float64]

__all__ = ["Candidates", "Parts", "Verdicts"]

_CONSIDERED: Final = 50
"""Candidates of a kind that a trace lists at least, where there are so many."""


class Parts(Mapping[str, float]):
    """What one candidate's place comes from, rounded when it is looked at: of most traces it never is."""

    __slots__ = ("_names", "_values")

    def __init__(self, names: Sequence[str], values: Floats) -> None:
        self._names = names
        self._values = values

    def __getitem__(self, name: str) -> float:
        if name not in self._names or isnan(value := self._values[self._names.index(name)]):
            raise KeyError(name)
        return round(float(value), 4)

    def __iter__(self) -> Iterator[str]:
        return (name for name, value in zip(self._names, self._values.tolist(), strict=True) if not isnan(value))

    def __len__(self) -> int:
        return int(np.count_nonzero(~np.isnan(self._values)))

    def __repr__(self) -> str:
        """As the mapping that it stands for."""
        return repr(dict(self))


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """Rows of ``corpus`` in the ``order`` of their worth. ``parts`` has NaN where a row has no such part; ``lent`` is
    what a row has by association, 0 for most."""

    kind: Kind
    corpus: Corpus
    order: NDArray[np.int64]
    score: Floats
    lent: Floats
    parts: Mapping[str, Floats]


@dataclass(slots=True)
class _Records:
    """Records of the ``names`` that may be kept, read as many at once as can still become hits."""

    shelves: Shelves
    kind: Kind
    limit: int
    names: Sequence[str]
    read: dict[str, Fact | Message | Passage | None] = field(default_factory=dict)

    def take(self, name: str, taken: int) -> tuple[Fact | Message | Passage | None, str]:
        """The record, or why there is none."""
        if taken >= self.limit:
            return None, "over the limit"
        if name not in self.read:
            wanted = self.names[self.names.index(name) :][: self.limit - taken]
            self.read |= {**dict.fromkeys(wanted), **self.shelves.many(self.kind, wanted)}
        found = self.read[name]
        return found, "" if found is not None else "no longer there"


@dataclass(slots=True, kw_only=True)
class Verdicts:
    """Judges candidates one after another; ``moment`` is when a fact has to hold, in POSIX seconds as ``at``, ``shown``
    what needs no recall."""

    shelves: Shelves
    limit: int
    minimum: float
    at: float
    moment: float
    shown: frozenset[str]

    def of(self, candidates: Candidates) -> tuple[list[Hit], list[Considered]]:
        """``limit`` hits at most, and at least 50 candidates with their reasons where there are so many."""
        hits: list[Hit] = []
        considered: list[Considered] = []
        size = max(_CONSIDERED, self.limit)
        for start in range(0, len(candidates.order), size):
            if not self._judge(candidates, candidates.order[start : start + size], hits, considered):
                break
        return hits, considered

    def _judge(self, found: Candidates, rows: NDArray[np.int64], hits: list[Hit], considered: list[Considered]) -> bool:
        """Judges ``rows``; whether more are wanted."""
        kind, names = found.kind, (*found.parts, "associated")
        scores, lent = found.score[rows].tolist(), found.lent[rows]
        values = np.stack([*(part[rows] for part in found.parts.values()), np.where(lent, lent, np.nan)], axis=1)
        ids = [found.corpus.ids[row] for row in rows.tolist()]
        refusals, notes = self._refusals(found.corpus, rows, ids, scores), self._notes(found.corpus, rows, lent)
        good = [name for name, refusal in zip(ids, refusals, strict=True) if not refusal]
        records = _Records(self.shelves, kind, self.limit, good)
        for name, score, refusal, note, of in zip(ids, scores, refusals, notes, values, strict=True):
            if (len(hits) >= self.limit or score < self.minimum) and len(considered) >= _CONSIDERED:
                return False
            parts = Parts(names, of)
            record, why = (None, refusal) if refusal else records.take(name, len(hits))
            if record is not None:
                hits.append(Hit(kind=kind, id=name, score=score, record=record, parts=dict(parts)))
            considered.append(
                Considered(kind=kind, id=name, score=score, kept=not why, reason=why or note, parts=parts)
            )
        return True

    def _refusals(
        self, corpus: Corpus, rows: NDArray[np.int64], ids: Sequence[str], scores: Sequence[float]
    ) -> list[str]:
        """Why each is dropped whatever its record says; empty when it may be kept."""
        below = f"below the threshold of {self.minimum:.2f}"
        return [
            "expired"
            if until <= self.moment
            else below
            if score < self.minimum
            else "shown among the latest turns"
            if name in self.shown
            else ""
            for name, score, until in zip(ids, scores, corpus.valid_until[rows].tolist(), strict=True)
        ]

    def _notes(self, corpus: Corpus, rows: NDArray[np.int64], lent: Floats) -> list[str]:
        """Why each is kept, if it is."""
        notes = ["learned with a strong match" if each else "relevant" for each in lent.tolist()]
        for place in np.flatnonzero(corpus.valid_from[rows] > self.at).tolist():
            begins = datetime.fromtimestamp(float(corpus.valid_from[rows[place]]), UTC)
            notes[place] += f", but holds only from {begins:%Y-%m-%d}"
        return notes
