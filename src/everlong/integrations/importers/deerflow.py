"""DeerFlow: its JSON document (version 1), or a folder of Markdown facts with front matter (version 2)."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml

from everlong.errors import InvalidInput, TooLarge
from everlong.integrations.deerflow.document import KEY, checked, facts_of, sections_of
from everlong.integrations.importers.target import load_json, moment
from everlong.records import Fact, Fault, Profile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.integrations.importers.target import Found, Target

__all__ = ["deerflow"]

_MATTER: Final = re.compile(r"\A\ufeff?---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)(.*)\Z", re.DOTALL)
_OVER: Final = frozenset({"retired", "archived", "superseded", "inactive"})
"""States of a Markdown fact that is not believed any more."""


def deerflow(source: str, target: Target) -> Iterator[Found]:
    """Facts and sections of a document, or of ``users/<id>`` with ``memory.json`` and Markdown facts below it."""
    path = Path(source)
    if not path.is_dir():
        yield from _document(load_json(source), target)
        return
    if (path / "memory.json").is_file():
        yield from _document(load_json(str(path / "memory.json")), target)
    for number, file in enumerate(sorted(path.rglob("*.md")), 1):
        if "facts" in file.parts[:-1]:
            yield number, _markdown(file, number, target)


def _document(data: Any, target: Target) -> Iterator[Found]:
    entries = data.get("facts") if isinstance(data, dict) else None
    faulty = {}
    for number, entry in enumerate(entries if isinstance(entries, list) else [], 1):
        fault = _fault(entry, number)
        if fault:
            faulty[number] = fault
            yield number, fault
    if faulty and isinstance(entries, list):
        data = {**data, "facts": [entry for number, entry in enumerate(entries, 1) if number not in faulty]}
    try:
        document = checked(data)
    except (InvalidInput, TooLarge) as error:
        yield 1, Fault(line=1, reason=str(error))
        return
    sections = sections_of(document, target.now)
    if sections:
        latest = max(section.updated_at for section in sections.values())
        yield 1, Profile(scope=target.scope, sections=sections, version=1, updated_at=latest)
    for number, fact in enumerate(facts_of(document, target.scope, target.now), 1):
        yield number, _own(fact, target)


def _fault(entry: object, number: int) -> Fault | None:
    """What is wrong with one entry, seen alone."""
    try:
        checked({"facts": [entry]})
    except (InvalidInput, TooLarge) as error:
        name = entry.get("id") if isinstance(entry, dict) else ""
        return Fault(line=number, kind="fact", id=str(name or ""), reason=str(error).replace("facts[0]", "fact"))
    return None


def _own(fact: Fact, target: Target) -> Fact:
    """Under an id of the target's; the document's own shows again in the document."""
    came = {**fact.metadata[KEY], "id": fact.id}
    made = target.fact(
        fact.content,
        key=fact.id,
        category=fact.category,
        created=fact.created_at,
        confidence=fact.confidence,
        session=fact.session,
    )
    return replace(made, metadata={**made.metadata, KEY: came})


def _markdown(file: Path, number: int, target: Target) -> Fact | Fault:
    try:
        found = _MATTER.match(file.read_text("utf-8"))
        matter = yaml.safe_load(found[1]) if found else None
    except (OSError, ValueError, yaml.YAMLError) as error:
        return Fault(line=number, kind="fact", id=file.name, reason=f"{file.name} cannot be read: {error}")
    if found is None or not isinstance(matter, dict):
        return Fault(line=number, kind="fact", id=file.name, reason=f"{file.name} has no front matter")
    entry = {**_plain(matter), "content": found[2].strip()}
    entry["category"] = matter.get("categoryExtension") or matter.get("category")
    origin = matter.get("source")
    entry["source"] = origin.get("threadId") or origin.get("type") if isinstance(origin, dict) else origin
    fault = _fault(entry, number)
    if fault:
        return fault
    fact = facts_of(checked({"facts": [entry]}), target.scope, target.now)[0]
    made = _own(fact, target)
    if matter.get("status") in _OVER:
        at = moment(entry.get("updatedAt")) or made.updated_at
        return replace(made, status="retired", retired_at=at, reason=f"{matter['status']} in DeerFlow")
    return made


def _plain(value: Any) -> Any:
    """What YAML gave as JSON can hold it: times as text."""
    if isinstance(value, dict):
        return {str(name): _plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)
