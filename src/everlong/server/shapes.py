"""What requests may hold. A name that is not here is refused, so that a typing error is no silent default.

Here is the shape only: what a value means (a category that is not known, a text without words) is judged by memory.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import (
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    StrictBool,
    StrictInt,
    model_validator,
)
from pydantic_core import PydanticCustomError

from everlong.records import Kind, Origin
from everlong.write.forget import THRESHOLD

__all__ = [
    "Approval",
    "ContextQuestion",
    "Conversation",
    "Conversations",
    "Erasure",
    "FactChange",
    "FactStatement",
    "FactStatements",
    "FileEdit",
    "FileText",
    "FileVersion",
    "Moment",
    "PolicyQuestion",
    "ProfileChange",
    "Question",
    "Reason",
    "Rejection",
    "Replaying",
    "SkillText",
    "TopicErasure",
    "TopicQuestion",
    "Turns",
]


_DATE = re.compile(r"\d{4}-\d\d-\d\dT")


def _written(value: Any) -> Any:
    if not isinstance(value, str) or not _DATE.match(value):  # a bare number would be read as seconds since 1970
        raise PydanticCustomError("moment", "a time is text such as 2026-05-01T12:00:00Z")
    return value


def _whole(value: Any) -> Any:
    """JSON has one kind of number: 4.0 is the integer 4."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


_WHOLE = BeforeValidator(_whole)  # goes last, so that the bounds before it stand in the description, too
_Whole = Annotated[StrictInt, _WHOLE]
Moment = Annotated[AwareDatetime, BeforeValidator(_written)]
"""A time with its zone, as text."""
_Share = Annotated[float, Field(strict=True, ge=0, le=1)]
_Version = Annotated[StrictInt, Field(ge=0, le=2**53), _WHOLE]
_Count = Annotated[StrictInt, Field(ge=0, le=1000), _WHOLE]
_Object = dict[str, JsonValue]
_Name = Annotated[str, Field(max_length=512)]
_MOST = 100
"""Items of one batch: each is a transaction of its own, and the request waits for all."""


def _mended(value: Any) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    if isinstance(value, list):
        return [_mended(each) for each in value]
    if isinstance(value, dict):
        return {_mended(name): _mended(each) for name, each in value.items()}
    return value


class _Shape(BaseModel):
    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _readable(cls, given: Any) -> Any:
        """Half characters, which JSON can hold and no store can, become the mark for them before anything is read."""
        return _mended(given)

    @property
    def given(self) -> dict[str, Any]:
        """What the request holds, less what it left out."""
        return {name: getattr(self, name) for name in self.model_fields_set}


class Turn(_Shape):
    """One message. Block content, tool calls and notes of frameworks may come along; only words are kept."""

    role: str | None = None
    type: str | None = None
    content: str | list[JsonValue] | None = None
    id: _Name | None = None
    name: str | None = None
    speaker: str | None = None
    created_at: str | _Whole | float | None = None
    timestamp: str | _Whole | float | None = None
    origin: str | None = None
    metadata: _Object | None = None
    additional_kwargs: _Object | None = None
    tool_calls: list[JsonValue] | None = None
    invalid_tool_calls: list[JsonValue] | None = None
    function_call: JsonValue = None


class Turns(_Shape):
    """Messages of one conversation, in order."""

    messages: Annotated[list[Turn], Field(max_length=1000)]


class Conversation(Turns):
    """Messages of one of several conversations."""

    session: Annotated[str, Field(min_length=1, max_length=512)]
    idempotency_key: Annotated[str, Field(max_length=256)] = ""


class Conversations(_Shape):
    """Messages of several conversations; each is stored, or refused, by itself."""

    conversations: Annotated[list[Conversation], Field(min_length=1, max_length=_MOST)]


class FactStatement(_Shape):
    """A fact to be remembered."""

    content: str
    category: str = "context"
    confidence: _Share = 1.0
    pinned: StrictBool = False


class FactStatements(_Shape):
    """Several facts; each is remembered, or refused, by itself."""

    facts: Annotated[list[FactStatement], Field(min_length=1, max_length=_MOST)]


class FactChange(_Shape):
    """What of a fact changes; what is left out stays, whatever the default says. ``null`` takes an end of validity off."""

    content: str = ""
    category: str = "context"
    confidence: _Share = 1.0
    importance: _Share = 0.5
    pinned: StrictBool = False
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    metadata: _Object = Field(default_factory=dict)
    expected_version: _Version | None = None


class Reason(_Shape):
    """Why."""

    reason: str | None = None


class ProfileChange(_Shape):
    """Sections and attributes to set; ``null`` removes an attribute."""

    sections: dict[str, str] = Field(default_factory=dict)
    attributes: _Object = Field(default_factory=dict)
    expected_version: _Version | None = None


class _Filters(_Shape):
    kinds: Annotated[list[Kind], Field(max_length=3)] | None = None
    limit: Annotated[StrictInt, Field(ge=1, le=1000), _WHOLE] | None = None
    min_score: _Share | None = None
    categories: list[str] | None = None
    sessions: list[str] | None = None
    exclude_sessions: list[str] | None = None
    files: list[str] | None = None
    since: Moment | None = None
    until: Moment | None = None
    at: Moment | None = None
    zone: str | None = None
    origins: list[Origin] | None = None
    min_confidence: _Share | None = None
    min_trust: _Share | None = None
    metadata: _Object | None = None
    as_of: Moment | None = None
    valid_at: Moment | None = None
    before: Annotated[StrictInt, Field(ge=0, le=100), _WHOLE] | None = None
    after: Annotated[StrictInt, Field(ge=0, le=100), _WHOLE] | None = None

    @property
    def given(self) -> dict[str, Any]:
        """What was asked for; lists as records hold them. ``null`` is the same as nothing."""
        held = ((name, getattr(self, name)) for name in self.model_fields_set)
        return {n: tuple(v) if isinstance(v, list) else v for n, v in held if v is not None}


class Question(_Filters):
    """A question, and what is searched for it."""

    question: str
    trace: StrictBool = False


class Replaying(_Filters):
    """What is different when a question is asked again."""


class ContextQuestion(_Filters):
    """A question for a prompt block, how long it may be and how it looks."""

    question: str | None = None
    budget: _Whole | None = None
    preset: str | None = None
    format: str | None = None
    max_messages: _Count | None = None
    max_tokens: Annotated[StrictInt, Field(ge=0, le=1_000_000), _WHOLE] | None = None
    time_window: str | None = None
    trace: StrictBool = False


class FileText(_Shape):
    """A file's new content: as ``text``, or as bytes in ``base64``. ``expected_version`` 0: it must not exist yet."""

    path: str
    text: str | None = None
    base64: str | None = None
    expected_version: _Version | None = None
    read_only: StrictBool | None = None


class FileEdit(_Shape):
    """Words of a text file to be replaced."""

    path: str
    old: str
    new: str
    replace_all: StrictBool = False
    expected_version: _Version | None = None


class FileVersion(_Shape):
    """An earlier version of a file."""

    path: str
    version: _Version


class SkillText(_Shape):
    """A skill's new text."""

    description: str
    body: str
    expected_version: _Version | None = None
    folder: str = "/skills/"


class Approval(_Shape):
    """Better words for what is approved, if any."""

    content: str | None = None


class Rejection(_Shape):
    """Why it is turned away."""

    reason: str = "rejected in review"


class Erasure(_Shape):
    """That everything here shall go for good."""

    confirm: Literal[True]


class TopicQuestion(_Shape):
    """What a person wants forgotten, and how near in meaning something has to be to count as telling of it."""

    topic: str
    threshold: Annotated[float, Field(strict=True, gt=0, le=1)] = THRESHOLD


class TopicErasure(TopicQuestion):
    """The places that they confirmed: ``refs`` as the preview gave them."""

    refs: list[str]
    erase: StrictBool = False
    reason: str = "asked to forget a topic"


class PolicyQuestion(_Shape):
    """An action that the caller might take here."""

    action: str
    kind: str = ""
    category: str = ""
    path: str = ""
