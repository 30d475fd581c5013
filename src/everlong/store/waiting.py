"""How many messages of each home wait to be extracted: a count kept with the home's bucket of messages, so that to ask
for it costs the same however many conversations there are.

Whoever changes it holds the bucket's row until the transaction ends, and takes it before any session's, as writers of
messages do: so the two never wait for each other in a circle.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, bindparam, func, select, update

from everlong.store import rows, sql
from everlong.store.schema import PLACE, buckets, messages, sessions

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement
    from sqlalchemy.sql.base import Executable

    from everlong.records import Scope
    from everlong.store.sql import Work

_HOME: Final = PLACE[:3]
_OF_MESSAGES: Final = buckets.c.kind == "message"
_MOVE: Final = (
    update(buckets)
    .where(sql.exactly(buckets), _OF_MESSAGES)
    .values(waiting=buckets.c.waiting + bindparam("by", type_=buckets.c.waiting.type))
)
_COUNT: Final = select(buckets.c.waiting).where(sql.exactly(buckets), _OF_MESSAGES)
_AT: Final = messages.c.position
_BETWEEN: Final = select(func.count()).where(
    sql.exactly(messages), bindparam("above", type_=_AT.type) < _AT, bindparam("upto", type_=_AT.type) >= _AT
)
_WATERMARK: Final = select(sessions.c.extracted).where(sql.exactly(sessions))


@cache
def _lock(home: tuple[str, ...]) -> Executable:
    return update(buckets).where(sql.within(buckets, home), _OF_MESSAGES).values(waiting=buckets.c.waiting)


def unread() -> ColumnElement[bool]:
    """Joins sessions to those of their messages that wait."""
    return and_(*(messages.c[name] == sessions.c[name] for name in PLACE), sessions.c.extracted < _AT)


@cache
def _within(named: tuple[str, ...]) -> Executable:
    home = [sessions.c[name] for name in _HOME]
    joined = sessions.join(messages, unread())
    return select(*home, func.count()).select_from(joined).where(sql.within(sessions, named)).group_by(*home)


def at_home(work: Work, scope: Scope) -> int:
    """How many messages of ``scope.home`` wait."""
    found = work.row(_COUNT, **sql.place(scope.home))
    return int(found[0]) if found else 0


def read(work: Work, session: Scope, above: int, upto: int) -> None:
    """The session's watermark moves from ``above`` to ``upto``, which may lie below."""
    low, high = sorted((above, upto))
    found = work.rows(_BETWEEN, **sql.place(session), above=low, upto=high)[0][0]
    work.change(_MOVE, **sql.place(session.home), by=int(found) if upto < above else -int(found))


def leave(work: Work, scope: Scope) -> None:
    """What waits within ``scope`` is about to be erased, or left unread for good."""
    work.change(_lock(sql.named(scope, home=True)), **sql.place(scope))
    for *home, found in work.rows(_within(sql.named(scope)), **sql.place(scope)):
        work.change(_MOVE, **sql.place(rows.to_scope(*home, "")), by=-int(found))


def put_back(work: Work, session: Scope, position: int) -> None:
    """A message of a copy came to this ``position`` of a session."""
    found = work.row(_WATERMARK, **sql.place(session))
    if found is not None and position > found[0]:
        work.change(_MOVE, **sql.place(session.home), by=1)
