"""A disk that is full, as a limit on the size of files makes it: writes fail by name, questions go on, the end is clean,
and nothing that was acknowledged is lost."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from everlong import Scope, open_memory

if TYPE_CHECKING:
    from pathlib import Path

pytest.importorskip("resource", reason="limits are of Unix")

_LIVE = """
import logging, resource, signal, sys
from everlong import Scope, open_memory
from everlong.errors import StoreUnavailable

logging.disable(logging.ERROR)
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
path, fact, asked = sys.argv[1:]
with open_memory("sqlite:///" + path, embedder="none", trace_sample=1.0) as memory:
    ann = memory.at(Scope(user="ann", session="s"))
    ann.remember(fact)
    ann.add([("user", fact)])
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
    kept = refused = 0
    while refused < 3:
        try:
            ann.add([("user", f"turn {kept} " + "filler " * 200)])
            kept += 1
        except StoreUnavailable:
            refused += 1
    assert fact in ann.context(asked).text
    assert ann.recall(asked).hits
    print(kept, memory.parts.worker.running)
print("closed")
"""


@pytest.mark.parametrize(("fact", "asked"), [("Zed lives in Rome.", "Rome"), ("小明住在罗马。", "罗马")])
def test_a_full_disk_fails_writes_only(tmp_path: Path, fact: str, asked: str) -> None:
    path = tmp_path / "m.db"
    given = [sys.executable, "-c", _LIVE, str(path), fact, asked]
    told = subprocess.run(given, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert told.returncode == 0, told.stderr
    assert told.stdout.split()[1:] == ["True", "closed"]
    kept = int(told.stdout.split()[0])
    with open_memory(f"sqlite:///{path}", embedder="none", worker="none") as memory:
        turns = [each.content for each in memory.at(Scope(user="ann", session="s")).messages(limit=1000)]
    assert turns[0] == fact
    assert [f"turn {number} " in turn + " " for number, turn in enumerate(turns[1 : kept + 1])] == [True] * kept
