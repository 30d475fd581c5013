"""The examination: each fault is found on a store that really has it, with the command that helps."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from everlong import Scope
from everlong.config import build, load_settings, new_id
from everlong.errors import ModelError
from everlong.protocols import Indexed
from everlong.records import Entry, Fact
from everlong.telemetry import doctor
from everlong.testing.fakes import FakeClock, TableEmbedder
from everlong.text import terms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.memory import Memory
    from everlong.telemetry.doctor import Finding

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)
ANN = Scope(user="ann")


@contextmanager
def _memory(**settings: object) -> Iterator[tuple[Memory, FakeClock]]:
    clock = FakeClock(NOW)
    made = build(load_settings(**{"url": "sqlite://", "embedder": "none", "worker": "none", **settings}), clock=clock)
    with made as memory:
        yield memory, clock


def _seen(memory: Memory, *, model: str = "", asked: str = "", **filters: object) -> dict[str, Finding]:
    """The worst finding of each check."""
    recall = memory.at(ANN).recall(asked, **filters) if asked else None
    with memory.parts.store.read() as tx:
        found = list(doctor.examine(tx, ANN, model=model, now=memory.parts.clock(), url="sqlite:///x.db"))
        if recall is not None:
            found += doctor.question(tx, ANN, recall, model=model)
    worst = ("ok", "note", "problem").index
    return {each.check: each for each in sorted(found, key=lambda each: worst(each.severity))}


def test_a_sound_store_has_no_problem() -> None:
    with _memory() as (memory, _):
        memory.at(ANN).remember("My garden has bees")
        found = _seen(memory, asked="garden bees")
        assert {each.severity for each in found.values()} == {"ok", "note"}
        assert [name for name, each in found.items() if each.severity == "note"] == ["vectors"]


@pytest.mark.parametrize("said", ["I keep bees.", "我养蜜蜂。"])
def test_work_that_nobody_does_and_work_that_was_set_aside(said: str) -> None:
    class Broken:
        name = "broken"

        def extract(self, batch: object) -> None:
            raise ModelError("no such model")

    clock = FakeClock(NOW)
    settings = load_settings(url="sqlite://", embedder="none", worker="none", job_attempts=1)
    with build(settings, clock=clock, extractor=Broken()) as memory:
        memory.at(Scope(user="ann", session="s")).add([("user", said)])
        clock.advance(3600)
        late = _seen(memory)["work"]
        assert (late.severity, late.command) == ("problem", "everlong worker --once --url sqlite:///x.db")
        memory.drain()
        found = _seen(memory)
        assert "no such model" in found["work"].said
        assert found["work"].command.startswith("everlong jobs --retry job_")
        assert found["work"].command.endswith("--operator doctor --user ann --session s --url sqlite:///x.db")
        assert found["extraction"].severity == "problem"
        assert "no such model" in found["extraction"].said


def test_texts_without_a_vector_of_the_present_model() -> None:
    with _memory() as (memory, _):
        for text in ("My garden has bees", "Sunday is for chess"):
            memory.at(ANN).remember(text)
        found = _seen(memory, model="another-model")["vectors"]
        assert (found.severity, found.command) == ("problem", "everlong reembed --url sqlite:///x.db")
        assert found.said.startswith("2 texts in 1 places have no vector of another-model")


def test_texts_whose_vectors_are_being_made_are_no_problem() -> None:
    with _memory() as (memory, clock):
        memory.at(ANN).remember("My garden has bees")
        url = memory.parts.store
        embedder = TableEmbedder({"My garden has bees": [1.0, 0.0]}, 2)
        with url.write() as tx:
            assert tx.index.unembedded(embedder.model)
        made = replace(memory.parts, embedder=embedder)
        assert made.embedder is embedder
        from everlong.records import Job

        with url.write() as tx:
            job = Job(id="job_1", kind="embed", key="ann", scope=ANN, run_after=clock(), first_at=clock())
            tx.jobs.put(job, latest=clock() + timedelta(hours=1))
        assert _seen(memory, model=embedder.model)["vectors"].severity == "note"


def test_a_clock_that_went_back() -> None:
    with _memory() as (memory, clock):
        with memory.parts.store.write() as tx:
            later = clock() + timedelta(days=1)
            tx.journal.append(Entry(id=new_id("log"), at=later, scope=ANN, by="user:ann", action="add"))
        assert _seen(memory)["clock"].severity == "problem"


def test_the_same_said_twice() -> None:
    with _memory() as (memory, clock):
        for number in range(3):
            fact = Fact(id=f"f{number}", scope=ANN, content="Ann keeps bees", created_at=clock(), updated_at=clock())
            with memory.parts.store.write() as tx:
                tx.facts.add(fact, Indexed(terms=terms(fact.content)))
        found = _seen(memory)["duplicates"]
        assert (found.severity, found.said.split(" facts")[0]) == ("problem", "2 of 3")


def test_facts_that_nobody_ever_needed() -> None:
    with _memory() as (memory, clock):
        memory.at(ANN).remember("My garden has bees")
        assert "uses" not in _seen(memory)
        clock.advance(40 * 86_400)
        assert _seen(memory)["uses"].severity == "note"
        memory.at(ANN).recall("garden")
        memory.drain()
        assert "uses" not in _seen(memory)


# --------------------------------------------------------------------------------------------- why nothing is found


@pytest.mark.parametrize(
    ("known", "asked"), [("My garden has bees", "garden bees now"), ("花园里有蜜蜂", "花园里有什么")]
)
def test_the_threshold_left_it_out(known: str, asked: str) -> None:
    with _memory() as (memory, _):
        memory.at(ANN).remember(known)
        found = _seen(memory, asked=asked, min_score=0.99)["question"]
        assert found.severity == "problem"
        assert "below the threshold of 0.99" in found.said
        assert (
            found.command == f"everlong recall '{asked}' --explain --user ann"[: len(found.command)]
            or asked in found.command
        )


def test_nothing_is_there() -> None:
    with _memory() as (memory, _):
        found = _seen(memory, asked="garden bees")
        assert found["contents"].severity == "note"
        assert "nothing was there to be searched" in found["question"].said


def test_the_limit_left_it_out() -> None:
    with _memory() as (memory, _):
        for what in ("is green", "faces south", "came from Lyon"):
            memory.at(ANN).remember(f"The beehive {what}")
        found = _seen(memory, asked="beehive Lyon", limit=1, min_score=0.1)["question"]
        assert (found.severity, found.command) == ("note", "everlong recall 'beehive Lyon' --limit 3 --user ann")


@pytest.mark.parametrize(("known", "asked"), [("My garden has bees", "garden bees"), ("花园里有蜜蜂", "花园 蜜蜂")])
def test_what_was_retired_would_have_answered(known: str, asked: str) -> None:
    with _memory() as (memory, _):
        ann = memory.at(ANN)
        fact = ann.remember(known).fact
        assert fact is not None
        ann.forget(fact.id, reason="moved house")
        with memory.parts.store.read() as tx:
            found = list(doctor.question(tx, ANN, ann.recall(asked), model=""))
        told = [each for each in found if "retired" in each.said]
        assert [each.command for each in told] == [f"everlong journal --target {fact.id} --user ann"]
        assert "moved house" in told[0].said


def test_an_embedder_that_is_away() -> None:
    with _memory() as (memory, _):
        memory.at(ANN).remember("My garden has bees")
        found = [
            each
            for each in (_seen(memory, model="use", asked="garden")["question"],)
            if "searched by words only" in each.said
        ]
        assert found


# ------------------------------------------------------------------------------------------------------- machine


@pytest.mark.parametrize(
    ("version", "severity"), [((3, 40, 1), "note"), ((3, 51, 2), "note"), ((3, 51, 3), "ok"), ((3, 53, 4), "ok")]
)
def test_an_sqlite_with_a_known_fault(version: tuple[int, ...], severity: str) -> None:
    durability, found = doctor.sqlite(version, durable=True)
    assert (durability.severity, found.severity) == ("ok", severity)


def test_memory_that_is_gone_at_the_end_and_a_full_disk() -> None:
    assert next(doctor.sqlite((3, 53, 4), durable=False)).severity == "problem"
    assert doctor.disk(10**6, 10**3).severity == "problem"
    assert doctor.disk(10**9, 2 * 10**9).severity == "problem"
    assert doctor.disk(10**10, 10**9).severity == "ok"
