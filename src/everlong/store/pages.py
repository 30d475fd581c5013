"""What lies within a scope: one record by its id, and lists in pages, newest first. A page ends at a row, so that rows
written meanwhile move nothing."""

from __future__ import annotations

import base64
import binascii
import json
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sqlalchemy import ColumnElement, bindparam, func, select, tuple_

from everlong.errors import InvalidInput, NotFound
from everlong.records import Page
from everlong.store import sql

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Sequence

    from sqlalchemy import Column, Table
    from sqlalchemy.sql.base import Executable

    from everlong.records import Scope
    from everlong.store.sql import Row, Work

T = TypeVar("T")


@cache
def _one(columns: tuple[Column[Any], ...], named: tuple[str, ...]) -> Executable:
    table: Table = columns[0].table
    return select(*columns).where(sql.within(table, named), table.c.id == bindparam("w_id"))


def find(work: Work, columns: Sequence[Column[Any]], scope: Scope, identifier: str) -> Row:
    """The row of this id within ``scope.home``.

    Raises:
        NotFound: there is none.
    """
    found = work.row(_one(tuple(columns), sql.named(scope, home=True)), **sql.place(scope), w_id=identifier)
    if found is None:
        raise NotFound(f"nothing of id {identifier} in {columns[0].table.name} within {scope.home}")
    return found


class Listing(Generic[T]):
    """One list of one table. ``key`` orders it, a time first and then all that tells rows of one time apart: a key that
    two visible rows share would lose one of them at the end of a page. ``asked`` makes the conditions of a shape."""

    def __init__(
        self,
        columns: Sequence[Column[Any]],
        key: Sequence[Column[Any]],
        record: Callable[[Row], T],
        asked: Callable[..., Sequence[ColumnElement[bool]]],
    ) -> None:
        self._columns = columns
        self._key = key
        self._record = record
        self._asked = asked
        self._statements = lru_cache(maxsize=None)(self._make)

    def __call__(self, work: Work, *shape: Hashable, cursor: str, limit: int, **values: Any) -> Page[T]:
        """The page after ``cursor``, and how many rows there are in all.

        Raises:
            InvalidInput: ``cursor`` was not given by this list.
        """
        after = self._parse(cursor) if cursor else {}
        counted, listed = self._statements(bool(cursor), *shape)
        total = work.rows(counted, **values)[0][0]
        found = work.rows(listed, **values, **after, most=limit + 1)
        width = len(self._columns)
        following = _cursor(found[limit - 1][width:]) if found[limit:] else ""
        return Page(items=tuple(self._record(row[:width]) for row in found[:limit]), total=total, next=following)

    def page_of(self, found: Sequence[T], key: Callable[[T], Row], *, cursor: str, limit: int) -> Page[T]:
        """The page after ``cursor`` of records that are all in memory, in the order of the list; ``key`` gives the
        values of its key.

        Raises:
            InvalidInput: ``cursor`` was not given by this list.
        """
        after = tuple(self._parse(cursor).values()) if cursor else None
        left = [record for record in found if after is None or key(record) < after]
        following = _cursor(key(left[limit - 1])) if left[limit:] else ""
        return Page(items=tuple(left[:limit]), total=len(found), next=following)

    def _make(self, cursor: bool, *shape: Hashable) -> tuple[Executable, Executable]:  # noqa: FBT001 (a cache's key)
        asked = self._asked(*shape)
        counted = select(func.count()).select_from(self._key[0].table).where(*asked)
        listed = select(*self._columns, *self._key).where(*asked)
        if cursor:
            ended = (bindparam(f"after_{column.name}", type_=column.type) for column in self._key)
            listed = listed.where(tuple_(*self._key) < tuple_(*ended))
        return counted, listed.order_by(*(column.desc() for column in self._key)).limit(bindparam("most"))

    def _parse(self, cursor: str) -> dict[str, Any]:
        try:
            values = json.loads(base64.urlsafe_b64decode(cursor))
        except (binascii.Error, UnicodeError, ValueError, RecursionError):
            values = None
        if not isinstance(values, list) or [type(value) for value in values] != [int] + [str] * (len(self._key) - 1):
            raise InvalidInput(f"cursor {cursor!r} was not given by this list; begin without one")
        return {f"after_{column.name}": value for column, value in zip(self._key, values, strict=True)}


def _cursor(key: Row) -> str:
    return base64.urlsafe_b64encode(json.dumps(key).encode()).decode()
