"""A worker runs due jobs, tries failed ones again later and parks what keeps failing; nothing is lost on the way."""

from __future__ import annotations

import os
import threading
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from everlong import Scope
from everlong.records import Job
from everlong.store import open_store
from everlong.testing.fakes import CountingIds, FakeClock
from everlong.workers import Retry, Worker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from everlong.protocols import Store

SCOPE = Scope(user="ann", session="s")


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> Iterator[Store]:
    opened = open_store("sqlite://", clock=clock, new_id=CountingIds())
    yield opened
    opened.close()


def put(store: Store, clock: FakeClock, key: str = "k") -> Job:
    with store.write() as tx:
        job = Job(id=f"job_{key}", kind="work", key=key, scope=SCOPE, run_after=clock(), first_at=clock())
        return tx.jobs.put(job, latest=clock())


def make(store: Store, clock: FakeClock, task: Callable[[Job], None], **options: object) -> Worker:
    return Worker(store, {"work": task}, clock=clock, name="w", random=lambda: 0.5, **options)  # type: ignore[arg-type]


def done(store: Store) -> Callable[[Job], None]:
    def task(job: Job) -> None:
        with store.write() as tx:
            tx.jobs.done(job)

    return task


def test_runs_each_due_job_once(store: Store, clock: FakeClock) -> None:
    for key in "abc":
        put(store, clock, key)
    assert make(store, clock, done(store)).run_due() == 3
    with store.read() as tx:
        assert tx.jobs.count() == 0


def test_failed_work_waits_longer_each_time_and_is_parked_at_last(store: Store, clock: FakeClock) -> None:
    def fail(_: Job) -> None:
        msg = "no answer"
        raise RuntimeError(msg)

    worker = make(store, clock, fail, retry=Retry(attempts=3, base=timedelta(seconds=10)))
    put(store, clock)
    waits = []
    for _ in range(2):
        assert worker.run_once()
        with store.read() as tx:
            waits.append(tx.jobs.list(SCOPE)[0].run_after - clock())
        assert not worker.run_once()
        clock.advance(waits[-1].total_seconds())
    assert waits == [timedelta(seconds=10), timedelta(seconds=20)]
    assert worker.run_once()
    with store.read() as tx:
        (parked,) = tx.jobs.list(SCOPE, state="parked")
    assert parked.attempts == 3
    assert "no answer" in parked.error
    clock.advance(10_000)
    assert not worker.run_once()
    with store.write() as tx:
        tx.jobs.release(SCOPE, parked.id, now=clock())
    assert make(store, clock, done(store)).run_once()


def test_work_of_a_dead_worker_is_taken_over_after_its_lease(store: Store, clock: FakeClock) -> None:
    put(store, clock)
    with store.write() as tx:
        assert tx.jobs.claim(["work"], worker="dead", now=clock(), lease_until=clock() + timedelta(seconds=60))
    worker = make(store, clock, done(store))
    assert not worker.run_once()
    clock.advance(61)
    assert worker.run_once()


def test_the_thread_starts_on_request_works_and_stops(store: Store, clock: FakeClock) -> None:
    worker = make(store, clock, done(store))
    assert not worker.running
    worker.start()
    put(store, clock)
    store.notify()
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        with store.read() as tx:
            if not tx.jobs.count():
                break
        time.sleep(0.01)
    with store.read() as tx:
        assert tx.jobs.count() == 0
    assert worker.stop(10)
    assert not worker.running


@pytest.mark.parametrize(("attempt", "spread", "seconds"), [(1, 0.5, 5), (2, 0.5, 10), (4, 1.0, 48), (60, 0.5, 600)])
def test_delays_grow_are_spread_and_capped(attempt: int, spread: float, seconds: float) -> None:
    assert Retry().delay(attempt, spread).total_seconds() == pytest.approx(seconds)


def test_work_longer_than_its_lease_is_not_taken_over(store: Store) -> None:
    def real() -> datetime:
        return datetime.now(UTC)

    ran: list[str] = []

    def slow(job: Job) -> None:
        ran.append(job.id)
        time.sleep(2.2)
        with store.write() as tx:
            assert tx.jobs.done(job)

    with store.write() as tx:
        tx.jobs.put(Job(id="j", kind="work", key="k", scope=SCOPE, run_after=real(), first_at=real()), latest=real())
    lease = timedelta(seconds=1)
    worker = Worker(store, {"work": slow}, clock=real, name="w", random=lambda: 0.5, lease=lease, threads=2)
    worker.start()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and count(store):
        time.sleep(0.02)
    assert worker.stop(5)
    assert ran == ["j"]
    assert count(store) == 0


def count(store: Store) -> int:
    with store.read() as tx:
        return tx.jobs.count()


def test_work_that_kills_its_worker_each_time_is_parked(store: Store, clock: FakeClock) -> None:
    put(store, clock)
    for _ in range(3):
        with store.write() as tx:
            assert tx.jobs.claim(["work"], worker="dies", now=clock(), lease_until=clock() + timedelta(seconds=9))
        clock.advance(10)
    ran: list[Job] = []
    assert make(store, clock, ran.append, retry=Retry(attempts=3)).run_once()
    assert ran == []
    with store.read() as tx:
        (parked,) = tx.jobs.list(SCOPE, state="parked")
    assert "died" in parked.error


def test_several_jobs_run_at_once_of_different_keys(store: Store, clock: FakeClock) -> None:
    together, lock, now, most = threading.Barrier(2), threading.Lock(), 0, 0
    running: set[str] = set()

    def task(job: Job) -> None:
        nonlocal now, most
        with lock:
            assert job.key not in running
            running.add(job.key)
            now += 1
            most = max(most, now)
        if job.key in "ab":
            together.wait(5)
        with lock:
            now -= 1
            running.discard(job.key)
        done(store)(job)

    for key in "abcd":
        put(store, clock, key)
    worker = make(store, clock, task, threads=2)
    worker.start()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and count(store):
        time.sleep(0.01)
    assert worker.stop(5)
    assert count(store) == 0
    assert most == 2


def test_a_stopped_worker_ends_after_the_present_job_and_leaves_the_rest(store: Store, clock: FakeClock) -> None:
    begun, go = threading.Event(), threading.Event()

    def task(job: Job) -> None:
        begun.set()
        assert go.wait(5)
        done(store)(job)

    for key in "abc":
        put(store, clock, key)
    worker = make(store, clock, task, threads=1)
    worker.start()
    assert begun.wait(5)
    assert not worker.stop(0.05)
    go.set()
    assert worker.stop(5)
    assert count(store) == 2


def test_a_worker_can_be_started_again(store: Store, clock: FakeClock) -> None:
    worker = make(store, clock, done(store))
    worker.start()
    assert worker.stop(5)
    put(store, clock)
    worker.start()
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline and count(store):
        time.sleep(0.01)
    assert worker.stop(5)
    assert count(store) == 0


def test_a_forked_child_does_not_believe_that_its_parents_threads_run(store: Store, clock: FakeClock) -> None:
    worker = make(store, clock, done(store))
    worker.start()
    child = os.fork()
    if child == 0:
        os._exit(1 if worker.running else 0)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0
    assert worker.running
    assert worker.stop(5)
