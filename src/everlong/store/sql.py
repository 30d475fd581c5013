"""One SQL body for two dialects: each statement is compiled once and then run on the driver's own cursor."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final, cast

from sqlalchemy import ColumnElement, Table, and_, bindparam, literal_column, or_, select, update
from sqlalchemy.dialects.postgresql import insert

from everlong.store import schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from sqlalchemy import ClauseElement
    from sqlalchemy.engine import Dialect
    from sqlalchemy.sql.base import Executable

    from everlong.records import Scope


Row = tuple[Any, ...]
Insert: Final = insert
"""``INSERT`` with ``ON CONFLICT``, which both dialects spell alike."""


_AT_ONCE: Final = 1000


class Compiler:
    """Turns statements into the text of one dialect, each once. ``translate`` makes a driver's error ours."""

    def __init__(self, dialect: Dialect, translate: Callable[[Exception], Exception]) -> None:
        self._dialect = dialect
        self._texts: dict[Executable, tuple[str, dict[str, Any]]] = {}
        self.translate = translate

    def __call__(self, statement: Executable) -> tuple[str, dict[str, Any]]:
        found = self._texts.get(statement)
        if found is None:
            compiled = cast("ClauseElement", statement).compile(dialect=self._dialect)
            constants = {name: value for name, value in compiled.params.items() if value is not None}
            found = self._texts[statement] = (str(compiled), constants)
        return found


class Work:
    """Runs statements inside one open transaction."""

    def __init__(self, cursor: Any, compiler: Compiler) -> None:
        self._cursor = cursor
        self._compile = compiler

    def _execute(self, statement: Executable, values: dict[str, Any]) -> Any:
        text, constants = self._compile(statement)
        try:
            return self._cursor.execute(text, {**constants, **values} if constants else values)
        except Exception as error:
            raise self._compile.translate(error) from error

    def rows(self, statement: Executable, **values: Any) -> list[Row]:
        """Every row that ``statement`` gives."""
        self._execute(statement, values)
        try:
            return list(self._cursor.fetchall())
        except Exception as error:
            raise self._compile.translate(error) from error

    def columns(self, statement: Executable, width: int, **values: Any) -> list[list[Any]]:
        """As :meth:`rows`, by column. Rows are taken a thousand at a time: all at once, the garbage collector would walk
        through them again and again while they come."""
        found: list[list[Any]] = [[] for _ in range(width)]
        self._execute(statement, values)
        try:
            while some := self._cursor.fetchmany(_AT_ONCE):
                for column, part in zip(found, zip(*some, strict=True), strict=True):
                    column.extend(part)
        except Exception as error:
            raise self._compile.translate(error) from error
        return found

    def row(self, statement: Executable, **values: Any) -> Row | None:
        """The first row, or ``None``."""
        found = self.rows(statement, **values)
        return found[0] if found else None

    def change(self, statement: Executable, **values: Any) -> int:
        """How many rows ``statement`` changed."""
        self._execute(statement, values)
        return int(self._cursor.rowcount)


# ----------------------------------------------------------------------------------------------------- conditions


def visible(table: Table, *, home: bool = False) -> ColumnElement[bool]:
    """Rows kept at a scope that covers the one asked from (values of :func:`place`); ``home`` leaves out sessions."""
    empty: ColumnElement[str] = literal_column("''")
    return and_(*(table.c[n].in_([empty, bindparam(f"w_{n}", type_=schema.Words)]) for n in _names(home=home)))


def outside(table: Table, closed: Iterable[tuple[bool, bool, bool]]) -> list[ColumnElement[bool]]:
    """Rows that are kept at none of the ``closed`` places (:meth:`everlong.protocols.Rights.closed`)."""
    empty: ColumnElement[str] = literal_column("''")
    return [
        or_(
            *(
                table.c[n] == empty if part else table.c[n] != empty
                for n, part in zip(schema.PLACE, place, strict=False)
            )
        )
        for place in closed
    ]


def exactly(table: Table, *, home: bool = False) -> ColumnElement[bool]:
    """Rows kept at just the scope asked for."""
    return and_(*(table.c[name] == bindparam(f"w_{name}") for name in _names(home=home)))


def within(table: Table, named: Iterable[str]) -> ColumnElement[bool]:
    """Rows whose scope agrees in every one of the ``named`` parts, see :func:`named`."""
    return and_(literal_column("1") == literal_column("1"), *(table.c[n] == bindparam(f"w_{n}") for n in named))


def _names(*, home: bool) -> tuple[str, ...]:
    return schema.PLACE[:3] if home else schema.PLACE


def named(scope: Scope, *, home: bool = False) -> tuple[str, ...]:
    """The parts that tell what lies within ``scope`` (within it less its session, with ``home``).

    The tenant always does, also the one without a name, so that nothing reaches over tenants; only the empty scope,
    which is the operator's, holds them all.
    """
    parts = [name for name, part in zip(schema.PLACE, scope.parts, strict=True) if part or name == "org"]
    return tuple(name for name in parts if not (home and name == "session")) if any(scope.parts) else ()


def place(scope: Scope) -> dict[str, str]:
    """Values for :func:`visible`, :func:`exactly` and :func:`within`."""
    return {f"w_{name}": part for name, part in zip(schema.PLACE, scope.parts, strict=True)}


def home(scope: Scope) -> dict[str, str]:
    """As :func:`place` without the session."""
    return {"w_org": scope.org, "w_agent": scope.agent, "w_user": scope.user}


def columns(scope: Scope) -> dict[str, str]:
    """The scope as the columns of a row."""
    return dict(zip(schema.PLACE, scope.parts, strict=True))


# ----------------------------------------------------------------------------------- lists of values of any length

_MOST: Final = 512


@cache
def one_of(column: ColumnElement[str], size: int) -> ColumnElement[bool]:
    """``column`` is one of ``size`` values, as :func:`chunks` names them."""
    return column.in_([bindparam(f"v{i}", type_=schema.Words) for i in range(size)])


def chunks(values: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """``values`` in portions whose sizes are powers of two (filled up with repetitions), so that few statements
    serve lists of any length."""
    for start in range(0, len(values), _MOST):
        portion = list(values[start : start + _MOST])
        size = 1 << (len(portion) - 1).bit_length()
        portion += portion[-1:] * (size - len(portion))
        yield size, {f"v{i}": value for i, value in enumerate(portion)}


# ------------------------------------------------------------------------------------------- rows of search buckets


def _bump() -> Executable:
    made = insert(schema.buckets).values({c.name: bindparam(c.name) for c in schema.buckets.c})
    return made.on_conflict_do_update(
        index_elements=[*schema.PLACE, "kind"],
        set_={name: schema.buckets.c[name] + made.excluded[name] for name in ("revision", "waiting")},
    ).returning(schema.buckets.c.revision)


_BUMP: Final = _bump()


def bump(work: Work, scope: Scope, kind: str, epoch: str, by: int = 1, *, waiting: int = 0) -> int:
    """Moves a bucket on by ``by`` revisions and returns the last; a new bucket begins in ``epoch``. ``waiting`` more of
    its messages wait to be extracted.

    The row stays locked until the transaction ends, so writers of one bucket follow one another.
    """
    found = work.row(_BUMP, **columns(scope), kind=kind, epoch=epoch, revision=by, waiting=waiting)
    if found is None:
        raise AssertionError("an upsert returns its row")
    return int(found[0])


_RENEW: Final = (
    update(schema.buckets)
    .where(exactly(schema.buckets), schema.buckets.c.kind == bindparam("w_kind"))
    .values(epoch=bindparam("epoch"), revision=schema.buckets.c.revision + 1)
)


def renew(work: Work, scope: Scope, kind: str, epoch: str) -> None:
    """Begins a new epoch of a bucket, because rows left it for good: every cache loads it anew."""
    work.change(_RENEW, **place(scope), w_kind=kind, epoch=epoch)


_vectors = schema.vectors
_PUT_VECTORS: Final = (
    insert(_vectors)
    .values({c.name: bindparam(c.name) for c in _vectors.c})
    .on_conflict_do_update(
        index_elements=[c.name for c in _vectors.primary_key],
        set_={"pieces": bindparam("pieces"), "data": bindparam("data")},
    )
)
_DROP_VECTORS: Final = _vectors.delete().where(
    exactly(_vectors), _vectors.c.kind == bindparam("w_kind"), _vectors.c.id == bindparam("w_id")
)


def put_vectors(work: Work, scope: Scope, kind: str, owner: str, model: str, vectors: Any) -> None:
    """Stores the vectors of one text, all pieces in one value."""
    data = vectors.astype("<f4", copy=False).tobytes()
    work.change(_PUT_VECTORS, **columns(scope), kind=kind, id=owner, model=model, pieces=len(vectors), data=data)


def drop_vectors(work: Work, scope: Scope, kind: str, owner: str) -> None:
    """Forgets the vectors of one text, of every model."""
    work.change(_DROP_VECTORS, **place(scope), w_kind=kind, w_id=owner)


# ------------------------------------------------------------------------------------------------- earlier versions

_KEEP: Final = schema.revisions.insert().values({c.name: bindparam(c.name) for c in schema.revisions.c})
_KEPT: Final = (
    select(schema.revisions.c.body)
    .where(
        exactly(schema.revisions),
        schema.revisions.c.kind == bindparam("w_kind"),
        schema.revisions.c.id == bindparam("w_id"),
    )
    .order_by(schema.revisions.c.version)
)


def keep(work: Work, scope: Scope, kind: str, owner: str, version: int, at: int, body: str) -> None:
    """Keeps an earlier version."""
    work.change(_KEEP, **columns(scope), kind=kind, id=owner, version=version, at=at, body=body)


def kept(work: Work, scope: Scope, kind: str, owner: str) -> list[str]:
    """Bodies of the earlier versions, oldest first."""
    return [body for (body,) in work.rows(_KEPT, **place(scope), w_kind=kind, w_id=owner)]


def width(record: Any) -> tuple[bool, ...]:
    """Sorts records as :meth:`Scope.covering` does: widest scope first."""
    return tuple(bool(part) for part in record.scope.parts)
