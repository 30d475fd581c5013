"""Facts: visible by scope, versioned, with the words and vectors that search reads."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, exists, or_, select, update

from everlong.errors import Conflict, InvalidInput, NotFound
from everlong.store import past, rows, sql
from everlong.store.pages import Listing
from everlong.store.schema import PLACE, facts, vectors

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement
    from sqlalchemy.sql.base import Executable

    from everlong.protocols import Indexed, NewId, Rights
    from everlong.records import Fact, FactStatus, Page, Scope
    from everlong.store.sql import Work

_KIND: Final = "fact"
_COLUMNS: Final = rows.fact_columns()
_TEXT: Final = ("terms", "length", "question")
_ID: Final = facts.c.id == bindparam("w_id")

_ADD: Final = sql.Insert(facts).values({c.name: bindparam(c.name) for c in facts.c}).on_conflict_do_nothing()
_GET: Final = select(*_COLUMNS).where(sql.visible(facts), _ID)
_ALL: Final = select(*_COLUMNS).where(sql.visible(facts))
_EXACT: Final = select(*_COLUMNS).where(sql.exactly(facts), _ID)
_MARK: Final = (
    update(facts)
    .where(sql.exactly(facts), _ID, facts.c.terms == bindparam("w_terms"))
    .values(revision=bindparam("revision"))
)
_TERMS: Final = select(*(facts.c[n] for n in ("org", "agent", "user", "session", "terms"))).where(
    sql.visible(facts), _ID
)
_EMBEDDED: Final = exists().where(
    vectors.c.kind == _KIND,
    vectors.c.model == bindparam("w_model"),
    *(vectors.c[name] == facts.c[name] for name in (*PLACE, "id")),
)
_PENDING: Final = (
    select(*_COLUMNS)
    .where(sql.exactly(facts), facts.c.status == "active", ~_EMBEDDED)
    .order_by(facts.c.created_at, facts.c.id)
    .limit(bindparam("most"))
)


@cache
def _revise(*, text: bool) -> Executable:
    fixed = {"org", "agent", "user", "session", "id", *(() if text else _TEXT)}
    changed: dict[str, Any] = {c.name: bindparam(c.name) for c in facts.c if c.name not in fixed}
    return update(facts).where(sql.exactly(facts), _ID, facts.c.version == bindparam("w_version")).values(changed)


@cache
def _many(size: int) -> Executable:
    return select(*_COLUMNS).where(sql.visible(facts), sql.one_of(facts.c.id, size))


@cache
def _touch(size: int) -> Executable:
    changed: dict[str, Any] = {"uses": facts.c.uses + 1, "last_used_at": bindparam("used")}
    return update(facts).where(sql.visible(facts), sql.one_of(facts.c.id, size)).values(changed)


def _asked(*, status: bool, categories: int, pinned: bool, valid: bool) -> list[ColumnElement[bool]]:
    asked = [sql.visible(facts)]
    if valid:
        asked.append(or_(facts.c.valid_from.is_(None), facts.c.valid_from <= bindparam("valid_at")))
        asked.append(or_(facts.c.valid_until.is_(None), facts.c.valid_until > bindparam("valid_at")))
    if pinned:
        asked.append(facts.c.pinned == 1)
    if status:
        asked.append(facts.c.status == bindparam("w_status"))
    if categories:
        asked.append(sql.one_of(facts.c.category, categories))
    return asked


_LIST: Final = Listing(
    _COLUMNS,
    (facts.c.created_at, facts.c.id, facts.c.org),
    rows.to_fact,
    lambda status, categories, pinned, valid: _asked(status=status, categories=categories, pinned=pinned, valid=valid),
)


def _wanted(
    fact: Fact, status: FactStatus | None, categories: Sequence[str], valid_at: datetime | None, *, pinned: bool
) -> bool:
    """Whether a list asks for this fact: in Python what :func:`_asked` says in SQL."""
    if valid_at is not None and not fact.holds(valid_at):
        return False
    return (
        (status is None or fact.status == status)
        and (not categories or fact.category in categories)
        and (fact.pinned or not pinned)
    )


class Facts:
    """The shelf of facts in one transaction."""

    def __init__(self, work: Work, new_id: NewId, rights: Rights | None = None) -> None:
        self._work = work
        self._new_id = new_id
        self._rights = rights

    def add(self, fact: Fact, indexed: Indexed) -> Fact:
        """Stores a new fact.

        Raises:
            Conflict: its id is taken.
        """
        values = rows.from_fact(fact) | rows.searchable(fact.content, indexed)
        if not self._work.change(_ADD, **values, revision=self._bump(fact.scope)):
            raise Conflict(f"fact {fact.id}", expected="a new id", actual="one in use")
        self._put_vectors(fact.scope, fact.id, indexed)
        return fact

    def get(self, scope: Scope, fact_id: str) -> Fact:
        found = self._work.row(_GET, **sql.place(scope), w_id=fact_id)
        fact = None if found is None else rows.to_fact(found)
        if fact is None or not self._readable([fact]):
            raise NotFound(f"no fact {fact_id} is visible from {scope}")
        return fact

    def many(self, scope: Scope, ids: Sequence[str]) -> dict[str, Fact]:
        found: dict[str, Fact] = {}
        where = sql.place(scope)
        for size, values in sql.chunks(ids):
            read = list(map(rows.to_fact, self._work.rows(_many(size), **where, **values)))
            found |= {fact.id: fact for fact in self._readable(read)}
        return found

    def revise(self, fact: Fact, *, expected: int, indexed: Indexed | None = None) -> Fact:
        where = sql.place(fact.scope)
        # Taken before the old state is read: whoever comes second finds the version of the first.
        revision = self._bump(fact.scope)
        found = self._work.row(_EXACT, **where, w_id=fact.id)
        if found is None:
            raise NotFound(f"no fact {fact.id} at {fact.scope}")
        old = rows.to_fact(found)
        if old.version != expected:
            raise Conflict(f"fact {fact.id}", expected=expected, actual=old.version)
        made = replace(fact, version=expected + 1)
        values = rows.from_fact(made) | (rows.searchable(fact.content, indexed) if indexed else {})
        for name in ("org", "agent", "user", "session", "id"):
            del values[name]
        statement = _revise(text=indexed is not None)
        self._work.change(statement, **where, w_id=fact.id, w_version=expected, revision=revision, **values)
        at = rows.to_micros(made.updated_at)
        sql.keep(self._work, fact.scope, _KIND, fact.id, expected, at, rows.fact_body(old))
        if indexed:
            sql.drop_vectors(self._work, fact.scope, _KIND, fact.id)
            self._put_vectors(fact.scope, fact.id, indexed)
        return made

    def list(
        self,
        scope: Scope,
        *,
        status: FactStatus | None = "active",
        categories: Sequence[str] = (),
        cursor: str = "",
        limit: int = 100,
        pinned: bool = False,
        valid_at: datetime | None = None,
        as_of: datetime | None = None,
    ) -> Page[Fact]:
        if as_of is not None or self._rights is not None:
            known = self.as_of(scope, as_of) if as_of is not None else self._all(scope)
            found = [fact for fact in known if _wanted(fact, status, categories, valid_at, pinned=pinned)]
            return _LIST.page_of(found, past.key, cursor=cursor, limit=limit)
        size, values = next(sql.chunks(categories), (0, {}))
        asked: dict[str, Any] = sql.place(scope) | values | ({"w_status": status} if status else {})
        if valid_at is not None:
            asked["valid_at"] = rows.to_micros(valid_at)
        shape = (status is not None, size, pinned, valid_at is not None)
        return _LIST(self._work, *shape, cursor=cursor, limit=limit, **asked)

    def as_of(self, scope: Scope, at: datetime) -> tuple[Fact, ...]:
        known = past.facts_at(self._work, scope, at)
        if self._rights is None:
            return tuple(known)
        now = self.many(scope, [fact.id for fact in known])  # what has become unreadable was never readable
        return tuple(fact for fact in self._readable(known) if fact.id in now)

    def history(self, scope: Scope, fact_id: str) -> tuple[Fact, ...]:
        present = self.get(scope, fact_id)
        earlier = sql.kept(self._work, present.scope, _KIND, fact_id)
        return (*self._readable(list(map(rows.fact_of_body, earlier))), present)

    def touch(self, scope: Scope, ids: Sequence[str], at: datetime) -> int:
        where, used = sql.place(scope), rows.to_micros(at)
        unique = list(dict.fromkeys(ids))
        return sum(self._work.change(_touch(size), **where, **values, used=used) for size, values in sql.chunks(unique))

    def set_vectors(self, scope: Scope, fact_id: str, indexed: Indexed) -> bool:
        if indexed.vectors is None:
            raise InvalidInput("there are no vectors to set")
        found = self._work.row(_TERMS, **sql.place(scope), w_id=fact_id)
        terms = rows.searchable("", indexed)["terms"]
        if found is None or bytes(found[4]) != terms:
            return False
        kept_at = rows.to_scope(*found[:4])
        revision = self._bump(kept_at)
        if not self._work.change(_MARK, **sql.place(kept_at), w_id=fact_id, w_terms=terms, revision=revision):
            return False
        self._put_vectors(kept_at, fact_id, indexed)
        return True

    def unembedded(self, scope: Scope, model: str, *, limit: int) -> tuple[Fact, ...]:
        found = self._work.rows(_PENDING, **sql.place(scope), w_model=model, most=limit)
        return tuple(map(rows.to_fact, found))

    def _readable(self, found: Sequence[Fact]) -> Sequence[Fact]:
        return found if self._rights is None else self._rights.facts(found)

    def _all(self, scope: Scope) -> Sequence[Fact]:
        found = self._readable(list(map(rows.to_fact, self._work.rows(_ALL, **sql.place(scope)))))
        return sorted(found, key=past.key, reverse=True)

    def lock(self, scope: Scope) -> int:
        return sql.bump(self._work, scope, _KIND, self._new_id("epoch"), by=0)

    def _bump(self, scope: Scope) -> int:
        return sql.bump(self._work, scope, _KIND, self._new_id("epoch"))

    def _put_vectors(self, scope: Scope, fact_id: str, indexed: Indexed) -> None:
        if indexed.vectors is not None:
            sql.put_vectors(self._work, scope, _KIND, fact_id, indexed.model, indexed.vectors)
