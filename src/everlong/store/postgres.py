"""PostgreSQL: a pool of connections, two kinds of transaction, and a lock round the first opening."""

from __future__ import annotations

from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final, cast

from sqlalchemy import create_engine, text
from sqlalchemy.dialects.postgresql import psycopg
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from everlong.errors import ConfigError, EverlongError, InvalidInput, MissingExtra, StoreError, StoreUnavailable
from everlong.store import migrate
from everlong.store.sql import Compiler

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlalchemy.engine import Dialect

PATIENCE: Final = 30
"""Seconds a writer waits for another, and a caller for a connection."""

_POOL: Final = 20
_OPENING: Final = 0x65766572
"""Key of the advisory lock under which one process at a time looks at the schema: "ever" in ASCII."""

_READ: Final = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
_WRITE: Final = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_SESSION: Final = f"-c lock_timeout={PATIENCE}s -c idle_in_transaction_session_timeout=10min -c timezone=UTC"


def translate(error: Exception) -> Exception:
    """Ours for an error of the driver, told by its SQLSTATE class."""
    if isinstance(error, EverlongError):
        return error
    if isinstance(error, UnicodeError | OverflowError):
        return InvalidInput(f"PostgreSQL cannot keep this value: {error}")
    state = getattr(error, "sqlstate", None) or ""
    said = str(error).strip().split("\n")[0]
    name = type(error).__name__
    if name in {"DataError", "ProgramLimitExceeded"} or state.startswith("22") or state == "54000":
        return InvalidInput(f"PostgreSQL cannot keep this value: {said}")
    if state in {"40001", "40P01", "55P03", "57014"}:
        return StoreUnavailable(f"another writer was in the way ({said}): try again")
    if state == "3D000" or state.startswith("28"):
        return StoreUnavailable(f"PostgreSQL does not let us in ({said}): check database, user and password in the url")
    if state.startswith(("08", "53", "57")) or (name == "OperationalError" and not state):
        return StoreUnavailable(f"PostgreSQL does not answer ({said}): check that it runs and can be reached")
    return StoreError(f"PostgreSQL refused: {said}")


def _dialect() -> Dialect:
    made: Any = psycopg.dialect
    return cast("Dialect", made())


class Postgres:
    """Connections to one database."""

    def __init__(self, url: str) -> None:
        if find_spec("psycopg") is None:
            raise MissingExtra("postgres", "a PostgreSQL store")
        try:
            made = make_url(url).set(drivername="postgresql+psycopg")
        except (ArgumentError, ValueError) as error:
            raise ConfigError(
                "the PostgreSQL url is malformed: postgresql://user:password@host:5432/database"
            ) from error
        host = f"{made.host or ''}" + (f":{made.port}" if made.port else "")
        self.url = f"postgresql://{host}/{made.database or ''}"
        self.compiler = Compiler(_dialect(), translate)
        self._engine = create_engine(
            made,
            pool_size=_POOL,
            max_overflow=_POOL,
            pool_timeout=PATIENCE,
            pool_pre_ping=True,
            connect_args={"autocommit": True, "connect_timeout": 10, "options": _SESSION},
            skip_autocommit_rollback=True,
        )
        self._prepare()

    @contextmanager
    def reading(self) -> Iterator[Any]:
        with self._block(_READ) as cursor:
            yield cursor

    @contextmanager
    def writing(self) -> Iterator[Any]:
        with self._block(_WRITE) as cursor:
            yield cursor

    def scrub(self) -> None:
        """Not ours to do: the server's vacuum frees the space of what was deleted, and later rows overwrite it."""

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _block(self, begin: str) -> Iterator[Any]:
        connection = self._checkout()
        try:
            cursor = connection.cursor()
            self._do(cursor, begin)
            try:
                yield cursor
                self._do(cursor, "COMMIT")
            except BaseException:
                self._abandon(connection, cursor)
                raise
        finally:
            connection.close()

    def _checkout(self) -> Any:
        try:
            return self._engine.raw_connection()
        except SQLAlchemyError as error:
            raise migrate.ours(error, translate) from error
        except Exception as error:
            raise translate(error) from error

    @staticmethod
    def _abandon(connection: Any, cursor: Any) -> None:
        """Rolls back; a connection that cannot even do that is thrown away."""
        from psycopg import Error

        try:
            cursor.execute("ROLLBACK")
        except Error:
            connection.invalidate()

    @staticmethod
    def _do(cursor: Any, statement: str) -> None:
        try:
            cursor.execute(statement)
        except Exception as error:
            raise translate(error) from error

    def _prepare(self) -> None:
        try:
            with self._engine.connect().execution_options(isolation_level="READ COMMITTED") as connection:
                connection.execute(text(f"SELECT pg_advisory_xact_lock({_OPENING})"))
                migrate.prepare(connection)
                connection.commit()
        except SQLAlchemyError as error:
            raise migrate.ours(error, translate) from error
