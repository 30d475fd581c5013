"""E2: wrong types, nulls, missing keys: bytedance/deer-flow#4074, #4034, #4122, #4075, MemTensor/MemOS#1124."""

import json
import math

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.errors import UnusableExtraction
from everlong.testing.fakes import FakeClock, ScriptedChatModel
from everlong.write.answer import parse

SAID = {"en": "I keep bees", "zh": "我在养蜂"}
BAD = [
    {"content": None},
    {"content": {"text": "x"}},
    {"content": ""},
    {"content": ["x"]},
    {"content": True},
    7,
    None,
    [],
    "x",
]


def fact(language, **more):
    return {"content": SAID[language], "quote": SAID[language], "message": "m1", "confidence": 0.9, **more}


def learn(language, *answers):
    """What is known after a conversation, and the records of its extractions."""
    chosen = Settings(url="sqlite://", embedder="none", worker="none", extractor="llm")
    model = ScriptedChatModel([a if isinstance(a, str) else json.dumps(a) for a in answers])
    with build(chosen, chat_model=model, clock=FakeClock()) as memory:
        ann = memory.at(Scope(user="ann", session="s"))
        ann.update_profile(sections={"topOfMind": "Bees."})
        ann.add([("user", SAID[language])])
        memory.drain()
        return [f.content for f in ann.facts().items], ann.extractions().items, ann.profile(), ann.facts().items


@pytest.mark.parametrize("language", SAID)
@pytest.mark.parametrize("shape", ["one object", "among bad ones", "bare list", "in facts"])
def test_the_good_fact_is_stored_and_the_bad_ones_are_counted(language, shape):
    good = fact(language)
    answer = {
        "one object": {"newFacts": good},
        "among bad ones": {"newFacts": [BAD[0], good, *BAD[1:]]},
        "bare list": [good, {"content": 5}],
        "in facts": {"facts": [good]},
    }[shape]
    known, (record,), _, _ = learn(language, answer)
    assert known == [SAID[language]] and not record.error
    assert len(record.skipped) == {"among bad ones": len(BAD), "bare list": 1}.get(shape, 0)


@pytest.mark.parametrize("value", [None, ["a", "b"], "none", 3, {}, {"content": None}, [None], True])
def test_without_a_good_fact_nothing_is_stored_and_nothing_raises(value):
    known, (record,), _, _ = learn("en", {"newFacts": value})
    assert not known and not record.error


@pytest.mark.parametrize("confidence", ["0.9", "high", "HIGH ", "高", 1, 0.9])
def test_confidence_in_words_or_as_text_is_understood(confidence):
    assert learn("zh", {"newFacts": [fact("zh", confidence=confidence)]})[0] == ["我在养蜂"]


@pytest.mark.parametrize("confidence", [math.nan, math.inf, -1, 1.5, "sure", [], {}, True, "1e999", "９９"])
def test_confidence_that_is_no_number_from_0_to_1_costs_only_its_fact(confidence):
    odd = {**fact("en"), "content": "I keep wasps", "confidence": confidence}
    known, (record,), _, _ = learn("en", {"newFacts": [odd, fact("en")]})
    assert known == ["I keep bees"] and len(record.skipped) == 1


@pytest.mark.parametrize("removals", ["missing", None, "fact_1", [1], [None, "", {}], {"id": "f1"}, 0])
def test_removals_of_any_shape_do_no_harm(removals):
    answer = {"newFacts": [fact("en")]} | ({} if removals == "missing" else {"factsToRemove": removals})
    known, (record,), _, _ = learn("en", answer)
    assert known == ["I keep bees"] and not record.error


@pytest.mark.parametrize("group", [None, [], "x", 3, {"topOfMind": None}, {"topOfMind": "x"}, {"topOfMind": []}])
def test_sections_of_any_shape_leave_the_profile_alone(group):
    known, _, profile, _ = learn("en", {"user": group, "history": group, "newFacts": [fact("en")]})
    assert known == ["I keep bees"] and profile.sections["topOfMind"].summary == "Bees."


ODD = [None, 5, [], {}, True, "x" * 5000, "2026-13-45", "9999-12-31", "tomorrow", "明天"]


@pytest.mark.parametrize("value", ODD)
@pytest.mark.parametrize(
    "key", ["category", "quote", "message", "valid_from", "valid_until", "scope", "durability", "replaces"]
)
def test_one_odd_field_never_costs_the_update(key, value):
    odd = fact("zh", **{key: value})
    known, (record,), _, _ = learn("zh", {"newFacts": [odd, {**fact("zh"), "content": "用户在养蜂多年"}]})
    assert "用户在养蜂多年" in known and not record.error


@pytest.mark.parametrize("value", [7, "x", ["a"], [None], {"content": None}])
def test_malformed_facts_with_removals_are_refused_as_a_whole(value):
    with pytest.raises(UnusableExtraction):
        parse(json.dumps({"newFacts": value, "factsToRemove": ["f1"]}))


def test_an_empty_list_inside_a_broken_answer_is_not_the_answer_nothing():
    """The outer object is cut off: taking its inner ``[]`` for it would lose what the user said."""
    for broken in (
        '{"user": {}, "factsToRemove": [], "newFacts": [{"content": "I keep',
        "see [] above",
        "{'user': 'x'}",
    ):
        with pytest.raises(UnusableExtraction):
            parse(broken)
    assert not parse("[]").facts and not parse("```json\n[]\n```").facts
