"""E7: an id that exists, but for someone else, is named by the model: topoteretes/cognee#3235."""

import json

import pytest

from everlong import Principal, Scope
from everlong.config import Settings, build
from everlong.errors import NotFound
from everlong.testing.fakes import FakeClock, ScriptedChatModel

OTHERS = {
    "another user": Scope(org="acme", user="u_b"),
    "another agent of the same user": Scope(org="acme", agent="writer", user="u_a"),
    "the organisation": Scope(org="acme"),
    "another organisation": Scope(org="umbra", user="u_a"),
    "the same user without an agent": Scope(org="acme", user="u_a"),
}
SAID = {"en": "Please forget that I keep bees", "zh": "请忘掉我养蜂这件事"}
OPERATOR = Principal(id="op", role="operator")


@pytest.mark.parametrize("language", SAID)
@pytest.mark.parametrize("where", OTHERS)
def test_nothing_of_others_is_touched(where, language):
    chosen = Settings(url="sqlite://", embedder="none", worker="none", extractor="llm")
    model = ScriptedChatModel()
    with build(chosen, chat_model=model, clock=FakeClock()) as memory:
        theirs = memory.at(OTHERS[where], by=OPERATOR)
        content = {"en": "Keeps bees", "zh": "养蜂"}[language]
        fact = theirs.remember(content).fact
        mine = memory.at(Scope(org="acme", agent="coder", user="u_a", session="s"), by=OPERATOR)
        new = {"content": content + "!", "quote": SAID[language], "confidence": 0.9, "replaces": [fact.id, "f1"]}
        model.say(json.dumps({"user": {}, "history": {}, "newFacts": [new], "factsToRemove": [fact.id, "f1"]}))
        mine.add([("user", SAID[language])])
        memory.drain()
        assert theirs.fact(fact.id) == fact
        (record,) = mine.extractions().items
        assert fact.id in {s.raw for s in record.skipped}
        assert fact.id not in model.prompts[0][-1].content


@pytest.mark.parametrize("where", ["another user", "another agent of the same user", "another organisation"])
def test_no_tool_can_forget_what_is_of_others(where):
    with build(Settings(url="sqlite://", embedder="none", worker="none"), clock=FakeClock()) as memory:
        fact = memory.at(OTHERS[where], by=OPERATOR).remember("Keeps bees").fact
        with pytest.raises(NotFound):
            memory.at(Scope(org="acme", agent="coder", user="u_a", session="s"), by=OPERATOR).forget(fact.id)
