"""What the tasks do with a conversation: once in effect, at a bounded cost, with a record of each attempt."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.errors import ModelError
from everlong.models.openai import OpenAIChat
from everlong.protocols import ChatReply
from everlong.records import Extraction, Usage
from everlong.testing.fakes import CountingIds, FakeClock, ScriptedChatModel, TableEmbedder
from everlong.testing.model_server import Fault, ModelServer

SESSION = Scope(user="ann", session="s1")
NOTHING = '{"newFacts": []}'
TEA = (
    '{"newFacts": [{"content": "用户喜欢茶", "quote": "我喜欢茶", "message": "m1", "confidence": 0.9, '
    '"category": "preference"}]}'
)

NAMES = [first + second for first in "ABCDEFGHIJ" for second in "abcdefghij"]


@pytest.fixture
def clock():
    return FakeClock(datetime(2026, 3, 1, 22, tzinfo=UTC), tick=0.001)


@pytest.fixture
def opened(clock):
    made = []

    def make(model=None, *, embedder=None, extractor=None, **settings):
        chosen = Settings(url="sqlite://", embedder="none", worker="none", extractor="llm", **settings)
        memory = build(
            chosen, chat_model=model, embedder=embedder, extractor=extractor, clock=clock, new_id=CountingIds()
        )
        made.append(memory)
        return memory

    yield make
    for memory in made:
        memory.close()


def test_an_extraction_is_recorded_once_and_the_journal_points_to_it(opened):
    memory = opened(ScriptedChatModel([TEA]))
    ann = memory.at(SESSION)
    added = ann.add([("user", "我喜欢茶"), ("assistant", "好的")])
    memory.drain()
    (record,) = ann.extractions().items
    assert record.messages == added.message_ids and record.prompt == "update@2" and record.raw == TEA
    assert [(o.kind, o.content) for o in record.decisions] == [("add", "用户喜欢茶")]
    assert record.decisions[0].fact_id == ann.facts().items[0].id and record.decisions[0].reason
    assert record.usage.calls == 1 and record.milliseconds > 0 and not record.error
    (entry,) = ann.journal(action="extract").items
    assert entry.target == record.id and not entry.payload


@pytest.mark.parametrize(("answer", "error"), [("I cannot.", "UnusableExtraction"), (ModelError("away"), "ModelError")])
def test_a_failed_call_is_recorded_with_its_cost_and_tried_again(opened, clock, answer, error):
    memory = opened(ScriptedChatModel([answer, TEA]))
    ann = memory.at(SESSION)
    ann.add([("user", "我喜欢茶")])
    memory.drain()
    (record,) = ann.extractions().items
    assert record.error.startswith(error) and record.raw == (answer if isinstance(answer, str) else "")
    assert record.usage.calls == (1 if isinstance(answer, str) else 0)
    assert not ann.facts().items and ann.jobs()
    clock.advance(3600)
    memory.drain()
    assert [f.content for f in ann.facts().items] == ["用户喜欢茶"] and not ann.jobs()


def test_over_the_days_tokens_work_waits_for_the_next_day_at_no_attempt(opened, clock):
    model = ScriptedChatModel([NOTHING, TEA])
    memory = opened(model, daily_tokens=10)
    ann = memory.at(SESSION)
    ann.add([("user", "我住在杭州市区")])
    memory.drain()
    other = memory.at(Scope(user="ann", agent="coder", session="s2"))
    other.add([("user", "我喜欢茶")])
    memory.drain()
    (job,) = other.jobs()
    assert len(model.prompts) == 1 and job.attempts == 0 and "daily_tokens is 10" in job.error
    assert job.run_after == datetime(2026, 3, 2, tzinfo=UTC)
    clock.advance(timedelta(hours=2, minutes=1).total_seconds())
    memory.parts.worker.run_due()
    assert [f.content for f in other.facts().items] == ["用户喜欢茶"] and not other.jobs()


def test_over_the_days_tokens_small_talk_is_still_done_and_others_are_not_held_up(opened):
    memory = opened(ScriptedChatModel([NOTHING, NOTHING]), daily_tokens=10)
    ann, bob = memory.at(SESSION), memory.at(Scope(user="bob", session="s1"))
    ann.add([("user", "我住在杭州市区")])
    memory.drain()
    ann.add([("user", "ok")])
    bob.add([("user", "I live in Rome")])
    memory.drain()
    assert not ann.jobs() and not bob.jobs() and bob.extractions().items[0].usage.calls == 1


class Meanwhile:
    """An extractor during whose call something else happens."""

    name = "meanwhile"

    def __init__(self, happens):
        self.happens, self.calls = happens, 0

    def extract(self, batch):
        self.calls += 1
        self.happens(self.calls)
        return Extraction(extractor=self.name, sections={"topOfMind": "Tea."}, usage=Usage(calls=1, input_tokens=5))


def test_a_conflict_is_decided_anew_without_asking_the_model_again(opened):
    other = []
    extractor = Meanwhile(lambda _: other[0].update_profile(attributes={"name": "Ann"}))
    memory = opened(extractor=extractor)
    ann = memory.at(SESSION)
    other.append(ann)
    ann.add([("user", "I love tea")])
    memory.drain()
    profile = ann.profile()
    assert extractor.calls == 1 and profile.attributes == {"name": "Ann"}
    assert profile.sections["topOfMind"].summary == "Tea." and len(ann.extractions().items) == 1


def test_a_call_longer_than_the_lease_has_one_effect(opened, clock):
    """The work is taken over by another worker while the first still waits for its model."""
    rival = []

    def happens(call):
        if call == 1:
            clock.advance(3600)
            rival[0].parts.worker.run_due()

    extractor = Meanwhile(happens)
    memory = opened(extractor=extractor)
    rival.append(memory)
    ann = memory.at(SESSION)
    ann.add([("user", "I love tea")])
    with memory.parts.store.write() as tx:
        tx.jobs.hurry(Scope(), now=clock())
        job = tx.jobs.claim(["extract"], worker="slow", now=clock(), lease_until=clock() + timedelta(seconds=60))
    memory.parts.worker._tasks["extract"](job)
    assert extractor.calls == 2 and ann.profile().version == 1
    assert len([r for r in ann.extractions().items if not r.error]) == 1 and not ann.jobs()


def test_what_was_erased_during_the_call_leaves_no_record(opened):
    scoped = []
    memory = opened(extractor=Meanwhile(lambda _: scoped[0].erase()))
    scoped.append(memory.at(SESSION))
    scoped[0].add([("user", "I love tea")])
    memory.drain()
    assert not scoped[0].extractions().items and not scoped[0].profile().version and not scoped[0].jobs()


class Meddling(TableEmbedder):
    """An embedder during whose every call someone edits the profile."""

    def __init__(self):
        super().__init__({}, 8)
        self.happens = lambda: None

    def embed(self, texts, *, query=False):
        self.happens()
        return super().embed(texts, query=query)


def test_conflicts_without_end_are_recorded_and_tried_later(opened):
    embedder = Meddling()
    both = TEA[:-1] + ', "user": {"topOfMind": {"shouldUpdate": true, "summary": "茶。"}}}'
    memory = opened(ScriptedChatModel([both]), embedder=embedder)
    ann = memory.at(SESSION)
    ann.add([("user", "我喜欢茶")])
    embedder.happens = lambda: ann.update_profile(attributes={"name": "Ann"})
    memory.drain()
    (record,) = ann.extractions().items
    assert record.error.startswith("Conflict") and record.usage.calls == 1
    assert not ann.facts().items and [job.kind for job in ann.jobs()] == ["extract"]


def test_of_many_facts_the_model_sees_the_pinned_and_the_nearest_under_short_names(opened):
    model = ScriptedChatModel([NOTHING])
    memory = opened(model, max_facts=500)
    ann = memory.at(SESSION)
    for n in range(60):
        ann.remember(f"User keeps bees in hive {NAMES[n]}")
    ann.remember("用户对花生过敏")
    ann.remember("Always answer in Portuguese", pinned=True)
    for n in range(60, 100):
        ann.remember(f"User keeps bees in hive {NAMES[n]}")
    ann.add([("user", "花生酱我不能吃")])
    memory.drain()
    prompt = model.prompts[0][-1].content
    shown = prompt.partition("<facts>\n")[2].partition("\n</facts>")[0].splitlines()
    assert len(shown) == 30 and shown[0].startswith("f1 [") and "fact_" not in prompt
    assert any("花生过敏" in line for line in shown) and any("Portuguese" in line for line in shown)


def test_vectors_are_made_once_for_all_that_lacks_them(opened):
    embedder = TableEmbedder({}, 8)
    memory = opened(ScriptedChatModel([NOTHING]), embedder=embedder)
    ann = memory.at(SESSION)
    ann.add([("user", "I love tea"), ("user", "我喜欢爬山")])
    memory.drain()
    with memory.parts.store.read() as tx:
        assert not tx.messages.unembedded(SESSION.home, embedder.model, limit=9)
        assert not tx.facts.unembedded(SESSION.home, embedder.model, limit=9)
    assert sorted(embedder.embedded) == ["I love tea", "我喜欢爬山"]


@pytest.mark.parametrize("fault", [Fault(truncate=True), Fault(refuse="no")])
def test_an_answer_that_cannot_be_used_is_still_paid_for(opened, fault):
    with ModelServer() as server:
        server.fail(fault)
        memory = opened(OpenAIChat("stub", base_url=server.url, api_key="none"))
        ann = memory.at(SESSION)
        ann.add([("user", "我喜欢茶")])
        memory.drain()
        (record,) = ann.extractions().items
    assert record.error.startswith("ModelError") and record.usage.calls == 1 and record.usage.input_tokens > 0


def test_extraction_may_have_a_model_of_its_own(opened):
    with ModelServer() as server:
        memory = opened(base_url=server.url, api_key="none", model="openai:large", extraction_model="openai:small")
        ann = memory.at(SESSION)
        ann.add([("user", "我喜欢茶")])
        memory.drain()
        assert [body["model"] for _, body in server.requests] == ["small"]
        assert ann.extractions().items[0].extractor == "llm:small"


class Brief:
    """A model whose answer to more than three messages is cut off."""

    name = "brief"

    def complete(self, turns, *, schema=None):
        if len(re.findall(r"^m\d+ ", turns[-1].content, re.MULTILINE)) > 3:
            raise ModelError("the answer was cut off at the token limit")
        return ChatReply(text=NOTHING, usage=Usage(calls=1))


def test_an_answer_that_grows_too_long_is_asked_for_in_smaller_parts(opened, clock):
    memory = opened(Brief())
    ann = memory.at(SESSION)
    added = ann.add([("user", f"我的第{n}个愿望是去看海") for n in range(12)])
    for _ in range(30):
        memory.drain()
        clock.advance(3600)
    records = [r for r in ann.extractions().items[::-1] if not r.error]
    assert [i for r in records for i in r.messages] == list(added.message_ids) and not ann.jobs()
