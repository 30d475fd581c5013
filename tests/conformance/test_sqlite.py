"""SQLite in a file keeps every promise of a store: the newer one of ``pysqlite3``, and Python's own."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from everlong.protocols import Store
from everlong.store import open_store
from everlong.testing import CountingIds, FakeClock
from everlong.testing.stores import StoreTests


def opened(path: Path) -> Store:
    return open_store(f"sqlite:///{path}", clock=FakeClock(tick=0.001), new_id=CountingIds())


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with the schema and no rows, to copy: making the schema takes longer than most tests."""
    path = tmp_path_factory.mktemp("empty") / "everlong.db"
    opened(path).close()
    return path


@pytest.fixture
def store(empty: Path, tmp_path: Path) -> Iterator[Store]:
    """A store on a file of its own."""
    store = opened(Path(shutil.copy(empty, tmp_path)))
    yield store
    store.close()


class TestSQLite(StoreTests):
    @pytest.fixture(autouse=True)
    def newer(self) -> None:
        pytest.importorskip("pysqlite3", reason="needs the newer SQLite")


class TestPythonsOwnSQLite(StoreTests):
    @pytest.fixture(autouse=True)
    def own(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("everlong.store.sqlite.find_spec", lambda _: None)

    def test_it_is_the_one_that_runs(self, store: Store) -> None:
        with store.read() as tx:
            found = tx._work._cursor.connection  # type: ignore[attr-defined]
        assert isinstance(found, sqlite3.Connection)
