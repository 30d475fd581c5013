"""What happened and how long it took: refusals go to the journal, every call to the counters, questions to the log."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any

from everlong.errors import AccessDenied, EverlongError
from everlong.records import Entry

if TYPE_CHECKING:
    from collections.abc import Callable

    from everlong.protocols import Call, Clock, Middleware, NewId, Store
    from everlong.records import Recall

__all__ = ["Metrics", "audit", "log_recall", "measure"]

_log = logging.getLogger("everlong")


@dataclass(slots=True)
class Metrics:
    """Counts and total seconds of operations by ``(action, outcome)``; the outcome is ``ok`` or an error's name."""

    calls: dict[tuple[str, str], int] = field(default_factory=dict)
    seconds: dict[tuple[str, str], float] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)

    def record(self, action: str, outcome: str, seconds: float) -> None:
        """Counts one call."""
        key = (action, outcome)
        with self._lock:
            self.calls[key] = self.calls.get(key, 0) + 1
            self.seconds[key] = self.seconds.get(key, 0.0) + seconds


def measure(metrics: Metrics) -> Middleware:
    """A middleware that counts and times every call."""

    def skin(call: Call, handler: Callable[[Call], Any]) -> Any:
        started = perf_counter()
        outcome = "ok"
        try:
            return handler(call)
        except EverlongError as error:
            outcome = type(error).__name__
            raise
        finally:
            metrics.record(call.action, outcome, perf_counter() - started)

    return skin


def audit(store: Store, clock: Clock, new_id: NewId) -> Middleware:
    """A middleware that writes every refusal to the journal of the scope that was refused.

    Changes need no skin: the writer journals them in the transaction that makes them.
    """

    def skin(call: Call, handler: Callable[[Call], Any]) -> Any:
        try:
            return handler(call)
        except AccessDenied as refusal:
            entry = Entry(
                id=new_id("log"),
                at=clock(),
                scope=call.scope,
                by=f"{call.by.role}:{call.by.id}",
                action=f"denied:{call.action}",
                reason=refusal.reason,
            )
            with store.write() as tx:
                tx.journal.append(entry)
            raise

    return skin


def log_recall(recall: Recall, *, injected: bool) -> None:
    """One structured log record ``memory_retrieval`` per question that was searched for: session, query, number of
    hits, best score (0 if there is none), and whether anything was given to the model."""
    _log.info(
        "memory_retrieval",
        extra={
            "session_id": recall.trace.scope.session,
            "query": recall.trace.query.text,
            "hit_count": len(recall.hits),
            "top_score": max((hit.score for hit in recall.hits), default=0.0),
            "injected": injected,
            "trace_id": recall.trace.id,
        },
    )
