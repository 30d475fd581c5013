"""G4, bytedance/deer-flow#5037: a timer fires after an agent or a thread was deleted and writes its memory again.
(Against workers in other processes: tests/durability/test_fences.py.)"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from typing import TYPE_CHECKING

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.testing.fakes import CountingIds, FakeClock
from tests.durability.gated import OPERATOR, Echo, Gate, facts, opened, settle

if TYPE_CHECKING:
    from pathlib import Path

TALK = Scope(agent="coder", user="ann", session="t1")
WORDS = "Ann's compiler is called Zig 安娜的编译器"
DELETED = {"agent": Scope(agent="coder"), "user": Scope(user="ann"), "agent of a user": TALK.home, "thread": TALK}


DUMP = """
import json, sqlite3, sys
raw = sqlite3.connect(sys.argv[1])
tables = [name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
print(json.dumps([[table, str(row)] for table in tables for row in raw.execute(f'SELECT * FROM "{table}"')]))
"""


def rows_that_name(path: Path, *words: str) -> list[tuple[str, str]]:
    """Every row of every table that holds one of ``words``, less the journal's note that something was erased. Read by
    another process, because a second SQLite library in this one would take away the locks of the first."""
    dump = subprocess.run([sys.executable, "-c", DUMP, path], check=True, capture_output=True, text=True).stdout
    named = [(table, row) for table, row in json.loads(dump) if any(word in row for word in words)]
    return [(table, row) for table, row in named if not (table == "journal" and "'erase'" in row)]


@pytest.mark.parametrize("scope", DELETED.values(), ids=DELETED)
def test_what_was_queued_for_the_deleted_never_makes_it_anew(tmp_path: Path, scope: Scope) -> None:
    clock, path = FakeClock(), tmp_path / "memory.db"
    settings = Settings(url=f"sqlite:///{path}", embedder="none", worker="none")
    with build(settings, extractor=Echo(), clock=clock, new_id=CountingIds()) as memory:
        memory.at(TALK).add([("user", WORDS)])
        assert rows_that_name(path, "coder", WORDS)
        memory.at(scope, by=OPERATOR).erase()
        clock.advance(60)
        assert memory.parts.worker.run_due() == 0
        left = rows_that_name(path, "t1", WORDS)
        left += [] if scope.session else rows_that_name(path, "coder")
        assert left == []
        memory.at(TALK).add([("user", "a new beginning 新的开始")])
        memory.drain()
        assert facts(memory, TALK) == ["a new beginning 新的开始"]
        assert len(memory.at(TALK).messages()) == 1


@pytest.mark.parametrize("scope", DELETED.values(), ids=DELETED)
def test_work_in_the_middle_of_its_call_never_makes_it_anew(tmp_path: Path, scope: Scope) -> None:
    gate, path = Gate(threading.Event(), threading.Event()), tmp_path / "memory.db"
    with opened(f"sqlite:///{path}", gate, worker="thread") as memory:
        memory.at(TALK).add([("user", WORDS)])
        memory.at(TALK).flush()
        assert gate.asked.wait(10)
        memory.at(scope, by=OPERATOR).erase()
        gate.answer.set()
        memory.at(Scope(user="bob", session="s")).add([("user", "I am Bob")])
        settle(memory)
        memory.parts.worker.stop(10)
        left = rows_that_name(path, "t1", WORDS)
        left += [] if scope.session else rows_that_name(path, "coder")
        assert left == []
