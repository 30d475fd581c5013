"""Small steps for small models, and the prompts that both strategies send."""

import hashlib
import json
from datetime import UTC, datetime
from importlib import resources

import pytest

from everlong.errors import ModelError, UnusableExtraction
from everlong.protocols import ChatReply
from everlong.records import Batch, Fact, Message, Profile, Scope, Section, Usage
from everlong.testing.fakes import ScriptedChatModel
from everlong.write.prompt import load
from everlong.write.split import SplitExtractor

HOME = Scope(user="ann")
NOW = datetime(2026, 1, 2, tzinfo=UTC)
NOTHING = '{"facts": []}'


def batch(*contents, facts=(), sections=None, signals=()):
    messages = tuple(
        Message(id=f"msg_{n}", scope=HOME, session="s", role="user", content=c, created_at=NOW, signals=signals)
        for n, c in enumerate(contents, 1)
    )
    known = tuple(Fact(id=i, scope=HOME, content=c, created_at=NOW, updated_at=NOW) for i, c in facts)
    return Batch(
        scope=HOME, messages=messages, profile=Profile(scope=HOME, sections=sections or {}), facts=known, now=NOW
    )


def fact(content, quote, category="context", confidence=0.9):
    return json.dumps(
        {"facts": [{"quote": quote, "content": content, "category": category, "confidence": confidence}]},
        ensure_ascii=False,
    )


def test_each_message_is_asked_for_itself_then_pairs_then_paragraphs():
    model = ScriptedChatModel([
        fact("用户现在住在上海", "我搬到上海了"), NOTHING, '{"relation": "replaces"}', '{"summary": "用户住在上海。"}',
    ])  # fmt: skip
    said = batch("我搬到上海了", "what is the weather?", facts=[("f_old", "用户住在北京"), ("f_far", "likes tea")])
    found = SplitExtractor(model).extract(said)
    (one,) = found.candidates
    assert one.removes == ("f_old",) and one.evidence[0].message_id == "msg_1"
    assert found.sections == {"topOfMind": "用户住在上海。"} and found.usage.calls == 4 and found.taken is None
    assert found.prompt == "facts@1 contradiction@1 summary@1"
    assert [p[-1].content.count("我搬到上海了") for p in model.prompts] == [1, 0, 0, 0]


def test_an_example_that_leaks_or_words_never_said_are_no_evidence():
    leak = fact("Oswin, the user's cousin, cannot eat lychees", "my cousin Oswin can't eat lychees")
    model = ScriptedChatModel([leak, fact("User owns a yacht", "I own a yacht")])
    found = SplitExtractor(model).extract(batch("hello, my name is Ann", "my boat is small"))
    assert [s.reason for s in found.skipped] == ["an echo of the prompt"]
    assert found.candidates[0].content == "User owns a yacht" and not found.candidates[0].evidence


def test_a_paragraph_that_would_lose_what_was_known_is_left_out():
    model = ScriptedChatModel([fact("User uses Rust", "I use Rust", "knowledge"), '{"summary": "Rust."}'])
    sections = {"workContext": Section(summary="Leads the DataOps team of a shipyard in Gdansk.", updated_at=NOW)}
    found = SplitExtractor(model).extract(batch("I use Rust", sections=sections))
    assert not found.sections and "lose" in found.skipped[0].reason


def test_trivial_words_cost_nothing():
    assert SplitExtractor(ScriptedChatModel()).extract(batch("ok", signals=("trivial",))).usage.calls == 0


def test_one_bad_answer_costs_its_message_only_and_all_bad_ones_the_batch():
    said = batch("one thing", "I live in Rome")
    found = SplitExtractor(ScriptedChatModel(["Sorry.", fact("User lives in Rome", "I live in Rome"), "{}"])).extract(
        said
    )
    assert len(found.candidates) == 1 and len(found.skipped) == 2
    with pytest.raises(UnusableExtraction) as caught:
        SplitExtractor(ScriptedChatModel(["Sorry.", "None"])).extract(said)
    assert caught.value.usage.calls == 2


def test_an_answer_that_was_cut_off_costs_its_message_only():
    cut = ModelError("cut off")
    cut.usage = Usage(calls=1, output_tokens=600)
    model = ScriptedChatModel([cut, fact("User lives in Rome", "I live in Rome"), "{}"])
    found = SplitExtractor(model).extract(batch("one thing", "I live in Rome"))
    assert len(found.candidates) == 1 and "msg_1: cut off" in [s.reason for s in found.skipped]
    assert found.usage.calls == 3 and found.usage.output_tokens > 600


def test_a_model_that_fails_half_way_still_says_what_it_cost():
    with pytest.raises(ModelError) as caught:
        SplitExtractor(ScriptedChatModel([NOTHING, ModelError("gone")])).extract(batch("one thing", "another"))
    assert caught.value.usage.calls == 1


def test_days_are_read_from_the_time_of_the_message():
    model = ScriptedChatModel([fact("用户明天去杭州", "我明天去杭州", "goal"), "{}"])
    found = SplitExtractor(model).extract(batch("我明天去杭州"))
    assert found.candidates[0].valid_from == datetime(2026, 1, 3, tzinfo=UTC)


DIGESTS = {
    "update@2": "3bf15b51a9d6c31c",
    "facts@1": "733e3643925f84a8",
    "contradiction@1": "49325db230175e99",
    "summary@1": "84c767a248fe2eec",
}
"""Of each prompt as sent: whoever changes one gives it a new version, so that every record says what was asked."""


def test_a_prompt_that_changes_gets_a_new_version():
    folder = resources.files("everlong.write").joinpath("prompts")
    made = {}
    for file in folder.iterdir():
        prompt = load(file.name.removesuffix(".md"))
        sent = "\n".join(f"{turn.role}: {turn.content}" for turn in prompt.turns(""))
        made[prompt.label] = hashlib.sha256(sent.encode()).hexdigest()[:16]
    assert made == DIGESTS


def test_every_example_answers_in_the_form_that_is_asked_for():
    for name, key in (("facts", "facts"), ("contradiction", "relation"), ("summary", "summary")):
        turns = load(name).examples
        assert [t.role for t in turns] == ["user", "assistant"] * (len(turns) // 2) and turns
        assert all(key in json.loads(t.content) for t in turns[1::2])


def test_replies_without_usage_count_nothing():
    class Silent:
        name = "silent"

        def complete(self, turns, *, schema=None):
            return ChatReply(text=NOTHING, usage=Usage())

    assert SplitExtractor(Silent()).extract(batch("I live in Rome")).usage == Usage()
