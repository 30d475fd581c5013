"""SQLite: settings, one fair writer over threads and processes, a pool of readers."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections import deque
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from weakref import ref

from sqlalchemy import create_engine
from sqlalchemy.dialects.sqlite import dialect
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.pool import StaticPool

from everlong.errors import ConfigError, EverlongError, InvalidInput, StoreError, StoreUnavailable
from everlong.store import migrate
from everlong.store.sql import Compiler
from everlong.store.turns import PATIENCE, Batch, Turns, hold

if TYPE_CHECKING:
    from collections.abc import Iterator

READERS: Final = 1.0
"""Seconds an erasure waits for readers of an older state, so that no byte of it is left in the journal."""

_SETTINGS: Final = (
    "journal_mode=WAL",
    "synchronous=FULL",  # NORMAL loses acknowledged commits when the power fails
    "secure_delete=ON",  # erased text is overwritten, not just unlinked
    "temp_store=MEMORY",
    "wal_autocheckpoint=1000",
)


def _module() -> Any:
    """The newer SQLite of ``pysqlite3`` when it is installed, else Python's own."""
    return import_module("pysqlite3.dbapi2") if find_spec("pysqlite3") else sqlite3


def version() -> tuple[int, ...]:
    """Of the SQLite that stores use."""
    found: tuple[int, ...] = _module().sqlite_version_info
    return found


def translate(error: Exception) -> Exception:
    """Ours for an error of the driver."""
    if isinstance(error, EverlongError):
        return error
    if isinstance(error, UnicodeError | OverflowError):
        return InvalidInput(f"SQLite cannot keep this value: {error}")
    said = str(error)
    if "too big" in said:
        return InvalidInput(f"SQLite cannot keep a value of this size: {said}")
    if "not a database" in said or "malformed" in said:
        return StoreUnavailable(f"the file is no SQLite database, or is damaged ({said}): check the url, or restore it")
    if "locked" in said or "busy" in said:
        return StoreUnavailable(f"another program holds the database ({said}): close it, or try again")
    if "unable to open" in said or "readonly" in said or "disk" in said or "full" in said:
        return StoreUnavailable(
            f"the database file cannot be used ({said}): check the path, permissions and free space"
        )
    return StoreError(f"SQLite refused: {said}")


class Sqlite:
    """Connections to one file, or to one database in memory when ``path`` is ``None``."""

    def __init__(self, path: Path | None, *, patience: float = PATIENCE) -> None:
        self.url = f"sqlite:///{path}" if path else "sqlite://"
        self.compiler = Compiler(dialect(paramstyle="named"), translate)
        self._path = path
        self._patience = patience
        self._module = _module()
        self._readers: deque[Any] = deque()
        self._closed = False
        self._readers_wait = 0.0
        self._unclean = path is not None  # one that erased and was killed may have left the words in its journal
        if path:
            _check_place(path)
        # One connection to a database in memory is all there is: its readers take turns with its writers.
        self._turns = Turns(patience)
        self._lock = Path(f"{path}-lock") if path else None
        self._batch: Batch | None = None
        self._memory_owner = 0
        with self._alone():
            # Even connecting takes a turn: two that switch a new file to WAL at once would fail, not wait.
            self._writer = self._connect()
            self._prepare()
            self._clean()
        _fork_between_turns(ref(self))

    @contextmanager
    def reading(self) -> Iterator[Any]:
        if self._path is None:
            with self._in_memory() as cursor:
                yield cursor
            return
        connection = self._reader()
        try:
            with self._block(connection, "BEGIN", "ROLLBACK") as cursor:
                yield cursor
        finally:
            self._give_back(connection)

    @contextmanager
    def writing(self) -> Iterator[Any]:
        """Threads that wait for a turn while another writes join its transaction, each in a savepoint of its own; the last
        commits for all. So eight threads wait for the disk as often as one."""
        self._check_open()
        self._turns.enter()
        batch: Batch | None = None
        try:
            try:
                batch = self._batch = self._batch or self._begin()
                with self._unit(batch) as cursor:
                    yield cursor
            finally:
                self._leave()
        except EverlongError:
            # What it refuses may be what another unit wrote and nobody else sees yet: who tries again must see that.
            if batch:
                with suppress(EverlongError):
                    batch.wait(self._patience)
            raise
        batch.wait(self._patience)

    def _begin(self) -> Batch:
        held = hold(self._lock, self._patience) if self._lock else None
        try:
            self._do(self._writer, "BEGIN IMMEDIATE")
        except BaseException:
            if held:
                held.close()
            raise
        return Batch(held)

    @contextmanager
    def _unit(self, batch: Batch) -> Iterator[Any]:
        """One unit of work; the first is undone with the whole transaction, for nobody has joined it yet."""
        first, cursor = not batch.size, self._writer.cursor()
        if not first:
            self._do(cursor, "SAVEPOINT unit")
        try:
            yield cursor
            if not first:
                self._do(cursor, "RELEASE unit")
        except BaseException:
            batch.broken = first or not self._undone()
            raise
        finally:
            cursor.close()
        batch.size += 1

    def _undone(self) -> bool:
        """Whether the unit could be undone alone: some errors end the whole transaction."""
        try:
            self._writer.execute("ROLLBACK TO unit")
            self._writer.execute("RELEASE unit")
        except self._module.Error:
            return False
        return True

    def _leave(self) -> None:
        batch = self._batch
        if batch and self._path and batch.takes_more() and self._turns.pass_on():
            return
        try:
            if batch:
                self._end(batch)
        finally:
            self._turns.leave()

    def _end(self, batch: Batch) -> None:
        self._batch = None
        error: EverlongError | None = StoreUnavailable("the transaction that several threads shared broke: try again")
        try:
            if not batch.broken:
                self._do(self._writer, "COMMIT")
                error = None
                self._clean()
        except EverlongError as refused:
            error = refused
        finally:
            self._roll_back()
            batch.end(error)

    def _roll_back(self) -> None:
        with suppress(self._module.Error):
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """A turn without a transaction, on all threads and processes."""
        with self._turns.turn():
            if self._batch:
                self._end(self._batch)
            held = hold(self._lock, self._patience) if self._lock else None
            try:
                yield
            finally:
                if held:
                    held.close()

    def before_fork(self) -> None:
        """Waits for a turn, so that no child inherits the lock among processes and holds it as long as it lives."""
        self._turns.enter()
        if self._batch:
            self._end(self._batch)

    def after_fork(self) -> None:
        """Goes on."""
        self._turns.leave()

    def scrub(self) -> None:
        self._unclean, self._readers_wait = self._path is not None, READERS

    def _clean(self) -> None:
        """Moves the journal into the file and empties it, for it holds what the file overwrites with zeros. A reader
        of an older state can put that off: the next write tries again, and the last to close the file does it."""
        if not self._unclean:
            return
        patience, self._readers_wait = self._readers_wait, 0.0
        with suppress(self._module.Error):
            self._writer.execute(f"PRAGMA busy_timeout={round(patience * 1000)}")
            self._unclean = bool(self._writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0])
            self._writer.execute(f"PRAGMA busy_timeout={round(self._patience * 1000)}")

    def close(self) -> None:
        self._closed = True
        while self._readers:
            self._readers.pop().close()
        with self._alone():
            self._writer.close()

    @contextmanager
    def _in_memory(self) -> Iterator[Any]:
        """A reader of the shared connection; one inside another of the same thread sees the same state."""
        self._check_open()
        thread = threading.get_ident()
        if self._memory_owner == thread:
            yield self._writer.cursor()
            return
        with self._turns.turn(), self._block(self._writer, "BEGIN", "ROLLBACK") as cursor:
            self._memory_owner = thread
            cursor.execute("PRAGMA query_only=1")
            try:
                yield cursor
            finally:
                cursor.execute("PRAGMA query_only=0")
                self._memory_owner = 0

    @contextmanager
    def _block(self, connection: Any, begin: str, end: str) -> Iterator[Any]:
        cursor = connection.cursor()
        self._do(cursor, begin)
        try:
            yield cursor
            self._do(cursor, end)
        except BaseException:
            if connection.in_transaction:
                cursor.execute("ROLLBACK")
            raise
        finally:
            cursor.close()

    @staticmethod
    def _do(cursor: Any, statement: str) -> None:
        try:
            cursor.execute(statement)
        except Exception as error:
            raise translate(error) from error

    def _check_open(self) -> None:
        if self._closed:
            raise StoreUnavailable("the store is closed: open it again")

    def _reader(self) -> Any:
        self._check_open()
        try:
            return self._readers.pop()
        except IndexError:
            connection = self._connect()
            connection.execute("PRAGMA query_only=1")
            return connection

    def _give_back(self, connection: Any) -> None:
        if self._closed:
            connection.close()
        else:
            self._readers.append(connection)

    def _connect(self) -> Any:
        try:
            connection = self._module.connect(
                str(self._path or ":memory:"),
                timeout=self._patience,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=256,
            )
            for setting in _SETTINGS:
                connection.execute(f"PRAGMA {setting}").close()
        except self._module.Error as error:
            raise translate(error) from error
        return connection

    def _prepare(self) -> None:
        engine = create_engine("sqlite://", creator=lambda: self._writer, poolclass=StaticPool, module=self._module)
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql("BEGIN IMMEDIATE")
                migrate.prepare(connection)
                connection.commit()
        except SQLAlchemyError as error:
            raise migrate.ours(error, translate) from error


def _fork_between_turns(found: ref[Sqlite]) -> None:
    held: list[Sqlite] = []

    def before() -> None:
        driver = found()
        if driver:
            driver.before_fork()
            held.append(driver)

    def after() -> None:
        if held:
            held.pop().after_fork()

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=before, after_in_parent=after, after_in_child=after)


def _check_place(path: Path) -> None:
    folder = path.parent
    if path.is_dir():
        raise ConfigError(f"{path} is a folder: name a file in it, such as {path / 'everlong.db'}")
    if not folder.is_dir():
        raise ConfigError(f"the folder {folder} does not exist: make it, or change the url")
    if not os.access(folder, os.W_OK):
        raise StoreUnavailable(f"the folder {folder} is not writable: the database keeps its journal beside it")
