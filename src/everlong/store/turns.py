"""Whose turn it is to write: first come, first served among threads, then among processes by a lock file; and units of
work that share one commit."""

from __future__ import annotations

import threading
from collections import deque
from contextlib import contextmanager
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from everlong.errors import StoreUnavailable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import TextIO

    from everlong.errors import EverlongError

PATIENCE: Final = 30.0
"""Seconds a writer waits for its turn: 300 times the worst wait measured with four busy processes."""

_MOST: Final = 64
_LONGEST: Final = 0.05
"""Units of work that share one commit, and seconds after which it takes no more: so long do others wait at most."""


class Turns:
    """A queue of threads."""

    def __init__(self, patience: float = PATIENCE) -> None:
        self._patience = patience
        self._mutex = threading.Lock()
        self._queue: deque[threading.Lock] = deque()
        self._busy = False

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Waits for a turn and gives it back; raises as :meth:`enter`."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """Waits for a turn.

        Raises:
            StoreUnavailable: it did not come in time.
        """
        with self._mutex:
            if not self._busy:
                self._busy = True
                return
            mine = threading.Lock()
            mine.acquire()
            self._queue.append(mine)
        if mine.acquire(timeout=self._patience):
            return
        with self._mutex:
            if mine in self._queue:
                self._queue.remove(mine)
                raise _late("a thread of this process")
        # The turn came in the very moment in which the wait ended.

    def leave(self) -> None:
        """Gives the turn back."""
        with self._mutex:
            self._busy = self._passed()

    def pass_on(self) -> bool:
        """Gives the turn to the next in the queue; false, and the turn stays, when nobody waits."""
        with self._mutex:
            return self._passed()

    def _passed(self) -> bool:
        if self._queue:
            self._queue.popleft().release()
            return True
        return False


class Batch:
    """Units of work, one after another, that share one commit: of all that costs, the disk's confirmation costs most."""

    def __init__(self, lock: TextIO | None) -> None:
        self.size = 0
        self.broken = False
        self._lock = lock
        self._until = monotonic() + _LONGEST
        self._over = threading.Event()
        self._error: EverlongError | None = None

    def takes_more(self) -> bool:
        """Whether another unit may join."""
        return 0 < self.size < _MOST and not self.broken and monotonic() < self._until

    def end(self, error: EverlongError | None) -> None:
        """Lets other processes write, and tells everyone in :meth:`wait` how it ended."""
        if self._lock:
            self._lock.close()
        self._error = error
        self._over.set()

    def wait(self, patience: float) -> None:
        """Blocks until the commit.

        Raises:
            EverlongError: it failed, or did not come in time: whether it will is not known then.
        """
        if not self._over.wait(patience):
            raise _late("a thread that shares our commit")
        if self._error:
            raise type(self._error)(str(self._error)) from self._error


def hold(lock: Path, patience: float) -> TextIO | None:
    """The lock among processes, once it is ours; closing it gives it back. ``None`` on systems without such locks, where
    SQLite's own, less fair, still keep writers apart.

    Raises:
        StoreUnavailable: it did not come in time, or the file cannot be opened.
    """
    try:
        import fcntl
    except ImportError:
        return None
    try:
        file = open(lock, "a")  # noqa: PTH123, SIM115 (stays open as long as the turn lasts)
    except OSError as error:
        raise StoreUnavailable(f"cannot open {lock} ({error}): its folder must be writable") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return _wait_for(file, fcntl, patience)
    return file


def _wait_for(file: TextIO, fcntl: Any, patience: float) -> TextIO:
    """Queues in the kernel, in a thread because that wait has no end of its own; asking again and again would starve."""
    state = threading.Lock()
    came, left = threading.Event(), threading.Event()

    def queue() -> None:
        fcntl.flock(file, fcntl.LOCK_EX)
        with state:
            came.set()
            if left.is_set():
                file.close()

    threading.Thread(target=queue, daemon=True, name="everlong-turn").start()
    came.wait(patience)
    with state:
        if came.is_set():
            return file
        left.set()
    raise _late("another process")


def _late(who: str) -> StoreUnavailable:
    return StoreUnavailable(f"{who} has been writing for too long: find it and stop it, or try again")
