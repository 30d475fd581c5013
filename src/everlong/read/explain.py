"""Why a question found what it found: a trace with the texts it speaks of, and two traces side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from everlong.errors import InvalidInput
from everlong.records import Considered, Query, Trace

if TYPE_CHECKING:
    from everlong.protocols import Transaction
    from everlong.records import Kind, Scope

__all__ = ["Compared", "Explanation", "Replay", "Row", "Stage", "compared", "explained", "varied"]

_GONE: Final = "(no longer there)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One step of answering: how long it took, and after how many milliseconds it began."""

    name: str
    begins: float
    milliseconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One candidate with its text as it stands now. ``shown`` is whether it reached the reader: kept by the search, and
    of a block not left out by its budget. ``reason`` is the first thing that dropped it."""

    kind: Kind
    id: str
    score: float
    shown: bool
    reason: str
    text: str
    parts: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """A trace as a person reads it: the stages in order, and every candidate that was weighed."""

    trace: Trace
    stages: tuple[Stage, ...]
    rows: tuple[Row, ...]

    @property
    def milliseconds(self) -> float:
        """The time of all stages."""
        return sum(stage.milliseconds for stage in self.stages)

    @property
    def settings(self) -> dict[str, Any]:
        """What was asked for beside the words: the fields of the query that differ from the usual, and the threshold."""
        usual = Query(text="")
        given = {name: getattr(self.trace.query, name) for name in Query.__slots__ if name != "text"}
        changed = {name: value for name, value in given.items() if value != getattr(usual, name)}
        return {**changed, "min_score": self.trace.minimum, "limit": self.trace.query.limit}


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """One candidate in two answers; ``None`` where it was not weighed."""

    kind: Kind
    id: str
    text: str
    before: Considered | None
    after: Considered | None

    @property
    def verdict(self) -> str:
        """``in`` (now found), ``out`` (found no more), ``both`` or ``neither``."""
        was, is_ = (each is not None and each.kept for each in (self.before, self.after))
        return {(False, True): "in", (True, False): "out", (True, True): "both"}.get((was, is_), "neither")


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The same question asked again with other settings; ``rows`` in the order of the new answer, then of the old."""

    before: Trace
    after: Trace
    changes: Mapping[str, Any]
    rows: tuple[Compared, ...]


def explained(tx: Transaction, scope: Scope, trace: Trace) -> Explanation:
    """``trace`` with the texts of its candidates as ``scope`` may see them now; what was erased since has none."""
    texts = _texts(tx, scope, trace.considered)
    omitted = {each.what: each.reason for each in trace.omitted}
    rows = []
    for each in trace.considered:
        lost = omitted.get(f"{each.kind} {each.id}", "") if each.kept else ""
        rows.append(
            Row(
                kind=each.kind,
                id=each.id,
                score=each.score,
                shown=each.kept and not lost,
                reason=f"left out of the block: {lost}" if lost else each.reason,
                text=texts.get((each.kind, each.id), _GONE),
                parts=each.parts,
            )
        )
    stages, begins = [], 0.0
    for name, milliseconds in trace.milliseconds.items():
        stages.append(Stage(name=name, begins=round(begins, 3), milliseconds=milliseconds))
        begins += milliseconds
    return Explanation(trace=trace, stages=tuple(stages), rows=tuple(rows))


def varied(trace: Trace, changes: Mapping[str, Any]) -> Query:
    """The question of ``trace`` with other settings, at the time at which it was asked.

    Raises:
        InvalidInput: a setting is unknown.
    """
    try:
        return replace(trace.query, **{"at": trace.at, **changes})
    except TypeError as error:
        known = ", ".join(Query.__slots__)
        raise InvalidInput(f"{error}; what can be changed is {known}") from None


def compared(tx: Transaction, scope: Scope, before: Trace, after: Trace, changes: Mapping[str, Any]) -> Replay:
    """Both answers, candidate by candidate."""
    was = {(each.kind, each.id): each for each in before.considered}
    now = {(each.kind, each.id): each for each in after.considered}
    texts = _texts(tx, scope, (*after.considered, *before.considered))
    rows = tuple(
        Compared(
            kind=kind,
            id=name,
            text=texts.get((kind, name), _GONE),
            before=was.get((kind, name)),
            after=now.get((kind, name)),
        )
        for kind, name in dict.fromkeys((*now, *was))
    )
    return Replay(before=before, after=after, changes=dict(changes), rows=rows)


def _texts(tx: Transaction, scope: Scope, candidates: tuple[Considered, ...]) -> dict[tuple[Kind, str], str]:
    ids: dict[Kind, list[str]] = {}
    for each in candidates:
        ids.setdefault(each.kind, []).append(each.id)
    shelves: dict[Kind, Any] = {"fact": tx.facts, "message": tx.messages, "file": tx.passages}
    return {
        (kind, name): record.content
        for kind, names in ids.items()
        for name, record in shelves[kind].many(scope, names).items()
    }
