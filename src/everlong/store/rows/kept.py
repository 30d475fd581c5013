"""Profiles and memory files, with their earlier versions, as rows."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from sqlalchemy import func

from everlong.records import FileInfo, MemoryFile, Profile, Scope, Section
from everlong.store import schema
from everlong.store.rows.values import (
    encode,
    from_json,
    maybe_micros,
    maybe_time,
    ordered,
    to_json,
    to_micros,
    to_scope,
    to_time,
)

if TYPE_CHECKING:
    from sqlalchemy import Column, ColumnElement

    from everlong.store.sql import Row


def profile_columns() -> list[Column[Any]]:
    return ordered(schema.profiles, "sections attributes version updated_at")


def from_profile(profile: Profile) -> dict[str, Any]:
    sections = {name: [s.summary, to_micros(s.updated_at)] for name, s in profile.sections.items()}
    return {
        "sections": to_json(sections),
        "attributes": to_json(dict(profile.attributes)),
        "updated_at": maybe_micros(profile.updated_at),
    }


def to_profile(row: Row) -> Profile:
    org, agent, user, session, sections, attributes, version, updated = row
    return Profile(
        scope=to_scope(org, agent, user, session),
        sections={n: Section(summary=s, updated_at=to_time(at)) for n, (s, at) in from_json(sections).items()},
        attributes=from_json(attributes),
        version=version,
        updated_at=maybe_time(updated),
    )


def profile_body(profile: Profile) -> str:
    return encode(from_profile(profile))


def profile_of_body(scope: Scope, version: int, body: str) -> Profile:
    """An earlier version of a profile from its text."""
    found = json.loads(body)
    return to_profile((*scope.parts, found["sections"], found["attributes"], version, found["updated_at"]))


def file_columns() -> list[Column[Any]]:
    return ordered(schema.files, "path content created_at updated_at version read_only metadata")


def from_file(file: MemoryFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "content": file.content,
        "created_at": to_micros(file.created_at),
        "updated_at": to_micros(file.updated_at),
        "read_only": int(file.read_only),
        "metadata": to_json(dict(file.metadata)),
    }


def to_file(row: Row) -> MemoryFile:
    org, agent, user, session, path, content, created, updated, version, read_only, metadata = row
    return MemoryFile(
        scope=to_scope(org, agent, user, session),
        path=path,
        content=bytes(content),
        created_at=to_time(created),
        updated_at=to_time(updated),
        version=version,
        read_only=bool(read_only),
        metadata=from_json(metadata),
    )


def file_body(file: MemoryFile) -> str:
    return encode({**from_file(file), "content": base64.b64encode(file.content).decode()})


def file_of_body(scope: Scope, version: int, body: str) -> MemoryFile:
    """An earlier version of a file from its text."""
    found = json.loads(body)
    return MemoryFile(
        scope=scope,
        path=found["path"],
        content=base64.b64decode(found["content"]),
        created_at=to_time(found["created_at"]),
        updated_at=to_time(found["updated_at"]),
        version=version,
        read_only=bool(found["read_only"]),
        metadata=from_json(found["metadata"]),
    )


def file_info_columns() -> list[ColumnElement[Any]]:
    """A file's columns less its content, of which only the size in bytes is read."""
    return [*ordered(schema.files, "path version updated_at read_only"), func.length(schema.files.c.content)]


def to_file_info(row: Row) -> FileInfo:
    org, agent, user, session, path, version, updated, read_only, size = row
    return FileInfo(
        scope=to_scope(org, agent, user, session),
        path=path,
        size=size,
        version=version,
        updated_at=to_time(updated),
        read_only=bool(read_only),
    )
