"""B1: what is written while a model thinks is erased by its old snapshot: odysseus-dev/odysseus#1940,
bytedance/deer-flow#1063."""

import json
from threading import Thread

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.testing.fakes import ScriptedChatModel

HOME = Scope(user="ann")
CASES = {
    "en": ("User owns a boat", "User grows roses", "User plays chess", "I play chess"),
    "zh": ("用户有一条船", "用户种玫瑰", "用户下围棋", "我下围棋"),
}


@pytest.mark.parametrize("elsewhere", [False, True], ids=["same handle", "another handle on the file"])
@pytest.mark.parametrize("language", CASES)
def test_nothing_written_during_the_call_is_lost(language, elsewhere, sqlite_url):
    gone, x, y, said = CASES[language]
    facts = [{"content": y, "category": "preference", "confidence": 0.9, "message": "m1", "quote": said}]
    work = {"topOfMind": {"shouldUpdate": True, "summary": said}}
    model = ScriptedChatModel([json.dumps({"user": work, "newFacts": facts, "factsToRemove": ["f1"]})], held=True)
    chosen = Settings(url=sqlite_url, embedder="none", worker="none", extractor="llm")
    with build(chosen, chat_model=model) as memory, build(chosen, chat_model=model) as second:
        home = (second if elsewhere else memory).at(HOME)
        f0 = home.remember(gone).fact
        memory.at(Scope(user="ann", session="s")).add([("user", said)])
        memory.at(Scope(user="ann", session="s")).flush()
        worker = Thread(target=memory.drain)
        worker.start()
        try:
            assert model.asked.wait(10)
            home.remember(x)
            home.forget(f0.id)
            home.update_profile(attributes={"injection": False}, sections={"workContext": x})
        finally:
            model.release()
            worker.join(20)
        assert {fact.content for fact in home.facts().items} == {x, y}
        assert home.fact(f0.id).status == "retired" and not home.inbox.list().items
        profile = home.profile()
        assert profile.attributes == {"injection": False}
        assert {name: s.summary for name, s in profile.sections.items()} == {"workContext": x, "topOfMind": said}
        assert len(model.prompts) == 1
