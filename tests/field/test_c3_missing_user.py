"""C3: no user reaches memory, so everybody shares one bucket: bytedance/deer-flow#2947, #3010, #1772; a conversation that
makes an agent is kept for the default one: bytedance/deer-flow#4802. Here what names no user is refused."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from everlong import Principal, Scope, open_memory
from everlong.errors import AccessDenied, InvalidScope
from everlong.integrations.identity import scope_of
from everlong.memory import ScopedMemory

NOBODY: list[Any] = [
    SimpleNamespace(context=None, config={}),
    SimpleNamespace(context={}, config={"configurable": {}}),
    SimpleNamespace(context={"user_id": ""}, config={"configurable": {"user_id": ""}}),
    SimpleNamespace(context={"user_id": None}, config={"configurable": {"user_id": None, "thread_id": "t1"}}),
    SimpleNamespace(context=SimpleNamespace(user=""), config=None),
    SimpleNamespace(context={"scope": Scope(agent="coder")}, config={}),
]

CALLS: list[Callable[[ScopedMemory, str], Any]] = [
    lambda memory, said: memory.add([("user", said)]),
    lambda memory, said: memory.remember(said),
    lambda memory, said: memory.recall(said),
    lambda memory, said: memory.context(said),
    lambda memory, said: memory.files.write("/memories/a.md", said),
    lambda memory, said: memory.files.write("/policies/a.md", said),
    lambda memory, said: memory.update_profile(attributes={"name": said}),
    lambda memory, _: memory.facts(),
    lambda memory, _: memory.journal(),
    lambda memory, _: memory.jobs(),
    lambda memory, _: memory.erase(),
]


@pytest.mark.parametrize("runtime", NOBODY)
def test_a_run_that_names_no_user_has_no_scope(runtime: Any) -> None:
    with pytest.raises(InvalidScope) as refusal:
        scope_of(runtime, org="acme", agent="coder")
    assert "user" in str(refusal.value)


def test_a_blank_user_is_not_a_user() -> None:
    for name in (" ", "\t", "\u3000"):
        with pytest.raises(InvalidScope):
            scope_of(SimpleNamespace(context={"user_id": name}, config={}))


@pytest.mark.parametrize("scope", [Scope(), Scope(org="acme"), Scope(agent="coder"), Scope(org="acme", session="t1")])
@pytest.mark.parametrize("said", ["I keep bees", "我养蜜蜂"])
def test_without_a_user_nothing_is_read_or_written(scope: Scope, said: str) -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        with pytest.raises(InvalidScope):
            memory.at(scope)
        for by in (
            Principal(id=""),
            Principal(id="", role="agent"),
            Principal(id="ann"),
            Principal(id="c", role="agent"),
        ):
            here = memory.at(scope, by=by)
            for call in CALLS:
                with pytest.raises((AccessDenied, InvalidScope)):
                    call(here, said)
        ops = memory.at(Scope(), by=Principal(id="ops", role="operator"))
        assert not ops.facts().items and not ops.messages() and not ops.jobs() and not ops.files.list()


@pytest.mark.parametrize("said", ["I like to build games about bees.", "我喜欢做蜜蜂游戏。"])
def test_what_one_agent_learns_is_not_the_default_agents(said: str) -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        memory.at(Scope(user="ann", agent="game", session="boot")).add([("user", said)])
        memory.drain()
        assert memory.at(Scope(user="ann", agent="game")).facts().total == 1
        for other in (Scope(user="ann"), Scope(user="ann", agent="default"), Scope(user="ann", agent="gam")):
            assert memory.at(other).facts().total == 0
            assert not memory.at(other).recall(said, min_score=0.0).hits
            assert said not in memory.at(other).context(said).text
