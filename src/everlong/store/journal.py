"""The journal: appended, read, and erased with its scope; never rewritten."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import ColumnElement, bindparam

from everlong.store import chain, rows, sql
from everlong.store.pages import Listing, find
from everlong.store.schema import journal

if TYPE_CHECKING:
    from everlong.records import Entry, Link, Page, Scope
    from everlong.store.sql import Work

_COLUMNS: Final = rows.entry_columns()
_ADD: Final = journal.insert().values({c.name: bindparam(c.name) for c in journal.c})


def _asked(named: tuple[str, ...], filters: tuple[str, ...]) -> list[ColumnElement[bool]]:
    return [sql.within(journal, named), *(journal.c[name] == bindparam(f"w_{name}") for name in filters)]


_LIST: Final = Listing(_COLUMNS, (journal.c.at, journal.c.id, journal.c.org), rows.to_entry, _asked)


class Journal:
    """The journal in one transaction."""

    def __init__(self, work: Work) -> None:
        self._work = work
        self.appended: list[Entry] = []

    def append(self, *entries: Entry) -> None:
        for entry in entries:
            self._work.change(_ADD, **rows.from_entry(entry))
        self.appended += entries

    def get(self, scope: Scope, entry_id: str) -> Entry:
        return rows.to_entry(find(self._work, _COLUMNS, scope, entry_id))

    def links(self, org: str, *, after: int = 0, limit: int = 1000) -> tuple[Link, ...]:
        return chain.links(self._work, org, after=after, limit=limit)

    def list(
        self, scope: Scope, *, target: str = "", action: str = "", cursor: str = "", limit: int = 100
    ) -> Page[Entry]:
        filters = {name: value for name, value in (("target", target), ("action", action)) if value}
        asked: dict[str, Any] = sql.place(scope) | {f"w_{name}": value for name, value in filters.items()}
        return _LIST(self._work, sql.named(scope), tuple(filters), cursor=cursor, limit=limit, **asked)
