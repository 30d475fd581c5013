"""Erasing, clearing and deleting are fences: what was said before them never lands, what is said after them does,
even when a worker in another process is in the middle of a model call about it."""

from __future__ import annotations

from threading import Event
from typing import TYPE_CHECKING

import pytest

from everlong import Scope
from everlong.config import Settings, build
from tests.durability.gated import OPERATOR, Echo, Gate, elsewhere, facts, opened, settle

if TYPE_CHECKING:
    from collections.abc import Callable

    from everlong.memory import Memory

TALK = Scope(agent="coder", user="ann", session="talk")
WALK = Scope(agent="coder", user="ann", session="walk")
OTHER = Scope(agent="writer", user="ann", session="talk")
BEFORE, AFTER, THERE = ("my kite is red", "我的风筝是红色的"), ("my boat is blue", "我的船是蓝色的"), "I write novels"

ERASED = {
    "erase a user": lambda m: m.at(Scope(user="ann")).erase(),
    "delete an agent": lambda m: m.at(Scope(agent="coder"), by=OPERATOR).erase(),
    "delete an agent's memory of a user": lambda m: m.at(TALK.home).erase(),
    "delete a conversation": lambda m: m.at(TALK).erase(),
}
CLEARED = {
    "clear a conversation": lambda m: m.at(TALK).clear(),
    "clear a user": lambda m: m.at(Scope(user="ann")).clear(),
}


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def url(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


@pytest.mark.parametrize("fence", [*ERASED.values(), *CLEARED.values()], ids=[*ERASED, *CLEARED])
def test_nothing_said_before_a_fence_lands_after_it(url: str, fence: Callable[[Memory], object]) -> None:
    with opened(url) as memory, elsewhere(url) as gate:
        talk = memory.at(TALK)
        talk.add([("user", words) for words in BEFORE])
        talk.flush()
        assert gate.asked.wait(20)
        fence(memory)
        talk.add([("user", words) for words in AFTER])
        talk.flush()
        gate.answer.set()
        settle(memory)
        assert facts(memory, TALK) == sorted(AFTER)
        history = {m.content for m in talk.messages()}
        assert history == {*AFTER, *(BEFORE if fence in CLEARED.values() else ())}
        assert talk.profile().sections["topOfMind"].summary == AFTER[-1]
        read = {name for record in talk.extractions().items if not record.error for name in record.messages}
        assert read == {m.id for m in talk.messages() if m.content in AFTER}


@pytest.mark.parametrize("fence", ERASED.values(), ids=ERASED)
def test_a_fence_with_nothing_after_it_leaves_nothing(url: str, fence: Callable[[Memory], object]) -> None:
    with opened(url) as memory, elsewhere(url) as gate:
        memory.at(TALK).add([("user", words) for words in BEFORE])
        memory.at(TALK).flush()
        assert gate.asked.wait(20)
        fence(memory)
        gate.answer.set()
        settle(memory)
        # One that comes later makes sure that the worker has come past the erased work.
        memory.at(Scope(user="bob", session="s")).add([("user", "I am Bob")])
        settle(memory)
        talk = memory.at(TALK)
        assert facts(memory, TALK) == []
        assert talk.messages() == ()
        assert talk.sessions().items == ()
        assert talk.profile().version == 0
        assert talk.extractions().items == ()


@pytest.mark.parametrize("fence", ERASED.values(), ids=ERASED)
def test_what_is_said_after_an_erasure_is_read_by_one_model_call(
    sqlite_url: str, fence: Callable[[Memory], object]
) -> None:
    gate = Gate(Event(), Event())
    echo = Echo(gate)
    settings = Settings(url=sqlite_url, embedder="none", worker="thread")
    with build(settings, extractor=echo) as memory:
        memory.at(TALK).add([("user", BEFORE[0])])
        memory.at(TALK).flush()
        assert gate.asked.wait(20)
        fence(memory)
        gate.answer.set()
        memory.at(TALK).add([("user", AFTER[0])])
        settle(memory)
        assert memory.parts.worker.stop(10)
        assert facts(memory, TALK) == [AFTER[0]]
        assert echo.calls == 2


def test_clearing_one_conversation_leaves_the_others_and_the_facts(sqlite_url: str) -> None:
    with opened(sqlite_url) as memory:
        talk, walk = memory.at(TALK), memory.at(WALK)
        talk.remember("I am called Ann")
        talk.add([("user", BEFORE[0])])
        walk.add([("user", BEFORE[1])])
        memory.at(OTHER).add([("user", THERE)])
        assert talk.clear() == 1
        assert {job.scope for job in memory.at(Scope(), by=OPERATOR).jobs()} == {WALK, OTHER}
        memory.drain()
        assert facts(memory, TALK) == sorted(["I am called Ann", BEFORE[1]])
        assert facts(memory, OTHER) == [THERE]
        (entry,) = talk.journal(action="clear").items
        assert entry.payload == {"sessions": 1, "jobs": 1}


def test_clearing_drops_what_was_parked(sqlite_url: str) -> None:
    with opened(sqlite_url, job_attempts=1) as memory:
        memory.at(TALK).add([("user", BEFORE[0])])
        store = memory.parts.store
        with store.write() as tx:
            (job,) = tx.jobs.list(TALK)
            tx.jobs.hurry(TALK, now=memory.parts.clock())
            claimed = tx.jobs.claim([job.kind], worker="w", now=memory.parts.clock(), lease_until=memory.parts.clock())
            assert claimed is not None
            tx.jobs.park(claimed, error="gave up")
        assert memory.status().parked == 1
        memory.at(TALK).clear()
        assert memory.status().parked == 0
        memory.drain()
        assert facts(memory, TALK) == []
