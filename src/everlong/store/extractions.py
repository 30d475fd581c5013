"""Extractions as they happened: appended, read, summed up, and deleted when they are old."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, delete, func, select

from everlong.records import Usage
from everlong.store import rows, sql
from everlong.store.pages import Listing, find
from everlong.store.schema import extractions

if TYPE_CHECKING:
    from datetime import datetime

    from sqlalchemy.sql.base import Executable

    from everlong.records import ExtractionRecord, Page, Scope
    from everlong.store.sql import Work

_COLUMNS: Final = rows.extraction_columns()
_ADD: Final = extractions.insert().values({c.name: bindparam(c.name) for c in extractions.c})
_LIST: Final = Listing(
    _COLUMNS,
    (extractions.c.at, extractions.c.id, extractions.c.org),
    rows.to_extraction,
    lambda named: [sql.within(extractions, named)],
)


@cache
def _usage(named: tuple[str, ...]) -> Executable:
    sums = (func.coalesce(func.sum(extractions.c[name]), 0) for name in rows.COSTS)
    return select(*sums).where(sql.within(extractions, named), extractions.c.at >= bindparam("since"))


@cache
def _purge(named: tuple[str, ...]) -> Executable:
    return delete(extractions).where(sql.within(extractions, named), extractions.c.at < bindparam("before"))


class Extractions:
    """The shelf of extraction records in one transaction."""

    def __init__(self, work: Work) -> None:
        self._work = work

    def append(self, record: ExtractionRecord) -> None:
        self._work.change(_ADD, **rows.from_extraction(record))

    def get(self, scope: Scope, record_id: str) -> ExtractionRecord:
        return rows.to_extraction(find(self._work, _COLUMNS, scope, record_id))

    def list(self, scope: Scope, *, cursor: str = "", limit: int = 100) -> Page[ExtractionRecord]:
        return _LIST(self._work, sql.named(scope), cursor=cursor, limit=limit, **sql.place(scope))

    def usage(self, scope: Scope, *, since: datetime) -> Usage:
        (sums,) = self._work.rows(_usage(sql.named(scope)), **sql.place(scope), since=rows.to_micros(since))
        return Usage(**{name: int(total) for name, total in zip(rows.COSTS, sums, strict=True)})

    def purge(self, scope: Scope, *, before: datetime) -> int:
        return self._work.change(_purge(sql.named(scope)), **sql.place(scope), before=rows.to_micros(before))
