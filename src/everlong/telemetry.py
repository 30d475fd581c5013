"""What happened and how long it took: refusals go to the journal, every call to the counters, recalls to the log."""

from __future__ import annotations

import logging
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock
from time import perf_counter
from typing import TYPE_CHECKING, Any, Final

from everlong.errors import AccessDenied, EverlongError, NotFound
from everlong.records import Entry, Recall, Scope, Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from everlong.protocols import Call, Clock, Middleware, NewId, Store

__all__ = ["Metrics", "TraceLog", "audit", "log_recall", "measure"]

_log = logging.getLogger("everlong")
_TRACES: Final = 1000


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


def log_recall(recall: Recall) -> None:
    """One structured log record per recall: session, query, hits, best score, and whether anything was found."""
    best = max((hit.score for hit in recall.hits), default=0.0)
    _log.info(
        "memory_retrieval",
        extra={
            "session_id": recall.trace.scope.session,
            "query": recall.trace.query.text,
            "hit_count": len(recall.hits),
            "top_score": best,
            "injected": bool(recall.hits),
            "trace_id": recall.trace.id,
        },
    )


class TraceLog:
    """The traces of the latest 1,000 recalls of this process, so that each can be explained afterwards.

    They live in memory only: a recall writes nothing to the store.
    """

    def __init__(self) -> None:
        self._traces: OrderedDict[str, Trace] = OrderedDict()
        self._lock = Lock()

    def keep(self, trace: Trace) -> None:
        """Remembers ``trace``, forgetting the oldest beyond the limit."""
        with self._lock:
            self._traces[trace.id] = trace
            while len(self._traces) > _TRACES:
                self._traces.popitem(last=False)

    def get(self, scope: Scope, trace_id: str) -> Trace:
        """The trace, if it was made for the same home scope.

        Raises:
            NotFound: no such trace here, or it is another scope's.
        """
        trace = self._traces.get(trace_id)
        if trace is None or trace.scope.home != scope.home:
            msg = f"no trace {trace_id!r} at {scope}; traces of the latest {_TRACES} recalls of this process are kept"
            raise NotFound(msg)
        return trace

    def erase(self, scope: Scope) -> None:
        """Forgets every trace made within ``scope``."""
        with self._lock:
            for trace_id in [i for i, trace in self._traces.items() if scope.covers(trace.scope)]:
                del self._traces[trace_id]
