"""Erasing: every row of every kind within a scope, gone in one transaction."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, bindparam, delete, exists, or_, select, update

from everlong.store import rows, schema, sql

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Table
    from sqlalchemy.sql.base import Executable

    from everlong.protocols import NewId
    from everlong.records import Scope
    from everlong.store.sql import Work

_OF_FACTS: Final = {"vectors": "id", "revisions": "id", "proposals": "target", "journal": "target"}
"""What hangs on a fact, and the column that names the fact; it goes before the fact."""
_TABLES: Final = (
    *_OF_FACTS,
    *("facts", "messages", "sessions", "profiles", "files", "jobs", "extractions"),
)


def _doomed_fact(home: tuple[str, ...]) -> ColumnElement[bool]:
    facts = schema.facts
    session = or_(facts.c.session == bindparam("w_session"), facts.c.learned_in == bindparam("w_session"))
    return and_(sql.within(facts, home), session)


def _doomed(table: Table, named: tuple[str, ...]) -> ColumnElement[bool]:
    facts, home = schema.facts, named[:-1]
    if "session" not in named or table.name not in {"facts", *_OF_FACTS}:
        return sql.within(table, named)
    if table is facts:
        return _doomed_fact(home)
    owner = table.c[_OF_FACTS[table.name]]
    owners = exists().where(facts.c.org == table.c.org, facts.c.id == owner, _doomed_fact(home))
    hangs = and_(or_(table.c.kind == "fact", table.c.kind == "removal"), owners)
    return and_(sql.within(table, home), or_(table.c.session == bindparam("w_session"), hangs))


@cache
def _delete(name: str, named: tuple[str, ...]) -> Executable:
    table = schema.metadata.tables[name]
    return delete(table).where(_doomed(table, named))


@cache
def _buckets(named: tuple[str, ...]) -> Executable:
    """Buckets that lose rows: all within the scope, and those at home of what the conversation left there."""
    buckets, facts = schema.buckets, schema.facts
    if "session" not in named:
        return select(*(buckets.c[n] for n in (*schema.PLACE, "kind"))).where(sql.within(buckets, named))
    home = named[:-1]
    same = (facts.c[name] == buckets.c[name] for name in schema.PLACE)
    learned = and_(buckets.c.kind == "fact", exists().where(*same, _doomed_fact(home)))
    said = schema.messages
    here = (said.c[name] == buckets.c[name] for name in schema.PLACE[:3])
    spoken = and_(buckets.c.kind == "message", exists().where(*here, said.c.session == bindparam("w_session")))
    asked = and_(sql.within(buckets, home), or_(learned, spoken))
    return select(*(buckets.c[n] for n in (*schema.PLACE, "kind"))).where(asked)


_RENEW: Final = (
    update(schema.buckets)
    .where(sql.exactly(schema.buckets), schema.buckets.c.kind == bindparam("w_kind"))
    .values(epoch=bindparam("epoch"), revision=schema.buckets.c.revision + 1)
)


@cache
def _forget(named: tuple[str, ...]) -> Executable:
    return delete(schema.buckets).where(sql.within(schema.buckets, named))


def erase(work: Work, scope: Scope, new_id: NewId) -> dict[str, int]:
    """Deletes all that is kept within ``scope``; counts by kind."""
    named, where = sql.named(scope), sql.place(scope)
    # First the buckets: every writer of facts and messages holds its bucket's row, so none is half-way through.
    for row in sorted(work.rows(_buckets(named), **where)):
        work.change(_RENEW, **sql.place(rows.to_scope(*row[:4])), w_kind=row[4], epoch=new_id("epoch"))
    counts = {name: work.change(_delete(name, named), **where) for name in _TABLES}
    work.change(_forget(named), **where)
    return counts
