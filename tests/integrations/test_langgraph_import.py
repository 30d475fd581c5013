"""What LangGraph's own stores and checkpointers hold comes over."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

from everlong import Scope, open_memory
from everlong.integrations.langgraph import EverlongStore
from everlong.integrations.langgraph_import import import_store, import_threads
from tests.integrations.scripted import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.memory import Memory


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", embedder="none", worker="none") as opened:
        yield opened


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_every_item_of_a_store_comes_over_once(memory: Memory, kind: str, tmp_path) -> None:
    def fill_and_import(source) -> None:
        for number in range(130):
            source.put(("users", "用户甲"), f"k{number}", {"n": number, "text": "茶 🍵"})
        source.put(("users", "用户甲", "deep"), "k", {"meta": {"a": [1, None, True]}})
        source.put(("docs",), "k/é", {})
        target = EverlongStore(memory)
        assert import_store(source, target) == import_store(source, target) == 132
        for namespace in source.list_namespaces():
            wanted = {item.key: item.value for item in source.search(namespace, limit=500)}
            assert {item.key: item.value for item in target.search(namespace, limit=500)} == wanted
        assert target.list_namespaces() == sorted(source.list_namespaces())

    if kind == "memory":
        fill_and_import(InMemoryStore())
    else:
        with SqliteStore.from_conn_string(str(tmp_path / "store.db")) as source:
            source.setup()
            fill_and_import(source)


@pytest.mark.parametrize("kind", ["memory", "sqlite"])
def test_conversations_of_a_checkpointer_are_recalled(memory: Memory, kind: str, tmp_path) -> None:
    def talk_and_import(saver) -> None:
        agent = create_agent(Scripted(answers=["Noted."] * 9), checkpointer=saver)
        for user, thread, text in [
            ("ann", "m", "My blue bicycle has a flat tyre"),
            ("ann", "m", "我的自行车修好了"),
            ("ann", "t", "The violin lesson is on Friday"),
            ("bob", "b", "Bob sold his boat"),
            ("", "x", "Nobody's words"),
        ]:
            config = {"configurable": {"thread_id": thread, "user_id": user}}
            agent.invoke({"messages": [("user", text)]}, config)

        def owner(point) -> Scope | None:
            user = point.metadata.get("user_id")
            return Scope(user=user) if user else None

        assert import_threads(saver, memory, owner) == 8
        assert import_threads(saver, memory, owner) == 0
        ann = memory.at(Scope(user="ann"))
        assert "flat tyre" in ann.recall("blue bicycle", kinds=("message",)).hits[0].text
        assert "自行车修好了" in ann.recall("自行车", kinds=("message",)).hits[0].text
        assert {session.scope.session for session in ann.sessions().items} == {"m", "t"}
        assert not [hit for hit in ann.recall("boat", kinds=("message",), min_score=0.0).hits if "boat" in hit.text]

    if kind == "memory":
        talk_and_import(InMemorySaver())
    else:
        with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
            talk_and_import(saver)
