"""``Memory`` owns the parts and their life."""

from __future__ import annotations

import atexit
import time
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

from everlong.errors import InvalidScope, StoreError
from everlong.memory.scoped import ScopedMemory
from everlong.read.presets import PRESETS
from everlong.records import Principal, Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType

    from everlong.files.keeper import Keeper
    from everlong.protocols import Clock, Embedder, Index, Middleware, NewId, Store
    from everlong.read.presets import Preset
    from everlong.read.reader import Reader
    from everlong.telemetry import Metrics, TraceLog, Uses
    from everlong.telemetry.metrics import Instruments
    from everlong.transfer import Gate
    from everlong.workers import Worker
    from everlong.write.forget import Forgetter
    from everlong.write.review import Reviewer
    from everlong.write.upkeep import Upkeep
    from everlong.write.writer import Writer

__all__ = ["Memory", "Parts", "Status"]

_EVERYWHERE: Final = Scope()


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a memory is built from; :func:`everlong.config.build` chooses them."""

    store: Store
    index: Index
    embedder: Embedder | None
    extractor: str
    writer: Writer
    reviewer: Reviewer
    forgetter: Forgetter
    reader: Reader
    files: Keeper
    gate: Gate
    upkeep: Upkeep
    worker: Worker
    middleware: Sequence[Middleware]
    metrics: Metrics
    traces: TraceLog
    uses: Uses
    clock: Clock
    new_id: NewId
    on_recall: Callable[..., None]
    instruments: Instruments | None = None
    background: bool = True
    budget: int = 2000
    preset: Preset = PRESETS["default"]
    zone: str = "UTC"


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """A look at a memory: where it is, what it uses, how much work waits."""

    url: str
    embedder: str
    extractor: str
    waiting: int
    running: int
    parked: int
    calls: Mapping[tuple[str, str], int]


class Memory:
    """Long-term memory over one store, for many users. Safe for many threads.

    Use :func:`everlong.open_memory` to make one, and it as a context manager or :meth:`close` to end it. Work that
    waits is done by a background thread that starts with the first capture, unless ``worker = "none"`` is set.
    """

    def __init__(self, parts: Parts) -> None:
        self.parts = parts
        self._closed = False

    def at(self, scope: Scope, *, by: Principal | None = None) -> ScopedMemory:
        """The memory as seen from ``scope`` by ``by`` (default: the scope's own user).

        Raises:
            InvalidScope: the scope names no user and nobody was named to act: memory of several users is an
                operator's, so pass ``by=Principal(id=…, role="operator")``.
        """
        if not isinstance(scope, Scope):
            msg = f"a scope is needed, such as Scope(user='ann'), not {type(scope).__name__}"
            raise InvalidScope(msg)
        if by is None:
            if not scope.user:
                msg = "the scope names no user; name one, or act as an operator with by=Principal(role='operator', …)"
                raise InvalidScope(msg)
            by = Principal(id=scope.user)
        return ScopedMemory(self, scope, by)

    def drain(self, timeout: float = 60.0) -> int:
        """Does all waiting work now, whatever its debounce, in this thread; returns how many jobs were run.

        Work that failed and waits for its retry is left to that. Jobs that other workers hold are waited for.

        Raises:
            StoreError: work was still running elsewhere after ``timeout`` seconds.
        """
        store, worker = self.parts.store, self.parts.worker
        deadline = time.monotonic() + timeout
        with store.write() as tx:
            tx.jobs.hurry(_EVERYWHERE, now=self.parts.clock())
        ran = worker.run_due()
        self.parts.uses.store(store)
        while not worker.at_rest():
            if time.monotonic() > deadline:
                msg = f"work is still running elsewhere after {timeout:g} s; nothing is lost, it goes on there"
                raise StoreError(msg)
            done = worker.run_due()
            ran += done
            if not done:
                time.sleep(0.02)
        return ran

    def wake(self) -> None:
        """Sees to it that waiting work gets done: starts the background thread if this memory has one."""
        if self.parts.background and not self._closed and not self.parts.worker.running:
            atexit.register(self.close)
            self.parts.worker.start()

    def reembed(self) -> int:
        """Sees to it that every text gets a vector of the present embedder: after another was set, or after one was
        away. Returns at once how many places (users, say) have work; the background does it, batch by batch, and goes
        on where it stopped. Until a text has its vector it is found by its words; vectors of different embedders are
        never compared, and those of the earlier one are kept, so that setting it again needs no work."""
        places = self.parts.writer.reembed()
        self.wake()
        return places

    def status(self) -> Status:
        """Counts of jobs and calls, and which parts are active."""
        with self.parts.store.read() as tx:
            waiting, running, parked = (tx.jobs.count(state=s) for s in ("waiting", "running", "parked"))
        return Status(
            url=self.parts.store.url,
            embedder=self.parts.embedder.model if self.parts.embedder else "none (words only)",
            extractor=self.parts.extractor,
            waiting=waiting,
            running=running,
            parked=parked,
            calls=dict(self.parts.metrics.calls),
        )

    def close(self, *, timeout: float = 30.0) -> None:
        """Ends the memory. What this memory took in is extracted first, for ``timeout`` seconds at most; what is
        left, and all that others took in, stays in the store and is found by the next worker."""
        if self._closed:
            return
        self._closed = True
        atexit.unregister(self.close)
        with suppress(
            StoreError
        ):  # work that waits is found by the next worker, and counts of use are worth no failure
            if self.parts.worker.running:
                self.parts.worker.stop(timeout)
                self.parts.worker.finish(self.parts.writer.accepted, timeout)
            self.parts.uses.store(self.parts.store)
        self.parts.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
