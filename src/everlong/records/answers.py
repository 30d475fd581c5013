"""What reading works with and gives: questions, hits, traces, prompt blocks, pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, Generic, Literal, TypeVar

from everlong.records.kept import Fact, Message, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["fact", "message"]
ALL_KINDS: Final[tuple[Kind, ...]] = ("fact", "message")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question to memory. Filters decide what is searched at all, not what is left after ranking.

    ``limit`` is the number of hits per kind. ``min_score`` is on the calibrated scale; ``None`` takes the
    preset's. ``exclude_sessions`` leaves out what was said in those conversations, such as the present one, which
    the agent has before it anyway. ``at`` is when the question is asked; relative dates in it are read from there,
    in ``zone``.
    """

    text: str
    kinds: tuple[Kind, ...] = ALL_KINDS
    limit: int = 5
    min_score: float | None = None
    categories: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    exclude_sessions: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    at: datetime | None = None
    zone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One recalled record. ``score`` is absolute, 0 to 1, higher is better; ``parts`` says what it is made of."""

    kind: Kind
    id: str
    score: float
    record: Fact | Message
    parts: Mapping[str, float] = field(default_factory=dict, hash=False)

    @property
    def text(self) -> str:
        """What is remembered, as it was stored."""
        return self.record.content


@dataclass(frozen=True, slots=True, kw_only=True)
class Considered:
    """One candidate in a trace: kept, or dropped with a reason."""

    kind: Kind
    id: str
    score: float
    kept: bool
    reason: str
    parts: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Why a recall found what it found. ``milliseconds`` holds the time of each stage."""

    id: str
    query: Query
    scope: Scope
    at: datetime
    embedder: str
    considered: tuple[Considered, ...] = ()
    milliseconds: Mapping[str, float] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """Hits, best first, facts and messages together, and the trace that explains them."""

    hits: tuple[Hit, ...]
    trace: Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Omitted:
    """What was left out of a prompt block, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A block for a prompt. ``text`` is ``stable`` (same bytes while memory is unchanged) and then ``relevant``
    (depends on the question); empty when there is nothing to say. ``tokens`` never exceeds ``budget``."""

    text: str
    stable: str
    relevant: str
    tokens: int
    budget: int
    hits: tuple[Hit, ...] = ()
    omitted: tuple[Omitted, ...] = ()
    trace: Trace | None = None


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """One page of a list: ``total`` counts all, ``next`` is the cursor of the following page or empty."""

    items: tuple[T, ...]
    total: int
    next: str = ""
