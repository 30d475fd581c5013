"""What is said is queued by pause, by number and by size; too much is refused, and nothing of it is stored."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.errors import EmptyText, Overloaded
from everlong.testing.fakes import CountingIds, FakeClock
from everlong.text import estimate_tokens

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.memory import Memory
    from everlong.records import Job

TALK = Scope(org="acme", user="ann", session="talk")
LONG = {"en": "The kite flies over the green hill and back again. ", "zh": "风筝飞过青山又飞了回来，"}


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[Memory]:
    with made(clock) as opened:
        yield opened


def made(clock: FakeClock, **settings: Any) -> Memory:
    chosen: dict[str, Any] = {"url": "sqlite://", "embedder": "none", "worker": "none", **settings}
    return build(Settings(**chosen), clock=clock, new_id=CountingIds())


def waiting(memory: Memory, scope: Scope = TALK) -> Job:
    (job,) = memory.at(scope).jobs()
    return job


def said(memory: Memory, number: int, scope: Scope = TALK) -> None:
    memory.at(scope).add([("user", f"Note {number}: the weather in town {number} was fine.")])


def test_turns_within_the_pause_merge_into_one_job(memory: Memory, clock: FakeClock) -> None:
    for number in range(5):
        said(memory, number)
        clock.advance(10)
    job = waiting(memory)
    assert job.run_after - clock() == timedelta(seconds=20)
    assert job.first_at == clock() - timedelta(seconds=50)


def test_the_pause_never_puts_work_off_for_longer_than_the_maximum(memory: Memory, clock: FakeClock) -> None:
    begun = clock()
    for number in range(19):
        said(memory, number)
        clock.advance(25)
    assert waiting(memory).run_after == begun + timedelta(seconds=300)


def test_twenty_messages_make_it_due_whatever_the_other_conversations_hold(memory: Memory, clock: FakeClock) -> None:
    walk = Scope(org="acme", user="ann", session="walk")
    for number in range(19):
        said(memory, number)
        said(memory, number, walk)
    assert waiting(memory).run_after > clock()
    said(memory, 19)
    assert waiting(memory).run_after == clock()
    assert waiting(memory, walk).run_after > clock()


def test_the_count_begins_anew_after_each_extraction(memory: Memory, clock: FakeClock) -> None:
    for number in range(20):
        said(memory, number)
    assert memory.parts.worker.run_due() == 1
    said(memory, 20)
    assert waiting(memory).run_after == clock() + timedelta(seconds=30)


@pytest.mark.parametrize("language", LONG)
def test_four_thousand_tokens_make_it_due(memory: Memory, clock: FakeClock, language: str) -> None:
    counted = estimate_tokens
    text, due_after = LONG[language] * 40, 0
    for number in range(19):
        memory.at(TALK).add([("user", f"{number} {text}")])
        due_after += counted(f"{number} {text}")
        due = waiting(memory).run_after == clock()
        assert due == (due_after >= 4000)
        if due:
            break
    assert waiting(memory).run_after == clock()


@pytest.mark.parametrize("words", ["Remember this: my cat is called Mimi.", "请记住，我的猫叫咪咪。"])
def test_a_wish_to_be_remembered_is_due_at_once_and_stays_so(memory: Memory, clock: FakeClock, words: str) -> None:
    said(memory, 1)
    memory.at(TALK).add([("user", words)])
    asked = clock()
    clock.advance(1)
    said(memory, 2)
    assert waiting(memory).run_after == asked


def test_a_flush_makes_one_scope_due_and_leaves_the_others(memory: Memory, clock: FakeClock) -> None:
    bob = Scope(org="acme", user="bob", session="s")
    said(memory, 1)
    said(memory, 2, bob)
    clock.advance(1)
    assert memory.at(TALK).flush() == 1
    assert waiting(memory).run_after == clock()
    assert waiting(memory, bob).run_after > clock()
    assert memory.at(TALK).flush() == 1


def test_too_many_unread_messages_are_refused_and_nothing_of_them_is_kept(clock: FakeClock) -> None:
    with made(clock, max_waiting_messages=3) as memory:
        for number in range(3):
            said(memory, number)
        with pytest.raises(Overloaded, match="max_waiting_messages") as refused:
            said(memory, 3)
        assert (refused.value.status, refused.value.exit_code) == (429, 9)
        assert len(memory.at(TALK).messages()) == 3
        with pytest.raises(Overloaded):  # another conversation of the same user does not get round it
            said(memory, 3, Scope(org="acme", user="ann", session="walk"))
        said(memory, 3, Scope(org="acme", user="bob", session="s"))
        memory.drain()
        said(memory, 3)
        assert len(memory.at(TALK).messages()) == 4


def test_what_is_known_already_is_answered_even_when_the_queue_is_full(clock: FakeClock) -> None:
    with made(clock, max_waiting_messages=1) as memory:
        turn = {"role": "user", "content": "I have two cats.", "id": "m1"}
        assert memory.at(TALK).add([turn]).status == "queued"
        assert memory.at(TALK).add([turn]).status == "duplicate"


def test_one_long_history_is_taken_whole(clock: FakeClock) -> None:
    with made(clock, max_waiting_messages=3) as memory:
        history = [("user", f"In year {1990 + n} I lived in town {n}.") for n in range(10)]
        assert len(memory.at(TALK).add(history).message_ids) == 10


def test_too_many_jobs_of_an_organisation_are_refused_but_not_what_merges(clock: FakeClock) -> None:
    with made(clock, max_waiting_jobs=2) as memory:
        for user in ("ann", "bob"):
            said(memory, 1, Scope(org="acme", user=user, session="s"))
        eve = Scope(org="acme", user="eve", session="s")
        with pytest.raises(Overloaded, match=r"acme.*max_waiting_jobs"):
            said(memory, 1, eve)
        assert memory.at(eve).messages() == ()
        assert memory.at(eve).sessions().items == ()
        said(memory, 2, Scope(org="acme", user="ann", session="s"))
        said(memory, 1, Scope(org="other", user="eve", session="s"))
        memory.drain()
        said(memory, 1, eve)


@pytest.mark.parametrize("content", ["\u200b", " \u2060\ufeff ", "\u00ad"])
def test_what_nobody_can_see_is_no_fact(content: str) -> None:
    with build(Settings(url="sqlite://", embedder="none", worker="none")) as memory, pytest.raises(EmptyText):
        memory.at(Scope(user="ann")).remember(content)


@pytest.mark.parametrize("words", ["User lives in City{}", "用户住在{}号城"])
def test_contradictions_remembered_at_once_all_land_and_the_last_alone_stands(words: str) -> None:
    with build(Settings(url="sqlite://", embedder="none", worker="none")) as memory:
        ann = memory.at(Scope(user="ann"))
        with ThreadPoolExecutor(12) as pool:
            landed = list(pool.map(lambda n: ann.remember(words.format(n)), range(12)))
        assert all(each.fact is not None for each in landed)
        assert (ann.facts().total, ann.facts(status="retired").total) == (1, 11)
