"""The session of OpenAI's Agents SDK over a conversation: its protocol, its runs, and what goes wrong."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from agents import Agent, Runner, set_tracing_disabled
from agents.memory import Session

from everlong import Memory, Scope, open_memory
from everlong.errors import InvalidScope
from everlong.integrations.openai_agents import EverlongSession
from everlong.testing.model_server import ModelServer
from tests.integrations import hosts

if TYPE_CHECKING:
    from collections.abc import Iterator

HERE = Scope(user="ann", session="monday")
set_tracing_disabled(True)


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", embedder="none", worker="none") as opened:
        yield opened


def said(role: str, content: Any) -> dict[str, Any]:
    return {"role": role, "content": content}


def test_it_keeps_the_sdks_protocol(memory: Memory) -> None:
    session = EverlongSession(memory, HERE)
    assert isinstance(session, Session)
    assert session.session_id == "monday"
    with pytest.raises(InvalidScope):
        EverlongSession(memory, HERE.home)

    async def run() -> None:
        assert await session.get_items() == []
        assert await session.pop_item() is None
        turns = [said("user", "I like tea"), said("assistant", "Noted."), said("user", "我对花生过敏")]
        await session.add_items(turns)
        assert await session.get_items() == turns
        assert await session.get_items(2) == turns[1:]
        assert await session.get_items(0) == []
        assert await session.pop_item() == turns[2]
        assert await session.get_items() == turns[:2]
        assert await session.get_items(1) == turns[1:2]
        assert await session.pop_item() == turns[1]
        await session.add_items(turns[1:])
        assert await session.get_items() == turns
        await session.clear_session()
        assert await session.get_items() == []

    asyncio.run(run())


def test_what_was_taken_back_is_gone_and_never_learned(memory: Memory) -> None:
    session = EverlongSession(memory, HERE)

    async def run() -> None:
        await session.add_items([said("user", "I am allergic to peanuts."), said("user", "我住在柏林。")])
        await session.pop_item()
        await session.pop_item()

    asyncio.run(run())
    memory.drain()
    ann = memory.at(HERE.home)
    assert ann.facts().items == ()
    assert not ann.recall("peanuts").hits
    assert not ann.recall("柏林").hits


@pytest.mark.parametrize("filler", ["?", "👍", "What is it?", "是的", "你呢？", "the"])
def test_a_turn_without_words_of_its_own_is_left_out_by_this_session(memory: Memory, filler: str) -> None:
    session = EverlongSession(memory, HERE)

    async def run() -> None:
        await session.add_items([said("user", "tea"), said("user", filler)])
        assert await session.pop_item() == said("user", filler)
        assert await session.get_items() == [said("user", "tea")]
        await session.add_items([said("user", filler)])
        assert await session.get_items() == [said("user", "tea"), said("user", filler)]
        assert await session.pop_item() == said("user", filler)
        assert await session.pop_item() == said("user", "tea")
        assert await session.pop_item() is None

    asyncio.run(run())


def test_words_are_kept_once_and_said_again_as_often_as_they_are(memory: Memory) -> None:
    """Models other than OpenAI's give every answer the same id; parts come as lists; tools and thoughts stay out."""
    session = EverlongSession(memory, HERE)
    answer = {"type": "message", "id": "__fake_id__", "status": "completed"}
    turn = [
        said("user", [{"type": "input_text", "text": "好"}]),
        {"type": "reasoning", "id": "r", "summary": []},
        {"type": "function_call", "id": "f", "call_id": "c", "name": "look", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c", "output": "secret"},
        answer | said("assistant", [{"type": "output_text", "text": "OK", "annotations": []}]),
    ]
    for _ in range(3):
        asyncio.run(session.add_items(turn))
    assert asyncio.run(session.get_items()) == [said("user", "好"), said("assistant", "OK")] * 3


def agent_over(server: ModelServer) -> Agent[EverlongSession]:
    async def instructions(run, agent):
        return await run.context.known(run.turn_input)

    return Agent(name="cook", instructions=instructions, model=hosts.agents_model(server))


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("fact", "question", "word"),
    [("I'm allergic to peanuts.", "Are peanuts fine?", "allergic"), ("我对花生过敏。", "可以放花生吗？", "过敏")],
)
def test_a_run_has_its_history_and_what_other_conversations_told(
    memory: Memory, fact: str, question: str, word: str, streamed: bool
) -> None:
    def run(server: ModelServer, user: str, session: str, text: str) -> str:
        async def go() -> str:
            kept = EverlongSession(memory, Scope(user=user, session=session))
            agent = agent_over(server)
            if not streamed:
                return (await Runner.run(agent, text, session=kept, context=kept)).final_output
            result = Runner.run_streamed(agent, text, session=kept, context=kept)
            async for _ in result.stream_events():
                pass
            return str(result.final_output)

        return asyncio.run(go())

    with ModelServer() as server:
        server.say("One", "Two", "Three", "Four")
        run(server, "ann", "monday", fact)
        memory.drain()
        answers = [
            run(server, user, session, question)
            for user, session in (("ann", "monday"), ("ann", "thursday"), ("bob", "friday"))
        ]
        assert answers == ["Two", "Three", "Four"]
        same, later, other = (body for _, body in server.requests[1:])
    history = [turn["content"] for turn in same["messages"] if turn["role"] != "system"]
    assert [part if isinstance(part, str) else part[0]["text"] for part in history] == [fact, "One", question]
    assert fact not in str([turn for turn in later["messages"] if turn["role"] != "system"])
    assert word in hosts.system_of(later)
    assert word not in str(other["messages"])


def test_a_fault_of_recall_does_not_fail_the_turn(caplog) -> None:
    memory = open_memory("sqlite://", embedder="none", worker="none")
    session = EverlongSession(memory, HERE)
    memory.close()
    assert asyncio.run(session.known([said("user", "tea?")])) == ""
    assert "recall without memory" in caplog.text
