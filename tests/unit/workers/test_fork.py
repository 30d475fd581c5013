"""A forked child is told to open a store of its own, and never holds its parent's up."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from everlong import Scope, open_memory
from everlong.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing forks here")
ANN, KID = Scope(user="ann", session="s"), Scope(user="kid", session="s")


def in_child(body: Callable[[], bool]) -> int:
    """Forks; the child's exit code is 0 when ``body`` is true there."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            code = 0 if body() else 1
        finally:
            os._exit(code)
    return child


def code_of(child: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_child_is_told_to_open_its_own_and_can(sqlite_url: str) -> None:
    with open_memory(sqlite_url, embedder="none") as memory:
        memory.at(ANN).add([("user", "I live in Rome.")])

        def refused() -> bool:
            try:
                memory.at(KID).add([("user", "I live in Oslo.")])
            except StoreError as error:
                memory.close()
                return "fork" in str(error) and not memory.parts.worker.running
            return False

        def opens_anew() -> bool:
            with open_memory(sqlite_url, embedder="none", worker="none") as mine:
                return mine.at(KID).add([("user", "I live in Oslo.")]).status == "queued"

        assert code_of(in_child(refused)) == 0
        assert code_of(in_child(opens_anew)) == 0
        memory.drain()
        assert [fact.content for fact in memory.at(KID.home).facts().items] == ["I live in Oslo"]


def test_children_that_live_on_do_not_hold_up_their_parent(sqlite_url: str) -> None:
    """Each is forked while worker threads write, and would inherit the lock among processes if they did just then."""
    with open_memory(sqlite_url, embedder="none") as memory:
        children = []
        for number in range(20):
            memory.at(ANN).add([("user", f"Remember that box {number} is full.")])
            children.append(in_child(lambda: not time.sleep(3)))
        began = time.monotonic()
        memory.at(ANN).add([("user", "I live in Rome.")])
        assert time.monotonic() - began < 2
        assert [code_of(child) for child in children] == [0] * len(children)
