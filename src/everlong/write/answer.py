"""A model's answer, however wrapped or broken, as an update in known shapes; or one clear error."""

from __future__ import annotations

import ast
import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final
from zoneinfo import ZoneInfo

from everlong import text
from everlong.errors import UnusableExtraction
from everlong.records import SECTIONS, Skipped

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = ["Answer", "Statement", "parse", "read_object"]

_LEVELS: Final = {"high": 0.9, "medium": 0.7, "low": 0.5, "高": 0.9, "中": 0.7, "低": 0.5}
_MISSING: Final = 0.5
_LISTS: Final = frozenset({"newFacts", "factsToRemove"})
_DEEPEST: Final = 3
"""Layers of lists and objects in which an update may be wrapped."""
_LONGEST: Final = 1_000_000
_THINKING: Final = re.compile(r"<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_FENCE: Final = re.compile(r"^```\w*$", re.MULTILINE)
_TRAILING_COMMA: Final = re.compile(r",(?=\s*[}\]])")
_TRIES: Final = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One fact as the model gave it; ``message`` and ``replaces`` are its names, not ours.

    ``scope`` is ``user``, ``agent`` or ``conversation``, ``durability`` what the model said of it.
    """

    content: str
    category: str = "context"
    confidence: float = _MISSING
    message: str = ""
    quote: str = ""
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    scope: str = "user"
    durability: str = ""
    replaces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What could be read of an answer; ``skipped`` is the rest."""

    facts: tuple[Statement, ...] = ()
    removals: tuple[str, ...] = ()
    sections: Mapping[str, str]
    skipped: tuple[Skipped, ...] = ()
    raw: str = ""


def parse(answer: str | Sequence[Any], *, zone: str = "UTC") -> Answer:
    """The first update in an answer (text or content blocks): the object of the update contract, or a list of facts.

    A missing confidence counts 0.5; high, medium and low count 0.9, 0.7 and 0.5. Dates without a zone are days of
    ``zone``; an end that is only a date is the end of that day.

    Raises:
        UnusableExtraction: no update is found, or malformed facts come with removals, which would only destroy.
    """
    raw = _raw(answer)
    update = next(_updates(raw), None)
    if update is None:
        raise UnusableExtraction("no JSON update in it", raw)
    skipped: list[Skipped] = []
    facts = _facts(update.get("newFacts"), ZoneInfo(zone), skipped)
    malformed = bool(skipped) and not facts
    removals = _removals(update.get("factsToRemove"), skipped)
    if malformed and removals:
        raise UnusableExtraction("malformed facts together with removals", raw)
    sections = _sections(update, skipped)
    return Answer(facts=facts, removals=removals, sections=sections, skipped=tuple(skipped), raw=raw)


def read_object(answer: str, key: str) -> Any:
    """The value of ``key`` in the first object of an answer that has it, however wrapped; ``None`` if none has."""
    values = _values(_THINKING.sub("", _raw(answer)))
    return next((value[key] for value in values if isinstance(value, dict) and key in value), None)


def _raw(answer: object) -> str:
    if isinstance(answer, str):
        return text.clean(answer[:_LONGEST])
    blocks = answer if isinstance(answer, (list, tuple)) else ()
    texts = (b if isinstance(b, str) else b.get("text") for b in blocks if isinstance(b, (str, dict)))
    return text.clean("\n".join(t for t in texts if isinstance(t, str))[:_LONGEST])


def _updates(raw: str) -> Iterator[dict[str, Any]]:
    """Every update in an answer, those that say something first."""
    visible = _THINKING.sub("", raw.lstrip("\ufeff")).strip()
    if visible.startswith('"'):
        visible = _unquoted(visible)
    found = [update for value in _values(visible) for update in _within(value)]
    # An empty list in the midst of broken JSON or prose is not the answer that there is nothing to remember.
    if not found and _FENCE.sub("", visible).strip() == "[]":
        found.append({"newFacts": []})
    found.sort(key=lambda update: not any(update.values()))
    return iter(found)


def _unquoted(visible: str) -> str:
    """The text inside an answer that is JSON written as a JSON string."""
    try:
        return _text(json.loads(visible, strict=False)) or visible
    except (ValueError, RecursionError):
        return visible


def _within(value: Any, depth: int = 0) -> Iterator[dict[str, Any]]:
    """The updates in a JSON value: itself, or what it wraps."""
    if _is_update(value):
        yield value
    elif isinstance(value, dict) and isinstance(value.get("facts"), list):
        yield {"newFacts": value["facts"]}
    elif isinstance(value, list) and any(isinstance(v, dict) and "content" in v for v in value):
        yield {"newFacts": value}
    elif isinstance(value, (list, dict)) and depth < _DEEPEST:
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _within(inner, depth + 1)


def _is_update(value: Any) -> bool:
    """Whether it has the keys of the contract; ``user`` alone may stand in any object, so it must hold sections."""
    if not isinstance(value, dict):
        return False
    return not _LISTS.isdisjoint(value) or any(isinstance(value.get(group), dict) for group in ("user", "history"))


def _values(raw: str) -> Iterator[Any]:
    """Every JSON value or Python literal that begins at a bracket, outermost first."""
    position, tries = 0, 0
    while tries < _TRIES and (match := re.compile(r"[{\[]").search(raw, position)):
        tries += 1
        value, end = _value(raw, match.start())
        if end:
            yield value
        position = end or match.end()


def _value(raw: str, start: int) -> tuple[Any, int]:
    try:
        return json.JSONDecoder(strict=False).raw_decode(raw, start)
    except (ValueError, RecursionError):
        end = _balanced(raw, start)
    piece = raw[start:end]
    for read, source in ((json.loads, _TRAILING_COMMA.sub("", piece)), (ast.literal_eval, piece)):
        try:
            return read(source), end
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            continue
    return None, 0


def _balanced(raw: str, start: int) -> int:
    """Where the bracket at ``start`` closes, brackets inside quotes left out; ``start`` when it never does."""
    depth, quote, position = 0, "", start
    while position < len(raw):
        character = raw[position]
        if character == "\\":
            position += 1
        elif quote:
            quote = "" if character == quote else quote
        elif character in "\"'":
            quote = character
        else:
            depth += (character in "{[") - (character in "}]")
        position += 1
        if depth == 0:
            return position
    return start


def _facts(value: object, zone: ZoneInfo, skipped: list[Skipped]) -> tuple[Statement, ...]:
    items = [value] if isinstance(value, dict) else value if isinstance(value, list) else []
    if value is not None and not isinstance(value, (dict, list)):
        skipped.append(Skipped(reason="newFacts is no list", raw=_shown(value)))
    found = []
    for item in items:
        content = _text(item.get("content")) if isinstance(item, dict) else ""
        if not content.strip():
            skipped.append(Skipped(reason="a fact without content", raw=_shown(item)))
            continue
        confidence = _confidence(item.get("confidence"))
        if confidence is None:
            skipped.append(Skipped(reason="confidence is no number from 0 to 1", raw=_shown(item)))
            continue
        found.append(_statement(item, content, confidence, zone))
        skipped.extend(
            Skipped(reason=f"{end} is no ISO date", raw=_shown(item[end]))
            for end in ("valid_from", "valid_until")
            if item.get(end) not in (None, "", "null") and _date(item[end], zone) is None
        )
    return tuple(found)


def _statement(item: dict[str, Any], content: str, confidence: float, zone: ZoneInfo) -> Statement:
    replaces = item.get("replaces")
    since, until = _date(item.get("valid_from"), zone), _date(item.get("valid_until"), zone, end=True)
    return Statement(
        content=content,
        category=_text(item.get("category")) or _text(item.get("memory_type")) or "context",
        confidence=confidence,
        message=_text(item.get("message")).strip(),
        quote=_text(item.get("quote")),
        valid_from=since,
        valid_until=until if since is None or until is None or until > since else None,
        scope=_scope(item),
        durability=_text(item.get("durability")).strip().lower(),
        replaces=_stripped(replaces) if isinstance(replaces, list) else (),
    )


def _stripped(names: Iterable[object]) -> tuple[str, ...]:
    """Those that are text and not blank, each once."""
    cleaned = (_text(name).strip() for name in names)
    return tuple(dict.fromkeys(name for name in cleaned if name))


def _scope(item: dict[str, Any]) -> str:
    named = _text(item.get("scope")).strip().lower()
    if item.get("session_only") is True or named in {"conversation", "session"}:
        return "conversation"
    return "agent" if named == "agent" else "user"


def _confidence(value: object) -> float | None:
    if value is None:
        return _MISSING
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    if isinstance(value, str) and value.strip().lower() in _LEVELS:
        return _LEVELS[value.strip().lower()]
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) and 0 <= number <= 1 else None


def _text(value: object) -> str:
    return text.clean(value) if isinstance(value, str) else ""


def _date(value: object, zone: ZoneInfo, *, end: bool = False) -> datetime | None:
    named = _text(value).strip()
    try:
        moment = datetime.fromisoformat(named)
        if end and len(named) <= len("2026-01-31"):
            moment += timedelta(days=1)
        return (moment.replace(tzinfo=zone) if moment.tzinfo is None else moment).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _removals(value: object, skipped: list[Skipped]) -> tuple[str, ...]:
    items = value if isinstance(value, list) else [] if value is None else [value]
    bad = [item for item in items if not (isinstance(item, str) and item.strip())]
    skipped.extend(Skipped(reason="a removal without id", raw=_shown(item)) for item in bad)
    return _stripped(items)


def _sections(update: dict[str, Any], skipped: list[Skipped]) -> dict[str, str]:
    found = {}
    for name, group in SECTIONS.items():
        holder = update.get(group)
        part = holder.get(name) if isinstance(holder, dict) else None
        if part is None:
            continue
        if not isinstance(part, dict) or not isinstance(part.get("shouldUpdate"), bool):
            skipped.append(Skipped(reason=f"section {name} is malformed", raw=_shown(part)))
        elif part["shouldUpdate"] is True and _text(part.get("summary")).strip():
            found[name] = _text(part["summary"])
        elif part["shouldUpdate"] is True:
            skipped.append(Skipped(reason=f"section {name} has an empty summary", raw=_shown(part)))
    return found


def _shown(value: object) -> str:
    try:
        return repr(value)[:200]
    except (RecursionError, ValueError):
        return type(value).__name__
