"""A worker claims due jobs one at a time and runs the task of their kind."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import timedelta
from threading import Event, Thread
from typing import TYPE_CHECKING, Final

from everlong.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from everlong.protocols import Clock, Store
    from everlong.records import Job

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
        lease: timedelta = timedelta(minutes=5),
    ) -> None:
        self._store, self._tasks, self._clock, self._name = store, dict(tasks), clock, name
        self._random, self._retry, self._lease = random, retry or Retry(), lease
        self._stopping = Event()
        self._thread: Thread | None = None

    def run_once(self) -> bool:
        """Claims one due job and runs it; false when none was due."""
        now = self._clock()
        with self._store.write() as tx:
            job = tx.jobs.claim(list(self._tasks), worker=self._name, now=now, lease_until=now + self._lease)
        if job is None:
            return False
        try:
            self._tasks[job.kind](job)
        except Exception as error:  # noqa: BLE001 - the one place where any fault must leave the job waiting
            self._failed(job, error)
        return True

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

    def run_forever(self) -> None:
        """Runs jobs as they become due until :meth:`stop`. A database that is away is waited for."""
        while not self._stopping.is_set():
            try:
                busy = self.run_once()
                nap = 0.0 if busy else self._nap()
            except StoreError as error:
                _log.warning("store is unavailable, trying again: %s", error)
                nap = _LONGEST_NAP
            if nap:
                self._store.wait(nap)

    def _nap(self) -> float:
        with self._store.read() as tx:
            due = tx.jobs.next_due(list(self._tasks))
        if due is None:
            return _LONGEST_NAP
        return min(max((due - self._clock()).total_seconds(), 0.01), _LONGEST_NAP)

    @property
    def running(self) -> bool:
        """Whether the background thread runs."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Runs in a background thread from now on; does nothing if it runs already."""
        if not self.running:
            self._stopping.clear()
            self._thread = Thread(target=self.run_forever, name=f"everlong-{self._name}", daemon=True)
            self._thread.start()

    def request_stop(self) -> None:
        """Asks :meth:`run_forever` to end after the present job; safe in a signal handler."""
        self._stopping.set()

    def stop(self, timeout: float | None = None) -> bool:
        """Ends after the present job; false if it was still busy after ``timeout`` seconds."""
        self.request_stop()
        self._store.notify()
        if self._thread is not None:
            self._thread.join(timeout)
        return not self.running
