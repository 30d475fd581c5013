"""What was known at an earlier time, against a model that keeps a copy of everything at every step."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everlong import text
from everlong.protocols import Indexed
from everlong.read.reader import Reader
from everlong.records import Fact, Profile, Query, Scope, Section
from everlong.search import BucketIndex
from everlong.store import open_store
from everlong.testing import CountingIds, FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.protocols import Store

START = datetime(2026, 3, 1, tzinfo=UTC)
PLACES = (Scope(), Scope(user="ann"), Scope(user="ann", session="talk"), Scope(user="bob"))
WORDS = ("green tea", "black tea", "绿茶", "红茶", "sails")
STEPS = st.tuples(
    st.sampled_from(["add", "add", "revise", "recategorise", "retire", "restore", "hold", "touch"]),
    st.integers(0, 3),
    st.integers(0, 9),
    st.sampled_from(WORDS),
)


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    url = "sqlite://" if request.param == "sqlite" else request.getfixturevalue("postgres").fresh()
    opened = open_store(url, clock=FakeClock(START), new_id=CountingIds())
    yield opened
    opened.close()
    if request.param == "postgres":
        request.getfixturevalue("postgres").release(url)


class World:
    """A store and a plain model of it, changed alike; ``seen`` holds the model after each step, by time."""

    def __init__(self, store: Store) -> None:
        self.store, self.ids, self.now = store, CountingIds(), START
        self.facts: dict[str, Fact] = {}
        self.seen: list[tuple[datetime, dict[str, Fact]]] = [(START, {})]
        with store.write() as tx:
            tx.erase(Scope())

    def step(self, action: str, place: int, which: int, words: str) -> None:
        self.now += timedelta(seconds=1)
        with self.store.write() as tx:
            if action == "add" or not self.facts:
                made = Fact(
                    id=self.ids("fact"), scope=PLACES[place], content=words, created_at=self.now, updated_at=self.now,
                    category=("goal", "todo")[which % 2],
                    valid_until=self.now + timedelta(seconds=which) if which > 6 else None,
                )  # fmt: skip
                tx.facts.add(made, Indexed(terms=text.terms(words)))
                self.facts[made.id] = made
            else:
                old = self.facts[sorted(self.facts)[which % len(self.facts)]]
                if action == "touch":
                    tx.facts.touch(old.scope, [old.id], self.now)
                else:
                    new, row = self.changed(old, action, words)
                    self.facts[old.id] = tx.facts.revise(new, expected=old.version, indexed=row)
        self.seen.append((self.now, dict(self.facts)))

    def changed(self, old: Fact, action: str, words: str) -> tuple[Fact, Indexed | None]:
        changes: dict[str, dict[str, Any]] = {
            "revise": {"content": words},
            "recategorise": {"category": "goal", "metadata": {"n": len(words)}},
            "retire": {"status": "retired", "retired_at": self.now, "superseded_by": "fact_x"},
            "restore": {"status": "active", "retired_at": None, "superseded_by": ""},
            "hold": {"status": "held"},
        }
        row = Indexed(terms=text.terms(words)) if action == "revise" else None
        return replace(old, updated_at=self.now, **changes[action]), row


def plain(fact: Fact) -> Fact:
    return replace(fact, uses=0, last_used_at=None)


def order(fact: Fact) -> Any:
    return fact.created_at, fact.id


def test_every_earlier_state_is_found_as_it_was(store: Store) -> None:
    @settings(max_examples=40, deadline=None, derandomize=True, database=None)
    @given(script=st.lists(STEPS, min_size=3, max_size=25))
    def run(script: list[Any]) -> None:
        world = World(store)
        for step in script:
            world.step(*step)
        with store.read() as tx:
            for at, known in world.seen:
                for scope in PLACES:
                    visible = [plain(fact) for fact in known.values() if fact.scope.covers(scope)]
                    visible.sort(key=order, reverse=True)
                    assert [plain(fact) for fact in tx.facts.as_of(scope, at)] == visible
                    between = at + timedelta(milliseconds=500)
                    assert [plain(fact) for fact in tx.facts.as_of(scope, between)] == visible
                check_lists(tx, at, known)

    run()


def check_lists(tx: Any, at: datetime, known: dict[str, Fact]) -> None:
    scope = PLACES[1]
    for category in ("goal", "todo"):
        for valid_at in (None, at):
            wanted = [
                fact.id
                for fact in sorted(known.values(), key=order, reverse=True)
                if fact.scope.covers(scope) and fact.status == "active" and fact.category == category
                if valid_at is None or fact.holds(valid_at)
            ]
            listed, cursor = [], ""
            while True:
                page = tx.facts.list(scope, categories=[category], as_of=at, valid_at=valid_at, limit=2, cursor=cursor)
                assert page.total == len(wanted)
                listed += [fact.id for fact in page.items]
                cursor = page.next
                if not cursor:
                    break
            assert listed == wanted


def test_a_question_as_of_a_time_searches_what_was_known_then(store: Store) -> None:
    @settings(max_examples=15, deadline=None, derandomize=True, database=None)
    @given(script=st.lists(STEPS, min_size=3, max_size=15), words=st.sampled_from(WORDS))
    def run(script: list[Any], words: str) -> None:
        world = World(store)
        for step in script:
            world.step(*step)
        reader = Reader(
            store=store, index=BucketIndex(model="", dimensions=0), embedder=None, counter=text.estimate_tokens,
            clock=lambda: world.now, new_id=world.ids,
        )  # fmt: skip
        for at, known in world.seen:
            hits = reader.recall(PLACES[2], Query(text=words, min_score=0.0, limit=99, as_of=at)).hits
            wanted = {
                fact.id: plain(fact)
                for fact in known.values()
                if fact.scope.covers(PLACES[2]) and fact.status == "active"
                if fact.valid_until is None or fact.valid_until > at
            }
            assert {hit.id: plain(hit.record) for hit in hits} == wanted
            filtered = reader.recall(
                PLACES[2], Query(text=words, min_score=0.0, limit=99, as_of=at, metadata={"n": {"$exists": True}})
            ).hits
            assert {hit.id for hit in filtered} == {name for name, fact in wanted.items() if "n" in fact.metadata}

    run()


def test_a_text_of_then_is_found_by_its_words(store: Store) -> None:
    world = World(store)
    world.step("add", 1, 0, "绿茶")
    then = world.now
    world.step("revise", 1, 0, "sails")
    reader = Reader(
        store=store, index=BucketIndex(model="", dimensions=0), embedder=None, counter=text.estimate_tokens,
        clock=lambda: world.now, new_id=world.ids,
    )  # fmt: skip
    assert [hit.text for hit in reader.recall(PLACES[1], Query(text="绿茶", as_of=then)).hits] == ["绿茶"]
    assert not reader.recall(PLACES[1], Query(text="sails", as_of=then)).hits
    assert [hit.text for hit in reader.recall(PLACES[1], Query(text="sails")).hits] == ["sails"]


def test_a_profile_as_it_stood(store: Store) -> None:
    clock = FakeClock(START)
    store._clock = clock  # type: ignore[attr-defined]
    scope, kept = PLACES[1], [Profile(scope=PLACES[1])]
    with store.write() as tx:
        tx.erase(Scope())
    for number in range(4):
        clock.advance(10)
        now = clock()
        sections = {"topOfMind": Section(summary=f"第 {number} 天", updated_at=now)}
        with store.write() as tx:
            made = replace(kept[-1], sections=sections, updated_at=now)
            kept.append(tx.profiles.put(made, expected=number))
    with store.read() as tx:
        for number, profile in enumerate(kept):
            for later in (0, 9.9):
                assert tx.profiles.as_of(scope, START + timedelta(seconds=10 * number + later)) == profile
