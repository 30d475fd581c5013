"""Stores of single items: an export of mem0, and the tables of a LangGraph store."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from everlong.errors import InvalidInput, MissingExtra
from everlong.integrations.importers.target import load_json, moment
from everlong.records import Fault

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from everlong.integrations.importers.target import Found, Target

__all__ = ["langgraph", "mem0"]

_TEXTS: Final = ("memory", "content", "text", "data", "value", "fact")
"""Fields in which an item says what is remembered, by preference."""
_ROWS: Final = "SELECT prefix, key, value, created_at, updated_at FROM store ORDER BY prefix, key"
_PORTION: Final = 500


def mem0(source: str, target: Target) -> Iterator[Found]:
    """Memories of mem0 as ``get_all`` and its export give them: a list, or one under ``results`` or ``memories``."""
    data = load_json(source)
    items = data if isinstance(data, list) else _listed(data)
    users = {str(item["user_id"]) for item in items if isinstance(item, dict) and item.get("user_id")}
    _check_one(users, target, "user_id")
    for number, item in enumerate(items, 1):
        if isinstance(item, dict) and target.only and str(item.get("user_id") or "") not in {"", target.only}:
            continue
        yield number, _memory(item, number, target)


def _listed(data: object) -> list[Any]:
    for name in ("results", "memories"):
        if isinstance(data, dict) and isinstance(data.get(name), list):
            found: list[Any] = data[name]
            return found
    raise InvalidInput("an export of mem0 is a list of memories, or has one under results or memories")


def _check_one(users: set[str], target: Target, what: str) -> None:
    """Refuses to give the memory of several users to one."""
    if len(users) > 1 and not target.only:
        named = ", ".join(sorted(users)[:5])
        raise InvalidInput(
            f"the source holds memory of {len(users)} users ({named}): say whose to take by only ({what})"
        )
    if target.only and users and target.only not in users:
        raise InvalidInput(f"the source holds nothing of {target.only!r} ({what})")


def _memory(item: object, number: int, target: Target) -> Any:
    if not isinstance(item, dict):
        return Fault(line=number, kind="fact", reason="a memory is an object")
    text = next((item[name] for name in ("memory", "text", "data") if isinstance(item.get(name), str)), "")
    if not text.strip():
        return Fault(line=number, kind="fact", id=str(item.get("id", "")), reason="memory: there is no text")
    labels = item.get("categories")
    named = item.get("category") or (labels[0] if isinstance(labels, list) and labels else None)
    kept = {name: value for name, value in item.items() if name not in {"memory", "created_at", "updated_at"}}
    return target.fact(
        text,
        key=item.get("id") or text,
        category=named,
        created=moment(item.get("created_at")),
        updated=moment(item.get("updated_at")),
        session=str(item.get("run_id") or ""),
        metadata={"mem0": kept},
    )


# --------------------------------------------------------------------------------------------------- LangGraph


def langgraph(source: str, target: Target) -> Iterator[Found]:
    """Items of the table ``store`` of a LangGraph store, read without LangGraph. What an item says is a fact; one that
    says nothing in words becomes a fact with its JSON."""
    for number, (prefix, key, value, created, updated) in enumerate(_rows(source), 1):
        labels = str(prefix).split(".")
        if target.only and target.only not in labels:
            continue
        yield number, _item(number, labels, str(key), value, (created, updated), target)


def _rows(source: str) -> Iterable[tuple[Any, ...]]:
    return _postgres(source) if source.startswith(("postgres://", "postgresql://")) else _sqlite(Path(source))


def _sqlite(path: Path) -> Iterator[tuple[Any, ...]]:
    if not path.is_file():
        raise InvalidInput(f"there is no file {path}")
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
            yield from connection.execute(_ROWS)
    except sqlite3.Error as error:
        raise InvalidInput(f"{path} is no LangGraph store: {error}") from None


def _postgres(url: str) -> Iterator[tuple[Any, ...]]:
    try:
        import psycopg
    except ImportError:
        raise MissingExtra("postgres", "reading a LangGraph store in PostgreSQL") from None
    try:
        with psycopg.connect(url) as connection, connection.cursor("items") as cursor:
            cursor.itersize = _PORTION
            cursor.execute(_ROWS)
            yield from cursor
    except psycopg.Error as error:
        raise InvalidInput(f"the database is no LangGraph store: {error}") from None


def _item(number: int, labels: list[str], key: str, value: Any, times: tuple[Any, Any], target: Target) -> Any:
    try:
        said = json.loads(value) if isinstance(value, (str, bytes)) else value
    except ValueError as error:
        return Fault(line=number, kind="fact", id=key, reason=f"value: is no JSON: {error}")
    if not isinstance(said, dict):
        return Fault(line=number, kind="fact", id=key, reason="value: is no object")
    found = next((said[name] for name in _TEXTS if isinstance(said.get(name), str) and said[name].strip()), None)
    created, updated = (at if hasattr(at, "tzinfo") else moment(at) for at in times)
    return target.fact(
        found or json.dumps(said, ensure_ascii=False),
        key=json.dumps([*labels, key]),
        category=said.get("category"),
        created=created,
        updated=updated,
        metadata={"langgraph": {"namespace": labels, "key": key, "value": said}},
    )
