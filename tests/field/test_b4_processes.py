"""B4, modelcontextprotocol/servers#1819, mem0ai/mem0#7196, AVIDS2/memorix#291: two processes on one store corrupt it,
or fail at once with "database is locked". (Killed writers: tests/durability/test_kill.py and test_kill_memory.py.)"""

from __future__ import annotations

import multiprocessing
import sqlite3
import time
from pathlib import Path
from typing import Any

import pytest

from everlong import Scope, open_memory
from tests.durability.soak import marker

FORK = multiprocessing.get_context("fork")
ANN = Scope(user="ann")
PROCESSES, FACTS = 8, 6


def remember(url: str, number: int, start: Any, results: Any) -> None:
    try:
        with open_memory(url, embedder="none", worker="none", max_facts=500) as memory:
            start.wait(60)
            for fact in range(FACTS):
                memory.at(ANN).remember(marker(number, fact))
    except Exception as error:  # noqa: BLE001 - told to the parent, which fails on it
        results.put(repr(error))
        return
    results.put("")


@pytest.mark.parametrize("kind", ["sqlite_url", "postgres_url"])
def test_eight_processes_remember_in_one_scope(request: pytest.FixtureRequest, kind: str) -> None:
    url: str = request.getfixturevalue(kind)
    with open_memory(url, embedder="none", worker="none"):
        pass
    start, results = FORK.Barrier(PROCESSES), FORK.Queue()
    writers = [FORK.Process(target=remember, args=(url, n, start, results), daemon=True) for n in range(PROCESSES)]
    for writer in writers:
        writer.start()
    assert [results.get(timeout=60) for _ in writers] == [""] * PROCESSES
    for writer in writers:
        writer.join(30)
    with open_memory(url, embedder="none", worker="none") as memory:
        ann = memory.at(ANN)
        assert ann.facts(limit=1).total == PROCESSES * FACTS
        assert ann.journal(action="add", limit=1).total == PROCESSES * FACTS


def hold(path: Path, seconds: float, ready: Any) -> None:
    raw = sqlite3.connect(path, isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    ready.set()
    time.sleep(seconds)
    raw.execute("COMMIT")


def test_a_program_that_holds_the_database_is_waited_for(tmp_path: Path) -> None:
    path, ready = tmp_path / "memory.db", FORK.Event()
    with open_memory(f"sqlite:///{path}", embedder="none", worker="none") as memory:
        memory.at(ANN).remember("Ann sails")
        holder = FORK.Process(target=hold, args=(path, 1.5, ready), daemon=True)
        holder.start()
        assert ready.wait(10)
        began = time.monotonic()
        memory.at(ANN).remember("安娜会下围棋")
        waited = time.monotonic() - began
        holder.join(10)
        assert 0.5 < waited < 10
        assert memory.at(ANN).facts().total == 2
