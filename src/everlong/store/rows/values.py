"""Values as columns and back: times in microseconds, mappings as JSON text, scopes as four columns."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from everlong.errors import InvalidInput
from everlong.records import Scope
from everlong.store import schema
from everlong.text import pack_terms

if TYPE_CHECKING:
    from sqlalchemy import Column, Table

    from everlong.protocols import Indexed

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
SECOND: Final = 1_000_000
_TICK: Final = timedelta(microseconds=1)
_QUESTION: Final = ("?", "？", "؟")

encode: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


@lru_cache(maxsize=4096)
def to_scope(org: str, agent: str, user: str, session: str) -> Scope:
    """A scope from its columns, remembered: checking one costs more than reading its row."""
    return Scope(org=org, agent=agent, user=user, session=session)


def to_micros(at: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (at - _EPOCH) // _TICK


def to_time(micros: int) -> datetime:
    """The time of :func:`to_micros`."""
    return _EPOCH + timedelta(microseconds=micros)


def maybe_micros(at: datetime | None) -> int | None:
    return None if at is None else to_micros(at)


def maybe_time(micros: int | None) -> datetime | None:
    return None if micros is None else to_time(micros)


def to_json(value: Any) -> str:
    """Compact JSON.

    Raises:
        InvalidInput: the value is not JSON.
    """
    if not value and isinstance(value, dict):
        return "{}"
    try:
        return encode(value)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"metadata must be JSON (text, numbers, lists, mappings): {error}") from error


def from_json(text: str) -> Any:
    return {} if text == "{}" else json.loads(text)


def is_question(content: str) -> bool:
    """Whether a text ends as a question does."""
    return content.rstrip().endswith(_QUESTION)


def searchable(content: str, indexed: Indexed) -> dict[str, Any]:
    """What search reads of a text besides its vectors."""
    return {"terms": pack_terms(indexed.terms), "length": len(content), "question": int(is_question(content))}


def ordered(table: Table, first: str) -> list[Column[Any]]:
    """The columns of a scope, then those named."""
    return [table.c[name] for name in (*schema.PLACE, *first.split())]
