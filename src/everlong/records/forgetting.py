"""What is said of forgetting: where something is mentioned, what went, and the receipt of an erasure."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from everlong.records.kept import Fact, Scope

if TYPE_CHECKING:
    from collections.abc import Mapping

MentionKind = Literal["fact", "message", "section", "attribute", "file", "proposal"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """One place that tells of something. ``id`` is the fact's, message's or proposal's id, the section's or attribute's
    name, or ``path:line``; ``text`` is what stands there.

    ``score`` is 1 when the words themselves stand there, else how near the meaning is (0 to 1).
    """

    kind: MentionKind
    id: str
    text: str
    scope: Scope
    session: str = ""
    score: float = 1.0

    @property
    def ref(self) -> str:
        """What names this place when forgetting is confirmed, such as ``fact fact_01`` or ``message s1 msg_7``."""
        return " ".join(part for part in (self.kind, self.session if self.kind == "message" else "", self.id) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgotten:
    """A fact that was retired, and where else in memory it is still told: nothing of that was changed."""

    fact: Fact
    mentions: tuple[Mention, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """Everything that tells of ``topic``: by its words, or by a meaning nearer than ``threshold``."""

    topic: str
    threshold: float
    mentions: tuple[Mention, ...] = ()

    @property
    def refs(self) -> tuple[str, ...]:
        """All of it but memory files: those are changed only when their lines are named."""
        return tuple(mention.ref for mention in self.mentions if mention.kind != "file")


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicForgotten:
    """What went: ``gone`` as it was found, ``left`` what still tells of it, ``counts`` of all records touched by kind."""

    topic: str
    gone: tuple[Mention, ...] = ()
    left: tuple[Mention, ...] = ()
    counts: Mapping[str, int] = field(default_factory=dict, hash=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """Proof of an erasure: what was erased where, when and by whom, in numbers and without a word of it.

    ``digest`` is the SHA-256 of all other fields, ``signature`` its HMAC-SHA256 with the setting ``signing_key``; both in
    hex. ``signature`` is empty when no key is set: such a receipt proves nothing to others.
    """

    id: str
    scope: Scope
    at: datetime
    by: str
    counts: Mapping[str, int] = field(default_factory=dict, hash=False)
    digest: str = ""
    signature: str = ""

    @property
    def signed(self) -> bool:
        return bool(self.signature)
