"""What is kept for a time only: the oldest rows of one place, gone for good, a bounded number at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from sqlalchemy import ColumnElement, Table, bindparam, delete, exists, func, or_, select

from everlong.records import Scope
from everlong.store import rows, schema, sql

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.sql.base import Executable

    from everlong.protocols import NewId
    from everlong.store.sql import Row, Work

_BEFORE: Final[ColumnElement[int]] = bindparam("before")
_MOST: Final[ColumnElement[int]] = bindparam("most")
_NEVER: Final = -(2**62)

_messages, _sessions, _facts = schema.messages, schema.sessions, schema.facts
_AT: Final = _messages.c.position
_READ: Final = exists().where(
    *(_sessions.c[name] == _messages.c[name] for name in schema.PLACE), _sessions.c.extracted >= _AT
)
_NEWEST_TO_GO: Final = (
    select(_AT).where(sql.exactly(_messages, home=True)).order_by(_AT.desc()).limit(1).offset(bindparam("keep"))
)
_OLD_MESSAGES: Final = (
    select(_messages.c.session, _messages.c.id)
    .where(
        sql.exactly(_messages, home=True),
        or_(_messages.c.created_at < _BEFORE, bindparam("beyond") >= _AT),
        _READ,
    )
    .order_by(_AT)
    .limit(_MOST)
)
_EMPTY_SESSIONS: Final = select(_sessions.c.session).where(
    sql.exactly(_sessions, home=True),
    _sessions.c.updated_at < _BEFORE,
    ~exists().where(*(_messages.c[name] == _sessions.c[name] for name in schema.PLACE)),
)
_OLD_FACTS: Final = (
    select(_facts.c.session, _facts.c.id)
    .where(sql.exactly(_facts, home=True), _facts.c.status == "retired", _facts.c.retired_at < _BEFORE)
    .order_by(_facts.c.retired_at)
    .limit(_MOST)
)


def _old(table: Table, *also: ColumnElement[bool]) -> Executable:
    found = select(table.c.session, table.c.id).where(sql.exactly(table, home=True), table.c.at < _BEFORE, *also)
    return found.order_by(table.c.at).limit(_MOST)


_OLD_EXTRACTIONS: Final = _old(schema.extractions)
_OLD_ENTRIES: Final = _old(schema.journal)
_OLD_TRACES: Final = _old(schema.journal, schema.journal.c.kind == "trace")
_OLDEST: Final = {
    table.name: select(func.min(column)).where(sql.exactly(table, home=True))
    for table, column in (
        (_messages, _messages.c.created_at),
        (schema.extractions, schema.extractions.c.at),
        (schema.journal, schema.journal.c.at),
    )
}
_versions = schema.revisions
_OLD_VERSIONS: Final = (
    select(*(_versions.c[n] for n in ("session", "kind", "id", "version")))
    .where(
        sql.exactly(_versions, home=True),
        or_(_versions.c.kind == "fact", _versions.c.kind == "profile"),
        _versions.c.at < _BEFORE,
    )
    .order_by(_versions.c.at)
    .limit(_MOST)
)
_FORGET_VERSION: Final = delete(_versions).where(
    sql.exactly(_versions),
    _versions.c.kind == bindparam("w_kind"),
    _versions.c.id == bindparam("w_id"),
    _versions.c.version == bindparam("w_version"),
)


def _one(table: Table, *also: ColumnElement[bool]) -> Executable:
    return delete(table).where(sql.exactly(table), table.c.id == bindparam("w_id"), *also)


_FORGET_MESSAGE: Final = _one(_messages)
_FORGET_FACT: Final = _one(_facts)
_FORGET_FACT_VERSIONS: Final = _one(_versions, _versions.c.kind == "fact")
_FORGET_SESSION: Final = delete(_sessions).where(sql.exactly(_sessions))
_FORGET_PROPOSALS: Final = delete(schema.proposals).where(
    sql.exactly(schema.proposals, home=True),
    or_(schema.proposals.c.kind == "fact", schema.proposals.c.kind == "removal"),
    schema.proposals.c.target == bindparam("w_id"),
)


class Retention:
    """The shelf of what is kept for a time only, in one transaction."""

    def __init__(self, work: Work, new_id: NewId) -> None:
        self._work = work
        self._new_id = new_id

    def messages(self, home: Scope, *, before: datetime | None, keep: int | None, limit: int, dry: bool = False) -> int:
        earliest = _NEVER if before is None else rows.to_micros(before)
        beyond = _NEVER
        if keep is not None and (found := self._work.row(_NEWEST_TO_GO, **sql.home(home), keep=keep)):
            beyond = int(found[0])
        old = self._work.rows(_OLD_MESSAGES, **sql.home(home), before=earliest, beyond=beyond, most=limit)
        if old and not dry:
            sql.renew(self._work, home, "message", self._new_id("epoch"))
            for session, message_id in old:
                at = _within(home, session)
                sql.drop_vectors(self._work, at, "message", message_id)
                self._work.change(_FORGET_MESSAGE, **sql.place(at), w_id=message_id)
        if before is not None and not dry:
            self._empty_sessions(home, earliest)
        return len(old)

    def _empty_sessions(self, home: Scope, before: int) -> None:
        for (session,) in self._work.rows(_EMPTY_SESSIONS, **sql.home(home), before=before):
            self._work.change(_FORGET_SESSION, **sql.place(_within(home, session)))

    def oldest(self, home: Scope) -> dict[str, datetime]:
        found = {name: self._work.rows(statement, **sql.home(home))[0][0] for name, statement in _OLDEST.items()}
        return {name: rows.to_time(at) for name, at in found.items() if at is not None}

    def facts(self, home: Scope, *, before: datetime, limit: int, dry: bool = False) -> int:
        old = self._find(_OLD_FACTS, home, before, limit)
        if dry:
            return len(old)
        for session in dict.fromkeys(session for session, _ in old):
            sql.renew(self._work, _within(home, session), "fact", self._new_id("epoch"))
        for session, fact_id in old:
            at = _within(home, session)
            sql.drop_vectors(self._work, at, "fact", fact_id)
            for statement in (_FORGET_FACT_VERSIONS, _FORGET_PROPOSALS, _FORGET_FACT):
                self._work.change(statement, **sql.place(at), w_id=fact_id)
        return len(old)

    def versions(self, home: Scope, *, before: datetime, limit: int, dry: bool = False) -> int:
        old = self._find(_OLD_VERSIONS, home, before, limit)
        for session, kind, owner, version in () if dry else old:
            where = sql.place(_within(home, session))
            self._work.change(_FORGET_VERSION, **where, w_kind=kind, w_id=owner, w_version=version)
        return len(old)

    def extractions(self, home: Scope, *, before: datetime, limit: int, dry: bool = False) -> int:
        return self._forget(schema.extractions, _OLD_EXTRACTIONS, home, before, limit, dry=dry)

    def journal(self, home: Scope, *, before: datetime, limit: int, traces: bool = False, dry: bool = False) -> int:
        old = _OLD_TRACES if traces else _OLD_ENTRIES
        return self._forget(schema.journal, old, home, before, limit, dry=dry)

    def _find(self, statement: Executable, home: Scope, before: datetime, limit: int) -> list[Row]:
        return self._work.rows(statement, **sql.home(home), before=rows.to_micros(before), most=limit)

    def _forget(
        self, table: Table, statement: Executable, home: Scope, before: datetime, limit: int, *, dry: bool
    ) -> int:
        old = self._find(statement, home, before, limit)
        for session, owner in () if dry else old:
            self._work.change(_DROP[table.name], **sql.place(_within(home, session)), w_id=owner)
        return len(old)


_DROP: Final = {table.name: _one(table) for table in (schema.extractions, schema.journal)}


def _within(home: Scope, session: str) -> Scope:
    return Scope(org=home.org, agent=home.agent, user=home.user, session=session)
