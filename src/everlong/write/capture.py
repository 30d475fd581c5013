"""What of a conversation is kept: the user's words and the assistant's final answers, once, as clean text.

Pure: takes values, returns values. It understands dicts, ``(role, text)`` pairs, our own :class:`Message` and any
object with ``type`` or ``role`` and ``content`` (LangChain's messages among them), so no framework is imported.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from everlong import text
from everlong.errors import InvalidInput, TooLarge
from everlong.records import Message, MessageRole, Skipped
from everlong.write import signals

if TYPE_CHECKING:
    from collections.abc import Callable

    from everlong.protocols import NewId
    from everlong.records import Origin, Scope

__all__ = ["MARKER", "Captured", "capture", "reshape"]

MARKER: Final = "everlong"
"""Key in a message's metadata (or LangChain's ``additional_kwargs``) that says: this was put in by everlong."""

_NAMES_OF_ROLES: Final[Mapping[MessageRole, str]] = MappingProxyType(
    {
        "user": "user human humanmessage humanmessagechunk",
        "assistant": "assistant ai model bot aimessage aimessagechunk",
        "system": "system developer systemmessage systemmessagechunk remove",
        "tool": "tool function toolmessage toolmessagechunk functionmessage function_call function_call_output "
        "tool_call tool_result reasoning",
    }
)
_ROLES: Final = {name: role for role, names in _NAMES_OF_ROLES.items() for name in names.split()}
_LESS_TRUSTED: Final[tuple[Origin, ...]] = ("import", "document", "tool")
"""Origins that a caller may claim for a message: they lower its trust and never raise it."""
_CALLS: Final = ("tool_calls", "invalid_tool_calls", "function_call")
_CALL_BLOCKS: Final = frozenset({"tool_use", "tool_call", "function_call", "server_tool_use"})
_TEXT_BLOCKS: Final = frozenset({"", "text", "input_text", "output_text"})
_OURS: Final = "said"
"""Prefix of ids that were made here: a message that has one came without an id, and is known again by its content."""
_MILLISECONDS: Final = 1e11  # as seconds this is the year 5138, as milliseconds 1973
_LONGEST_ID: Final = 512
_LONGEST_KEY: Final = 256

_UPLOADS: Final = re.compile(r"<(uploaded_files|current_uploads)>.*?(?:</\1>|\Z)", re.DOTALL)
_INJECTED: Final = re.compile(
    r"^[ \t]*(?:<memory>.*?</memory>|\{\"memory\": \"\(This is remembered data .*?^\]\}$)", re.DOTALL | re.MULTILINE
)
"""A block that was made for a prompt, as text or as JSON."""
_THOUGHTS: Final = re.compile(r"<(think|thinking)>.*?</\1>", re.DOTALL)
_EMBEDDED: Final = re.compile(r"(?:!\[[^\]]*\]\()?data:[\w/+.-]+(?:;[\w=.-]+)*;base64,[A-Za-z0-9+/=_-]+\)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """What came of incoming messages: the new ones in order, the ids of those known already, and what was left out
    with the reason. ``urgent`` when a user asked that something be remembered or forgotten."""

    messages: tuple[Message, ...] = ()
    duplicates: tuple[str, ...] = ()
    ignored: tuple[Skipped, ...] = ()
    urgent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Turn:
    """One incoming message in one shape, whatever shape it came in."""

    index: int
    role: MessageRole
    content: object
    id: str = ""
    speaker: str = ""
    at: object = None
    origin: Origin | None = None
    calls: bool = False
    metadata: Mapping[str, Any] = field(default_factory=dict)
    extra: Mapping[str, Any] = field(default_factory=dict)


def capture(
    messages: Iterable[object],
    *,
    session: Scope,
    tail: Sequence[Message],
    now: datetime,
    new_id: NewId,
    max_chars: int = 1_000_000,
    key: str = "",
    rules: signals.Rules | None = None,
) -> Captured:
    """Sorts incoming messages into new, known and unwanted ones.

    Kept are user messages and assistant answers without tool calls; of their content the text parts, joined by line
    breaks. Left out with a reason are tool traffic, system and hidden messages, what everlong injected itself,
    upload notices with the answer to a turn that was nothing else, and what has no text. A message is known when
    its id is in ``tail``; messages without ids, and messages that came without one before, are known as far as they
    repeat the end of ``tail`` from their first on (a replayed history, a sliding window, a retried call).

    Args:
        messages: In the order in which they were said.
        session: The conversation; its home is where the messages are kept.
        tail: The last stored messages of it, oldest first, at least as many as come in.
        now: The time of messages that carry none.
        new_id: Makes ids for messages that carry none.
        max_chars: Most characters of text in one message.
        key: Names this call: messages without ids get ids made of it and their place, so that the store knows them
            again whatever was said in between, and the same words under another key are new.
        rules: Signals to look for; default: the built-in ones.

    Raises:
        InvalidInput: a message has no known role, shape or time (the text names its index), or the key is malformed.
        TooLarge: a message has more than ``max_chars`` characters of text.
    """
    if not isinstance(key, str) or len(key) > _LONGEST_KEY or text.clean(key) != key:
        msg = f"an idempotency key is text of {_LONGEST_KEY} characters at most without control characters"
        raise InvalidInput(msg)
    turns, bodies, ignored = _sift(messages, max_chars)
    repeated = _overlap(turns, bodies, tail, key)
    duplicates = [message.id for message in tail[len(tail) - repeated :]] if repeated else []
    seen = {message.id for message in tail}
    kept: list[Message] = []
    for turn, body in zip(turns[repeated:], bodies[repeated:], strict=True):
        if turn.id in seen:
            duplicates.append(turn.id)
            continue
        name = turn.id or (f"{_OURS}_{key}.{turn.index}" if key else new_id(_OURS))
        message = _message(turn, body, session, now, name, rules)
        seen.add(message.id)
        kept.append(message)
    urgent = any({"remember", "forget"} & set(message.signals) for message in kept)
    return Captured(messages=tuple(kept), duplicates=tuple(duplicates), ignored=tuple(ignored), urgent=urgent)


def reshape(messages: Iterable[object], change: Callable[[Any], Any]) -> list[object]:
    """Incoming messages of any shape in one that :func:`capture` takes too, with ``change`` applied to the text,
    speaker and metadata of those that may be kept. Anything but an iterable is given back as it is.

    Raises:
        InvalidInput: a message has no known role or shape; the text names its index.
    """
    if not isinstance(messages, Iterable):
        return messages
    turns = (_turn(index, raw) for index, raw in enumerate(messages))
    return [turn if _unwanted(turn) else _changed(turn, change) for turn in turns]


def _changed(turn: _Turn, change: Callable[[Any], Any]) -> _Turn:
    said = _EMBEDDED.sub("", _text(turn.content))
    return replace(turn, content=change(said), speaker=change(turn.speaker), metadata=change(turn.metadata))


def _sift(messages: Iterable[object], max_chars: int) -> tuple[list[_Turn], list[str], list[Skipped]]:
    """The turns worth keeping with their text, and the others with the reason."""
    turns, bodies, ignored = [], [], []
    upload_only = False
    for index, raw in enumerate(messages):
        turn = _turn(index, raw)
        body, reason = _body(turn)
        if turn.role == "user":
            upload_only = reason == "only an upload notice"
        elif upload_only and not reason:
            reason = "the answer to an upload notice"
        if reason:
            ignored.append(Skipped(reason=f"message {index}: {reason}", raw=body[:200]))
        elif len(body) > max_chars:
            msg = f"message {index} has {len(body)} characters of text; max_chars allows {max_chars}"
            raise TooLarge(msg)
        else:
            turns.append(turn)
            bodies.append(body)
    return turns, bodies, ignored


def _overlap(turns: Sequence[_Turn], bodies: Sequence[str], tail: Sequence[Message], key: str) -> int:
    """How many of the first turns repeat the last messages of ``tail``."""
    for size in range(min(len(turns), len(tail)), 0, -1):
        known = tail[len(tail) - size :]
        if not any("forgotten" not in each.signals for each in known):
            continue  # words that were taken out tell nothing: what repeats only them was said anew
        if all(_same(*each) for each in zip(turns, bodies, known, strict=False)):
            return 0 if size == len(turns) and _another_call(turns, known, key) else size
    return 0


def _same(turn: _Turn, body: str, known: Message) -> bool:
    if turn.id and (turn.id == known.id or not known.id.startswith(f"{_OURS}_")):
        return turn.id == known.id
    if "forgotten" in known.signals:
        return turn.role == known.role
    return (turn.role, body) == (known.role, known.content)


def _another_call(turns: Sequence[_Turn], known: Sequence[Message], key: str) -> bool:
    """Whether the caller, by another key, says that these are new although all the words are the same."""
    mine = f"{_OURS}_{key}."
    return bool(key) and not any(turn.id or m.id.startswith(mine) for turn, m in zip(turns, known, strict=True))


def _message(turn: _Turn, body: str, session: Scope, now: datetime, name: str, rules: signals.Rules | None) -> Message:
    by_role: Origin = "user" if turn.role == "user" else "assistant"
    return Message(
        id=name,
        scope=session.home,
        session=session.session,
        role=turn.role,
        content=body,
        created_at=_moment(turn, now),
        speaker=turn.speaker,
        origin=turn.origin if turn.origin in _LESS_TRUSTED else by_role,
        signals=signals.detect(body, rules=rules) if turn.role == "user" else (),
        metadata=turn.metadata,
    )


# ------------------------------------------------------------------------------------------------------- shapes


def _turn(index: int, raw: object) -> _Turn:
    match raw:
        case _Turn():
            return replace(raw, index=index)
        case Message():
            fields: Mapping[str, Any] = {name: getattr(raw, name) for name in Message.__slots__}
        case Mapping():
            data = raw.get("data")
            fields = {**data, "type": raw.get("type")} if isinstance(data, Mapping) and "content" not in raw else raw
        case [str() as role, content] if isinstance(raw, (tuple, list)):
            fields = {"role": role, "content": content}
        case _ if hasattr(raw, "content"):
            fields = _Attributes(raw)
        case _:
            msg = (
                f"message {index} is of a shape that is not known ({type(raw).__name__}); "
                'give {"role": …, "content": …}, ("user", "text") or a message object'
            )
            raise InvalidInput(msg)
    return _read(index, fields)


class _Attributes(Mapping[str, Any]):
    """An object's attributes as a mapping, so that objects and dicts are read alike."""

    def __init__(self, raw: object) -> None:
        self._raw = raw

    def __getitem__(self, name: str) -> Any:
        try:
            return getattr(self._raw, name)
        except AttributeError:
            raise KeyError(name) from None

    def __iter__(self) -> Any:
        return iter(vars(self._raw))

    def __len__(self) -> int:
        return len(vars(self._raw))


def _read(index: int, fields: Mapping[str, Any]) -> _Turn:
    extra, metadata = _mapping(fields.get("additional_kwargs")), _mapping(fields.get("metadata"))
    content = fields.get("content")
    return _Turn(
        index=index,
        role=_role(index, fields),
        content=content,
        id=_identifier(index, fields.get("id")),
        speaker=_name(fields.get("speaker")) or _name(fields.get("name")),
        at=next((at for at in (fields.get("created_at"), fields.get("timestamp")) if at not in (None, "")), None),
        origin=fields.get("origin"),
        calls=any(fields.get(key) or extra.get(key) for key in _CALLS) or _has_call_block(content),
        metadata=dict(metadata),
        extra=extra,
    )


def _role(index: int, fields: Mapping[str, Any]) -> MessageRole:
    for name in (fields.get("role"), fields.get("type")):
        if isinstance(name, str) and name.lower() in _ROLES:
            return _ROLES[name.lower()]
    given = fields.get("role") or fields.get("type")
    msg = f"message {index} has the role {given!r}; known are user, assistant, tool and system"
    raise InvalidInput(msg)


def _identifier(index: int, given: object) -> str:
    name = text.clean(str(given)).strip() if given is not None else ""
    if len(name) > _LONGEST_ID:
        msg = f"message {index} has an id of {len(name)} characters; {_LONGEST_ID} at most"
        raise InvalidInput(msg)
    return name


def _name(given: object) -> str:
    return " ".join(text.clean(given).split()) if isinstance(given, str) else ""


def _mapping(given: object) -> Mapping[str, Any]:
    return given if isinstance(given, Mapping) else {}


def _moment(turn: _Turn, now: datetime) -> datetime:
    """When the message was said, in UTC; a time without a zone is read as UTC."""
    try:
        match turn.at:
            case None:
                return now
            case datetime():
                at = turn.at
            case str():
                at = datetime.fromisoformat(turn.at.strip())
            case int() | float() if not isinstance(turn.at, bool):
                seconds = turn.at / 1000 if abs(turn.at) >= _MILLISECONDS else turn.at
                at = datetime.fromtimestamp(seconds, UTC)
            case _:
                raise TypeError
        return at.replace(tzinfo=UTC) if at.tzinfo is None else at.astimezone(UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        msg = f"message {turn.index} has the time {turn.at!r}; give an ISO 8601 text, a datetime or POSIX seconds"
        raise InvalidInput(msg) from None


# --------------------------------------------------------------------------------------------------------- text


def _body(turn: _Turn) -> tuple[str, str]:
    """The message's own text, and why it is left out (empty when it is not)."""
    said = _text(turn.content)
    without_uploads = _UPLOADS.sub("", said)
    body = _INJECTED.sub("", without_uploads)
    if turn.role == "assistant":
        body = _THOUGHTS.sub("", body)
    body = _EMBEDDED.sub("", body).strip()
    return body, _unwanted(turn) or ("" if body else _emptied(said, without_uploads))


def _unwanted(turn: _Turn) -> str:
    if turn.role not in ("user", "assistant"):
        return "a tool's" if turn.role == "tool" else "a system message"
    if turn.calls:
        return "a tool call"
    if any(MARKER in notes for notes in (turn.metadata, turn.extra)):
        return "injected by everlong"
    if any(notes.get("hide_from_ui") for notes in (turn.metadata, turn.extra)):
        return "hidden from the user"
    if any(notes.get("lc_source") for notes in (turn.metadata, turn.extra)):
        return "written by a framework, such as a summary"
    return ""


def _emptied(said: str, without_uploads: str) -> str:
    """Why nothing is left of what was said."""
    if said.strip() and not without_uploads.strip():
        return "only an upload notice"
    return "injected memory" if _INJECTED.search(without_uploads) else "no text"


def _text(content: object) -> str:
    if isinstance(content, str):
        return text.clean(content)
    blocks = content if isinstance(content, (list, tuple)) else [content]
    return "\n".join(part for part in map(_block, blocks) if part)


def _block(block: object) -> str:
    if isinstance(block, Mapping):
        inner = block.get("text") if block.get("type", "") in _TEXT_BLOCKS else None
        block = inner.get("value") if isinstance(inner, Mapping) else inner
    return text.clean(block) if isinstance(block, str) else ""


def _has_call_block(content: object) -> bool:
    blocks = content if isinstance(content, (list, tuple)) else ()
    return any(isinstance(block, Mapping) and block.get("type") in _CALL_BLOCKS for block in blocks)
