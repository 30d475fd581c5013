"""What reading works with and gives: questions, hits, traces, prompt blocks, pages."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

from everlong.records.kept import Fact, Message, Origin, Passage, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal["fact", "message", "file"]
ALL_KINDS: Final[tuple[Kind, ...]] = ("fact", "message", "file")
_ASKED: Final[tuple[Kind, ...]] = ("fact", "message")


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A question to memory. Filters decide what is searched at all, not what is left after ranking.

    ``kinds`` may add ``"file"``: the text of memory files. ``limit`` is the number of hits per kind. ``min_score`` is on
    the calibrated scale; ``None`` takes the preset's. ``exclude_sessions`` leaves out what was said in those
    conversations, such as the present one, which the agent has before it anyway. ``at`` is when the question is asked;
    relative dates in it are read from there, in ``zone``.

    ``categories`` leaves facts of these only. ``origins`` and ``min_trust`` (0 to 1) look at who a record comes from,
    ``min_confidence`` at how sure a fact is (turns and files count as sure). ``since`` (included) and ``until``
    (excluded) are when it was recorded. ``metadata`` holds conditions on the records' metadata by key, see
    :func:`everlong.read.filters.matches`.

    ``files`` leaves files' text of these paths only; one that ends in ``/`` stands for all below that folder.

    ``as_of`` asks what was known then: facts as they were, also those retired or revised since (a text that was revised
    since is found by its words), turns recorded until then, files' text that has stood since. ``valid_at`` asks what
    holds at that time of the world: facts whose validity has not begun or is over then are not searched. Without it,
    those that are over at ``at`` are left out and those still to come are found.

    ``before`` and ``after`` are how many neighbouring turns a recalled turn comes with.
    """

    text: str
    kinds: tuple[Kind, ...] = _ASKED
    limit: int = 5
    min_score: float | None = None
    categories: tuple[str, ...] = ()
    sessions: tuple[str, ...] = ()
    exclude_sessions: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    at: datetime | None = None
    zone: str = "UTC"
    origins: tuple[Origin, ...] = ()
    min_confidence: float = 0.0
    min_trust: float = 0.0
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    as_of: datetime | None = None
    valid_at: datetime | None = None
    before: int = 1
    after: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One recalled record. ``score`` is absolute, 0 to 1, higher is better; ``parts`` says what it is made of.

    ``window`` is a turn with its neighbours in the same conversation, in order; empty for facts and files.
    """

    kind: Kind
    id: str
    score: float
    record: Fact | Message | Passage
    parts: Mapping[str, float] = field(default_factory=dict, hash=False)
    window: tuple[Message, ...] = ()

    @property
    def text(self) -> str:
        """What is remembered, as it was stored."""
        return self.record.content

    @property
    def at(self) -> datetime:
        """When it was said, learned or written."""
        return self.record.created_at


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
class Omitted:
    """What was left out of a prompt block, and why."""

    what: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Why a recall found what it found. ``milliseconds`` holds the time of each stage, in the order of the stages.

    ``minimum`` is the threshold on the score; ``searched`` says of each kind how many records the filters let in. After a
    ``context`` also the ``block``, its ``tokens`` and ``budget``, and what composition ``omitted``.
    """

    id: str
    query: Query
    scope: Scope
    at: datetime
    embedder: str
    considered: tuple[Considered, ...] = ()
    milliseconds: Mapping[str, float] = field(default_factory=dict, hash=False)
    minimum: float = 0.0
    searched: Mapping[str, int] = field(default_factory=dict, hash=False)
    block: str = ""
    tokens: int = 0
    budget: int = 0
    omitted: tuple[Omitted, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Recall:
    """Hits, best first, facts and messages together, and the trace that explains them."""

    hits: tuple[Hit, ...]
    trace: Trace


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """A block for a prompt. ``text`` is ``stable`` (same bytes while memory is unchanged) and then ``relevant``
    (depends on the question); empty when there is nothing to say. ``tokens`` never exceeds ``budget``.

    ``layers`` holds its lines under ``static_facts``, ``extracted_facts`` and ``conversation_history``."""

    text: str
    stable: str
    relevant: str
    tokens: int
    budget: int
    hits: tuple[Hit, ...] = ()
    omitted: tuple[Omitted, ...] = ()
    trace: Trace | None = None
    layers: Mapping[str, tuple[str, ...]] = field(default_factory=dict, hash=False)


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Page(Generic[T]):
    """One page of a list: ``total`` counts all, ``next`` is the cursor of the following page or empty."""

    items: tuple[T, ...]
    total: int
    next: str = ""
