"""What the tools of the MCP server take and give. Clients write numbers, flags and lists as text: that is understood."""

from __future__ import annotations

import re
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any, Final
from zoneinfo import ZoneInfo

from pydantic import BaseModel, BeforeValidator, Field
from pydantic_core import PydanticCustomError

from everlong.errors import InvalidInput
from everlong.records import Fact, Hit, Kind, Message, Passage

if TYPE_CHECKING:
    from everlong.records import FileInfo, Proposal

__all__ = [
    "Block",
    "Cursor",
    "Decided",
    "FactShape",
    "FileShape",
    "FileText",
    "Files",
    "Flag",
    "Gone",
    "HitShape",
    "Kinds",
    "Number",
    "Person",
    "Recalled",
    "Review",
    "Reviews",
    "Share",
    "Stored",
    "Text",
    "Texts",
    "Told",
    "Versions",
    "Written",
    "moment",
    "shown",
]

SHOWN: Final = 4000
"""Characters shown of one thing that was found; a pasted log must not push everything else out of a model's window."""
_SEPARATORS: Final = re.compile(r"[,，、;；\n]")


def _no_flag(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticCustomError("number", "true and false are no numbers")
    return value


def _list(value: Any) -> Any:
    """``work``, ``a, b`` and ``['a', 'b']`` mean lists; JSON is read by the SDK already."""
    if isinstance(value, str):
        return [piece for each in _SEPARATORS.split(value) if (piece := each.strip().strip("[]'\"").strip())]
    return value


Text = Annotated[str, Field(coerce_numbers_to_str=True)]
Number = Annotated[int, BeforeValidator(_no_flag)]
Share = Annotated[float, BeforeValidator(_no_flag)]
Flag = Annotated[bool, Field()]
Texts = Annotated[tuple[str, ...], BeforeValidator(_list)]
Kinds = Annotated[tuple[Kind, ...], BeforeValidator(_list)]
Cursor = Annotated[str, Field(description="Where the page before ended: its next.")]


def moment(name: str, text: str, zone: str) -> datetime | None:
    """A time in ISO form; a day begins at midnight, and what names no zone is meant in the users' own.

    Raises:
        InvalidInput: it is no time.
    """
    if not text.strip():
        return None
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        raise InvalidInput(
            f"{name} is {text[:40]!r}; write a day or time such as 2026-05-01 or 2026-05-01T12:00"
        ) from None
    return at if at.tzinfo else at.replace(tzinfo=ZoneInfo(zone))


def shown(text: str) -> str:
    """The text, or its beginning with a note of how long it is."""
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… (cut: {len(text)} characters in all)"


def _line(text: str) -> str:
    return " ".join(text.split())


class HitShape(BaseModel):
    """One thing that memory holds. ``score`` is from 0 to 1."""

    kind: Kind
    id: str
    text: str
    score: float
    at: datetime
    who: str = Field(default="", description="who said it (messages)")
    session: str = Field(default="", description="in which conversation (messages)")
    category: str = Field(default="", description="facts")
    path: str = Field(default="", description="files")

    @classmethod
    def of(cls, hit: Hit) -> HitShape:
        record, more = hit.record, {}
        if isinstance(record, Message):
            more = {"who": record.speaker or record.role, "session": record.session}
        elif isinstance(record, Passage):
            more = {"path": record.path}
        else:
            more = {"category": record.category}
        score = round(hit.score, 4)
        return cls(kind=hit.kind, id=hit.id, text=shown(hit.text), score=score, at=hit.at, **more)

    def line(self) -> str:
        """The hit as one line of data."""
        told = self.who or self.path or self.id
        return f"- {_line(self.text)} ({told}, {self.at:%Y-%m-%d}, score {self.score:.2f})"


class Recalled(BaseModel):
    """What was found, best first."""

    hits: list[HitShape]


class FactShape(BaseModel):
    """A fact. Times are UTC."""

    id: str
    content: str
    category: str
    confidence: float
    status: str
    version: int
    pinned: bool
    created_at: datetime
    updated_at: datetime
    valid_from: datetime | None
    valid_until: datetime | None
    reason: str

    @classmethod
    def of(cls, fact: Fact) -> FactShape:
        return cls(**{name: getattr(fact, name) for name in cls.model_fields})

    def line(self) -> str:
        """The fact as one line of data."""
        why = f", {_line(self.reason)}" if self.reason else ""
        return f"- version {self.version}: {_line(self.content)} ({self.status}, {self.updated_at:%Y-%m-%d}{why})"


class Stored(BaseModel):
    """What became of a statement: ``outcome`` (add, confirm, revise, supersede, hold, reject) and why."""

    outcome: str
    reason: str
    fact: FactShape | None
    redacted: dict[str, int] = Field(description="what was taken out of the text, by kind")


class Told(BaseModel):
    """A place where memory still tells of it: a message, a section, a file."""

    kind: str
    id: str
    text: str


class Gone(BaseModel):
    """A fact that was forgotten, and where else it is still told: nothing of that was changed."""

    fact: FactShape
    mentions: list[Told]


class Versions(BaseModel):
    """Every version of a fact, oldest first."""

    versions: list[FactShape]


class Block(BaseModel):
    """A block for a prompt; empty when there is nothing to say."""

    text: str
    tokens: int
    budget: int


class Person(BaseModel):
    """A profile: prose sections, and named attributes."""

    sections: dict[str, str]
    attributes: dict[str, Any]
    version: int


class FileShape(BaseModel):
    """A memory file without its text; ``size`` is in bytes."""

    path: str
    size: int
    version: int
    updated_at: datetime
    read_only: bool

    @classmethod
    def of(cls, info: FileInfo) -> FileShape:
        return cls(**{name: getattr(info, name) for name in cls.model_fields})


class Files(BaseModel):
    """Files by path."""

    files: list[FileShape]


class FileText(BaseModel):
    """A part of a file's text. ``next`` is the start of the following part; null at the end."""

    path: str
    version: int
    text: str
    start: int
    total: int = Field(description="characters of the whole file")
    next: int | None


class Written(BaseModel):
    """A file that was written; ``version`` is the one to name when it is written again."""

    path: str
    version: int
    size: int


class Review(BaseModel):
    """A change that waits for a person."""

    id: str
    kind: str
    target: str
    text: str = Field(description="what would change")
    reason: str
    by: str
    created_at: datetime

    @classmethod
    def of(cls, proposal: Proposal, text: str) -> Review:
        return cls(text=shown(text), **{n: getattr(proposal, n) for n in cls.model_fields if n != "text"})


class Reviews(BaseModel):
    """Changes that wait, newest first. ``next`` is the cursor of the following page; empty at the end."""

    waiting: list[Review]
    total: int
    next: str


class Decided(BaseModel):
    """A decision on a change that waited."""

    id: str
    decision: str
    text: str = Field(description="what holds now")
