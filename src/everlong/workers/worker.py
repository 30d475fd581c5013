"""A worker claims due jobs, a few at once, and runs the task of their kind."""

from __future__ import annotations

import logging
import os
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from threading import Event, Thread
from time import monotonic
from typing import TYPE_CHECKING, Final

from everlong.errors import StoreError
from everlong.records import TIMED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from everlong.protocols import Clock, Store
    from everlong.records import Job, Scope

__all__ = ["Retry", "Worker"]

_log = logging.getLogger("everlong.worker")
_LONGEST_NAP: Final = 1.0
"""Seconds between two looks for jobs that another process may have made; jobs of this process wake us at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retry:
    """When to try failed work again: ``base × 2^(attempt−1)``, ``cap`` at most, each spread by ±``jitter``.

    After ``attempts`` claims a job is parked where people see it.
    """

    attempts: int = 5
    base: timedelta = timedelta(seconds=5)
    cap: timedelta = timedelta(minutes=10)
    jitter: float = 0.2

    def delay(self, attempt: int, spread: float) -> timedelta:
        """How long to wait after claim number ``attempt``; ``spread`` is a random number from 0 to 1."""
        exponential: timedelta = min(self.base * 2 ** min(max(attempt - 1, 0), 30), self.cap)
        return exponential * (1 + self.jitter * (2 * spread - 1))


class Worker:
    """Runs jobs until told to stop; several may run side by side, in threads, processes or machines.

    ``tasks`` maps a kind of job to the function that does it. A task ends its own job inside the transaction that
    applies its effect, so that effect and end are one; one that raises is tried again later (see :class:`Retry`).
    A job is held by a ``lease`` that is renewed while the work lasts, so that only a dead worker's lapses: its work is
    taken over then. ``threads`` is how many jobs run at once, of different keys. ``idle`` is called when no job is due,
    for small work that can wait.
    """

    def __init__(
        self,
        store: Store,
        tasks: Mapping[str, Callable[[Job], None]],
        *,
        clock: Clock,
        name: str,
        random: Callable[[], float],
        retry: Retry | None = None,
        lease: timedelta = timedelta(minutes=1),
        threads: int = 2,
        idle: Callable[[], None] | None = None,
    ) -> None:
        self._store, self._tasks, self._clock, self._name = store, dict(tasks), clock, name
        self._random, self._retry, self._lease, self._count = random, retry or Retry(), lease, threads
        self._idle = idle
        self._stopping = Event()
        self._threads: list[Thread] = []
        self._process = os.getpid()

    def run_once(self, place: Scope | None = None) -> bool:
        """Claims one due job (kept exactly at ``place``, if given) and runs it; false when none was due."""
        now = self._clock()
        with self._store.write() as tx:
            job = tx.jobs.claim(
                list(self._tasks), worker=self._name, now=now, lease_until=now + self._lease, place=place
            )
            if job is not None and job.attempts > self._retry.attempts:
                tx.jobs.park(job, error=f"{job.error or 'no error is known'}; its worker died on the last attempt")
                return True
        if job is None:
            return False
        try:
            with self._held(job):
                self._tasks[job.kind](job)
        except Exception as error:  # noqa: BLE001 - the one place where any fault must leave the job waiting
            self._failed(job, error)
        return True

    @contextmanager
    def _held(self, job: Job) -> Iterator[None]:
        """Renews the job's lease as long as the block lasts."""
        done = Event()
        with suppress(RuntimeError):  # no new thread while the interpreter ends: then the lease is as long as it is
            Thread(target=self._renew, args=(job, done), name=f"everlong-lease-{job.id}", daemon=True).start()
        try:
            yield
        finally:
            done.set()

    def _renew(self, job: Job, done: Event) -> None:
        held = True
        while held and not done.wait(self._lease.total_seconds() / 3):
            try:
                with self._store.write() as tx:
                    held = tx.jobs.renew(job, lease_until=self._clock() + self._lease)
            except StoreError as error:
                _log.warning("the lease of job %s could not be renewed, trying again: %s", job.id, error)

    def _failed(self, job: Job, error: Exception) -> None:
        reason = f"{type(error).__name__}: {error}"
        parked = job.attempts >= self._retry.attempts
        _log.warning("job %s (%s) failed on attempt %d: %s", job.id, job.kind, job.attempts, reason)
        with self._store.write() as tx:
            if parked:
                tx.jobs.park(job, error=reason)
            else:
                delay = self._retry.delay(job.attempts, self._random())
                tx.jobs.retry(job, run_after=self._clock() + delay, error=reason)

    def run_due(self) -> int:
        """Runs jobs until none is due; returns how many."""
        ran = 0
        while self.run_once():
            ran += 1
        return ran

    def finish(self, places: Iterable[Scope], timeout: float) -> None:
        """Does what waits exactly at ``places`` now, whatever its debounce, for ``timeout`` seconds at most. What failed
        and waits for its retry is left to that, and so is all that waits elsewhere."""
        until = monotonic() + timeout
        for place in places:
            if monotonic() >= until:
                return
            with self._store.write() as tx:
                now = self._clock()
                for job in tx.jobs.list(place, state="waiting"):
                    if job.scope == place and job.kind not in TIMED:
                        tx.jobs.put(replace(job, run_after=now), latest=max(now, job.first_at))
            while monotonic() < until and self.run_once(place):
                pass

    def at_rest(self) -> bool:
        """Whether nothing runs, here or elsewhere, and nothing is due. Both are seen in one moment: between two looks,
        work that ended elsewhere may have left more."""
        now = self._clock()
        with self._store.read() as tx:
            due = tx.jobs.next_due(list(self._tasks))
            return not tx.jobs.count(state="running") and (due is None or due > now)

    def run_forever(self) -> None:
        """Runs jobs as they become due until :meth:`stop`, in this thread and those beside it. A database that is away
        is waited for."""
        self._launch(self._count - 1)
        self._serve()
        for thread in self._threads:
            thread.join()

    def _launch(self, number: int) -> None:
        self._process = os.getpid()
        self._threads = [
            Thread(target=self._serve, name=f"everlong-{self._name}-{n}", daemon=True) for n in range(number)
        ]
        for thread in self._threads:
            thread.start()

    def _serve(self) -> None:
        while not self._stopping.is_set():
            try:
                busy = self.run_once()
                if not busy and self._idle is not None:
                    self._idle()
                nap = 0.0 if busy else self._nap()
            except StoreError as error:
                _log.warning("store is unavailable, trying again: %s", error)
                nap = _LONGEST_NAP
            if nap and not self._stopping.is_set():
                self._store.wait(nap)

    def _nap(self) -> float:
        with self._store.read() as tx:
            due = tx.jobs.next_due(list(self._tasks))
        if due is None:
            return _LONGEST_NAP
        return min(max((due - self._clock()).total_seconds(), 0.01), _LONGEST_NAP)

    @property
    def running(self) -> bool:
        """Whether background threads run in this process; a forked child has none of its parent's."""
        return self._process == os.getpid() and any(thread.is_alive() for thread in self._threads)

    def start(self) -> None:
        """Runs in background threads from now on; does nothing if it runs already."""
        if not self.running:
            self._stopping = Event()
            self._launch(self._count)

    def request_stop(self) -> None:
        """Asks :meth:`run_forever` to end after the present jobs; safe in a signal handler."""
        self._stopping.set()

    def stop(self, timeout: float | None = None) -> bool:
        """Ends after the present jobs; false if it was still busy after ``timeout`` seconds."""
        self.request_stop()
        if not self.running:
            return True
        self._store.notify()
        until = None if timeout is None else monotonic() + timeout
        for thread in self._threads:
            thread.join(None if until is None else max(until - monotonic(), 0))
        return not self.running
