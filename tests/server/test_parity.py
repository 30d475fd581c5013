"""The client is the memory it speaks to: what holds of the one, said in ``tests/unit/test_memory.py``, holds of the other.

The same tests run here, over a real socket, each user with a key of their own.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from everlong import memory as face
from everlong.client import Client, RemoteMemory
from everlong.records import Scope
from tests.unit import test_memory

from .conftest import Served


class Remote:
    """A memory behind the server, seen by every user with their own key."""

    def __init__(self, served: Served, stack: ExitStack) -> None:
        self._served, self._stack, self._clients = served, stack, {}

    def at(self, scope: Scope) -> RemoteMemory:
        if scope.user not in self._clients:
            made = Client(self._served.url, self._served.key(user=scope.user))
            self._clients[scope.user] = self._stack.enter_context(made)
        return self._clients[scope.user].at(scope)

    def drain(self) -> int:
        return self._served.memory.drain()


@pytest.fixture(scope="module")
def remote(served: Served) -> Iterator[Remote]:
    with ExitStack() as stack:
        yield Remote(served, stack)


@pytest.fixture
def memory_(remote: Remote, served: Served) -> Remote:
    """Everyone's, emptied: the server stays, which is quicker than a new one for each test."""
    with served.memory.parts.store.write() as tx:
        tx.erase(Scope())
    remote._clients.clear()
    return remote


@pytest.fixture(name="memory")
def _memory(memory_: Remote) -> Remote:
    return memory_


@pytest.fixture
def ann(memory: Remote) -> RemoteMemory:
    return memory.at(Scope(user="ann", session="s1"))


SAME = [
    test
    for name, test in vars(test_memory).items()
    if name.startswith("test_") and set(inspect.signature(test).parameters) <= {"memory", "ann"}
]
globals().update({test.__name__: test for test in SAME})
test_bad_input_is_one_of_our_errors = test_memory.test_bad_input_is_one_of_our_errors_and_changes_nothing


def test_enough_of_them_run() -> None:
    assert len(SAME) >= 10


@pytest.mark.parametrize(("local", "remote_name"), [("Files", "RemoteFiles"), ("SkillShelf", "RemoteSkills")])
def test_the_faces_of_files_and_skills_are_the_same(local: str, remote_name: str) -> None:
    from everlong.client import files

    _same(getattr(face, local), getattr(files, remote_name), set())


def test_the_faces_of_inboxes_and_upkeep_are_the_same() -> None:
    from everlong.client.scoped import RemoteInbox, RemoteUpkeep

    _same(face.Inbox, RemoteInbox, set())
    _same(face.Upkeep, RemoteUpkeep, set())


def test_the_faces_of_scoped_memories_are_the_same() -> None:
    _same(face.ScopedMemory, RemoteMemory, {"as_seen_by", "approved_at", "transfer", "journal_lines", "verify_journal"})


def _same(local: type, remote: type, unserved: set[str]) -> None:
    def public(kind: type) -> dict[str, Any]:
        found = inspect.getmembers(kind, lambda each: inspect.isfunction(each) or isinstance(each, property))
        return {name: each for name, each in found if not name.startswith("_")}

    here, there = public(local), public(remote)
    assert set(there) <= set(here)
    assert set(here) - set(there) <= unserved, "a new operation needs a route, or its name above"
    for name in there:
        if inspect.isfunction(here[name]):
            mine, theirs = inspect.signature(here[name]).parameters, inspect.signature(there[name]).parameters
            assert list(mine) == list(theirs), name
            assert [p.default for p in mine.values()] == [p.default for p in theirs.values()], name
            assert [p.kind for p in mine.values()] == [p.kind for p in theirs.values()], name
