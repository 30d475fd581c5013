"""Plain files: instructions in Markdown, and lines of JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from everlong.errors import InvalidInput
from everlong.integrations.importers.target import Turn, moment, talk
from everlong.records import Fault, MemoryFile, Scope

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.integrations.importers.target import Found, Target
    from everlong.records import MessageRole

__all__ = ["agents_md", "jsonl"]

_BULLET: Final = re.compile(r"\s*(?:[-*+]|\d+[.)])\s+(?:\[[ xX]\]\s+)?(.+)")
_FENCE: Final = re.compile(r"\s*(?:```|~~~)")
_ROLES: Final[dict[str, MessageRole]] = {
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "tool": "tool",
    "system": "system",
}


def agents_md(source: str, target: Target) -> Iterator[Found]:
    """The file as the user's memory file ``/memories/<its name>``; with ``facts`` each bullet outside of code also as a
    fact."""
    path = Path(source)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{source} cannot be read: {error.strerror}") from None
    place = Scope(org=target.scope.org, user=target.scope.user)
    if not target.scope.contains(place):
        place = target.scope
    yield (
        1,
        MemoryFile(
            scope=place,
            path=f"/memories/{path.name}",
            content=content,
            created_at=target.now,
            updated_at=target.now,
            metadata={"by": "import"},
        ),
    )
    if target.facts:
        yield from _bullets(content.decode("utf-8", "replace"), path.name, target)


def _bullets(text: str, name: str, target: Target) -> Iterator[Found]:
    fenced, heading, seen = False, "", set()
    for number, line in enumerate(text.splitlines(), 1):
        if _FENCE.match(line):
            fenced = not fenced
            continue
        if line.startswith("#"):
            heading = line.strip("# \t")
        found = None if fenced else _BULLET.fullmatch(line)
        if found and found[1] not in seen:
            seen.add(found[1])
            yield number, target.fact(found[1].strip(), key=found[1], metadata={"file": name, "heading": heading})


def jsonl(source: str, target: Target) -> Iterator[Found]:
    """Lines with ``content``: those with a ``role`` are messages (``session``, ``created_at``, ``speaker``, ``id``), the
    others facts (``category``, ``confidence``, ``created_at``, ``metadata``, ``id``)."""
    talks: dict[str, list[Turn]] = {}
    for number, item in _lines(source):
        if isinstance(item, Fault):
            yield number, item
        elif item.get("role"):
            turn = _said(item, number)
            if isinstance(turn, Fault):
                yield number, turn
            else:
                talks.setdefault(str(item.get("session") or "imported"), []).append(turn)
        else:
            yield number, _known(item, number, target)
    position = 1
    for name, turns in talks.items():
        yield from talk(target, name, turns, first=position)
        position += len(turns)


def _lines(source: str) -> Iterator[tuple[int, dict[str, Any] | Fault]]:
    try:
        with Path(source).open("rb") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield number, _object(line, number)
    except OSError as error:
        raise InvalidInput(f"{source} cannot be read: {error.strerror}") from None


def _object(line: bytes, number: int) -> dict[str, Any] | Fault:
    try:
        found = json.loads(line.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        return Fault(line=number, reason=f"is no JSON: {error}")
    if not isinstance(found, dict) or not isinstance(found.get("content"), str) or not found["content"].strip():
        return Fault(line=number, reason="content: a line is an object with a text content")
    return found


def _said(item: dict[str, Any], number: int) -> Turn | Fault:
    role = _ROLES.get(str(item["role"]).lower())
    if role is None:
        return Fault(line=number, kind="message", reason=f"role: {item['role']!r} is none of {', '.join(_ROLES)}")
    at = moment(item.get("created_at"))
    key = str(item.get("id") or f"{number}")
    speaker = str(item.get("speaker") or "")
    return Turn(place=number, key=key, role=role, content=item["content"], at=at, speaker=speaker)


def _known(item: dict[str, Any], number: int, target: Target) -> Any:
    sure, metadata = item.get("confidence", 0.9), item.get("metadata", {})
    if isinstance(sure, bool) or not isinstance(sure, (int, float)) or not 0 <= sure <= 1:
        return Fault(line=number, kind="fact", reason="confidence: is no number from 0 to 1")
    if not isinstance(metadata, dict):
        return Fault(line=number, kind="fact", reason="metadata: is no object")
    return target.fact(
        item["content"],
        key=item.get("id") or item["content"],
        category=item.get("category"),
        created=moment(item.get("created_at")),
        updated=moment(item.get("updated_at")),
        confidence=float(sure),
        metadata=metadata,
    )
