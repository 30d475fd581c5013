"""Whole records out of the tables and into them, for export and import: nothing is counted anew, nothing stamped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from sqlalchemy import and_, bindparam, func, select, tuple_

from everlong.errors import InvalidInput
from everlong.records import Earlier, Fact, MemoryFile, Message, Profile, Session
from everlong.store import rows, schema, sql, waiting
from everlong.store.passages import index_file
from everlong.store.rows.values import ordered
from everlong.store.schema import PLACE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy import ColumnElement, Table
    from sqlalchemy.sql.base import Executable

    from everlong.protocols import Indexed, NewId
    from everlong.records import CopyKind, Kept, Scope
    from everlong.store.sql import Row, Work


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shape:
    """How one kind lies in its table: ``key`` finds a record, ``order`` is a key too. ``page`` rows are read at a time."""

    table: Table
    columns: Sequence[ColumnElement[Any]]
    record: Callable[[Row], Kept]
    values: Callable[[Any], dict[str, Any]]
    key: tuple[str, ...]
    order: tuple[str, ...] = ()
    of: str = ""
    page: int = 500


def _placed(make: Callable[[Any], dict[str, Any]]) -> Callable[[Any], dict[str, Any]]:
    return lambda record: sql.columns(record.scope) | make(record)


def _session(session: Session) -> dict[str, Any]:
    return {
        **sql.columns(session.scope),
        "created_at": rows.to_micros(session.created_at),
        "updated_at": rows.to_micros(session.updated_at),
        "extracted": session.extracted,
    }


def _message(message: Message) -> dict[str, Any]:
    place = sql.columns(message.scope) | {"session": message.session, "position": message.position}
    return rows.from_message(message) | place


_BODIES: Final[Mapping[str, Callable[[Any], tuple[str, str]]]] = {
    "fact": lambda fact: (fact.id, rows.fact_body(fact)),
    "profile": lambda profile: ("", rows.profile_body(profile)),
    "file": lambda file: (file.path, rows.file_body(file)),
}


def _version(of: str) -> Callable[[Earlier], dict[str, Any]]:
    def values(earlier: Earlier) -> dict[str, Any]:
        owner, body = _BODIES[of](earlier.record)
        where = sql.columns(earlier.record.scope)
        at = rows.to_micros(earlier.ended)
        return {**where, "kind": of, "id": owner, "version": earlier.record.version, "at": at, "body": body}

    return values


def _earlier(row: Row) -> Earlier:
    *place, kind, _, version, at, body = row
    record: Fact | Profile | MemoryFile
    if kind == "fact":
        record = rows.fact_of_body(body)
    else:
        make = rows.profile_of_body if kind == "profile" else rows.file_of_body
        record = make(rows.to_scope(*place), version, body)
    return Earlier(record=record, ended=rows.to_time(at))


def _versions(of: str, page: int = 500) -> _Shape:
    table = schema.revisions
    return _Shape(
        table=table,
        columns=ordered(table, "kind id version at body"),
        record=_earlier,
        values=_version(of),
        key=(*PLACE, "kind", "id", "version"),
        order=(*PLACE, "id", "version"),
        of=of,
        page=page,
    )


_SHAPES: Final[Mapping[str, _Shape]] = {
    "profile": _Shape(
        table=schema.profiles,
        columns=rows.profile_columns(),
        record=rows.to_profile,
        values=_placed(lambda profile: rows.from_profile(profile) | {"version": profile.version}),
        key=PLACE,
    ),
    "profile_version": _versions("profile"),
    "session": _Shape(
        table=schema.sessions, columns=rows.session_columns(), record=rows.to_session, values=_session, key=PLACE
    ),
    "message": _Shape(
        table=schema.messages,
        columns=rows.message_columns(),
        record=rows.to_message,
        values=_message,
        key=(*PLACE, "id"),
        order=(*PLACE, "position", "id"),
    ),
    "fact": _Shape(
        table=schema.facts,
        columns=rows.fact_columns(),
        record=rows.to_fact,
        values=rows.from_fact,
        key=("org", "id"),
        order=(*PLACE, "id"),
    ),
    "fact_version": _versions("fact"),
    "file": _Shape(
        table=schema.files,
        columns=rows.file_columns(),
        record=rows.to_file,
        values=_placed(lambda file: rows.from_file(file) | {"version": file.version}),
        key=(*PLACE, "path"),
        page=8,
    ),
    "file_version": _versions("file", page=8),
    "proposal": _Shape(
        table=schema.proposals,
        columns=rows.proposal_columns(),
        record=rows.to_proposal,
        values=rows.from_proposal,
        key=("org", "id"),
        order=(*PLACE, "id"),
    ),
    "entry": _Shape(
        table=schema.journal,
        columns=rows.entry_columns(),
        record=rows.to_entry,
        values=rows.from_entry,
        key=("org", "id"),
        order=(*PLACE, "at", "id"),
    ),
    "extraction": _Shape(
        table=schema.extractions,
        columns=rows.extraction_columns(),
        record=rows.to_extraction,
        values=rows.from_extraction,
        key=("org", "id"),
        order=(*PLACE, "at", "id"),
    ),
}


@cache
def _page(kind: str, named: tuple[str, ...], after: bool) -> Executable:  # noqa: FBT001 (a cache's key)
    shape = _SHAPES[kind]
    order = [shape.table.c[name] for name in shape.order or shape.key]
    asked = [sql.within(shape.table, named)]
    if shape.of:
        asked.append(shape.table.c.kind == shape.of)
    if after:
        asked.append(tuple_(*order) > tuple_(*(bindparam(f"after_{c.name}", type_=c.type) for c in order)))
    return select(*shape.columns, *order).where(*asked).order_by(*order).limit(bindparam("most"))


@cache
def _find(kind: str) -> Executable:
    shape = _SHAPES[kind]
    return select(*shape.columns).where(and_(*(shape.table.c[n] == bindparam(f"w_{n}") for n in shape.key)))


@cache
def _put(kind: str) -> Executable:
    table = _SHAPES[kind].table
    return sql.Insert(table).values({c.name: bindparam(c.name) for c in table.c}).on_conflict_do_nothing()


_LAST: Final = select(func.coalesce(func.max(schema.buckets.c.revision), 0)).where(
    sql.exactly(schema.buckets), schema.buckets.c.kind == "message"
)


class Copies:
    """The shelf of whole records in one transaction."""

    def __init__(self, work: Work, new_id: NewId) -> None:
        self._work = work
        self._new_id = new_id

    def each(self, kind: CopyKind, scope: Scope) -> Iterator[Kept]:
        shape, named, where = _SHAPES[kind], sql.named(scope), sql.place(scope)
        names = [f"after_{name}" for name in shape.order or shape.key]
        after: dict[str, Any] = {}
        while True:
            found = self._work.rows(_page(kind, named, bool(after)), **where, **after, most=shape.page)
            yield from (shape.record(row[: len(shape.columns)]) for row in found)
            if len(found) < shape.page:
                return
            after = dict(zip(names, found[-1][len(shape.columns) :], strict=True))

    def find(self, kind: CopyKind, record: Kept) -> Kept | None:
        shape = _SHAPES[kind]
        values = shape.values(record)
        found = self._work.row(_find(kind), **{f"w_{name}": values[name] for name in shape.key})
        return None if found is None else shape.record(found)

    def put(self, kind: CopyKind, record: Kept, indexed: Indexed | None = None) -> bool:
        values = _SHAPES[kind].values(record)
        if isinstance(record, Fact | Message):
            if indexed is None:
                raise InvalidInput(f"a {kind} needs the words by which it is found")
            values |= rows.searchable(record.content, indexed) | {"revision": self._revision(record)}
        elif isinstance(record, Session):
            values["epoch"] = self._new_id("epoch")
        stored = bool(self._work.change(_put(kind), **values))
        if stored and isinstance(record, Message):
            waiting.put_back(self._work, replace(record.scope, session=record.session), record.position)
        if stored and isinstance(record, MemoryFile):
            index_file(self._work, record, self._new_id)
        return stored

    def last_position(self, home: Scope) -> int:
        return int(cast("Row", self._work.row(_LAST, **sql.place(home)))[0])

    def _revision(self, record: Fact | Message) -> int:
        """The next of the record's bucket; of messages never below the position, for the next position comes from it."""
        kind = "fact" if isinstance(record, Fact) else "message"
        revision = sql.bump(self._work, record.scope, kind, self._new_id("epoch"))
        behind = record.position - revision if isinstance(record, Message) else 0
        return sql.bump(self._work, record.scope, kind, self._new_id("epoch"), behind) if behind > 0 else revision
