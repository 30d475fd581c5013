"""Sessions: made by the first message, moved by the watermark, closed by a fence."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, case, func, select, update

from everlong.errors import Conflict
from everlong.store import rows, sql, waiting
from everlong.store.pages import Listing
from everlong.store.schema import PLACE, buckets, sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sqlalchemy.sql.base import Executable

    from everlong.protocols import NewId, Rights
    from everlong.records import Message, Page, Scope, Session
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


_LIST: Final = Listing(
    _COLUMNS,
    (sessions.c.updated_at, *(sessions.c[name] for name in ("session", "org", "agent", "user"))),
    rows.to_session,
    lambda closed: [sql.visible(sessions, home=True), *sql.outside(sessions, closed)],
)


def begin(work: Work, session: Scope, messages: Sequence[Message], epoch: str) -> None:
    """Makes the session of ``messages`` unless it is there, and notes when something was last said in it."""
    times = [rows.to_micros(message.created_at) for message in messages]
    work.change(_BEGIN, **sql.columns(session), epoch=epoch, created_at=min(times), updated_at=max(times), extracted=0)


class Sessions:
    """The shelf of sessions in one transaction."""

    def __init__(self, work: Work, new_id: NewId, rights: Rights | None = None) -> None:
        self._work = work
        self._new_id = new_id
        self._rights = rights

    def get(self, session: Scope) -> Session | None:
        found = self._work.row(_GET, **sql.place(session))
        hidden = self._rights is not None and not self._rights.sees("message", session)
        return None if found is None or hidden else rows.to_session(found)

    def list(self, scope: Scope, *, cursor: str = "", limit: int = 100) -> Page[Session]:
        closed = self._rights.closed("message", scope) if self._rights else ()
        return _LIST(self._work, closed, cursor=cursor, limit=limit, **sql.home(scope))

    def advance(self, session: Session, *, extracted: int) -> Session:
        where = sql.place(session.scope)
        waiting.read(self._work, session.scope, session.extracted, extracted)
        expected = {"w_epoch": session.epoch, "w_extracted": session.extracted}
        if not self._work.change(_ADVANCE, **where, **expected, extracted=extracted):
            found = self.get(session.scope)
            actual = f"{found.extracted} in epoch {found.epoch}" if found else "no session"
            wanted = f"{session.extracted} in epoch {session.epoch}"
            raise Conflict(f"watermark of {session.scope}", expected=wanted, actual=actual)
        return replace(session, extracted=extracted)

    def fence(self, scope: Scope) -> int:
        waiting.leave(self._work, scope)
        return self._work.change(_fence(sql.named(scope)), **sql.place(scope), epoch=self._new_id("epoch"))
