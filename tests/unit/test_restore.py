"""A retired or replaced fact comes back, with a reason, and what replaced it stands beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from everlong import Scope, open_memory
from everlong.aio import AsyncMemory
from everlong.errors import InvalidInput, NotFound
from everlong.memory import Memory, ScopedMemory
from everlong.protocols import Indexed
from everlong.records import Fact
from everlong.text import terms

ANN = Scope(user="ann")
THEN = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture(params=["sqlite", "postgres"])
def memory(request: pytest.FixtureRequest) -> Iterator[Memory]:
    url = "sqlite://" if request.param == "sqlite" else request.getfixturevalue("postgres").fresh()
    with open_memory(url, embedder="none", worker="none") as opened:
        yield opened
    if request.param == "postgres":
        request.getfixturevalue("postgres").release(url)


@pytest.fixture
def ann(memory: Memory) -> ScopedMemory:
    return memory.at(ANN)


def put(memory: Memory, name: str, content: str, **fields: object) -> Fact:
    fact = Fact(id=name, scope=ANN, content=content, created_at=THEN, updated_at=THEN, **fields)  # type: ignore[arg-type]
    with memory.parts.store.write() as tx:
        return tx.facts.add(fact, Indexed(terms=terms(content)))


@pytest.mark.parametrize("content", ["Ann plays the cello", "安在学大提琴"])
def test_what_was_forgotten_comes_back(ann: ScopedMemory, content: str) -> None:
    fact = ann.remember(content).fact
    assert fact is not None
    ann.forget(fact.id)
    assert not ann.recall(content).hits
    back = ann.restore(fact.id, reason="said by mistake")
    assert (back.status, back.retired_at, back.reason, back.version) == ("active", None, "said by mistake", 3)
    assert [hit.id for hit in ann.recall(content).hits] == [fact.id]
    (entry,) = ann.journal(action="restore").items
    assert (entry.target, entry.reason, entry.before, entry.after) == (fact.id, "said by mistake", 2, 3)
    assert [one.status for one in ann.history(fact.id)] == ["active", "retired", "active"]


def test_what_replaced_it_is_no_longer_in_its_place(memory: Memory, ann: ScopedMemory) -> None:
    put(memory, "old", "Ann lives in Lyon")
    put(memory, "new", "Ann lives in Oslo", supersedes="old")
    with memory.parts.store.write() as tx:
        old = tx.facts.get(ANN, "old")
        tx.facts.revise(
            replace(old, status="retired", retired_at=THEN, superseded_by="new", updated_at=THEN + timedelta(1)),
            expected=1,
        )
    back = ann.restore("old")
    new = ann.fact("new")
    assert (back.superseded_by, new.supersedes, new.status, new.version) == ("", "", "active", 2)
    assert {entry.target for entry in ann.journal().items if entry.action in {"restore", "revise"}} == {"old", "new"}
    assert ann.history("new")[0].supersedes == "old"


def test_only_what_was_known_and_retired_can_come_back(memory: Memory, ann: ScopedMemory) -> None:
    put(memory, "here", "Ann sails")
    put(memory, "held", "Ann dives", status="held")
    put(memory, "refused", "Ann flies", status="held")
    ann.forget("refused")
    for name in ("here", "held", "refused"):
        with pytest.raises(InvalidInput):
            ann.restore(name)
    with pytest.raises(NotFound):
        memory.at(Scope(user="bob")).restore("here")
    assert not ann.journal(action="restore").items


def test_lists_and_profile_as_of_a_time(ann: ScopedMemory) -> None:
    fact = ann.remember("Ann plays the cello").fact
    assert fact is not None
    ann.update_profile(attributes={"city": "Lyon"})
    between = datetime.now(UTC)
    ann.forget(fact.id)
    ann.update_profile(attributes={"city": "奥斯陆"})
    assert [one.id for one in ann.facts(as_of=between).items] == [fact.id] and not ann.facts().items
    assert ann.profile(as_of=between).attributes == {"city": "Lyon"}
    assert ann.profile().attributes == {"city": "奥斯陆"}
    assert ann.profile(as_of=between - timedelta(days=1)).version == 0
    assert [hit.id for hit in ann.recall("cello", as_of=between).hits] == [fact.id]
    for call in (ann.facts, ann.profile):
        with pytest.raises(InvalidInput):
            call(as_of=datetime(2026, 1, 1))  # noqa: DTZ001 - what is refused


def test_the_asynchronous_face_restores_too(memory: Memory) -> None:
    async def go() -> None:
        ann = AsyncMemory(memory).at(ANN)
        fact = (await ann.remember("Ann plays the cello")).fact
        assert fact is not None
        between = datetime.now(UTC)
        await ann.forget(fact.id)
        assert [one.id for one in (await ann.facts(as_of=between)).items] == [fact.id]
        assert (await ann.restore(fact.id)).status == "active"
        assert (await ann.profile(as_of=between)).version == 0

    asyncio.run(go())
