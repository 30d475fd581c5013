"""E6: the model names ids that do not exist: mem0ai/mem0#3931."""

import json

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.testing.fakes import FakeClock, ScriptedChatModel

KNOWN = {
    "en": ["Ann keeps bees", "Ann hates fennel", "Ann plays the lute"],
    "zh": ["安娜养蜂", "安娜讨厌香菜", "安娜弹琵琶"],
}
NEW = {"en": "I moved to Zadar", "zh": "我搬到了扎达尔"}
INVENTED = ["fact_zzzz", "12", "", None, "f0", "f99", "F1", "m1", "-1", "事实一", "f1; drop", 7, ["f1"]]


@pytest.mark.parametrize("language", KNOWN)
def test_invented_ids_remove_nothing_and_are_named(language):
    new = {"content": NEW[language], "quote": NEW[language], "message": "m1", "confidence": 0.9, "replaces": INVENTED}
    answer = json.dumps({"newFacts": [new], "factsToRemove": INVENTED})
    chosen = Settings(url="sqlite://", embedder="none", worker="none", extractor="llm")
    with build(chosen, chat_model=ScriptedChatModel([answer]), clock=FakeClock()) as memory:
        ann = memory.at(Scope(user="ann", session="s"))
        for content in KNOWN[language]:
            ann.remember(content)
        ann.add([("user", NEW[language])])
        memory.drain()
        assert {f.content for f in ann.facts().items} == {*KNOWN[language], NEW[language]}
        (record,) = ann.extractions().items
    named = {s.raw for s in record.skipped if s.reason == "it names an unknown fact"}
    assert {i for i in INVENTED if isinstance(i, str) and i.strip()} == named and not record.error
