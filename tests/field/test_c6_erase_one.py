"""C6: deleting for one user wipes all: mem0ai/mem0#3928, #3746. Here an erasure takes what lies within its scope, and without
a user it is an operator's."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from everlong import Principal, Scope, open_memory
from everlong.errors import AccessDenied, InvalidScope
from everlong.memory import Memory

OPERATOR = Principal(id="ops", role="operator")
USERS = [Scope(user="u_a"), Scope(user="u_b"), Scope(org="acme", user="u_a"), Scope(user="u_%"), Scope(user="用户甲")]
TOLD = ["I keep bees on the roof", "My piano is from 1920", "我每天早上喝绿茶"]


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", embedder="none", worker="none") as opened:
        for scope in USERS:
            for told in TOLD:
                opened.at(scope).remember(told)
            opened.at(Scope(org=scope.org, user=scope.user, session="s")).add([("user", TOLD[0])])
            opened.at(scope).files.write("/memories/a.md", TOLD[0])
        yield opened


def kept(memory: Memory, scope: Scope) -> tuple[int, int, int, int]:
    here = memory.at(scope)
    own = [fact for fact in here.facts().items if fact.scope == scope]
    files = [file for file in here.files.list() if file.scope == scope]
    messages = [message for message in here.messages() if message.scope == scope]
    return len(own), len(messages), len(files), len(here.jobs())


@pytest.mark.parametrize("gone", USERS)
def test_erasing_one_leaves_every_other(memory: Memory, gone: Scope) -> None:
    before = {scope: kept(memory, scope) for scope in USERS}
    assert before[gone] == (3, 1, 1, 1)
    assert memory.at(gone).erase().counts["facts"] == 3
    for scope in USERS:
        assert kept(memory, scope) == ((0, 0, 0, 0) if scope == gone else before[scope])


def test_without_a_user_it_is_refused(memory: Memory) -> None:
    for scope in (Scope(), Scope(org="acme"), Scope(agent="coder"), Scope(session="s")):
        with pytest.raises(InvalidScope):
            memory.at(scope).erase()
        for by in (Principal(id="u_a"), Principal(id=""), Principal(id="coder", role="agent")):
            with pytest.raises(AccessDenied):
                memory.at(scope, by=by).erase()
    assert all(kept(memory, scope) == (3, 1, 1, 1) for scope in USERS)


def test_an_operator_erases_a_tenant_or_all_by_saying_so(memory: Memory) -> None:
    assert memory.at(Scope(org="acme"), by=OPERATOR).erase().counts["facts"] == 3
    assert kept(memory, USERS[0]) == (3, 1, 1, 1)
    assert memory.at(Scope(), by=OPERATOR).erase().counts["facts"] == 12
    assert all(kept(memory, scope) == (0, 0, 0, 0) for scope in USERS)
