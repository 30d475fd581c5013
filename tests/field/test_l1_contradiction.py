"""L1: a contradiction leaves nothing, or both: mem0ai/mem0#4536, #4896, #5576."""

import json
from datetime import UTC, datetime

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.testing.fakes import FakeClock, ScriptedChatModel

HOME = Scope(user="ann")
CASES = {
    "en": ("I love Chinese food", "User loves Chinese food", "I hate Chinese food", "User hates Chinese food"),
    "zh": ("我喜欢吃川菜", "用户喜欢吃川菜", "我讨厌吃川菜", "用户讨厌吃川菜"),
    "en, in other words": ("I'm vegetarian", "User is vegetarian", "I had steak, I eat meat again", "User eats meat again"),
    "zh, in other words": ("我吃素", "用户吃素", "我昨天吃了牛排，又开始吃肉了", "用户又开始吃肉了"),
}  # fmt: skip


def update(content, quote, replaces=(), removes=()):
    fact = {"content": content, "category": "preference", "confidence": 0.9, "message": "m1", "quote": quote}
    facts = [{**fact, "replaces": list(replaces)}] if content else []
    answer = {"user": {}, "history": {}, "newFacts": facts, "factsToRemove": list(removes)}
    return json.dumps(answer, ensure_ascii=False)


def told(first, second, answers, **settings):
    clock = FakeClock(datetime(2026, 1, 10, tzinfo=UTC), tick=1.0)
    chosen = Settings(url="sqlite://", embedder="none", worker="none", extractor="llm", **settings)
    memory = build(chosen, chat_model=ScriptedChatModel(answers), clock=clock)
    ann = memory.at(Scope(user="ann", session="s"))
    ann.add([("user", first)])
    memory.drain()
    clock.set(datetime(2026, 6, 10, tzinfo=UTC))
    ann.add([("user", second)])
    memory.drain()
    return memory


def believed(memory, when):
    """What was believed at a time, by when each was known and when it was retired."""
    facts = memory.at(HOME).facts(status=None).items
    return [f.content for f in facts if f.created_at <= when and (f.retired_at is None or when < f.retired_at)]


@pytest.mark.parametrize("language", CASES)
def test_a_removal_alone_waits_once_and_changes_nothing(language):
    first, old, second, _ = CASES[language]
    removal = update("", "", removes=["f1"])
    with told(first, second, [update(old, first), removal, removal]) as memory:
        ann = memory.at(Scope(user="ann", session="s2"))
        ann.add([("user", second)])
        memory.drain()
        (fact,) = memory.at(HOME).facts().items
        assert fact.content == old and fact.version == 1
        (waiting,) = memory.at(HOME).inbox.list().items
        assert (waiting.kind, waiting.target) == ("removal", fact.id) and waiting.reason
        assert [o.kind for o in ann.extractions().items[0].decisions] == ["hold"]
        memory.at(HOME).inbox.approve(waiting.id)
        assert not memory.at(HOME).facts().items and memory.at(HOME).fact(fact.id).status == "retired"


@pytest.mark.parametrize("form", ["only an addition", "it names what it replaces", "both"])
@pytest.mark.parametrize("language", CASES)
def test_the_newer_statement_alone_is_believed_and_linked(language, form):
    first, old, second, new = CASES[language]
    if form == "only an addition" and "other words" in language:
        pytest.skip("only a model can tell that meat and vegetarian contradict each other")
    if form == "both" and "other words" in language:
        pytest.skip("a removal is paired with a new fact by their words; a model names it in `replaces`")
    last = {
        "only an addition": update(new, second),
        "it names what it replaces": update(new, second, replaces=["f1"]),
        "both": update(new, second, removes=["f1"]),
    }[form]
    with told(first, second, [update(old, first), last]) as memory:
        (fact,) = memory.at(HOME).facts().items
        (gone,) = memory.at(HOME).facts(status="retired").items
        assert (fact.content, gone.content) == (new, old)
        assert fact.supersedes == gone.id and gone.superseded_by == fact.id
        assert believed(memory, datetime(2026, 3, 1, tzinfo=UTC)) == [old]
        assert believed(memory, datetime(2026, 7, 1, tzinfo=UTC)) == [new]
        assert [f.status for f in memory.at(HOME).history(gone.id)] == ["active", "retired"]
        assert not memory.at(HOME).inbox.list().items


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_pin_passes_to_the_successor(language):
    _, old, _, new = CASES[language]
    with build(Settings(url="sqlite://", embedder="none", worker="none")) as memory:
        memory.at(HOME).remember(old, pinned=True)
        changed = memory.at(HOME).remember(new)
        assert changed.outcome == "supersede" and changed.fact.pinned


@pytest.mark.parametrize("language", ["en", "zh"])
def test_what_the_user_asks_to_forget_goes_at_once(language):
    first, old, _, _ = CASES[language]
    asks = {"en": "Please forget that I love Chinese food", "zh": "请忘掉我喜欢吃川菜这件事"}[language]
    with told(first, asks, [update(old, first), update("", "", removes=["f1"])]) as memory:
        assert not memory.at(HOME).facts().items and not memory.at(HOME).inbox.list().items
