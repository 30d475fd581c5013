"""Counting that facts were recalled, off the read path: noted in memory, stored in batches."""

from __future__ import annotations

from collections import Counter
from threading import Lock
from typing import TYPE_CHECKING, Final

from everlong.records import Fact

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from everlong.protocols import Store
    from everlong.records import Hit, Scope

__all__ = ["Uses"]

_FULL: Final = 64
"""Noted facts from which a batch is worth a write."""
_MOST: Final = 10_000
"""Noted facts at most: a process that only reads, with nobody to store what it notes, must not grow without bound."""


class Uses:
    """How often facts were recalled since the last :meth:`store`. Safe for many threads.

    A recall only notes. The worker stores a full batch when it is idle; what is left is stored at the end. What a crash
    takes with it is lost: the counts steer what is kept when room is short, and are no record of what happened.
    """

    def __init__(self) -> None:
        self._noted: dict[tuple[Scope, str], tuple[int, datetime]] = {}
        self._lock = Lock()

    def note(self, hits: Iterable[Hit], at: datetime) -> None:
        """One use of each fact among ``hits``, in memory only."""
        with self._lock:
            for hit in hits:
                if isinstance(hit.record, Fact) and len(self._noted) < _MOST:
                    key = (hit.record.scope, hit.id)
                    count, latest = self._noted.get(key, (0, at))
                    self._noted[key] = (count + 1, max(at, latest))

    @property
    def full(self) -> bool:
        """Whether a batch waits."""
        return len(self._noted) >= _FULL

    def forget(self, scope: Scope) -> None:
        """Drops what was noted of facts kept within ``scope``, after an erasure."""
        with self._lock:
            for key in [key for key in self._noted if scope.home.contains(key[0])]:
                del self._noted[key]

    def store(self, store: Store) -> int:
        """Counts all that was noted, in one transaction; returns how many facts were counted. If the store is away,
        what was noted waits for the next time.

        Raises:
            StoreError: the store does not answer.
        """
        with self._lock:
            noted, self._noted = self._noted, {}
        if not noted:
            return 0
        try:
            with store.write() as tx:
                # The same order everywhere, so that two processes do not wait for each other in a circle.
                for scope in sorted({scope for scope, _ in noted}):
                    counts = Counter({name: count for (place, name), (count, _) in noted.items() if place == scope})
                    latest = max(at for (place, _), (_, at) in noted.items() if place == scope)
                    while counts:
                        tx.facts.touch(scope, sorted(counts), latest)
                        counts = Counter({name: count - 1 for name, count in counts.items() if count > 1})
        except BaseException:
            with self._lock:
                for key, (count, at) in noted.items():
                    more, later = self._noted.get(key, (0, at))
                    self._noted[key] = (count + more, max(at, later))
            raise
        return len(noted)
