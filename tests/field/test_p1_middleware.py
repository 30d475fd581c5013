"""P1 in the middleware: content that is not a string (mem0ai/mem0#4799, #3646, #5067, adaptive_memory_owui#4).

Whatever shape a state's messages have, the run goes on, what is looked up is the user's last text, and neither an image
nor a Python list ends in a prompt, in what is kept, or in what is searched for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from everlong import Memory, Scope, open_memory
from everlong.integrations.langchain import EverlongMiddleware
from tests.integrations.scripted import Scripted, system_text

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 2_000_000}}
CALL = {"name": "look", "args": {"q": "x"}, "id": "1"}
ASKED = "What about green tea 绿茶?"
# What the state holds when the run begins, and what of it is new: what stands before the last answer was kept before.
CASES: dict[str, tuple[list[Any], list[str]]] = {
    "blocks": ([HumanMessage([{"type": "text", "text": ASKED}])], [ASKED]),
    "image beside": ([HumanMessage([IMAGE, {"type": "text", "text": ASKED}])], [ASKED]),
    "image alone": ([HumanMessage(ASKED), AIMessage("Yes."), HumanMessage([IMAGE])], []),
    "strings": ([HumanMessage([ASKED, "and cake"])], [f"{ASKED}\nand cake"]),
    "dict": ([{"role": "user", "content": ASKED}], [ASKED]),
    "dict of blocks": ([{"role": "user", "content": [{"type": "text", "text": ASKED}, IMAGE]}], [ASKED]),
    "pair": ([("user", ASKED)], [ASKED]),
    "empty": ([HumanMessage(ASKED), AIMessage("Yes."), HumanMessage("")], []),
    "tool last": (
        [HumanMessage(ASKED), AIMessage("", tool_calls=[CALL]), ToolMessage([{"type": "text", "text": "rows"}], tool_call_id="1")],
        [ASKED],
    ),
    "thinking": (
        [HumanMessage(ASKED), AIMessage([{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Yes."}]),
         HumanMessage([{"type": "text", "text": "绿茶 tea?"}])],
        ["绿茶 tea?"],
    ),
}  # fmt: skip


@dataclass
class Who:
    user_id: str


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", embedder="none", worker="none") as opened:
        yield opened


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("case", CASES)
def test_any_shape_of_content_is_understood(memory: Memory, case: str, asynchronous: bool) -> None:
    messages, kept = CASES[case]
    memory.at(Scope(user="ann")).remember("Ann loves green tea 绿茶")
    model = Scripted(answers=["Fine, thanks for asking."])
    agent = create_agent(model, middleware=[EverlongMiddleware(memory)], context_schema=Who)
    config = {"configurable": {"thread_id": "t"}}
    if asynchronous:
        asyncio.run(agent.ainvoke({"messages": messages}, config, context=Who("ann")))
    else:
        agent.invoke({"messages": messages}, config, context=Who("ann"))
    prompt = system_text(model.seen[0])
    assert "Ann loves green tea 绿茶" in prompt
    said = [m.content for m in memory.at(Scope(user="ann", session="t")).messages()]
    assert said == [*kept, "Fine, thanks for asking."]
    trace = memory.at(Scope(user="ann")).recall("tea", trace=True).trace
    for text in [prompt, *said, trace.query.text]:
        assert "AAAA" not in text
        assert "[{" not in text
        assert "'type'" not in text
    assert "rows" not in "".join(said)
