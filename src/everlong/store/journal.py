"""The journal: appended, read, and erased with its scope; never rewritten."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, bindparam, func, or_, select

from everlong.errors import NotFound
from everlong.records import Page
from everlong.store import rows, sql
from everlong.store.schema import journal

if TYPE_CHECKING:
    from sqlalchemy.sql.base import Executable

    from everlong.records import Entry, Scope
    from everlong.store.sql import Work

_COLUMNS: Final = rows.entry_columns()
_ADD: Final = journal.insert().values({c.name: bindparam(c.name) for c in journal.c})


@cache
def _get(named: tuple[str, ...]) -> Executable:
    return select(*_COLUMNS).where(sql.within(journal, named), journal.c.id == bindparam("w_id"))


@cache
def _list(named: tuple[str, ...], *, filters: tuple[str, ...], cursor: bool, counting: bool) -> Executable:
    asked = [sql.within(journal, named), *(journal.c[name] == bindparam(f"w_{name}") for name in filters)]
    if counting:
        return select(func.count()).select_from(journal).where(*asked)
    at = journal.c.at
    if cursor:
        asked.append(or_(at < bindparam("w_at"), and_(at == bindparam("w_at"), journal.c.id < bindparam("w_id"))))
    newest = (at.desc(), journal.c.id.desc(), journal.c.org.desc())
    return select(*_COLUMNS).where(*asked).order_by(*newest).limit(bindparam("most"))


class Journal:
    """The journal in one transaction."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def append(self, *entries: Entry) -> None:
        for entry in entries:
            self._work.change(_ADD, **rows.from_entry(entry))

    def get(self, scope: Scope, entry_id: str) -> Entry:
        found = self._work.row(_get(sql.named(scope.home)), **sql.place(scope), w_id=entry_id)
        if found is None:
            raise NotFound(f"no journal entry {entry_id} within {scope.home}")
        return rows.to_entry(found)

    def list(
        self, scope: Scope, *, target: str = "", action: str = "", cursor: str = "", limit: int = 100
    ) -> Page[Entry]:
        filters = {name: value for name, value in (("target", target), ("action", action)) if value}
        asked: dict[str, Any] = sql.place(scope) | {f"w_{name}": value for name, value in filters.items()}
        named, names = sql.named(scope), tuple(filters)
        total = self._work.rows(_list(named, filters=names, cursor=False, counting=True), **asked)[0][0]
        after = dict(zip(("w_at", "w_id"), sql.parse_cursor(cursor), strict=True)) if cursor else {}
        statement = _list(named, filters=names, cursor=bool(cursor), counting=False)
        found = [rows.to_entry(row) for row in self._work.rows(statement, **asked, **after, most=limit + 1)]
        more = sql.cursor(rows.to_micros(found[limit - 1].at), found[limit - 1].id) if found[limit:] else ""
        return Page(items=tuple(found[:limit]), total=total, next=more)
