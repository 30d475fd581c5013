"""Sessions: made by the first message, moved by the watermark, closed by a fence."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from sqlalchemy import and_, bindparam, case, func, or_, select, update

from everlong.errors import Conflict
from everlong.records import Page
from everlong.store import rows, sql
from everlong.store.schema import PLACE, buckets, sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.sql.base import Executable

    from everlong.protocols import NewId
    from everlong.records import Message, Scope, Session
    from everlong.store.sql import Work

_COLUMNS: Final = rows.session_columns()


def _begin() -> Executable:
    made = sql.Insert(sessions).values({c.name: bindparam(c.name) for c in sessions.c})
    said = made.excluded.updated_at
    latest = case((said > sessions.c.updated_at, said), else_=sessions.c.updated_at)
    return made.on_conflict_do_update(index_elements=list(PLACE), set_={"updated_at": latest})


_BEGIN: Final = _begin()
_GET: Final = select(*_COLUMNS).where(sql.exactly(sessions))
_ADVANCE: Final = (
    update(sessions)
    .where(
        sql.exactly(sessions),
        sessions.c.epoch == bindparam("w_epoch"),
        sessions.c.extracted == bindparam("w_extracted"),
    )
    .values(extracted=bindparam("extracted"))
)
_SAID: Final = (
    select(func.coalesce(func.max(buckets.c.revision), 0))
    .where(
        *(buckets.c[name] == sessions.c[name] for name in PLACE[:3]),
        buckets.c.session == "",
        buckets.c.kind == "message",
    )
    .scalar_subquery()
)


@cache
def _fence(named: tuple[str, ...]) -> Executable:
    # Positions come from the bucket's revision, so none given so far is higher.
    return update(sessions).where(sql.within(sessions, named)).values(epoch=bindparam("epoch"), extracted=_SAID)


@cache
def _list(*, cursor: bool, counting: bool) -> Executable:
    asked = [sql.visible(sessions, home=True)]
    if counting:
        return select(func.count()).select_from(sessions).where(*asked)
    at = sessions.c.updated_at
    if cursor:
        below = and_(at == bindparam("w_at"), sessions.c.session < bindparam("w_session"))
        asked.append(or_(at < bindparam("w_at"), below))
    newest = (at.desc(), sessions.c.session.desc())
    return select(*_COLUMNS).where(*asked).order_by(*newest).limit(bindparam("most"))


def begin(work: Work, session: Scope, messages: Sequence[Message], epoch: str) -> None:
    """Makes the session of ``messages`` unless it is there, and notes when something was last said in it."""
    times = [rows.to_micros(message.created_at) for message in messages]
    work.change(_BEGIN, **sql.columns(session), epoch=epoch, created_at=min(times), updated_at=max(times), extracted=0)


class Sessions:
    """The shelf of sessions in one transaction."""

    def __init__(self, work: Work, new_id: NewId) -> None:
        self._work = work
        self._new_id = new_id

    def get(self, session: Scope) -> Session | None:
        found = self._work.row(_GET, **sql.place(session))
        return None if found is None else rows.to_session(found)

    def list(self, scope: Scope, *, cursor: str = "", limit: int = 100) -> Page[Session]:
        where = sql.home(scope)
        total = self._work.rows(_list(cursor=False, counting=True), **where)[0][0]
        after = dict(zip(("w_at", "w_session"), sql.parse_cursor(cursor), strict=True)) if cursor else {}
        statement = _list(cursor=bool(cursor), counting=False)
        found = [rows.to_session(row) for row in self._work.rows(statement, **where, **after, most=limit + 1)]
        last = found[limit - 1] if found[limit:] else None
        more = sql.cursor(rows.to_micros(last.updated_at), last.scope.session) if last else ""
        return Page(items=tuple(found[:limit]), total=total, next=more)

    def advance(self, session: Session, *, extracted: int) -> Session:
        where = sql.place(session.scope)
        expected = {"w_epoch": session.epoch, "w_extracted": session.extracted}
        if not self._work.change(_ADVANCE, **where, **expected, extracted=extracted):
            found = self.get(session.scope)
            actual = f"{found.extracted} in epoch {found.epoch}" if found else "no session"
            wanted = f"{session.extracted} in epoch {session.epoch}"
            raise Conflict(f"watermark of {session.scope}", expected=wanted, actual=actual)
        return replace(session, extracted=extracted)

    def fence(self, scope: Scope) -> int:
        return self._work.change(_fence(sql.named(scope)), **sql.place(scope), epoch=self._new_id("epoch"))
