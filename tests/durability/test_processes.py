"""Many processes write to one store: nobody fails, nothing is lost, nobody waits long."""

from __future__ import annotations

import multiprocessing
import sqlite3
import time
from multiprocessing.synchronize import Event as ReadyEvent
from pathlib import Path
from typing import Any

import pytest

from everlong.protocols import Store
from everlong.store import open_store
from everlong.testing import CountingIds, FakeClock
from everlong.testing.samples import ANN, add_fact, at, job

FORK = multiprocessing.get_context("fork")
WRITERS, FACTS = 8, 50


def open_as(url: str, label: str) -> Store:
    return open_store(url, clock=FakeClock(), new_id=CountingIds(label))


def write_facts(url: str, label: str, start: Any, results: Any) -> None:
    worst = 0.0
    try:
        store = open_as(url, label)
        start.wait(60)
        for number in range(FACTS):
            began = time.perf_counter()
            with store.write() as tx:
                add_fact(tx, f"{label}-{number}")
            worst = max(worst, time.perf_counter() - began)
        store.close()
    except Exception as error:  # noqa: BLE001 (told to the parent, which fails on it)
        results.put(f"{type(error).__name__}: {error}")
        return
    results.put(worst)


def claim_jobs(url: str, label: str, start: Any, results: Any) -> None:
    store = open_as(url, label)
    start.wait(60)
    mine: list[str] = []
    while True:
        with store.write() as tx:
            got = tx.jobs.claim(["extract"], worker=label, now=at(1), lease_until=at(60))
        if got is None:
            break
        with store.write() as tx:
            assert tx.jobs.done(got)
        mine.append(got.id)
    store.close()
    results.put(mine)


def run_together(target: Any, url: str, number: int) -> list[Any]:
    """What each of ``number`` processes has to say, after they all began at once."""
    results, start = FORK.Queue(), FORK.Barrier(number)
    workers = [FORK.Process(target=target, args=(url, f"p{i}", start, results), daemon=True) for i in range(number)]
    for worker in workers:
        worker.start()
    said = [results.get(timeout=120) for _ in workers]
    for worker in workers:
        worker.join(30)
    return said


@pytest.fixture(params=["sqlite_url", "postgres_url"])
def url(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    open_as(found, "first").close()
    return found


def test_eight_processes_on_one_scope_lose_nothing(url: str) -> None:
    worst = run_together(write_facts, url, WRITERS)
    assert [one for one in worst if isinstance(one, str)] == []
    store = open_as(url, "check")
    with store.read() as tx:
        assert tx.facts.list(ANN).total == WRITERS * FACTS
        rows = tx.index.rows(ANN, "fact", model="")
        assert len(set(rows.revision)) == WRITERS * FACTS
    store.close()
    print(f"{url.partition(':')[0]}: {WRITERS * FACTS} facts, worst wait {max(worst) * 1000:.0f} ms")
    assert max(worst) < 5


def test_workers_in_four_processes_do_no_job_twice(url: str) -> None:
    store = open_as(url, "boss")
    with store.write() as tx:
        for number in range(60):
            tx.jobs.put(job(f"j{number}", key=f"k{number}"), latest=at(60))
    done = [name for mine in run_together(claim_jobs, url, 4) for name in mine]
    assert sorted(done) == sorted(f"j{number}" for number in range(60))
    with store.read() as tx:
        assert tx.jobs.count() == 0
    store.close()


def test_processes_that_open_a_new_store_at_once_all_succeed(sqlite_url: str) -> None:
    assert [one for one in run_together(write_facts, sqlite_url, 4) if isinstance(one, str)] == []
    store = open_as(sqlite_url, "check")
    with store.read() as tx:
        assert tx.facts.list(ANN).total == 4 * FACTS
    store.close()


def hold_by_store(url: str, seconds: float, ready: ReadyEvent) -> None:
    store = open_as(url, "holder")
    with store.write() as tx:
        add_fact(tx, "held")
        ready.set()
        time.sleep(seconds)
    store.close()


def hold_by_hand(url: str, seconds: float, ready: ReadyEvent) -> None:
    raw = sqlite3.connect(Path(url.removeprefix("sqlite:///")), isolation_level=None)
    raw.execute("BEGIN IMMEDIATE")
    ready.set()
    time.sleep(seconds)
    raw.execute("COMMIT")
    raw.close()


@pytest.mark.parametrize("hold", [hold_by_store, hold_by_hand])
def test_a_writer_waits_for_another_process_and_succeeds(sqlite_url: str, hold: Any) -> None:
    store = open_as(sqlite_url, "writer")
    ready = FORK.Event()
    holder = FORK.Process(target=hold, args=(sqlite_url, 1.0, ready), daemon=True)
    holder.start()
    assert ready.wait(30)
    with store.read() as tx:
        assert tx.facts.list(ANN).total == 0
    began = time.perf_counter()
    with store.write() as tx:
        add_fact(tx, "mine")
    waited = time.perf_counter() - began
    holder.join(30)
    with store.read() as tx:
        assert "mine" in tx.facts.many(ANN, ["mine", "held"])
    store.close()
    print(f"{hold.__name__}: waited {waited:.2f} s for a transaction of 1 s")
    assert 0.5 < waited < 5
