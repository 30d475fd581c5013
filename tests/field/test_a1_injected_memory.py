"""A1: recalled memory is extracted again: mem0ai/mem0#4573, bytedance/deer-flow#3695."""

import json

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from everlong import Scope
from everlong.config import Settings, build
from everlong.testing.fakes import FakeClock, ScriptedChatModel

NOTHING = json.dumps({"user": {}, "history": {}, "newFacts": [], "factsToRemove": []})
CASES = {
    "en": ("User prefers Vim", "Vim", "What is two plus two, please?", "It is four."),
    "zh": ("用户喜欢用维姆编辑器", "维姆", "请问二加二等于几？", "等于四。"),
}


def turn(fact: str, asked: str, reply: str) -> list[object]:
    block = f"<memory>\n- {fact}\n</memory>"
    return [
        SystemMessage(f"You are helpful.\n{block}"),
        HumanMessage(block, additional_kwargs={"hide_from_ui": True}),
        HumanMessage(f"Known so far: {fact}", additional_kwargs={"everlong": {"version": 1}}),
        HumanMessage(f"{block}\n{asked}"),
        AIMessage(reply),
    ]


@pytest.mark.parametrize("language", CASES)
@pytest.mark.parametrize("extractor", ["builtin", "llm"])
def test_twenty_turns_with_injected_memory_leave_one_fact(language: str, extractor: str) -> None:
    fact, word, asked, reply = CASES[language]
    model = ScriptedChatModel([NOTHING] * 40)
    chosen = Settings(url="sqlite://", embedder="none", worker="none", extractor=extractor)
    with build(chosen, chat_model=model if extractor == "llm" else None, clock=FakeClock()) as memory:
        ann = memory.at(Scope(user="ann", session="t1"))
        ann.remember(fact, category="preference")
        for number in range(20):
            ann.add(turn(fact, f"{asked} ({number})", reply))
            memory.drain()
        assert [f.content for f in ann.facts(status=None).items] == [fact]
        assert not any(word in message.content for message in ann.messages(limit=100))
        if extractor == "llm":
            assert len(model.prompts) == 20
            for prompt in model.prompts:
                said = str(prompt[-1].content if hasattr(prompt[-1], "content") else prompt[-1])
                assert word not in said.replace(fact, "", 1)


@pytest.mark.parametrize("language", CASES)
def test_the_block_that_context_gives_is_never_kept(language: str) -> None:
    fact, word, asked, _ = CASES[language]
    chosen = Settings(url="sqlite://", embedder="none", worker="none")
    with build(chosen, clock=FakeClock()) as memory:
        ann = memory.at(Scope(user="ann", session="t1"))
        ann.remember(fact, category="preference")
        block = ann.context(word, min_score=0).text
        assert word in block
        ann.add([("user", f"{block}\n{asked}"), ("user", block)])
        assert [m.content for m in ann.messages()] == [asked]
