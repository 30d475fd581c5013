"""Upkeep over the real parts: SQLite, the built-in extractor, a scripted model."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.errors import AccessDenied, NotFound
from everlong.protocols import Indexed
from everlong.records import Fact, Principal
from everlong.testing.fakes import CountingIds, FakeClock, ScriptedChatModel
from everlong.text import terms

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from everlong.memory import Memory, ScopedMemory

ANN = Scope(user="ann")
START = datetime(2026, 1, 1, tzinfo=UTC)
DAY = 86_400


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(START)


@pytest.fixture
def opened(clock: FakeClock) -> Iterator[Callable[..., Memory]]:
    made: list[Memory] = []

    def make(model: ScriptedChatModel | None = None, **settings: Any) -> Memory:
        chosen = Settings(url="sqlite://", embedder="none", worker="none", **settings)
        made.append(build(chosen, clock=clock, new_id=CountingIds(), chat_model=model))
        return made[-1]

    yield make
    for memory in made:
        memory.close()


def keep(memory: Memory, *contents: str, **changes: Any) -> tuple[Fact, ...]:
    """Facts as they stand in a store of before: no reconciler has seen them."""
    clock, new_id = memory.parts.clock, memory.parts.new_id
    with memory.parts.store.write() as tx:
        return tuple(
            tx.facts.add(
                replace(
                    Fact(id=new_id("fact"), scope=ANN, content=each, created_at=clock(), updated_at=clock()), **changes
                ),
                Indexed(terms=terms(each)),
            )
            for each in contents
        )


def kinds(scoped: ScopedMemory) -> list[str]:
    return [step.kind for step in scoped.upkeep.run().steps]


# ------------------------------------------------------------------------------------------------------ schedule


def due(memory: Memory) -> datetime | None:
    with memory.parts.store.read() as tx:
        jobs = [job for job in tx.jobs.list(ANN) if job.kind == "upkeep"]
    assert len(jobs) <= 1
    return jobs[0].run_after if jobs else None


def test_a_new_message_puts_upkeep_off_until_the_next_pause_or_time(
    opened: Callable[..., Memory], clock: FakeClock
) -> None:
    memory = opened()
    talk = memory.at(replace(ANN, session="s"))
    assert due(memory) is None
    for minutes, expected in ((60, 90), (20, 110), (265, 360), (3, 360)):
        clock.advance(minutes * 60)
        talk.add([("user", f"I have {minutes} apples.")])
        memory.drain()
        assert due(memory) == START + timedelta(minutes=expected)


def test_upkeep_waits_for_its_time_and_is_no_backlog(opened: Callable[..., Memory], clock: FakeClock) -> None:
    memory = opened()
    ann = memory.at(ANN)
    keep(memory, "User likes tea", "user likes tea.")
    ann.remember("I like music.")
    assert (ann.jobs(), memory.status().waiting, ann.flush(), memory.drain()) == ((), 0, 0, 0)
    assert ann.facts().total == 3
    clock.advance(30 * 60)
    assert memory.parts.worker.run_due() == 1
    assert ann.facts().total == 2
    assert due(memory) is None, "what upkeep changes itself makes no new upkeep"


def test_no_schedule_no_job(opened: Callable[..., Memory]) -> None:
    memory = opened(upkeep_cron="", upkeep_idle_minutes=0)
    memory.at(ANN).remember("I like music.")
    assert due(memory) is None


def test_what_a_bound_left_over_is_done_soon(
    opened: Callable[..., Memory], clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = opened(max_messages=2)
    upkeep = memory.parts.upkeep
    rules = replace(upkeep._rules, retention=replace(upkeep._rules.retention, limit=3))
    monkeypatch.setattr(upkeep, "_rules", rules)
    talk = memory.at(replace(ANN, session="s"))
    talk.add([("user", f"I have {n} apples.") for n in range(10)])
    memory.drain()
    clock.advance(3600)
    assert (memory.parts.worker.run_due(), len(talk.messages())) == (1, 7)
    for left in (4, 2, 2):
        clock.advance(60)
        memory.parts.worker.run_due()
        assert len(talk.messages()) == left
    assert [m.content for m in talk.messages()] == ["I have 8 apples.", "I have 9 apples."]


def test_what_is_kept_for_a_time_goes_even_if_its_user_never_comes_back(
    opened: Callable[..., Memory], clock: FakeClock
) -> None:
    memory = opened(message_days=30)
    talk = memory.at(replace(ANN, session="s"))
    talk.add([("user", "I live in Berlin.")])
    memory.drain()
    clock.advance(3600)
    assert memory.parts.worker.run_due() == 1
    assert due(memory) == START + timedelta(days=30)
    clock.set(START + timedelta(days=30, seconds=1))
    assert (memory.parts.worker.run_due(), talk.messages()) == (1, ())
    assert due(memory) == START + timedelta(days=90), "then the record of the extraction goes"
    clock.set(START + timedelta(days=91))
    memory.parts.worker.run_due()
    assert (due(memory), talk.extractions().total) == (None, 0)


# ------------------------------------------------------------------------------------------------------ each kind


def test_a_preview_changes_nothing_and_says_what_a_run_does(opened: Callable[..., Memory], clock: FakeClock) -> None:
    memory = opened(message_days=30)
    ann, talk = memory.at(ANN), memory.at(replace(ANN, session="s"))
    talk.add([("user", "I live in Berlin.")])
    memory.drain()
    keep(memory, "User likes tea", "USER likes tea!", "User has a visa", valid_until=None)
    keep(memory, "User is in Paris this week", valid_until=START + timedelta(days=7))
    clock.advance(100 * DAY)
    before = (ann.facts(status=None), talk.messages(), ann.inbox.list(), ann.journal())
    preview = ann.upkeep.preview()
    assert (ann.facts(status=None), talk.messages(), ann.inbox.list(), ann.journal()) == before
    done = ann.upkeep.run()
    assert (preview.preview, done.preview) == (True, False)
    told = [(step.kind, step.count) for step in done.steps]
    assert [kind for kind, _ in told] == ["purge", "purge", "expire", "merge", "review", "review", "review"]
    assert [(s.kind, s.count) for s in preview.steps][:4] == told[:4]
    assert ann.upkeep.run().steps == ()


def test_every_change_is_journalled_and_can_be_restored_and_stays_restored(
    opened: Callable[..., Memory], clock: FakeClock
) -> None:
    memory = opened(category_days={"todo": 10})
    ann = memory.at(ANN)
    first, second = keep(memory, "用户喜欢喝茶", "用户喜欢喝茶。")
    (ended,) = keep(memory, "User is in Paris this week", valid_until=START + timedelta(days=7))
    (todo,) = keep(memory, "User must call Tom", category="todo")
    (pinned,) = keep(memory, "User must call Ann", category="todo", pinned=True)
    clock.advance(60 * DAY)
    assert kinds(ann) == ["expire", "expire", "merge"]
    for fact in (second, ended, todo):
        (entry,) = [e for e in ann.journal(target=fact.id).items if e.action == "retire"]
        assert entry.by == "user:ann" and entry.reason == ann.fact(fact.id).reason
        assert ann.restore(fact.id).status == "active"
    assert ann.fact(pinned.id).status == "active"
    assert ann.upkeep.run().steps == (), "what a person restored stays"
    assert {f.id for f in ann.facts().items} >= {first.id, second.id, ended.id, todo.id}


def test_silent_facts_wait_for_a_person_ten_at_once_and_not_again_when_refused(
    opened: Callable[..., Memory], clock: FakeClock
) -> None:
    memory = opened()
    ann = memory.at(ANN)
    keep(memory, *(f"User owns car {n}" for n in range(15)))
    keep(memory, "User is not called Bob", category="correction")
    keep(memory, "User is allergic to nuts", pinned=True)
    clock.advance(91 * DAY)
    assert kinds(ann) == ["review"] * 10 and kinds(ann) == []
    waiting = ann.inbox.list().items
    assert {p.kind for p in waiting} == {"removal"} and ann.facts().total == 17
    ann.inbox.approve(waiting[0].id)
    ann.inbox.reject(waiting[1].id)
    refused = waiting[1].target
    assert kinds(ann) == ["review"] * 2
    assert refused not in {p.target for p in ann.inbox.list().items}
    assert not {ann.fact(p.target).category for p in ann.inbox.list().items} & {"correction"}


def test_fewer_than_three_silent_facts_are_left_alone(opened: Callable[..., Memory], clock: FakeClock) -> None:
    memory = opened()
    keep(memory, "User owns car 1", "User owns car 2")
    clock.advance(200 * DAY)
    assert kinds(memory.at(ANN)) == []


def test_summaries_move_on_and_the_profile_of_before_can_be_read(
    opened: Callable[..., Memory], clock: FakeClock
) -> None:
    memory = opened()
    ann = memory.at(ANN)
    ann.update_profile(sections={"topOfMind": "Moves to Oslo. 正在学挪威语。"})
    clock.advance(31 * DAY)
    assert kinds(ann) == ["roll", "roll"]
    sections = ann.profile().sections
    assert (sections["topOfMind"].summary, sections["recentMonths"].summary) == ("", "Moves to Oslo. 正在学挪威语。")
    assert ann.profile(as_of=START).sections["topOfMind"].summary == "Moves to Oslo. 正在学挪威语。"
    assert kinds(ann) == []
    clock.advance(121 * DAY)
    assert kinds(ann) == ["roll", "roll"]
    assert ann.profile().sections["earlierContext"].summary == "Moves to Oslo. 正在学挪威语。"


# --------------------------------------------------------------------------------------------------------- models


def test_a_model_keeps_puts_off_and_removes(opened: Callable[..., Memory], clock: FakeClock) -> None:
    model = ScriptedChatModel()
    memory = opened(model, consolidate=False)
    ann = memory.at(ANN)
    born, visa, trip = keep(memory, "用户出生在成都", "User's visa is valid", "User flies to Rome on Monday")
    clock.advance(100 * DAY)
    assert [s.kind for s in ann.upkeep.preview().steps] == ["review"] and not model.prompts
    model.say(
        json.dumps(
            {
                "decisions": [
                    {"id": born.id, "verdict": "keep", "days": 0, "reason": "origin"},
                    {"id": visa.id, "verdict": "extend", "days": 30, "reason": "likely"},
                    {"id": trip.id, "verdict": "remove", "days": 0, "reason": "the day has passed"},
                    {"id": "fact_invented", "verdict": "remove", "days": 0, "reason": "x"},
                ]
            }
        )
    )
    assert sorted(kinds(ann)) == ["extend", "extend", "review"]
    assert [ann.fact(f.id).status for f in (born, visa, trip)] == ["active", "active", "retired"]
    assert ann.extractions().items[0].usage.calls == 1
    assert kinds(ann) == [] and len(model.prompts) == 1, "what was kept is not asked about again at once"


def test_a_failing_model_leaves_all_for_the_next_run(opened: Callable[..., Memory], clock: FakeClock) -> None:
    memory = opened(ScriptedChatModel(["no idea", "nothing"]))
    ann = memory.at(ANN)
    keep(memory, *(f"User owns car {n}" for n in range(8)))
    clock.advance(100 * DAY)
    assert kinds(ann) == ["skip", "skip"]
    assert ann.facts().total == 8


def test_a_model_makes_few_facts_of_many(opened: Callable[..., Memory], clock: FakeClock) -> None:
    model = ScriptedChatModel()
    memory = opened(model)
    ann = memory.at(ANN)
    teas = keep(memory, "User drinks green tea", "User drinks black tea", category="preference", confidence=0.8)
    keep(memory, *(f"User likes song {n}" for n in range(6)), category="preference", confidence=0.9)
    asked = {"groups": [{"sourceIds": [f.id for f in teas], "content": "User drinks green tea and black tea"}]}
    model.say(json.dumps(asked))
    assert kinds(ann) == ["consolidate"]
    (made,) = [f for f in ann.facts().items if "consolidated_from" in f.metadata]
    assert (made.content, made.confidence) == ("User drinks green tea and black tea", 0.8)
    assert {ann.fact(f.id).superseded_by for f in teas} == {made.id}
    assert kinds(ann) == [] and len(model.prompts) == 1
    ann.restore(teas[0].id)
    assert ann.fact(teas[0].id).status == "active"


def test_the_day_bounds_what_models_use(opened: Callable[..., Memory], clock: FakeClock) -> None:
    model = ScriptedChatModel(['{"groups": []}'] * 3)
    memory = opened(model, daily_tokens=5)
    ann = memory.at(ANN)
    keep(memory, *(f"User likes song {n}" for n in range(8)))
    assert kinds(ann) == []
    clock.advance(3600)
    keep(memory, "User likes song 9")
    assert kinds(ann) == ["skip"] and len(model.prompts) == 1
    clock.advance(DAY)
    assert kinds(ann) == [] and len(model.prompts) == 2


# --------------------------------------------------------------------------------------------------------- report


def test_the_report_says_what_facts_are_worth_and_one_call_follows_it(
    opened: Callable[..., Memory], clock: FakeClock
) -> None:
    memory = opened()
    ann = memory.at(ANN)
    (older,) = keep(memory, "User lives in Berlin")
    clock.advance(60)
    newer, tea, twin = keep(memory, "User lives in Oslo", "用户喜欢喝茶", "用户喜欢喝茶。")
    (over,) = keep(memory, "User is in Paris", valid_until=START + timedelta(days=1))
    ann.recall("Berlin")
    ann.recall("quantum chromodynamics")
    clock.advance(5 * DAY)
    report = ann.upkeep.report()
    assert (report.facts, report.questions, report.hit_rate) == (5, 2, 0.5)
    assert report.used == (older.id,) and tea.id in report.never_recalled
    assert report.contradicted == ((older.id, newer.id),) and report.same == ((tea.id, twin.id),)
    assert report.outdated == (over.id,)
    assert [s.kind for s in report.suggestions] == ["merge", "retire", "retire"]
    assert ann.upkeep.report() == report
    for suggestion in report.suggestions:
        assert ann.upkeep.apply(suggestion.id)
    assert {f.id for f in ann.facts().items} == {newer.id, tea.id}
    with pytest.raises(NotFound):
        ann.upkeep.apply(report.suggestions[0].id)


def test_only_who_may_write_may_change_and_who_may_read_may_look(opened: Callable[..., Memory]) -> None:
    memory = opened()
    stranger = memory.at(ANN, by=Principal(id="coder", role="agent"))
    assert stranger.upkeep.preview().steps == ()
    other = memory.at(replace(ANN, agent="writer"), by=Principal(id="coder", role="agent"))
    assert other.upkeep.report().facts == 0
    with pytest.raises(AccessDenied):
        other.upkeep.run()
    with pytest.raises(AccessDenied):
        other.upkeep.apply("tip_0")
