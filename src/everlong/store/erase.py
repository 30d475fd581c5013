"""Erasing: every row of every kind within a scope, gone in one transaction."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, bindparam, delete, exists, or_, select, update

from everlong.store import rows, schema, sql, waiting

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
    *("facts", "messages", "profiles", "sessions", "files", "passages", "jobs", "extractions"),
)
"""In the order in which writers touch them, so that no two wait for each other in a circle."""


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
    if table is schema.journal:  # a trace holds the block, which may show what was said in any conversation
        hangs = or_(hangs, table.c.kind == "trace")
    return and_(sql.within(table, home), or_(table.c.session == bindparam("w_session"), hangs))


@cache
def _delete(name: str, named: tuple[str, ...]) -> Executable:
    table = schema.metadata.tables[name]
    return delete(table).where(_doomed(table, named))


@cache
def _buckets(named: tuple[str, ...]) -> Executable:
    """Buckets that may lose rows: all within the scope, and of a conversation all within its home."""
    buckets = schema.buckets
    place = named[:-1] if "session" in named else named
    return select(*(buckets.c[n] for n in (*schema.PLACE, "kind"))).where(sql.within(buckets, place))


@cache
def _forget(named: tuple[str, ...]) -> Executable:
    return delete(schema.buckets).where(sql.within(schema.buckets, named))


_QUOTED: Final = bindparam("w_quoted", type_=schema.Words)


@cache
def _facts_quoting(home: tuple[str, ...]) -> Executable:
    facts = schema.facts
    found = select(*(facts.c[n] for n in (*schema.PLACE, "id", "evidence")))
    return found.where(sql.within(facts, home), facts.c.evidence.like(_QUOTED, escape="!"))


@cache
def _versions_quoting(home: tuple[str, ...]) -> Executable:
    kept = schema.revisions
    found = select(*(kept.c[n] for n in (*schema.PLACE, "id", "version", "body")))
    return found.where(sql.within(kept, home), kept.c.kind == "fact", kept.c.body.like(_QUOTED, escape="!"))


_UNQUOTE: Final = (
    update(schema.facts)
    .where(sql.exactly(schema.facts), schema.facts.c.id == bindparam("w_id"))
    # As another version, so that nobody who read the old one writes the words back.
    .values(evidence=bindparam("evidence"), version=schema.facts.c.version + 1)
)
_UNQUOTE_VERSION: Final = (
    update(schema.revisions)
    .where(
        sql.exactly(schema.revisions),
        schema.revisions.c.kind == "fact",
        schema.revisions.c.id == bindparam("w_id"),
        schema.revisions.c.version == bindparam("w_version"),
    )
    .values(body=bindparam("body"))
)


def _like(text: str) -> str:
    return "%" + text.replace("!", "!!").replace("%", "!%").replace("_", "!_") + "%"


def _unquote(work: Work, scope: Scope) -> None:
    """Takes the conversation's words out of the evidence of facts that were learned elsewhere, and of their past."""
    home, where = sql.named(scope, home=True), sql.place(scope)
    inside = rows.to_json(scope.session)
    for *place, fact_id, evidence in work.rows(_facts_quoting(home), **where, w_quoted=_like(inside)):
        left = rows.without_quotes(evidence, scope.session)
        if left != evidence:
            work.change(_UNQUOTE, **sql.place(rows.to_scope(*place)), w_id=fact_id, evidence=left)
    again = rows.to_json(inside)[1:-1]  # a version's body holds its evidence as JSON within JSON
    for *place, fact_id, version, body in work.rows(_versions_quoting(home), **where, w_quoted=_like(again)):
        at = sql.place(rows.to_scope(*place))
        shorter = rows.body_without_quotes(body, scope.session)
        work.change(_UNQUOTE_VERSION, **at, w_id=fact_id, w_version=version, body=shorter)


def _last_messages(bucket: sql.Row) -> tuple[bool, sql.Row]:
    """As extraction takes them: facts, then what was read."""
    return bucket[4] == "message", bucket


def erase(work: Work, scope: Scope, new_id: NewId) -> dict[str, int]:
    """Deletes all that is kept within ``scope``; counts by kind.

    Buckets first: every writer of messages or facts takes its bucket before anything else, so it either ended before or
    begins after, and no two wait for each other in a circle.
    """
    named, where = sql.named(scope), sql.place(scope)
    for row in sorted(work.rows(_buckets(named), **where), key=_last_messages):
        sql.renew(work, rows.to_scope(*row[:4]), row[4], new_id("epoch"))
    if scope.session:
        waiting.leave(work, scope)
    work.change(_forget(named), **where)
    counts = {name: work.change(_delete(name, named), **where) for name in _TABLES}
    if scope.session:
        _unquote(work, scope)
    return counts
