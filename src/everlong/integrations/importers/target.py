"""Where records are brought to, and how they are made from what others wrote."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from everlong.errors import InvalidInput
from everlong.records import TRUST, Fact, Fault, Kept, Message, Scope, Session

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everlong.records import MessageRole

__all__ = ["Dialect", "Found", "Target", "Turn", "load_json", "moment", "talk", "written_at"]

Found = tuple[int, Kept | Fault]
"""A record, or what is wrong, with its place in the source: a line or the number of an item, from 1."""

_MILLISECONDS: Final = 1e11
"""A number of seconds above this would lie after the year 5000, so it counts milliseconds."""
_LONGEST_SESSION: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """``now`` stands for times that the source does not tell: when it was written, so that reading it again gives the
    same records. ``only`` is the user to take of a source of several."""

    scope: Scope
    dialect: str
    now: datetime
    categories: frozenset[str]
    only: str = ""
    facts: bool = False

    def name(self, kind: str, *parts: object) -> str:
        """An id that is the same each time, and another for everyone's memory."""
        told = json.dumps([self.scope.parts, self.dialect, *map(str, parts)], ensure_ascii=False)
        return f"{kind}_{sha256(told.encode('utf-8', 'replace')).hexdigest()[:32]}"

    def fact(
        self,
        content: str,
        *,
        key: object,
        category: object = None,
        created: datetime | None = None,
        updated: datetime | None = None,
        confidence: float = 0.9,
        session: str = "",
        metadata: Mapping[str, Any] | None = None,
    ) -> Fact:
        """A fact that another program believed. A category that is not known here stays in the metadata."""
        known = isinstance(category, str) and category in self.categories
        begun = created or updated or self.now
        kept = dict(metadata or {}) if known or not category else {**(metadata or {}), "category": category}
        return Fact(
            id=self.name("fact", key),
            scope=self.scope,
            content=content,
            created_at=begun,
            updated_at=max(updated or begun, begun),
            category=str(category) if known else "context",
            confidence=confidence,
            origin="import",
            trust=TRUST["import"],
            session=session,
            reason=f"brought over from {self.dialect}",
            metadata=kept,
        )


Dialect = Callable[[str, Target], Iterator[Found]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """One thing said in a conversation of the source, at ``place`` there."""

    place: int
    key: str
    role: MessageRole
    content: str
    at: datetime | None
    speaker: str = ""


def talk(
    target: Target, name: str, turns: list[Turn], *, title: str = "", begun: datetime | None = None, first: int = 1
) -> Iterator[Found]:
    """A conversation as a session and its messages, in their order; ``first`` is the position of the first."""
    if not turns:
        return
    times: list[datetime] = []
    for turn in turns:
        times.append(turn.at or (times[-1] if times else begun or target.now))
    session = f"{target.dialect}:{name}"[:_LONGEST_SESSION]
    where = Scope(org=target.scope.org, agent=target.scope.agent, user=target.scope.user, session=session)
    yield turns[0].place, Session(scope=where, created_at=min(times), updated_at=max(times))
    for position, (turn, at) in enumerate(zip(turns, times, strict=True), first):
        message = Message(
            id=target.name("said", name, turn.key),
            scope=target.scope,
            session=session,
            role=turn.role,
            content=turn.content,
            created_at=at,
            speaker=turn.speaker,
            origin="assistant" if turn.role == "assistant" else "import",
            position=position,
            metadata={"title": title} if title else {},
        )
        yield turn.place, message


def moment(value: object) -> datetime | None:
    """A time as seconds, milliseconds or ISO 8601 (without a zone: UTC); ``None`` if it is none."""
    try:
        if isinstance(value, str) and value.strip():
            at = datetime.fromisoformat(value.strip())
            return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            return datetime.fromtimestamp(value / 1000 if value > _MILLISECONDS else value, UTC)
    except (ValueError, OverflowError, OSError):
        return None
    return None


def written_at(path: Path, now: datetime) -> datetime:
    """When the file or folder was written last; ``now`` if it is none."""
    try:
        return datetime.fromtimestamp(path.stat().st_mtime, UTC)
    except (OSError, ValueError):
        return now


def load_json(source: str) -> Any:
    """What a JSON file says.

    Raises:
        InvalidInput: it cannot be read, or is no JSON in UTF-8; the message names the line.
    """
    try:
        return json.loads(Path(source).read_text("utf-8-sig"))
    except OSError as error:
        raise InvalidInput(f"{source} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{source} is no JSON: {error}") from None
