"""What is kept: scopes, messages, facts, profiles, files, jobs, the journal."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from itertools import product
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar

from everlong.errors import InvalidScope

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_PART: Final = 512
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Scope:
    """Where a memory is kept and from where it is seen.

    An empty part means "any", so fewer parts mean a wider scope. What is kept at a scope is visible from every
    scope that it covers: a fact at ``Scope(user="ann")`` is seen from ``Scope(user="ann", agent="coder")`` and
    never from ``Scope(user="bob")``.

    Looking down, at what lies within a scope (work, journal, inbox, erasure), the tenant is a wall: an empty ``org`` is
    the tenant without a name, not every tenant. Only the empty ``Scope()``, an operator's, holds all of them.

    Parts are any non-blank text up to 512 characters without NUL or lone surrogates; they are compared exactly
    (case, spaces and all), never by prefix.

    Raises:
        InvalidScope: a part is not text, is blank but not empty, too long, or cannot be stored.
    """

    org: str = ""
    agent: str = ""
    user: str = ""
    session: str = ""

    def __post_init__(self) -> None:
        for name in ("org", "agent", "user", "session"):
            _check_part(name, getattr(self, name))

    def covers(self, other: Scope) -> bool:
        """Whether what is kept here is visible from ``other``."""
        return all(not mine or mine == theirs for mine, theirs in zip(self.parts, other.parts, strict=True))

    def contains(self, other: Scope) -> bool:
        """Whether what is kept at ``other`` lies within this scope: it covers it and is of the same tenant."""
        return self.covers(other) and (self.org == other.org or not any(self.parts))

    @property
    def parts(self) -> tuple[str, str, str, str]:
        """``(org, agent, user, session)``."""
        return (self.org, self.agent, self.user, self.session)

    @property
    def home(self) -> Scope:
        """The scope less its session: where facts, profiles and messages of a conversation are kept."""
        return Scope(org=self.org, agent=self.agent, user=self.user) if self.session else self

    def covering(self) -> tuple[Scope, ...]:
        """Every scope that covers this one (at most 16), widest first: the only places a question here may look."""
        choices = [("", part) if part else ("",) for part in self.parts]
        return tuple(Scope(org=o, agent=a, user=u, session=s) for o, a, u, s in product(*choices))

    def __str__(self) -> str:
        """``user=ann agent=coder``, or ``everywhere``."""
        named = zip(("org", "agent", "user", "session"), self.parts, strict=True)
        return " ".join(f"{name}={part}" for name, part in named if part) or "everywhere"


def _check_part(name: str, part: object) -> None:
    if not isinstance(part, str):
        msg = f"scope part {name!r} must be text, not {type(part).__name__}"
        raise InvalidScope(msg)
    if part and not part.strip():
        msg = f"scope part {name!r} is blank; leave it empty to mean any"
        raise InvalidScope(msg)
    if len(part) > _MAX_PART:
        msg = f"scope part {name!r} has {len(part)} characters; {_MAX_PART} at most"
        raise InvalidScope(msg)
    if any(c == "\x00" or "\ud800" <= c <= "\udfff" for c in part):
        msg = f"scope part {name!r} holds a NUL or a lone surrogate, which no store can keep"
        raise InvalidScope(msg)


Role = Literal["user", "agent", "operator", "system"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Who asks. Comes from a credential or the host's runtime, never from a body, a tool argument or a model."""

    id: str
    role: Role = "user"
    groups: tuple[str, ...] = ()


Origin = Literal["user", "assistant", "tool", "document", "operator", "import"]

TRUST: Final[Mapping[Origin, float]] = MappingProxyType(
    {"operator": 1.0, "user": 0.9, "import": 0.6, "assistant": 0.4, "document": 0.2, "tool": 0.2}
)
"""How far a statement is believed by who made it, 0 to 1. A merged record has the least trust of its sources."""

MessageRole = Literal["user", "assistant", "tool", "system"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One turn that was said (episodic memory).

    ``scope`` is the home scope (no session): the conversation is the field ``session``, so that a user's past
    conversations are seen from the present one. ``position`` is the order in the bucket, from 1; 0 until stored.
    """

    id: str
    scope: Scope
    session: str
    role: MessageRole
    content: str
    created_at: datetime
    speaker: str = ""
    origin: Origin = "user"
    position: int = 0
    signals: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """One conversation. ``extracted`` is the watermark: the position up to which messages became facts.

    ``epoch`` changes when the session is cleared or made anew, so that work begun before that cannot land after it.
    """

    scope: Scope
    created_at: datetime
    updated_at: datetime
    extracted: int = 0
    epoch: str = ""


CATEGORIES: Final = ("preference", "knowledge", "context", "behavior", "goal", "correction", "todo", "conclusion")
"""The built-in categories: DeerFlow's five and ``correction`` (2.0), and the vector design's ``todo`` and
``conclusion``. Settings may add slugs of their own."""

FactStatus = Literal["active", "held", "retired"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """The words that support a fact, and the message in which they stand."""

    message_id: str
    quote: str
    session: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One standalone sentence that is believed, with all that is needed to doubt it.

    ``confidence`` and ``importance`` are 0 to 1. ``created_at`` and ``retired_at`` are system time (when it was
    known), ``valid_from`` and ``valid_until`` are world time (when it holds). ``session`` is the conversation it
    was learned in. ``status`` is ``held`` while it waits for review; a held fact is never recalled.
    """

    id: str
    scope: Scope
    content: str
    created_at: datetime
    updated_at: datetime
    category: str = "context"
    confidence: float = 0.5
    importance: float = 0.5
    pinned: bool = False
    origin: Origin = "user"
    trust: float = TRUST["user"]
    evidence: tuple[Evidence, ...] = ()
    session: str = ""
    status: FactStatus = "active"
    version: int = 1
    confirmations: int = 0
    uses: int = 0
    last_used_at: datetime | None = None
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    retired_at: datetime | None = None
    reason: str = ""
    supersedes: str = ""
    superseded_by: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)

    def holds(self, at: datetime) -> bool:
        """Whether it is said to be so at that time of the world: from ``valid_from`` on, until before ``valid_until``."""
        begun = self.valid_from is None or self.valid_from <= at
        return begun and (self.valid_until is None or at < self.valid_until)


SECTIONS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "workContext": "user",
        "personalContext": "user",
        "topOfMind": "user",
        "recentMonths": "history",
        "earlierContext": "history",
        "longTermBackground": "history",
    }
)
"""DeerFlow's six prose sections, each with the group it stands in, in the order in which a prompt shows them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """One prose paragraph of a profile; ``updated_at`` moves only when this paragraph changed."""

    summary: str
    updated_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Static memory of one scope: six sections and named attributes. ``version`` 0 means nothing is stored yet."""

    scope: Scope
    sections: Mapping[str, Section] = field(default_factory=dict, hash=False)
    attributes: Mapping[str, Any] = field(default_factory=dict, hash=False)
    version: int = 0
    updated_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFile:
    """A versioned file under a virtual absolute path such as ``/memories/AGENTS.md``."""

    scope: Scope
    path: str
    content: bytes
    created_at: datetime
    updated_at: datetime
    version: int = 1
    read_only: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of a memory file's text, as search finds it; ``number`` is its place in the file, from 0.

    ``created_at`` is when this piece of the file came to read as it does.
    """

    id: str
    scope: Scope
    path: str
    number: int
    content: str
    created_at: datetime


JobState = Literal["waiting", "running", "parked"]

TIMED: Final = ("upkeep",)
"""Kinds of jobs that wait for a time of their own, and for nobody: while they wait they are no backlog, so they are
neither counted nor hurried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One piece of background work, a row in the same database as what it works on; done work is deleted.

    ``scope`` includes the session. At most one job per ``(org, kind, key)`` waits at a time. ``first_at`` is when
    the oldest request merged into it was made, which bounds how long debouncing may delay it. ``attempts`` counts
    claims. A ``running`` job whose ``lease_until`` has passed may be claimed again.
    """

    id: str
    kind: str
    key: str
    scope: Scope
    run_after: datetime
    first_at: datetime
    state: JobState = "waiting"
    attempts: int = 0
    lease_until: datetime | None = None
    worker: str = ""
    error: str = ""
    payload: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the journal: who did what to which record, where, and why. Never rewritten, only erased."""

    id: str
    at: datetime
    scope: Scope
    by: str
    action: str
    kind: str = ""
    target: str = ""
    reason: str = ""
    before: int | None = None
    after: int | None = None
    payload: Mapping[str, Any] = field(default_factory=dict, hash=False)


ProposalKind = Literal["fact", "removal", "section", "call"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A change that waits in the review inbox; it takes effect only when a person approves it.

    ``target`` is the held fact's id (``fact``), the id of the fact that should go (``removal``), the section's name
    (``section``, with ``payload["summary"]``), or the action (``call``, with its arguments as ``payload``).
    """

    id: str
    scope: Scope
    kind: ProposalKind
    target: str
    reason: str
    by: str
    created_at: datetime
    payload: Mapping[str, Any] = field(default_factory=dict, hash=False)
