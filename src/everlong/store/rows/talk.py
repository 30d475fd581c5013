"""Messages and their sessions as rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from everlong.records import Message, Session
from everlong.store import schema
from everlong.store.rows.values import (
    encode,
    from_json,
    to_json,
    to_micros,
    to_scope,
    to_time,
)

if TYPE_CHECKING:
    from sqlalchemy import Column

    from everlong.store.sql import Row


def message_columns() -> list[Column[Any]]:
    """The columns that :func:`to_message` reads, in its order."""
    names = "org agent user session id role content speaker origin signals metadata position created_at"
    return [schema.messages.c[name] for name in names.split()]


def from_message(message: Message) -> dict[str, Any]:
    """A message as columns, less position and scope."""
    return {
        "id": message.id,
        "role": message.role,
        "content": message.content,
        "speaker": message.speaker,
        "origin": message.origin,
        "signals": encode(message.signals) if message.signals else "[]",
        "metadata": to_json(dict(message.metadata)),
        "created_at": to_micros(message.created_at),
    }


def to_message(row: Row) -> Message:
    """A message from a row of :func:`message_columns`."""
    org, agent, user, session, id_, role, content, speaker, origin, signals, metadata, position, created = row
    return Message(
        id=id_,
        scope=to_scope(org, agent, user, ""),
        session=session,
        role=role,
        content=content,
        created_at=to_time(created),
        speaker=speaker,
        origin=origin,
        position=position,
        signals=() if signals == "[]" else tuple(json.loads(signals)),
        metadata=from_json(metadata),
    )


def session_columns() -> list[Column[Any]]:
    names = "org agent user session epoch created_at updated_at extracted"
    return [schema.sessions.c[name] for name in names.split()]


def to_session(row: Row) -> Session:
    org, agent, user, session, epoch, created, updated, extracted = row
    return Session(
        scope=to_scope(org, agent, user, session),
        created_at=to_time(created),
        updated_at=to_time(updated),
        extracted=extracted,
        epoch=epoch,
    )
