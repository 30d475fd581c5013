"""The lines of an export: a header, one line per record, a trailer with counts and a digest. JSON, UTF-8, one per line.

The shape of a line follows from its record, so a field that a record gets is exported, checked and described at once.
"""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache, reduce
from operator import or_
from typing import Annotated, Any, Final, Literal, get_args, get_type_hints

from pydantic import (
    AwareDatetime,
    BaseModel,
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    create_model,
)

from everlong.errors import InvalidInput
from everlong.records import (
    COPY_KINDS,
    CopyKind,
    Earlier,
    Entry,
    ExtractionRecord,
    Fact,
    Kept,
    MemoryFile,
    Message,
    Profile,
    Proposal,
    Scope,
    Session,
)

__all__ = ["FORMAT", "VERSION", "Header", "Trailer", "decode", "encode", "json_schema", "kind_of", "named"]

FORMAT: Final = "everlong"
VERSION: Final = 1
"""Grows when a line is written that a reader of the former version would misunderstand."""

_ID: Final = 512
"""Characters of an id, a name or a reference."""
_TEXT: Final = 4000
"""Characters of a reason."""

_RECORDS: Final[dict[CopyKind, type[Any]]] = {
    "profile": Profile,
    "profile_version": Profile,
    "session": Session,
    "message": Message,
    "fact": Fact,
    "fact_version": Fact,
    "file": MemoryFile,
    "file_version": MemoryFile,
    "proposal": Proposal,
    "entry": Entry,
    "extraction": ExtractionRecord,
}
_STRICT: Final = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)

Named = Annotated[str, Field(min_length=1, max_length=_ID)]
Maybe = Annotated[str, Field(max_length=_ID)]
Share = Annotated[float, Field(ge=0, le=1)]
Count = Annotated[int, Field(ge=0, lt=2**63)]
_BASE64: Final = Annotated[str, Field(json_schema_extra={"contentEncoding": "base64"})]

_BOUNDS: Final[dict[str, Any]] = {
    **dict.fromkeys(("id", "path"), Named),
    **dict.fromkeys(("supersedes", "superseded_by", "speaker", "by", "action", "target"), Maybe),
    **dict.fromkeys(("confidence", "importance", "trust"), Share),
    **dict.fromkeys(("confirmations", "uses", "position", "extracted"), Count),
    "version": Annotated[int, Field(ge=1, lt=2**63)],
    "reason": Annotated[str, Field(max_length=_TEXT)],
}


class Header(BaseModel):
    """The first line."""

    model_config = ConfigDict(extra="ignore", strict=True)

    format: Literal["everlong"]
    version: int = Field(ge=1)
    scope: dict[str, str]
    at: AwareDatetime
    kinds: tuple[CopyKind, ...]
    left_out: tuple[str, ...] = ()


class Trailer(BaseModel):
    """The last line: without it, or with other counts, the file is not whole."""

    model_config = ConfigDict(extra="forbid", strict=True)

    type: Literal["end"]
    records: dict[str, int]
    sha256: str


# ------------------------------------------------------------------------------------------------ shapes of lines


def _hint(name: str, hint: Any) -> Any:
    if name in _BOUNDS:
        return _BOUNDS[name]
    if hint is datetime:
        return AwareDatetime
    if datetime in get_args(hint):
        return AwareDatetime | None
    return hint


@cache
def _fields(kind: CopyKind) -> dict[str, Any]:
    """Name to type and default, of what a line of ``kind`` holds of its record."""
    record = _RECORDS[kind]
    hints = get_type_hints(record, localns={"Mapping": Mapping})
    made: dict[str, Any] = {}
    for field in dataclasses.fields(record):
        if (kind, field.name) == ("session", "epoch"):
            continue  # tells one life of a conversation from the next, so it must not be carried over
        factory = field.default_factory
        default = ... if field.default is dataclasses.MISSING else field.default
        if factory is not dataclasses.MISSING:
            default = Field(default_factory=factory)
        made[field.name] = (_hint(field.name, hints[field.name]), default)
    if record is MemoryFile:
        made |= {"content": (str | None, None), "base64": (_BASE64 | None, None)}
    return made


@cache
def _model(kind: CopyKind) -> type[BaseModel]:
    extra = {"ended": (AwareDatetime, ...)} if kind.endswith("_version") else {}
    tagged: Any = {"type": (Literal[kind], ...), **_fields(kind), **extra}
    name = "".join(part.title() for part in kind.split("_"))
    made: type[BaseModel] = create_model(name, __config__=_STRICT, **tagged)
    return made


def json_schema() -> dict[str, Any]:
    """JSON Schema (2020-12) of one line of an export."""
    lines: Any = reduce(or_, [_model(kind) for kind in COPY_KINDS], Header | Trailer)
    schema = TypeAdapter(lines).json_schema(ref_template="#/$defs/{model}")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"One line of an {FORMAT} export, version {VERSION}",
        **schema,
    }


# ------------------------------------------------------------------------------------------------- record to line


def kind_of(record: Kept) -> CopyKind:
    """The kind of line that a record becomes."""
    if isinstance(record, Earlier):
        return next(kind for kind, made in _RECORDS.items() if kind.endswith("_version") and _is(record.record, made))
    return next(kind for kind, made in _RECORDS.items() if _is(record, made))


def _is(record: object, made: type[Any]) -> bool:
    return type(record) is made


def encode(kind: CopyKind, record: Kept) -> dict[str, Any]:
    """A record as what its line says."""
    inner = record.record if isinstance(record, Earlier) else record
    line: dict[str, Any] = {"type": kind}
    for name in _fields(kind):
        if name != "base64":
            line[name] = _plain(getattr(inner, name))
    if isinstance(inner, MemoryFile):
        line |= _content(inner.content)
    if isinstance(record, Earlier):
        line["ended"] = _plain(record.ended)
    return line


def _content(content: bytes) -> dict[str, str | None]:
    try:
        return {"content": content.decode(), "base64": None}
    except UnicodeDecodeError:
        return {"content": None, "base64": base64.b64encode(content).decode()}


def _plain(value: Any) -> Any:
    if isinstance(value, Scope):
        return place(value)
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return {name: _plain(inner) for name, inner in value.items()}
    if isinstance(value, (tuple, list)):
        return [_plain(inner) for inner in value]
    if dataclasses.is_dataclass(value):
        return {field.name: _plain(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return None if isinstance(value, bytes) else value


def place(scope: Scope) -> dict[str, str]:
    """A scope as the parts that it names."""
    return {name: part for name, part in zip(("org", "agent", "user", "session"), scope.parts, strict=True) if part}


def dumped(line: Mapping[str, Any]) -> bytes:
    """One line, with its end."""
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


# ------------------------------------------------------------------------------------------------- line to record


def decode(line: bytes | Mapping[str, Any]) -> tuple[CopyKind, Kept]:
    """The record that a line stands for.

    Raises:
        InvalidInput: it is no JSON, of no known kind, has a field too few, too many, or of a wrong type or size; the
            message names the fields.
    """
    raw = line if isinstance(line, bytes) else dumped(line)
    kind = named(raw)
    try:
        made = _model(kind).model_validate_json(raw)
        return kind, _record(kind, made)
    except ValidationError as error:
        raise InvalidInput(_told(error)) from None
    except OverflowError as error:
        raise InvalidInput(f"a time is out of range: {error}") from None


def named(raw: bytes) -> CopyKind:
    """The kind that a line says it is of.

    Raises:
        InvalidInput: it is no JSON, or of no known kind.
    """
    try:
        found = json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"is no JSON: {error}") from None
    kind = found.get("type") if isinstance(found, dict) else None
    if not isinstance(kind, str) or kind not in _RECORDS:
        raise InvalidInput(f"type {kind!r} is none of {', '.join(COPY_KINDS)}")
    return kind


def _told(error: ValidationError) -> str:
    told = [f"{'.'.join(map(str, each['loc'])) or 'line'}: {each['msg']}" for each in error.errors()[:5]]
    return "; ".join(told)


def _record(kind: CopyKind, made: BaseModel) -> Kept:
    values = {name: _timed(getattr(made, name)) for name in _fields(kind) if name != "base64"}
    if _RECORDS[kind] is MemoryFile:
        values["content"] = _bytes(made)
    record: Any = _RECORDS[kind](**values)
    ended = getattr(made, "ended", None)
    return Earlier(record=record, ended=_timed(ended)) if ended else record


def _timed(value: Any) -> Any:
    return value.astimezone(UTC) if isinstance(value, datetime) else value


def _bytes(made: Any) -> bytes:
    if (made.content is None) == (made.base64 is None):
        raise InvalidInput("content: either content or base64 holds what the file says")
    if made.content is not None:
        return str(made.content).encode()
    try:
        return base64.b64decode(made.base64, validate=True)
    except ValueError as error:
        raise InvalidInput(f"base64: {error}") from None
