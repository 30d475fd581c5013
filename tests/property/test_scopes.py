"""Nothing leaves its scope, on any shelf, for any scopes: what is seen is exactly what the algebra says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everlong.errors import NotFound
from everlong.protocols import Store, Transaction
from everlong.records import ALL_KINDS, Scope
from everlong.store import open_store
from everlong.testing import CountingIds, FakeClock
from everlong.testing.samples import (
    START,
    at,
    entry,
    extraction,
    fact,
    file,
    indexed,
    job,
    message,
    profile,
    proposal,
)

NAMES = ("", "a", "A", "a%", "安")
SCOPES = st.builds(Scope, org=st.sampled_from(NAMES[:3]), agent=st.sampled_from(("", "x")), user=st.sampled_from(NAMES))
HOMES = st.lists(SCOPES, min_size=1, max_size=8, unique=True)
Fresh = tuple[Callable[[], AbstractContextManager[Store]], int]
QUIET = settings(
    deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@contextmanager
def opened(url: str) -> Iterator[Store]:
    store = open_store(url, clock=FakeClock(tick=0.001), new_id=CountingIds())
    try:
        yield store
    finally:
        store.close()


@contextmanager
def on(postgres: Any) -> Iterator[Store]:
    url = postgres.fresh()
    try:
        with opened(url) as store:
            yield store
    finally:
        postgres.release(url)


@pytest.fixture(params=["memory", "postgres"])
def fresh(request: pytest.FixtureRequest) -> Fresh:
    """What opens an empty store, and how many examples that engine has time for."""
    if request.param == "memory":
        return (lambda: opened("sqlite://")), 40
    postgres = request.getfixturevalue("postgres")
    return (lambda: on(postgres)), 20


def fill(tx: Transaction, homes: Iterable[Scope]) -> None:
    """At each home one record of every kind, whose id is the home's number."""
    for number, home in enumerate(homes):
        talk = replace(home, session="s")
        name = f"n{number}"
        tx.facts.add(fact(name, home, seconds=number), indexed("tea"))
        tx.facts.add(fact(f"{name}s", talk, seconds=number), indexed("tea"))
        tx.messages.append(talk, [message(name, talk, seconds=number)], [indexed("tea")])
        tx.profiles.put(profile(home), expected=0)
        tx.files.put(file(f"/{name}", home), expected=0)
        tx.jobs.put(job(name, talk, key=name), latest=at(60))
        tx.journal.append(entry(name, home, target=name))
        tx.proposals.put(proposal(name, home, target="same"))
        tx.extractions.append(extraction(name, talk))


def found(ask: Callable[..., Any], *arguments: object) -> bool:
    """Whether something that may raise NotFound or answer with nothing has found anything."""
    with suppress(NotFound):
        return bool(ask(*arguments))
    return False


def lies_within_home(viewer: Scope, place: Scope) -> bool:
    """Whether ``place`` lies within the viewer's scope less its session: of a bare session, within its tenant."""
    return viewer.home.contains(place) and (viewer.org == place.org or viewer == Scope())


def check_what_is_seen(tx: Transaction, homes: list[Scope], viewer: Scope) -> None:
    """Facts, messages, profiles and files of every covering scope, one by one and as lists."""
    seen = {f"n{i}" for i, home in enumerate(homes) if home.covers(viewer)}
    in_session = {f"{name}s" for name in seen} if viewer.session == "s" else set()
    every = [f"n{i}" for i in range(len(homes))]
    both = [*every, *(f"{name}s" for name in every)]
    assert {one.id for one in tx.facts.list(viewer, status=None).items} == seen | in_session
    assert set(tx.facts.many(viewer, both)) == seen | in_session
    assert {name for name in both if found(tx.facts.get, viewer, name)} == seen | in_session
    assert {name for name in both if found(tx.facts.history, viewer, name)} == seen | in_session
    assert {one.id for one in tx.messages.recent(viewer, limit=99)} == seen
    assert set(tx.messages.many(viewer, every)) == seen
    assert {n for n in every if found(lambda n: tx.messages.around(viewer, n, before=1, after=1), n)} == seen
    assert {one.scope for one in tx.profiles.visible(viewer)} == {h for h in homes if h.covers(viewer)}
    assert {one.path[1:] for one in tx.files.list(viewer)} == seen
    assert {name for name in every if found(tx.files.get, viewer, f"/{name}")} == seen
    conversations = {one.scope for one in tx.sessions.list(viewer).items}
    assert conversations == {replace(h, session="s") for h in homes if h.covers(viewer.home)}


def check_exact_places(tx: Transaction, homes: list[Scope], viewer: Scope) -> None:
    """What names one place: a conversation, a bucket, a profile; and what lies within: journal, jobs."""
    here = {f"n{i}" for i, home in enumerate(homes) if home == viewer.home}
    within = {f"n{i}" for i, home in enumerate(homes) if viewer.contains(home)}
    working = {f"n{i}" for i, home in enumerate(homes) if viewer.contains(replace(home, session="s"))}
    talk = replace(viewer, session="s")
    assert {one.id for one in tx.messages.tail(talk, limit=99)} == here
    assert {one.id for one in tx.messages.after(talk, 0)} == here
    assert {one.id for one in tx.messages.unembedded(viewer, "m", limit=99)} == here
    assert set(tx.index.rows(viewer.home, "fact", model="m").ids) == here
    assert tx.profiles.get(viewer).version == (1 if viewer in homes else 0)
    assert {one.id for one in tx.journal.list(viewer).items} == within
    assert {one.id for one in tx.jobs.list(viewer)} == working
    assert {one.id for one in tx.extractions.list(viewer).items} == working
    assert tx.extractions.usage(viewer, since=START).calls == len(working)
    inbox = {f"n{i}" for i, home in enumerate(homes) if lies_within_home(viewer, home)}
    every = [f"n{i}" for i in range(len(homes))]
    assert {one.id for one in tx.proposals.list(viewer).items} == inbox
    assert {name for name in every if found(tx.proposals.get, viewer, name)} == inbox
    assert {name for name in every if found(tx.extractions.get, viewer, name)} == inbox
    pending = {one.id for one in tx.facts.unembedded(viewer, "m", limit=99)}
    assert pending == (({f"{name}s" for name in here} if viewer.session == "s" else set()) if viewer.session else here)
    buckets = {bucket for (bucket, _), state in tx.index.revisions(viewer, ALL_KINDS).items() if state.number}
    stored = {*homes, *(replace(home, session="s") for home in homes)}
    assert buckets == {bucket for bucket in stored if bucket.covers(viewer)}


def test_reads_see_what_covers_and_nothing_else(fresh: Fresh) -> None:
    @settings(QUIET, max_examples=fresh[1])
    @given(homes=HOMES, viewers=st.lists(SCOPES, min_size=3, max_size=6), session=st.sampled_from(("", "s", "S")))
    def run(homes: list[Scope], viewers: list[Scope], session: str) -> None:
        with fresh[0]() as store:
            with store.write() as tx:
                fill(tx, homes)
            with store.read() as tx:
                for viewer in (*(replace(one, session=session) for one in (*viewers, *homes)),):
                    check_what_is_seen(tx, homes, viewer)
                    check_exact_places(tx, homes, viewer)

    run()


def test_writes_change_what_they_name_and_nothing_else(fresh: Fresh) -> None:
    @settings(QUIET, max_examples=fresh[1])
    @given(homes=HOMES, here=SCOPES, session=st.sampled_from(("", "s")))
    def run(homes: list[Scope], here: Scope, session: str) -> None:
        scope = replace(here, session=session)
        every = [f"n{i}" for i in range(len(homes))]
        with fresh[0]() as store:
            with store.write() as tx:
                fill(tx, homes)
            with store.write() as tx:
                covering = [h for h in homes if h.covers(scope)]
                within = [h for h in homes if scope.contains(replace(h, session="s"))]
                assert tx.facts.touch(scope, every, START) == len(covering)
                assert tx.sessions.fence(scope) == len(within)
                assert tx.jobs.hurry(scope, now=at(5)) == len(within)
                assert tx.extractions.purge(scope, before=at(1)) == len(within)

    run()


def test_erasing_takes_what_lies_within_and_nothing_else(fresh: Fresh) -> None:
    @settings(QUIET, max_examples=fresh[1])
    @given(homes=HOMES, gone=SCOPES)
    def run(homes: list[Scope], gone: Scope) -> None:
        with fresh[0]() as store:
            with store.write() as tx:
                fill(tx, homes)
            with store.write() as tx:
                tx.erase(gone)
            with store.read() as tx:
                for number, home in enumerate(homes):
                    name, kept = f"n{number}", not gone.contains(home)
                    talk = replace(home, session="s")
                    assert (name in tx.facts.many(home, [name])) is kept
                    assert (f"{name}s" in tx.facts.many(talk, [f"{name}s"])) is kept
                    assert bool(tx.messages.tail(talk, limit=9)) is kept
                    assert (tx.sessions.get(talk) is not None) is kept
                    assert (tx.profiles.get(home).version == 1) is kept
                    assert found(tx.files.get, home, f"/{name}") is kept
                    assert found(tx.journal.get, home, name) is kept
                    assert (name in {one.id for one in tx.jobs.list(talk)}) is kept
                    assert found(tx.proposals.get, home, name) is kept
                    assert found(tx.extractions.get, home, name) is kept

    run()
