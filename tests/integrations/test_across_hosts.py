"""One memory behind every host: what was said through one of them is known through all, to the same user and nobody else."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from deepagents import create_deep_agent
from fastapi.testclient import TestClient
from langchain.agents import create_agent
from mcp.client import Client

from everlong import Memory, Scope, open_memory
from everlong.aio import AsyncMemory
from everlong.config import load_settings
from everlong.integrations.deerflow import EverlongMemoryManager
from everlong.integrations.langchain import EverlongMiddleware
from everlong.integrations.langgraph import EverlongStore
from everlong.server.app import create_app
from everlong.server.mcp import MemoryServer
from everlong.testing.model_server import ModelServer
from tests.integrations import hosts
from tests.integrations.scripted import Scripted, system_text
from tests.integrations.test_examples import example

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

QUIET = {"embedder": "none", "worker": "none"}
ENGLISH, CHINESE, LEARNING = "What am I allergic to?", "我对什么过敏？", "What am I learning?"
FACTS = {
    "core": (ENGLISH, "I'm allergic to peanuts.", "peanuts"),
    "openai": (CHINESE, "我对花粉过敏。", "花粉"),
    "anthropic": (ENGLISH, "I'm allergic to shrimp.", "shrimp"),
    "agents": (CHINESE, "我对芒果过敏。", "芒果"),
    "llamaindex": (ENGLISH, "I'm allergic to penicillin.", "penicillin"),
    "pydantic_ai": (CHINESE, "我对牛奶过敏。", "牛奶"),
    "langchain": (LEARNING, "I am learning Portuguese.", "Portuguese"),
    "deepagents": (CHINESE, "我对猫毛过敏。", "猫毛"),
    "deerflow": (LEARNING, "I am learning pottery.", "pottery"),
    "rest": (CHINESE, "我对尘螨过敏。", "尘螨"),
    "mcp": (LEARNING, "User is learning chess.", "chess"),
}
"""For each host: what is asked of all of them later, what is said through it, and what the answers need."""


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_memory(f"sqlite:///{tmp_path / 'm.db'}", **QUIET) as opened:
        yield opened


def core(memory: Memory, scope: Scope, text: str) -> str:
    known = memory.at(scope.home).context(text, exclude_sessions=(scope.session,)).text
    memory.at(scope).add([("user", text), ("assistant", "ok")])
    return known


def openai(memory: Memory, scope: Scope, text: str) -> str:
    with ModelServer() as server:
        example("openai_loop").turn(memory, scope, hosts.openai_client(server), [], text)
        return hosts.system_of(server.requests[0][1])


def anthropic(memory: Memory, scope: Scope, text: str) -> str:
    claude = hosts.Claude()
    asyncio.run(example("anthropic_loop").turn(AsyncMemory(memory), scope, claude.client(), [], text))
    return claude.systems[0]


def agents(memory: Memory, scope: Scope, text: str) -> str:
    with ModelServer() as server:
        asyncio.run(example("openai_agents_session").turn(memory, scope, hosts.agents_model(server), text))
        return hosts.system_of(server.requests[0][1])


def llamaindex(memory: Memory, scope: Scope, text: str) -> str:
    llm = hosts.LlamaStub()
    asyncio.run(example("llamaindex_memory").turn(memory, scope, llm, text))
    return llm.systems[0]


def pydantic_ai(memory: Memory, scope: Scope, text: str) -> str:
    stub = hosts.PydanticStub()
    asyncio.run(example("pydantic_ai_agent").turn(AsyncMemory(memory), scope, stub.model, text))
    return stub.systems[0]


def langchain(memory: Memory, scope: Scope, text: str, make: Callable[..., Any] = create_agent) -> str:
    model = Scripted()
    agent = make(model, middleware=[EverlongMiddleware(memory)])
    thread = {"thread_id": scope.session, "user_id": scope.user}
    agent.invoke({"messages": [("user", text)]}, {"configurable": thread})
    return system_text(model.seen[0])


def deepagents(memory: Memory, scope: Scope, text: str) -> str:
    return langchain(memory, scope, text, create_deep_agent)


def deerflow(memory: Memory, scope: Scope, text: str) -> str:
    """A process of its own over the same store; its block is asked for without a question."""
    manager = EverlongMemoryManager.from_config({"url": memory.status().url, **QUIET}, mode="middleware")
    try:
        known = manager.get_context(scope.user, thread_id=scope.session)
        manager.add(scope.session, [{"role": "user", "content": text}], user_id=scope.user)
        return known
    finally:
        manager.close()


def rest(memory: Memory, scope: Scope, text: str) -> str:
    app = create_app(memory, load_settings(**QUIET), auth=False)
    with TestClient(app, base_url="http://127.0.0.1", headers={"X-Everlong-User": scope.user}) as client:
        asked = {"question": text, "exclude_sessions": [scope.session]}
        known = client.post("/v1/context", json=asked).raise_for_status().json()["text"]
        said = {"messages": [{"role": "user", "content": text}]}
        client.post("/v1/messages", params={"session": scope.session}, json=said).raise_for_status()
    return known


def mcp(memory: Memory, scope: Scope, text: str) -> str:
    async def run() -> str:
        async with Client(MemoryServer(lambda _: memory.at(scope.home))) as client:
            known = await client.call_tool("context", {"query": text})
            assert not known.is_error
            if not text.endswith(("?", "？")):  # an agent there decides itself what is worth remembering
                await client.call_tool("remember", {"content": text})
            return "".join(block.text for block in known.content)

    return asyncio.run(run())


def graph_store(memory: Memory, scope: Scope, text: str) -> str:
    store = EverlongStore(memory, namespace_scope=lambda ns: Scope(user=ns[1]), recalled="memory")
    return "\n".join(item.value["text"] for item in store.search(("users", scope.user, "memory"), query=text))


SAYS = {name: globals()[name] for name in FACTS}
KNOWS = {**SAYS, "graph_store": graph_store}


def test_what_is_said_through_one_host_is_known_through_all(memory: Memory) -> None:
    for name, (_, fact, word) in FACTS.items():
        known = SAYS[name](memory, Scope(user="ann", session=f"said-{name}"), fact)
        assert word not in known, name
    memory.drain()
    missing = []
    for name, ask in KNOWS.items():
        for question in (ENGLISH, CHINESE, LEARNING):
            known = ask(memory, Scope(user="ann", session=f"asked-{name}-{question}"), question)
            missing += [
                (told, name) for told, (asked, _, word) in FACTS.items() if asked == question and word not in known
            ]
    assert missing == []


@pytest.mark.parametrize("name", KNOWS)
def test_it_is_known_to_nobody_else(memory: Memory, name: str) -> None:
    for told, (_, fact, _) in FACTS.items():
        core(memory, Scope(user="ann", session=told), fact)
    memory.drain()
    for question in (ENGLISH, CHINESE, LEARNING):
        known = KNOWS[name](memory, Scope(user="bob", session=f"friday-{question}"), question)
        assert not [word for *_, word in FACTS.values() if word in known]
