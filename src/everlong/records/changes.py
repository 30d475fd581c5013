"""What writing works with and gives: extractions, decisions, results."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, Self

from everlong.records.kept import Evidence, Fact, Message, Origin, Profile, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A fact that an extractor proposes; nothing is stored before it was reconciled.

    ``removes`` names facts (ids) that this one replaces according to the extractor.
    """

    content: str
    category: str = "context"
    confidence: float = 0.5
    importance: float = 0.5
    origin: Origin = "user"
    evidence: tuple[Evidence, ...] = ()
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    reason: str = ""
    session_only: bool = False
    removes: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Removal:
    """A fact (by id) that an extractor wants gone, and why."""

    fact_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A malformed or unsafe piece of an answer that was left out, with the reason."""

    reason: str
    raw: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What model calls cost, in calls and tokens as the endpoint counted them."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: Self) -> Self:
        return type(self)(
            calls=self.calls + other.calls,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """What an extractor sees: new messages in order, and what is already believed near them.

    ``context`` are messages just before ``messages``, for understanding only: nothing is extracted from them.
    ``revision`` is that of the bucket of facts when ``facts`` were read, by which a later writer sees that they changed.
    """

    scope: Scope
    messages: tuple[Message, ...]
    profile: Profile
    facts: tuple[Fact, ...] = ()
    context: tuple[Message, ...] = ()
    now: datetime
    zone: str = "UTC"
    revision: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What an extractor answers. ``sections`` maps a section's name to its new summary; ``raw`` is the answer
    as the model gave it, kept for diagnosis; ``prompt`` is the version of the rules it was asked with.

    ``taken`` is how many of the batch's messages it read, from the first on; ``None`` means all. The rest of the
    batch is read by the next extraction, so an extractor takes what fits into its window and loses nothing.
    """

    candidates: tuple[Candidate, ...] = ()
    sections: Mapping[str, str] = field(default_factory=dict, hash=False)
    removals: tuple[Removal, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    extractor: str = ""
    prompt: str = ""
    taken: int | None = None
    raw: str = ""
    usage: Usage = field(default_factory=Usage)


ChangeKind = Literal["add", "revise", "supersede", "confirm", "retire", "hold", "reject", "section"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One decision of the reconciler, with its reason.

    ``add``, ``hold``: ``fact`` is new. ``revise``, ``confirm``, ``retire``: ``fact`` is the new state of an
    existing one, whose version was ``expected``. ``supersede``: ``fact`` is new and ``old`` is the retired state
    of the one it replaces. ``hold`` without ``fact``: the removal of ``old``, or a section's ``summary``, waits for a
    person. ``reject``: only ``candidate``. ``section``: ``section`` gets ``summary``.
    """

    kind: ChangeKind
    reason: str
    fact: Fact | None = None
    old: Fact | None = None
    expected: int | None = None
    candidate: Candidate | None = None
    section: str = ""
    summary: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeSet:
    """All decisions about one extraction; applied in one transaction or not at all."""

    changes: tuple[Change, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of one candidate of an extraction, and why. ``fact_id`` is empty when no fact came of it."""

    kind: ChangeKind
    reason: str
    content: str
    fact_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractionRecord:
    """One extraction as it happened: what was read, what the extractor answered, what was decided, what it cost.

    ``scope`` is the conversation's, ``messages`` are the ids read, ``prompt`` is the version of the rules, ``raw`` the
    model's answer, ``milliseconds`` the time the extractor took. ``error`` is set when the attempt failed: then
    nothing was decided, and the cost is counted all the same.
    """

    id: str
    scope: Scope
    at: datetime
    extractor: str
    prompt: str = ""
    messages: tuple[str, ...] = ()
    decisions: tuple[Outcome, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    raw: str = ""
    usage: Usage = field(default_factory=Usage)
    milliseconds: float = 0.0
    error: str = ""


AddStatus = Literal["queued", "duplicate", "nothing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Added:
    """What :meth:`add` stored. ``status`` is ``queued`` (stored, extraction waits as ``job_id``), ``duplicate``
    (all of it was known) or ``nothing`` (none of it is worth keeping; ``ignored`` says why). ``redacted`` counts, by
    kind, what was taken out of the text before it was stored."""

    status: AddStatus
    message_ids: tuple[str, ...] = ()
    duplicates: tuple[str, ...] = ()
    ignored: tuple[Skipped, ...] = ()
    job_id: str = ""
    redacted: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What became of one fact given by hand: ``outcome`` and ``fact`` (or the one it merged into), and why.
    ``redacted`` counts, by kind, what was taken out of its text."""

    outcome: ChangeKind
    reason: str
    fact: Fact | None = None
    redacted: Mapping[str, int] = field(default_factory=dict, hash=False)
