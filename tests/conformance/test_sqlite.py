"""SQLite in a file keeps every promise of a store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from everlong.protocols import Store
from everlong.store import open_store
from everlong.testing import CountingIds, FakeClock
from everlong.testing.stores import StoreTests


class TestSQLite(StoreTests):
    @pytest.fixture
    def store(self, sqlite_url: str) -> Iterator[Store]:
        opened = open_store(sqlite_url, clock=FakeClock(tick=0.001), new_id=CountingIds())
        yield opened
        opened.close()
