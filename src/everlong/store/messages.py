"""Messages, in the order in which their bucket took them, and the sessions they belong to."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import bindparam, exists, func, literal_column, select, union_all, update

from everlong.errors import InvalidInput, InvalidScope
from everlong.protocols import Backlog
from everlong.store import rows, sql, waiting
from everlong.store.forget import MARK
from everlong.store.schema import PLACE, Words, messages, sessions, vectors
from everlong.store.sessions import begin

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from sqlalchemy import Select
    from sqlalchemy.sql.base import Executable

    from everlong.protocols import Indexed, NewId, Rights
    from everlong.records import Message, Scope
    from everlong.store.sql import Work

_KIND: Final = "message"
_COLUMNS: Final = rows.message_columns()
_ID: Final = messages.c.id == bindparam("w_id")
_AT: Final = messages.c.position

_ADD: Final = sql.Insert(messages).values({c.name: bindparam(c.name) for c in messages.c}).on_conflict_do_nothing()
_TAIL: Final = (
    select(*_COLUMNS)
    .where(sql.exactly(messages), bindparam("before") > _AT)
    .order_by(_AT.desc())
    .limit(bindparam("most"))
)
_AFTER: Final = (
    select(*_COLUMNS).where(sql.exactly(messages), bindparam("after") < _AT).order_by(_AT).limit(bindparam("most"))
)
_ONE: Final = select(*_COLUMNS).where(sql.visible(messages, home=True), _ID).order_by(messages.c.created_at.desc())
_MARK: Final = (
    update(messages)
    .where(sql.exactly(messages), _ID, messages.c.terms == bindparam("w_terms"))
    .values(revision=bindparam("revision"))
)
_HELD: Final = select(messages.c.terms).where(sql.exactly(messages), _ID)
_EMBEDDED: Final = exists().where(
    vectors.c.kind == _KIND,
    vectors.c.model == bindparam("w_model"),
    *(vectors.c[name] == messages.c[name] for name in ("org", "agent", "user", "session", "id")),
)
_PENDING: Final = (
    select(*_COLUMNS)
    .where(sql.exactly(messages, home=True), ~_EMBEDDED, messages.c.content != MARK)  # a forgotten turn has no words
    .order_by(_AT)
    .limit(bindparam("most"))
)
_BACKLOG: Final = (
    select(func.count(), func.coalesce(func.sum(messages.c.length), 0))
    .select_from(sessions.join(messages, waiting.unread()))
    .where(sql.exactly(sessions))
)
_EVER: Final = 2**62
_WINDOWS: Final = 64
"""Turns whose neighbours one statement asks for: SQLite joins 500 selects at most."""


@cache
def _held(size: int) -> Executable:
    return select(messages.c.id).where(sql.exactly(messages), sql.one_of(messages.c.id, size))


@cache
def _many(size: int) -> Executable:
    asked = sql.visible(messages, home=True), sql.one_of(messages.c.id, size)
    return select(*_COLUMNS).where(*asked).order_by(messages.c.created_at)


def _beside(place: int, *, before: bool) -> Select[Any]:
    """Rows next to one turn in its conversation, in a select of its own, which is how both dialects take a limit there."""
    here = bindparam(f"at{place}", type_=_AT.type)
    where = [messages.c[name] == bindparam(f"{name}{place}", type_=Words) for name in PLACE]
    where += [here > _AT if before else here < _AT, messages.c.created_at <= bindparam("until")]
    order = _AT.desc() if before else _AT
    most = bindparam("before" if before else "after", type_=_AT.type)
    found = select(literal_column(str(place)).label("place"), *_COLUMNS).where(*where).order_by(order).limit(most)
    return select(found.subquery())


@cache
def _windows(size: int) -> Executable:
    return union_all(*(_beside(place, before=side) for place in range(size) for side in (True, False)))


@cache
def _recent(closed: tuple[tuple[bool, bool, bool], ...], *, since: bool) -> Executable:
    asked = [sql.visible(messages, home=True), *sql.outside(messages, closed)]
    if since:
        asked.append(messages.c.created_at >= bindparam("since"))
    newest = (messages.c.created_at.desc(), _AT.desc())
    return select(*_COLUMNS).where(*asked).order_by(*newest).limit(bindparam("most"))


class Messages:
    """The shelf of messages in one transaction."""

    def __init__(self, work: Work, new_id: NewId, rights: Rights | None = None) -> None:
        self._work = work
        self._new_id = new_id
        self._rights = rights

    def append(self, session: Scope, messages: Sequence[Message], indexed: Sequence[Indexed]) -> tuple[Message, ...]:
        if not session.session:
            raise InvalidScope(f"{session} names no session to append to")
        texts = {message.id: index for message, index in zip(messages, indexed, strict=True)}
        fresh: dict[str, Message] = {}
        for message in messages:
            fresh.setdefault(message.id, message)
        for held in self._held(session, list(fresh)):
            del fresh[held]
        if not fresh:
            return ()
        # The bucket before the session, as an erasure takes them: so the two never wait for each other in a circle.
        last = sql.bump(self._work, session.home, _KIND, self._new_id("epoch"), len(fresh), waiting=len(fresh))
        begin(self._work, session, list(fresh.values()), self._new_id("epoch"))
        first = last - len(fresh) + 1
        stored = (
            self._add(session, message, texts[message.id], position)
            for position, message in enumerate(fresh.values(), first)
        )
        return tuple(message for message in stored if message)

    def backlog(self, session: Scope) -> Backlog:
        here, characters = self._work.rows(_BACKLOG, **sql.place(session))[0]
        home = waiting.at_home(self._work, session)
        return Backlog(messages=int(here), characters=int(characters), at_home=home)

    def tail(self, session: Scope, *, limit: int, before: int | None = None) -> tuple[Message, ...]:
        if self._hides(session):
            return ()
        below = _EVER if before is None else before
        return self._backwards(self._work.rows(_TAIL, **sql.place(session), before=below, most=limit))

    def after(self, session: Scope, position: int, *, limit: int = 1000) -> tuple[Message, ...]:
        if self._hides(session):
            return ()
        found = self._work.rows(_AFTER, **sql.place(session), after=position, most=limit)
        return tuple(map(rows.to_message, found))

    def recent(self, scope: Scope, *, limit: int, since: datetime | None = None) -> tuple[Message, ...]:
        when = {} if since is None else {"since": rows.to_micros(since)}
        statement = _recent(self._rights.closed(_KIND, scope) if self._rights else (), since=since is not None)
        return self._backwards(self._work.rows(statement, **sql.home(scope), **when, most=limit))

    def many(self, scope: Scope, ids: Sequence[str]) -> dict[str, Message]:
        found: dict[str, Message] = {}
        where = sql.home(scope)
        for size, values in sql.chunks(ids):
            read = map(rows.to_message, self._work.rows(_many(size), **where, **values))
            found |= {one.id: one for one in read if not self._hides(one.scope)}
        return found

    def windows(
        self, messages: Sequence[Message], *, before: int, after: int, until: datetime | None = None
    ) -> list[tuple[Message, ...]]:
        found: list[list[Message]] = [[message] for message in messages]
        if before > 0 or after > 0:
            shape = {"before": max(before, 0), "after": max(after, 0)}
            shape["until"] = _EVER if until is None else rows.to_micros(until)
            for start in range(0, len(messages), _WINDOWS):
                self._fill(found[start : start + _WINDOWS], shape)
        return [tuple(sorted(window, key=lambda one: one.position)) for window in found]

    def _fill(self, windows: list[list[Message]], shape: dict[str, int]) -> None:
        """Puts the neighbours of each window's turn into it. The statement is for a power of two of turns: the last one
        is asked for again to make up the number, and what that gives is left out."""
        size = 1 << (len(windows) - 1).bit_length()
        asked: dict[str, Any] = dict(shape)
        for place in range(size):
            turn = windows[min(place, len(windows) - 1)][0]
            names = zip(PLACE, (*turn.scope.parts[:3], turn.session), strict=True)
            asked |= {f"{name}{place}": part for name, part in names} | {f"at{place}": turn.position}
        for place, *row in self._work.rows(_windows(size), **asked):
            if place < len(windows):
                windows[place].append(rows.to_message(tuple(row)))

    def around(self, scope: Scope, message_id: str, *, before: int, after: int) -> tuple[Message, ...]:
        read = map(rows.to_message, self._work.rows(_ONE, **sql.home(scope), w_id=message_id))
        middle = next((one for one in read if not self._hides(one.scope)), None)
        if middle is None:
            return ()
        session = replace(middle.scope, session=middle.session)
        return (
            *self.tail(session, limit=before, before=middle.position),
            middle,
            *self.after(session, middle.position, limit=after),
        )

    def set_vectors(self, session: Scope, message_id: str, indexed: Indexed) -> bool:
        if indexed.vectors is None:
            raise InvalidInput("there are no vectors to set")
        terms = rows.searchable("", indexed)["terms"]
        found = self._work.row(_HELD, **sql.place(session), w_id=message_id)
        if found is None or bytes(found[0]) != terms:
            return False
        revision = sql.bump(self._work, session.home, _KIND, self._new_id("epoch"))
        if not self._work.change(_MARK, **sql.place(session), w_id=message_id, w_terms=terms, revision=revision):
            return False
        sql.put_vectors(self._work, session, _KIND, message_id, indexed.model, indexed.vectors)
        return True

    def unembedded(self, scope: Scope, model: str, *, limit: int) -> tuple[Message, ...]:
        found = self._work.rows(_PENDING, **sql.home(scope), w_model=model, most=limit)
        return tuple(map(rows.to_message, found))

    def _hides(self, place: Scope) -> bool:
        return self._rights is not None and not self._rights.sees(_KIND, place)

    def _held(self, session: Scope, ids: list[str]) -> list[str]:
        where = sql.place(session)
        return [id_ for size, values in sql.chunks(ids) for (id_,) in self._work.rows(_held(size), **where, **values)]

    def _add(self, session: Scope, message: Message, indexed: Indexed, position: int) -> Message | None:
        values = rows.from_message(message) | rows.searchable(message.content, indexed) | sql.columns(session)
        if not self._work.change(_ADD, **values, position=position, revision=position):
            return None
        if indexed.vectors is not None:
            sql.put_vectors(self._work, session, _KIND, message.id, indexed.model, indexed.vectors)
        return replace(message, scope=session.home, session=session.session, position=position)

    @staticmethod
    def _backwards(found: list[sql.Row]) -> tuple[Message, ...]:
        return tuple(map(rows.to_message, reversed(found)))
