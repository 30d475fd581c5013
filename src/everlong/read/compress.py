"""A conversation within limits: by number, tokens and age, without losing what was said to be important. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, TypeVar

from everlong.errors import InvalidInput
from everlong.read.cues import cue
from everlong.text import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from everlong.protocols import TokenCounter

__all__ = ["Compressed", "Dropped", "Strategy", "compress_conversation", "duration"]

Strategy = Literal["hybrid", "time", "count", "tokens"]
T = TypeVar("T")

_LIMITS: Final[Mapping[str, tuple[str, ...]]] = {
    "hybrid": ("time", "count", "tokens"),
    "time": ("time",),
    "count": ("count",),
    "tokens": ("tokens",),
}
_UNITS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_DURATION: Final = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhdw])\s*", re.IGNORECASE)
_SIGNALS: Final = ("correction", "remember", "reinforcement")
"""Signals found when a message was stored that make it important."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped(Generic[T]):
    """A message that fell out, and why."""

    message: T
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Compressed(Generic[T]):
    """What is left of a conversation. ``messages`` are the very objects given, in order.

    ``important`` says of the messages that no limit could drop, by their index in ``messages``, why they are important.
    ``tokens`` counts ``messages``. ``over`` names the limits that the important ones alone exceed; no other message is
    kept then. ``summary`` is the running summary of all that fell out, empty without ``summarise``.
    """

    messages: tuple[T, ...]
    dropped: tuple[Dropped[T], ...]
    important: Mapping[int, str]
    tokens: int
    over: tuple[str, ...] = ()
    summary: str = ""


@dataclass(frozen=True, slots=True)
class _Turn(Generic[T]):
    index: int
    message: T
    tokens: int
    at: datetime | None
    important: str


def compress_conversation(
    messages: Iterable[T],
    strategy: Strategy = "hybrid",
    *,
    max_messages: int = 10,
    max_tokens: int = 2000,
    time_window: str | timedelta = "7d",
    keep_important: bool = True,
    now: datetime | None = None,
    counter: TokenCounter = estimate_tokens,
    summary: str = "",
    summarise: Callable[[Sequence[T], str], str] | None = None,
) -> Compressed[T]:
    """The latest messages within limits, and what fell out and why. Nothing is changed, only left out.

    ``strategy`` says which limits hold: ``time`` (not older than ``time_window`` at ``now``), ``count`` (``max_messages``),
    ``tokens`` (``max_tokens``, oldest cut first), or ``hybrid``: all three at once.

    With ``keep_important`` some messages survive every limit: those marked (``pinned`` or ``important`` in the message
    or its metadata), corrections, wishes to be remembered, stated rules ("from now on …", "以后都…"), and the last
    message of all. They are counted first and the latest others get the rest. When they alone exceed a limit they are
    kept all the same, nothing else is, and ``over`` names the limit. Budgets of prompts stay hard for all that: in
    a block of :meth:`~everlong.memory.ScopedMemory.context` no message is above its budget.

    Args:
        messages: in order; :class:`~everlong.records.Message`, dicts, ``(role, text)`` pairs or LangChain messages.
        strategy: ``hybrid``, ``time``, ``count`` or ``tokens``.
        max_messages: so many at most.
        max_tokens: tokens of all texts together at most, by ``counter``.
        time_window: ``"7d"``, ``"12h"``, ``"2w"`` or a timedelta. A message without a time is never too old.
        keep_important: let important messages survive.
        now: what age is counted from, aware; default: the time of the last message, so the result needs no clock.
        counter: counts tokens; default: the offline estimate.
        summary: the running summary so far, given to ``summarise``.
        summarise: makes the new summary of what fell out and the old summary, by a model for instance; called only
            when something fell out.

    Raises:
        InvalidInput: an unknown strategy, a negative limit, a window that is none, or a message of no known shape.
    """
    if strategy not in _LIMITS:
        msg = f"no strategy is called {strategy!r}; there are {', '.join(_LIMITS)}"
        raise InvalidInput(msg)
    if max_messages < 0 or max_tokens < 0:
        msg = "max_messages and max_tokens must not be negative"
        raise InvalidInput(msg)
    limits = _LIMITS[strategy]
    turns = _turns(messages, counter, keep_important=keep_important)
    window = duration(time_window)
    kept, dropped = _chosen(
        turns,
        oldest=_oldest(turns, now, window) if "time" in limits else None,
        messages=max_messages if "count" in limits else len(turns),
        tokens=max_tokens if "tokens" in limits else sum(turn.tokens for turn in turns),
    )
    over = tuple(
        name
        for name, limit, used in (
            ("max_messages", max_messages if "count" in limits else None, sum(bool(t.important) for t in kept)),
            ("max_tokens", max_tokens if "tokens" in limits else None, sum(t.tokens for t in kept if t.important)),
        )
        if limit is not None and used > limit
    )
    if dropped and summarise is not None:
        summary = summarise([each.message for each in dropped], summary)
    return Compressed(
        messages=tuple(turn.message for turn in kept),
        dropped=tuple(dropped),
        important={place: turn.important for place, turn in enumerate(kept) if turn.important},
        tokens=sum(turn.tokens for turn in kept),
        over=over,
        summary=summary,
    )


def duration(value: str | timedelta) -> timedelta:
    """A length of time: ``"90s"``, ``"30m"``, ``"12h"``, ``"7d"``, ``"2w"``, or a timedelta as it is.

    Raises:
        InvalidInput: it is none, or negative.
    """
    if isinstance(value, str) and (match := _DURATION.fullmatch(value)):
        try:
            return timedelta(seconds=float(match[1]) * _UNITS[match[2].lower()])
        except OverflowError:
            value = timedelta(days=-1)
    if isinstance(value, timedelta) and value >= timedelta(0):
        return value
    msg = f"{value!r} is no length of time; write 90s, 30m, 12h, 7d or 2w"
    raise InvalidInput(msg)


def _chosen(
    turns: Sequence[_Turn[T]], *, oldest: datetime | None, messages: int, tokens: int
) -> tuple[list[_Turn[T]], list[Dropped[T]]]:
    """The important ones, and the latest others while every limit has room for them; in order."""
    messages -= sum(bool(turn.important) for turn in turns)
    tokens -= sum(turn.tokens for turn in turns if turn.important)
    reasons: dict[int, str] = {}
    full = ""
    for turn in reversed([turn for turn in turns if not turn.important]):
        if oldest is not None and turn.at is not None and turn.at < oldest:
            reasons[turn.index] = "older than the time window"
            continue
        full = full or ("over max_messages" if messages < 1 else "over max_tokens" if turn.tokens > tokens else "")
        if full:  # what is older than one that had no room stays out, so that the conversation has no holes
            reasons[turn.index] = full
            continue
        messages -= 1
        tokens -= turn.tokens
    kept = [turn for turn in turns if turn.index not in reasons]
    dropped = [Dropped(message=turn.message, reason=reasons[turn.index]) for turn in turns if turn.index in reasons]
    return kept, dropped


def _oldest(turns: Sequence[_Turn[Any]], now: datetime | None, window: timedelta) -> datetime | None:
    last = now or max((turn.at for turn in turns if turn.at is not None), default=None)
    try:
        return None if last is None else _aware(last) - window
    except OverflowError:
        return None


def _turns(messages: Iterable[T], counter: TokenCounter, *, keep_important: bool) -> list[_Turn[T]]:
    given = list(messages)
    turns = []
    for index, message in enumerate(given):
        role, text = _said(message)
        why = _importance(message, role, text) if keep_important else ""
        if keep_important and index == len(given) - 1:
            why = why or "the last message"
        turns.append(_Turn(index, message, counter(text), _time(message), why))
    return turns


def _said(message: Any) -> tuple[str, str]:
    """Role and text of a message of any known shape."""
    if isinstance(message, tuple) and len(message) == 2:  # noqa: PLR2004 - a pair
        role, content = message
    else:
        role = _get(message, "role") or _get(message, "type")
        content = _get(message, "content")
    if not isinstance(role, str) or not isinstance(content, str | list):
        msg = f"a message needs a role and content, which {type(message).__name__} has not"
        raise InvalidInput(msg)
    return {"human": "user", "ai": "assistant"}.get(role, role), _text(content)


def _text(content: str | list[Any]) -> str:
    if isinstance(content, str):
        return content
    blocks = (block if isinstance(block, str) else _get(block, "text") for block in content)
    return "\n".join(block for block in blocks if isinstance(block, str))


def _get(message: Any, name: str) -> Any:
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name, None)


def _time(message: Any) -> datetime | None:
    at = _get(message, "created_at")
    if isinstance(at, str):
        try:
            at = datetime.fromisoformat(at)
        except ValueError:
            return None
    return _aware(at) if isinstance(at, datetime) else None


def _aware(at: datetime) -> datetime:
    return at.replace(tzinfo=UTC) if at.tzinfo is None else at


def _importance(message: Any, role: str, text: str) -> str:
    """Why a message is important; empty when it is not."""
    metadata = _get(message, "metadata")
    for mark in ("pinned", "important"):
        if _get(message, mark) is True or (isinstance(metadata, Mapping) and metadata.get(mark) is True):
            return f"marked as {mark}"
    if role != "user":
        return ""
    signals = _get(message, "signals")
    known = signals if isinstance(signals, list | tuple) else ()
    found = next((signal for signal in _SIGNALS if signal in known), "") or cue("important", text)
    return f"says so: {found}" if found else ""
