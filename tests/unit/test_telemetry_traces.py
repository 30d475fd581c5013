"""Traces that outlive their process: kept on request or by chance, seen by the same rights, gone with their scope."""

from __future__ import annotations

import logging
import time
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from everlong import Principal, Scope, open_memory
from everlong.errors import AccessDenied, NotFound, StoreError
from everlong.records import Considered, Entry, Fact, Hit, Omitted, Query, Trace
from everlong.store import open_store
from everlong.telemetry import TraceLog, Uses
from everlong.telemetry.traces import from_payload, to_payload

if TYPE_CHECKING:
    from pathlib import Path

ANN, BOB = Scope(user="ann"), Scope(user="bob")
NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)
PLAIN = {"embedder": "none", "worker": "none"}


def test_a_trace_survives_its_way_through_the_journal() -> None:
    query = Query(
        text="蜜蜂 bees?",
        kinds=("fact", "file"),
        limit=7,
        categories=("goal",),
        since=NOW - timedelta(days=3),
        at=NOW,
        metadata={"project": {"$in": ["x", 1, None]}},
    )
    trace = Trace(
        id="trace_1",
        query=query,
        scope=Scope(user="ann", session="s"),
        at=NOW,
        embedder="use",
        considered=(
            Considered(kind="fact", id="f", score=0.5, kept=True, reason="relevant", parts={"bm25": 1.25}),
            Considered(kind="file", id="p", score=0.1, kept=False, reason="expired"),
        ),
        milliseconds={"embed": 0.25, "fact": 1.5},
        minimum=0.35,
        searched={"fact": 12},
        block="<memory>蜜蜂</memory>",
        tokens=8,
        budget=300,
        omitted=(Omitted(what="fact f", reason="over budget"),),
    )
    entry = Entry(id=trace.id, at=NOW, scope=trace.scope, by="user:ann", action="recall", payload=to_payload(trace))
    with closing(open_store("sqlite://", clock=lambda: NOW, new_id=lambda p: p)) as store, store.write() as tx:
        tx.journal.append(entry)
        assert from_payload(tx.journal.get(ANN, "trace_1")) == trace
    newer = {**entry.payload, "unheard": 1, "query": {**entry.payload["query"], "of": 2}}
    assert from_payload(Entry(id="trace_1", at=NOW, scope=trace.scope, by="", action="recall", payload=newer)) == trace


@pytest.mark.parametrize("word", ["garden", "花园"])
def test_a_stored_trace_is_explained_by_another_process(tmp_path: Path, word: str) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    with open_memory(url, **PLAIN) as memory:
        ann = memory.at(ANN)
        ann.remember(f"My {word} has bees")
        kept, block = ann.recall(word, trace=True).trace, ann.context(word, trace=True)
        passing = ann.recall(word).trace
    assert block.trace is not None
    with open_memory(url, **PLAIN) as memory:
        ann = memory.at(ANN)
        assert ann.explain(kept.id) == kept
        assert ann.explain(block.trace.id).block == block.text != ""
        assert [trace.id for trace in ann.traces()] == [block.trace.id, kept.id]
        assert [row.text for row in ann.explanation(kept.id).rows] == [f"My {word} has bees"]
        for scope, trace_id in ((ANN, passing.id), (BOB, kept.id), (Scope(user="ann", agent="coder"), kept.id)):
            with pytest.raises(NotFound):
                memory.at(scope).explain(trace_id)
        with pytest.raises(AccessDenied):
            memory.at(ANN, by=Principal(id="bob")).explain(kept.id)


def test_a_question_writes_nothing_unless_asked(tmp_path: Path) -> None:
    with open_memory(f"sqlite:///{tmp_path}/m.db", **PLAIN) as memory:
        ann = memory.at(ANN)
        ann.remember("My garden has bees")
        before = ann.journal().total
        for _ in range(5):
            ann.recall("garden")
            ann.context("garden")
        assert ann.journal().total == before
        assert ann.facts().items[0].uses == 0


def test_the_share_that_is_set_is_stored() -> None:
    with closing(open_store("sqlite://", clock=lambda: NOW, new_id=lambda p: p)) as store:
        draws = iter([0.1, 0.9, 0.24, 0.25])
        log = TraceLog(store, sample=0.25, random=lambda: next(draws), redact=lambda value: value)
        for number in range(4):
            made = Trace(id=f"trace_{number}", query=Query(text="q"), scope=ANN, at=NOW, embedder="")
            log.keep(made, {}, by=Principal(id="ann"))
        with store.read() as tx:
            entries = tx.journal.list(ANN, action="recall").items
        assert {entry.id: entry.reason for entry in entries} == {"trace_0": "sampled", "trace_2": "sampled"}


def test_no_secret_is_stored_with_a_trace(tmp_path: Path) -> None:
    key = "sk-" + "a1B2c3D4e5F6g7H8" * 2
    url = f"sqlite:///{tmp_path}/m.db"
    with open_memory(url, **PLAIN) as memory:
        trace = memory.at(ANN).recall(f"what is {key} for", trace=True).trace
    with open_memory(url, **PLAIN) as memory:
        assert key not in memory.at(ANN).explain(trace.id).query.text
    assert key.encode() not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize("erased", [ANN, Scope(user="ann", session="past"), Scope()])
def test_erasing_takes_every_trace_that_may_show_what_was_erased(tmp_path: Path, erased: Scope) -> None:
    root = Principal(id="root", role="operator")
    with open_memory(f"sqlite:///{tmp_path}/m.db", **PLAIN) as memory:
        memory.at(Scope(user="ann", session="past")).add([("user", "My zeppelin is green.")])
        memory.drain()
        present = memory.at(Scope(user="ann", session="now"))
        block = present.context("zeppelin", trace=True)
        assert block.trace is not None
        assert "zeppelin" in block.text
        memory.at(erased, by=root).erase()
        with pytest.raises(NotFound):
            present.explain(block.trace.id)
        assert present.traces() == ()
    assert b"zeppelin" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())


# ----------------------------------------------------------------------------------------------------------- log


def test_every_question_leaves_one_line_with_these_fields(caplog: pytest.LogCaptureFixture) -> None:
    with open_memory("sqlite://", **PLAIN) as memory:
        ann = memory.at(Scope(user="ann", session="s1"))
        ann.remember("My garden has bees")
        with caplog.at_level(logging.INFO, "everlong"):
            found, nothing = ann.recall("garden"), ann.recall("submarine")
            full = ann.context("garden")
            empty = memory.at(Scope(user="bob", session="s2")).context("garden")
            ann.context()
    lines = [line for line in caplog.records if line.message == "memory_retrieval"]
    names = ("session_id", "query", "hit_count", "top_score", "injected", "trace_id")
    assert full.trace is not None
    assert empty.trace is not None
    assert [[getattr(line, name) for name in names] for line in lines] == [
        ["s1", "garden", 1, found.hits[0].score, True, found.trace.id],
        ["s1", "submarine", 0, 0.0, False, nothing.trace.id],
        ["s1", "garden", 1, full.hits[0].score, True, full.trace.id],
        ["s2", "garden", 0, 0.0, False, empty.trace.id],
    ]


# ---------------------------------------------------------------------------------------------------------- uses


def _hit(fact: Fact) -> Hit:
    return Hit(kind="fact", id=fact.id, score=1.0, record=fact)


def test_uses_are_counted_in_batches() -> None:
    with open_memory("sqlite://", **PLAIN) as memory:
        ann = memory.at(ANN)
        bees, chess = (ann.remember(text).fact for text in ("My garden has bees", "Sunday is for chess"))
        assert bees is not None
        assert chess is not None
        for _ in range(3):
            ann.recall("garden bees")
        ann.context("garden bees")
        assert ann.fact(bees.id).uses == 0
        memory.drain()
        counted = ann.fact(bees.id)
        assert (counted.uses, counted.version, ann.fact(chess.id).uses) == (4, bees.version, 0)
        assert counted.last_used_at is not None


def test_uses_are_stored_at_the_end(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    with open_memory(url, **PLAIN) as memory:
        memory.at(ANN).remember("My garden has bees")
        memory.at(ANN).recall("garden")
    with open_memory(url, **PLAIN) as memory:
        assert [fact.uses for fact in memory.at(ANN).facts().items] == [1]


def test_a_fact_that_had_no_room_was_not_used() -> None:
    with open_memory("sqlite://", **PLAIN) as memory:
        ann = memory.at(ANN)
        for what in ("hive", "garden", "queen", "smoker"):
            ann.remember(f"The bees' {what} matters: " + f"{what} " * 60)
        block = ann.context("bees", limit=10, budget=150)
        memory.drain()
        used = {fact.content in block.text: fact.uses for fact in ann.facts().items}
        assert used == {True: 1, False: 0}


def test_counts_wait_while_the_store_is_away_and_an_erased_fact_does_not_come_back() -> None:
    uses = Uses()
    with open_memory("sqlite://", **PLAIN) as memory:
        fact = memory.at(ANN).remember("My garden has bees").fact
        assert fact is not None
        store = memory.parts.store
        uses.note([_hit(fact)], NOW)
        store_away = open_store("sqlite://", clock=lambda: NOW, new_id=lambda p: p)
        store_away.close()
        with pytest.raises(StoreError):
            uses.store(store_away)
        uses.note([_hit(fact)], NOW + timedelta(hours=1))
        assert uses.store(store) == 1
        kept = memory.at(ANN).fact(fact.id)
        assert (kept.uses, kept.last_used_at) == (2, NOW + timedelta(hours=1))
        uses.note([_hit(fact)], NOW)
        uses.forget(ANN)
        assert uses.store(store) == 0


def test_a_full_batch_is_stored_by_the_worker_without_a_write() -> None:
    with open_memory("sqlite://", embedder="none", max_facts=200) as memory:
        ann = memory.at(ANN)
        for number in range(70):
            ann.remember(f"Garden note {chr(97 + number % 26)}{number}: bee number {number} likes {'x' * (number + 3)}")
        ann.recall("garden bee", limit=200, min_score=0)
        until = time.monotonic() + 5
        while time.monotonic() < until and not any(fact.uses for fact in ann.facts().items):
            time.sleep(0.05)
        assert sum(fact.uses for fact in ann.facts().items) >= 64
