"""The search cache over real databases: what is committed is found at once, what is erased is gone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everlong.errors import NotFound
from everlong.records import Scope
from everlong.search import BucketIndex
from everlong.store import open_store
from everlong.testing import CountingIds, FakeClock
from everlong.testing.samples import ANN, BOB, TALK, add_fact, fact, indexed, message, say
from everlong.text import terms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.protocols import Store
    from everlong.records import Kind


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    """A fresh database of each engine."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def store(url: str) -> Iterator[Store]:
    """A store on it."""
    made = opened(url)
    yield made
    made.close()


def opened(url: str, ids: str = "id") -> Store:
    """Another store on the same database, as another process would have, with ``ids`` of its own."""
    return open_store(url, clock=FakeClock(), new_id=CountingIds(ids))


def ids(store: Store, index: BucketIndex, scope: Scope = ANN, kind: Kind = "fact") -> list[str]:
    """What is found now."""
    with store.read() as tx:
        return list(index.corpus(tx, scope, kind).ids)


def add_and_fail(store: Store) -> None:
    """A write that must leave nothing."""
    with store.write() as tx:
        add_fact(tx, "never")
        tx.facts.get(ANN, "missing")


WALK = replace(TALK, session="walk")


def index() -> BucketIndex:
    """An empty cache of two-dimensional vectors."""
    return BucketIndex(model="m", dimensions=2)


def test_each_committed_write_is_seen_by_the_next_question(store: Store) -> None:
    """Adding, rewriting, retiring; a write that rolled back never."""
    cache = index()
    assert ids(store, cache) == []
    with store.write() as tx:
        first = add_fact(tx, "a", content="Ann drinks green tea")
        add_fact(tx, "b", seconds=1, content="安娜养了一只猫")
    assert ids(store, cache) == ["a", "b"]
    with store.write() as tx:
        changed = replace(first, content="Ann drinks coffee")
        first = tx.facts.revise(changed, expected=1, indexed=indexed(changed.content))
    with store.read() as tx:
        corpus = cache.corpus(tx, ANN, "fact")
        assert corpus.bm25(terms("coffee"))[0] > 0 == corpus.bm25(terms("tea"))[0]
        assert corpus.bm25(terms("猫"))[1] > 0
    with store.write() as tx:
        tx.facts.revise(replace(first, status="retired"), expected=2)
    assert ids(store, cache) == ["b"]
    with pytest.raises(NotFound):
        add_and_fail(store)
    assert ids(store, cache) == ["b"]


def test_writes_of_another_process_are_seen(store: Store, url: str) -> None:
    """The cache asks the database, not its own process."""
    cache, other = index(), opened(url)
    with store.write() as tx:
        say(tx, "m1")
    assert ids(store, cache, TALK, "message") == ["m1"]
    with other.write() as tx:
        say(tx, "m2", "m3", seconds=5)
    other.close()
    assert ids(store, cache, TALK, "message") == ["m1", "m2", "m3"]


def test_vectors_come_later_and_only_of_the_asked_model(store: Store) -> None:
    """NaN until they are there; another model's never count."""
    cache, question = index(), np.array([1, 0], np.float32)
    said = [message("m1", seconds=1), message("m2", seconds=2)]
    with store.write() as tx:
        tx.messages.append(TALK, said, [indexed(one.content) for one in said])
    with store.read() as tx:
        assert np.isnan(cache.corpus(tx, TALK, "message").cosine(question)).all()
    with store.write() as tx:
        tx.messages.set_vectors(TALK, "m1", indexed(said[0].content, model="m", vectors=[[0, 1], [0.6, 0.8]]))
        tx.messages.set_vectors(TALK, "m2", indexed(said[1].content, model="other", vectors=[[1, 0]]))
    with store.read() as tx:
        found = cache.corpus(tx, TALK, "message").cosine(question)
    assert found[0] == pytest.approx(0.6, abs=1e-6)
    assert np.isnan(found[1])


def test_what_is_erased_is_gone_from_memory_too(store: Store) -> None:
    """One user's; the other's stays."""
    cache = index()
    with store.write() as tx:
        add_fact(tx, "mine")
        add_fact(tx, "his", BOB)
        say(tx, "m1")
    assert ids(store, cache) == ["mine"]
    assert ids(store, cache, TALK, "message") == ["m1"]
    assert ids(store, cache, BOB) == ["his"]
    with store.write() as tx:
        tx.erase(ANN)
    assert ids(store, cache) == ids(store, cache, TALK, "message") == []
    assert ids(store, cache, BOB) == ["his"]


def test_what_another_process_erases_is_gone_from_this_cache(store: Store, url: str) -> None:
    """Known by the epoch, also when as many new rows have come since as were erased."""
    cache, other = index(), opened(url, "other")
    with store.write() as tx:
        add_fact(tx, "mine", content="Ann drinks tea")
        add_fact(tx, "learned", seconds=1, session="talk", content="安娜喝茶")
        say(tx, "m1")
        say(tx, "w1", session=WALK)
        add_fact(tx, "his", BOB)
    assert (ids(store, cache), ids(store, cache, BOB)) == (["mine", "learned"], ["his"])
    assert ids(store, cache, TALK, "message") == ["m1", "w1"]
    with other.write() as tx:
        tx.erase(TALK)
    assert ids(store, cache) == ["mine"]
    assert ids(store, cache, TALK, "message") == ["w1"]
    with other.write() as tx:
        tx.erase(ANN)
        add_fact(tx, "new", content="Ann is back")
        add_fact(tx, "newer", seconds=1)
        say(tx, "m2", "m3")
    other.close()
    assert ids(store, cache) == ["new", "newer"]
    assert ids(store, cache, TALK, "message") == ["m2", "m3"]
    with store.read() as tx:
        assert not cache.corpus(tx, ANN, "fact").bm25(terms("tea 茶")).any()
    assert ids(store, cache, BOB) == ["his"]


def test_forgetting_leaves_nothing_of_it_in_memory(store: Store) -> None:
    """A user's, with all within; a conversation's, with the buckets of its home; the neighbour's stays."""
    cache = index()
    with store.write() as tx:
        add_fact(tx, "mine")
        add_fact(tx, "here", TALK)
        add_fact(tx, "his", BOB)
        say(tx, "m1")

    def load() -> None:
        for scope in (TALK, BOB):
            ids(store, cache, scope)
            ids(store, cache, scope, "message")

    ids(store, cache, BOB)
    his = cache.nbytes
    assert his > 0
    for gone in (ANN, TALK, Scope(org="acme", user="ann", session="other")):
        load()
        assert cache.nbytes > his
        cache.forget(gone)
        assert cache.nbytes == his
    cache.forget(Scope(org="acme"))
    assert cache.nbytes == 0


PART = st.sampled_from(["", "a", "b", "ab", "A", "%", "a_"])
SCOPE = st.builds(Scope, org=PART, agent=PART, user=PART, session=PART)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(kept=st.lists(SCOPE, min_size=1, max_size=6), asked=SCOPE)
def test_nothing_leaves_its_scope_on_a_real_store(kept: list[Scope], asked: Scope) -> None:
    """Facts at random scopes, one cache for all who ask."""
    store, cache = opened("sqlite://"), index()
    with store.write() as tx:
        for number, scope in enumerate(kept):
            made = fact(f"f{number}", scope)
            tx.facts.add(made, indexed(made.content))
    for asking in (*kept, asked):
        expected = {f"f{number}" for number, scope in enumerate(kept) if scope.covers(asking)}
        assert set(ids(store, cache, asking)) == expected
    store.close()
