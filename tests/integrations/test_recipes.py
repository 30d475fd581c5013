"""What the recipes for other hosts promise beyond their first two turns."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from llama_index.core.llms import ChatMessage, MessageRole
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel

from everlong import Memory, Scope, open_memory
from everlong.aio import AsyncMemory
from everlong.testing.model_server import ModelServer
from tests.integrations import hosts
from tests.integrations.test_examples import example

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Scope(user="ann", session="monday")


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", embedder="none", worker="none") as opened:
        yield opened


def openai(memory: Memory, turns: list[str]) -> None:
    with ModelServer() as server:
        messages: list[Any] = []
        for text in turns:
            example("openai_loop").turn(memory, HERE, hosts.openai_client(server), messages, text)


def anthropic(memory: Memory, turns: list[str]) -> None:
    async def run() -> None:
        messages: list[Any] = []
        for text in turns:
            await example("anthropic_loop").turn(AsyncMemory(memory), HERE, hosts.Claude().client(), messages, text)

    asyncio.run(run())


def agents(memory: Memory, turns: list[str]) -> None:
    async def run(server: ModelServer) -> None:
        model = hosts.agents_model(server)
        for text in turns:
            await example("openai_agents_session").turn(memory, HERE, model, text)

    with ModelServer() as server:
        asyncio.run(run(server))


def llamaindex(memory: Memory, turns: list[str]) -> None:
    for text in turns:
        asyncio.run(example("llamaindex_memory").turn(memory, HERE, hosts.LlamaStub(), text))


def pydantic_ai(memory: Memory, turns: list[str]) -> None:
    async def run() -> None:
        history = None
        for text in turns:
            turn = example("pydantic_ai_agent").turn
            done = await turn(AsyncMemory(memory), HERE, hosts.PydanticStub().model, text, history)
            history = done.all_messages()

    asyncio.run(run())


RECIPES = [openai, anthropic, agents, llamaindex, pydantic_ai]


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_same_words_said_again_are_kept_again(memory: Memory, recipe: Callable[..., None]) -> None:
    turns = ["Go on.", "Go on.", "继续", "继续", "Go on."]
    recipe(memory, turns)
    kept = [(message.role, message.content) for message in memory.at(HERE).messages()]
    assert kept == [each for text in turns for each in (("user", text), ("assistant", "ok"))]


@pytest.mark.parametrize("recipe", RECIPES)
def test_no_block_of_memory_is_kept_as_something_said(memory: Memory, recipe: Callable[..., None]) -> None:
    memory.at(HERE.home).remember("Ann likes green tea 绿茶")
    recipe(memory, ["Which green tea do I like?", "我喜欢哪种绿茶？"])
    assert len(memory.at(HERE).messages()) == 4
    assert not [message for message in memory.at(HERE).messages() if "Ann likes" in message.content]


def test_llamaindex_gets_its_history_and_can_set_and_reset_it(memory: Memory) -> None:
    kept = example("llamaindex_memory").EverlongChatMemory.from_defaults(memory=memory, scope=HERE)
    assert kept.get() == []
    said = [ChatMessage("I like 绿茶", role=MessageRole.USER), ChatMessage("Noted.", role=MessageRole.ASSISTANT)]
    kept.set(said)
    kept.set([*said, ChatMessage("And you?", role=MessageRole.USER)])
    kept.put(ChatMessage("", role=MessageRole.ASSISTANT, additional_kwargs={"tool_calls": []}))
    kept.put(ChatMessage("secret", role=MessageRole.TOOL))
    assert [(m.role.value, m.content) for m in kept.get_all()] == [
        ("user", "I like 绿茶"), ("assistant", "Noted."), ("user", "And you?")
    ]  # fmt: skip
    memory.at(HERE.home).remember("Ann's dog is called Rex")
    first, *rest = asyncio.run(kept.aget("What is the dog called?"))
    assert first.role == MessageRole.SYSTEM
    assert "Rex" in first.content
    assert rest == kept.get_all()
    kept.reset()
    assert kept.get_all() == []
    assert "Rex" in kept.get("What is the dog called?")[0].content


def test_pydantic_ais_tools_leave_nothing_behind_and_see_memory_in_every_request(memory: Memory) -> None:
    module = example("pydantic_ai_agent")
    memory.at(HERE.home).remember("Ann is allergic to peanuts")
    asked: list[str] = []

    def answer(messages: Any, info: Any) -> ModelResponse:
        asked.append(info.instructions)
        if len(asked) == 1:
            return ModelResponse(parts=[ToolCallPart("pantry", {})])
        return ModelResponse(parts=[TextPart("Sesame.")])

    @module.agent.tool_plain
    def pantry() -> str:
        return "sesame, secret peanuts"

    asyncio.run(module.turn(AsyncMemory(memory), HERE, FunctionModel(answer), "Are peanuts fine?"))
    assert len(asked) == 2
    assert all("allergic to peanuts" in text for text in asked)
    assert [m.content for m in memory.at(HERE).messages()] == ["Are peanuts fine?", "Sesame."]
