"""A2: what the assistant repeats or guesses counts as evidence: mem0ai/mem0#4573, metadist/synaplan#438."""

import json

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.testing.fakes import FakeClock, ScriptedChatModel

CASES = {
    "en": ("I live in Lisbon", "User lives in Lisbon", "plan my day",
           "Since you live in Lisbon and love fado, start at Alfama.", "User loves fado"),
    "zh": ("我住在里斯本", "用户住在里斯本", "帮我安排今天", "既然你住在里斯本，又喜欢法朵，就从阿尔法玛开始吧。", "用户喜欢法朵"),
}  # fmt: skip


def answer(*facts, **more):
    made = [{"category": "context", "confidence": 0.95, **fact} for fact in facts]
    return json.dumps({"user": {}, "history": {}, "newFacts": made, "factsToRemove": [], **more}, ensure_ascii=False)


@pytest.mark.parametrize("quoted", ["the assistant's words", "no words", "words that stand nowhere"])
@pytest.mark.parametrize("language", CASES)
def test_a_restatement_raises_nothing_and_a_guess_is_not_the_users(language, quoted):
    said, lives, asked, reply, loves = CASES[language]
    quote = {"the assistant's words": reply, "no words": "", "words that stand nowhere": "I told you so"}[quoted]
    model = ScriptedChatModel([
        answer({"content": lives, "confidence": 0.75, "message": "m1", "quote": said}),
        answer(*({"content": c, "message": "m2", "quote": quote} for c in (lives, loves))),
    ])  # fmt: skip
    chosen = Settings(url="sqlite://", embedder="none", worker="none", extractor="llm")
    with build(chosen, chat_model=model, clock=FakeClock()) as memory:
        ann = memory.at(Scope(user="ann", session="t0"))
        ann.add([("user", said)])
        memory.drain()
        (before,) = ann.facts().items
        other = memory.at(Scope(user="ann", session="t1"))
        other.add([("user", asked), ("assistant", reply)])
        memory.drain()
        assert other.facts().items == (before,)
        (held,) = other.facts(status="held").items
        assert held.content == loves and held.origin == "assistant"
        assert [p.target for p in other.inbox.list().items] == [held.id]
        reasons = {o.content: o.reason for o in other.extractions().items[0].decisions}
        assert before.id in reasons[lives] and reasons[loves] == held.reason
        assert held.id not in {hit.id for hit in other.recall(loves).hits}


@pytest.mark.parametrize("language", CASES)
def test_what_the_user_then_says_lifts_what_was_held_once(language):
    _, _, asked, reply, loves = CASES[language]
    guess = answer({"content": loves, "message": "m2", "quote": reply})
    said = {"en": "Yes, I love fado", "zh": "对，我喜欢法朵"}[language]
    model = ScriptedChatModel([guess, guess, answer({"content": loves, "message": "m1", "quote": said})])
    chosen = Settings(url="sqlite://", embedder="none", worker="none", extractor="llm")
    with build(chosen, chat_model=model, clock=FakeClock()) as memory:
        ann = memory.at(Scope(user="ann", session="t1"))
        for _ in range(2):
            ann.add([("user", f"{asked} {_}"), ("assistant", f"{reply} {_}")])
            memory.drain()
        assert len(ann.facts(status="held").items) == len(ann.inbox.list().items) == 1
        ann.add([("user", said)])
        memory.drain()
        (fact,) = ann.facts().items
        assert fact.content == loves and fact.origin == "user" and said in fact.evidence[0].quote
        assert not ann.facts(status="held").items and not ann.inbox.list().items
