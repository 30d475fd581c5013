"""LangChain's own agent with memory: real ``create_agent``, real checkpointers, a scripted model."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.messages import HumanMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from everlong import Scope, open_memory
from everlong.errors import ConfigError, InvalidScope
from everlong.integrations.identity import scope_of
from everlong.integrations.langchain import EverlongMiddleware
from everlong.policy import Rule
from tests.integrations.scripted import Scripted, calls, system_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.memory import Memory


@dataclass
class Who:
    user_id: str


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", embedder="none", worker="none") as opened:
        yield opened


def agent_of(memory: Memory, model: Scripted, *, middleware: tuple = (), **options):
    return create_agent(
        model,
        system_prompt="You are a cook.",
        middleware=[*middleware, EverlongMiddleware(memory, **options)],
        context_schema=Who,
        checkpointer=InMemorySaver(),
    )


def thread(name: str) -> dict:
    return {"configurable": {"thread_id": name}}


def say(agent, text: str, *, user: str = "ann", session: str = "monday"):
    return agent.invoke({"messages": [("user", text)]}, thread(session), context=Who(user))


@pytest.mark.parametrize(
    ("told", "asked", "known"),
    [
        ("I'm allergic to peanuts.", "What about peanuts?", "I'm allergic to peanuts"),
        ("我对花生过敏。", "花生可以吃吗", "我对花生过敏"),
    ],
)
def test_what_was_said_on_monday_is_known_on_thursday(memory: Memory, told: str, asked: str, known: str) -> None:
    model = Scripted()
    agent = agent_of(memory, model)
    say(agent, told)
    memory.drain()
    say(agent, asked, session="thursday")
    assert "<memory>" not in system_text(model.seen[0])
    prompt = system_text(model.seen[1])
    assert prompt.startswith("You are a cook.\n\n<memory>\n")
    assert known in prompt
    say(agent, asked, user="bob", session="friday")
    assert system_text(model.seen[2]) == "You are a cook."


@pytest.mark.parametrize("mode", ["sync", "async"])
def test_ten_turns_over_a_database_of_threads_each_in_a_process_of_its_own(memory: Memory, mode: str, tmp_path) -> None:
    """Every turn makes the agent anew over LangGraph's SQLite checkpoints, as a server does that was restarted."""
    memory.at(Scope(user="ann")).remember("安爱喝茶 Ann loves tea", pinned=True)
    model, path = Scripted(), str(tmp_path / "threads.db")

    def made(saver):
        return create_agent(model, middleware=[EverlongMiddleware(memory)], context_schema=Who, checkpointer=saver)

    async def turn(given: dict) -> None:
        async with AsyncSqliteSaver.from_conn_string(path) as saver:
            await made(saver).ainvoke(given, thread("t"), context=Who("ann"))

    for number in range(10):
        given = {"messages": [("user", f"Turn {number}: 茶 tea?")]}
        if mode == "async":
            asyncio.run(turn(given))
        else:
            with SqliteSaver.from_conn_string(path) as saver:
                made(saver).invoke(given, thread("t"), context=Who("ann"))
    assert [system_text(messages).count("<memory>") for messages in model.seen] == [1] * 10
    with SqliteSaver.from_conn_string(path) as saver:
        state = made(saver).get_state(thread("t")).values["messages"]
    assert [m.type for m in state] == ["human", "ai"] * 10
    assert not [m for m in state if "<memory>" in m.text]
    kept = memory.at(Scope(user="ann", session="t")).messages(limit=50)
    assert [m.content for m in kept] == [m.text for m in state]


@pytest.mark.parametrize("mode", ["sync", "async", "stream"])
def test_ten_turns_show_one_present_block_a_call_and_none_in_state(memory: Memory, mode: str) -> None:
    memory.at(Scope(user="ann")).remember("Ann loves tea", pinned=True)
    memory.at(Scope(user="ann")).update_profile(sections={"workContext": "Ann runs a tea shop."})
    model = Scripted()
    agent = agent_of(memory, model)
    for turn in range(10):
        given = {"messages": [("user", f"Question {turn} about tea?")]}
        if mode == "sync":
            agent.invoke(given, thread("t"), context=Who("ann"))
        elif mode == "async":
            asyncio.run(agent.ainvoke(given, thread("t"), context=Who("ann")))
        else:
            list(agent.stream(given, thread("t"), context=Who("ann"), stream_mode="messages"))
        if turn == 4:
            memory.at(Scope(user="ann")).remember("Ann loves green tea most", pinned=True)
    assert len(model.seen) == 10
    for turn, messages in enumerate(model.seen):
        assert [m.type for m in messages].count("system") == 1
        prompt = system_text(messages)
        assert prompt.count("<memory>") == prompt.count("</memory>") == 1
        assert ("green tea" in prompt) == (turn > 4)
        assert "<memory>" not in "".join(m.text for m in messages if m.type != "system")
    state = agent.get_state(thread("t")).values["messages"]
    assert [m.type for m in state] == ["human", "ai"] * 10
    assert not [m for m in state if "<memory>" in m.text]
    kept = memory.at(Scope(user="ann", session="t")).messages(limit=50)
    assert [m.content for m in kept] == [m.text for m in state]


def test_a_run_with_tools_keeps_the_question_and_the_answer_once(memory: Memory) -> None:
    memory.at(Scope(user="ann")).remember("Ann likes red")
    model = Scripted(answers=[calls("recall_memory", query="red"), "You like red."])
    agent = agent_of(memory, model, tools=("recall_memory",))
    result = say(agent, "Which colour do I like?")
    assert "Ann likes red" in result["messages"][2].text
    assert all(system_text(seen).count("<memory>") <= 1 for seen in model.seen)
    kept = memory.at(Scope(user="ann", session="monday")).messages()
    assert [(m.role, m.content) for m in kept] == [("user", "Which colour do I like?"), ("assistant", "You like red.")]


def test_input_is_kept_even_when_the_model_fails(memory: Memory) -> None:
    agent = agent_of(memory, Scripted(answers=[RuntimeError("no answer"), "Yes."]))
    with pytest.raises(RuntimeError, match="no answer"):
        say(agent, "My daughter's name is Mia.")
    say(agent, "Are you there?")
    kept = memory.at(Scope(user="ann", session="monday")).messages()
    assert [m.content for m in kept] == ["My daughter's name is Mia.", "Are you there?", "Yes."]


def test_summaries_lose_nothing_and_are_not_taken_for_the_users_words(memory: Memory) -> None:
    shorten = SummarizationMiddleware(Scripted(answers=["SUMMARY"] * 20), trigger=("messages", 4), keep=("messages", 2))
    agent = agent_of(memory, Scripted(), middleware=(shorten,))
    for turn in range(6):
        say(agent, f"Fact number {turn}: my locker is {turn}.")
    assert any("SUMMARY" in m.text for m in agent.get_state(thread("monday")).values["messages"])
    kept = memory.at(Scope(user="ann", session="monday")).messages(limit=50)
    assert [m.content for m in kept if m.role == "user"] == [f"Fact number {n}: my locker is {n}." for n in range(6)]


def test_without_a_user_memory_stays_closed_and_the_agent_answers(memory: Memory, caplog) -> None:
    agent = create_agent(Scripted(answers=["Hello."]), middleware=[EverlongMiddleware(memory)])
    with caplog.at_level(logging.WARNING, "everlong"):
        result = agent.invoke({"messages": [("user", "I'm allergic to peanuts.")]})
    assert result["messages"][-1].text == "Hello."
    assert "names no user" in caplog.text
    assert memory.status().waiting == 0


def test_a_fault_of_memory_never_fails_the_turn(memory: Memory, caplog) -> None:
    memory.close()
    agent = agent_of(memory, Scripted(answers=["Hello."]))
    with caplog.at_level(logging.WARNING, "everlong"):
        assert say(agent, "Hi there, I'm Ann.")["messages"][-1].text == "Hello."
    assert "without memory" in caplog.text


def test_steady_memory_is_marked_for_the_prompt_cache_where_the_model_takes_marks(memory: Memory) -> None:
    ann = memory.at(Scope(user="ann"))
    ann.update_profile(sections={"workContext": "Ann runs a tea shop."})
    model = Scripted(kind="anthropic-chat")
    agent = agent_of(memory, model)
    say(agent, "tea?")
    say(agent, "And coffee?")
    first, second = ([b for b in seen[0].content if b["type"] == "text"] for seen in model.seen)
    assert [("cache_control" in b) for b in first] == [False, True, False]
    assert first[:2] == second[:2]
    assert "Ann runs a tea shop." in first[1]["text"]


def test_tools_take_no_identity_and_work_for_the_runs_user_only(memory: Memory) -> None:
    tools = EverlongMiddleware(memory, tools=("recall_memory", "remember", "forget", "search_past_conversations")).tools
    assert [sorted(t.tool_call_schema.model_json_schema()["properties"]) for t in tools] == [
        ["query"],
        ["query"],
        ["category", "content"],
        ["fact_id"],
    ]
    fact = memory.at(Scope(user="bob")).remember("Bob likes blue").fact
    model = Scripted(answers=[calls("forget", fact_id=fact.id), "Done.", calls("remember", content="Ann likes red")])
    agent = agent_of(memory, model, tools=("forget", "remember"))
    assert "no fact" in say(agent, "Forget it")["messages"][2].text
    assert memory.at(Scope(user="bob")).fact(fact.id).status == "active"
    say(agent, "Remember that I like red")
    stored = memory.at(Scope(user="ann")).facts().items[0]
    assert (stored.content, stored.origin) == ("Ann likes red", "assistant")
    with pytest.raises(ConfigError, match="unknown memory tool"):
        EverlongMiddleware(memory, tools=("erase_everything",))


def test_past_conversations_are_found_the_present_one_is_not(memory: Memory) -> None:
    model = Scripted(answers=["Noted.", calls("search_past_conversations", query="the blue bicycle"), "Yes."])
    agent = agent_of(memory, model, tools=("search_past_conversations",))
    say(agent, "The blue bicycle has a flat tyre.")
    found = say(agent, "What about the blue bicycle?", session="thursday")["messages"][2].text
    assert "flat tyre" in found
    assert "What about" not in found


ASK_FIRST = Rule(effect="ask", reason="agents ask first", roles=("agent",), actions=("remember",))


@pytest.mark.parametrize("approved", [True, False])
def test_what_needs_approval_interrupts_the_run(approved: bool) -> None:
    with open_memory("sqlite://", embedder="none", worker="none", rules=[ASK_FIRST]) as memory:
        interrupted_run(memory, approved=approved)


def interrupted_run(memory: Memory, *, approved: bool) -> None:
    model = Scripted(answers=[calls("remember", content="Ann likes red"), "Fine."])
    agent = agent_of(memory, model, tools=("remember",))
    waiting = say(agent, "Remember that I like red")["__interrupt__"][0].value
    assert (waiting["action"], waiting["reason"]) == ("remember", "agents ask first")
    assert memory.at(Scope(user="ann")).facts().total == 0
    answer = Command(resume={"approved": approved, "by": "boss"})
    result = agent.invoke(answer, thread("monday"), context=Who("ann"))
    assert result["messages"][-1].text == "Fine."
    assert memory.at(Scope(user="ann")).facts().total == int(approved)
    assert not memory.at(Scope(user="ann")).inbox.list().items


def test_the_login_counts_more_than_what_the_caller_says() -> None:
    runtime = SimpleNamespace(
        context={"user_id": "bob"},
        server_info=SimpleNamespace(user=SimpleNamespace(identity="ann")),
        execution_info=None,
        config={"configurable": {"thread_id": "t"}},
    )
    with pytest.raises(InvalidScope, match="another user"):
        scope_of(runtime)
    runtime.context = {"org": "acme"}
    assert scope_of(runtime, agent="cook") == Scope(org="acme", agent="cook", user="ann", session="t")
    runtime.server_info = None
    runtime.config["configurable"]["user_id"] = "alice@example.com"
    assert scope_of(runtime).user == "alice@example.com"
    runtime.context = SimpleNamespace(scope=Scope(user="卢", session="own"))
    assert scope_of(runtime) == Scope(user="卢", session="own")


def test_images_and_blocks_in_the_question_are_understood(memory: Memory) -> None:
    memory.at(Scope(user="ann")).remember("Ann likes red")
    model = Scripted()
    agent = agent_of(memory, model)
    blocks = [{"type": "text", "text": "Do I like red?"}, {"type": "image_url", "image_url": {"url": "data:x"}}]
    agent.invoke({"messages": [HumanMessage(content=blocks)]}, thread("t"), context=Who("ann"))
    assert "Ann likes red" in system_text(model.seen[0])
