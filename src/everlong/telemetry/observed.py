"""Where spans and metrics look on: round every operation, job and transaction."""

from __future__ import annotations

from contextlib import contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

from everlong.errors import EverlongError, StoreError
from everlong.telemetry.spans import span

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from contextlib import AbstractContextManager

    from everlong.protocols import Call, Middleware, Store, Transaction
    from everlong.records import Job
    from everlong.telemetry.metrics import Instruments

__all__ = ["ObservedStore", "observe", "observed_tasks"]


def observe(instruments: Instruments | None) -> Middleware:
    """A middleware that makes each operation a span, and tells ``instruments`` of it."""

    def skin(call: Call, handler: Callable[[Call], Any]) -> Any:
        started, outcome, result = perf_counter(), "ok", None
        try:
            with span(call.action) as made:
                result = handler(call)
                _tell(made, result)
                return result
        except Exception as error:
            outcome = type(error).__name__ if isinstance(error, EverlongError) else "unexpected"
            raise
        finally:
            if instruments is not None:
                instruments.operation(call.action, outcome, perf_counter() - started, result)

    return skin


def _tell(made: Any, result: object) -> None:
    for name in ("hits", "mentions", "message_ids"):
        found = getattr(result, name, None)
        if isinstance(found, tuple):
            made.set_attribute(f"everlong.{name}", len(found))
    tokens = getattr(result, "tokens", None)
    if isinstance(tokens, int):
        made.set_attribute("everlong.tokens", tokens)


def observed_tasks(
    tasks: Mapping[str, Callable[[Job], None]], instruments: Instruments | None
) -> dict[str, Callable[[Job], None]]:
    """The worker's tasks, each run a span and an observation."""
    return {kind: _observed(task, kind, instruments) for kind, task in tasks.items()}


def _observed(task: Callable[[Job], None], kind: str, instruments: Instruments | None) -> Callable[[Job], None]:
    def run(job: Job) -> None:
        started, outcome = perf_counter(), "ok"
        try:
            with span(f"job.{kind}", attempts=job.attempts):
                task(job)
        except Exception as error:
            outcome = type(error).__name__ if isinstance(error, EverlongError) else "unexpected"
            raise
        finally:
            if instruments is not None:
                instruments.job(kind, outcome, perf_counter() - started)

    return run


class ObservedStore:
    """A store whose transactions are timed; all else is the store's own."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.instruments: Instruments | None = None

    @property
    def url(self) -> str:
        """Where it is, without credentials."""
        return self._store.url

    def read(self) -> AbstractContextManager[Transaction]:
        """See :meth:`everlong.protocols.Store.read`."""
        return self._observed("read", self._store.read)

    def write(self) -> AbstractContextManager[Transaction]:
        """See :meth:`everlong.protocols.Store.write`."""
        return self._observed("write", self._store.write)

    @contextmanager
    def _observed(self, mode: str, begin: Callable[[], AbstractContextManager[Transaction]]) -> Iterator[Transaction]:
        started, failed = perf_counter(), ""
        try:
            with span(f"store.{mode}"), begin() as tx:
                yield tx
        except StoreError as error:
            failed = type(error).__name__
            raise
        finally:
            if self.instruments is not None:
                self.instruments.transaction(mode, failed, perf_counter() - started)

    def wait(self, timeout: float) -> bool:
        """See :meth:`everlong.protocols.Store.wait`."""
        return self._store.wait(timeout)

    def notify(self) -> None:
        """See :meth:`everlong.protocols.Store.notify`."""
        self._store.notify()

    def close(self) -> None:
        """See :meth:`everlong.protocols.Store.close`."""
        self._store.close()
