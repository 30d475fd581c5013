"""Traces: why each question found what it found. Those of this process in memory; on request, or sampled, in the store."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from datetime import datetime
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from everlong.errors import NotFound, StoreError
from everlong.protocols import reading_with
from everlong.records import ALL_KINDS, Considered, Entry, Omitted, Query, Scope, Trace

if TYPE_CHECKING:
    from collections.abc import Callable

    from everlong.protocols import Store
    from everlong.records import Kind, Principal

    Epochs = Mapping[tuple[Scope, Kind], str]

__all__ = ["TraceLog", "from_payload", "to_payload"]

_log: Final = logging.getLogger("everlong")
_TRACES: Final = 1000
_ACTION: Final = "recall"
_TIMES: Final = tuple(each.name for each in fields(Query) if "datetime" in str(each.type))


class TraceLog:
    """Traces of the latest 1,000 questions of this process, and in the journal those that are to outlive it.

    A question is read-only unless its trace is to be stored: ``durable``, or by chance, for the share ``sample`` (0 to
    1) of all. A stored trace is a journal entry ``recall`` of the scope that asked, under the trace's id: it is seen by
    whoever may see that journal, and erased with it. It names records by id and holds the question and the block, with
    what ``redact`` takes out.
    """

    def __init__(
        self,
        store: Store,
        *,
        sample: float = 0.0,
        random: Callable[[], float],
        redact: Callable[[Any], Any],
    ) -> None:
        self._store, self._sample, self._random, self._redact = store, sample, random, redact
        self._traces: OrderedDict[str, tuple[Trace, Epochs]] = OrderedDict()
        self._lock = Lock()

    def epochs(self, scope: Scope) -> Epochs:
        """The epochs of all that ``scope`` sees, to be read before a question is asked: an erasure, whichever process
        it was made by, ends the trace of a question that was asked before it.

        That of files counts only where nothing else is kept: an edit renews it, too.
        """
        found = self._epochs(scope)
        busy = {place for place, kind in found if kind != "file"}
        return {(place, kind): epoch for (place, kind), epoch in found.items() if kind != "file" or place not in busy}

    def _epochs(self, scope: Scope) -> Epochs:
        with reading_with(None), self._store.read() as tx:
            return {key: revision.epoch for key, revision in tx.index.revisions(scope, ALL_KINDS).items()}

    def keep(self, trace: Trace, epochs: Epochs, *, by: Principal, durable: bool = False) -> None:
        """Remembers ``trace`` as long as its ``epochs`` last, forgetting the oldest in memory beyond the limit;
        ``durable`` also stores it."""
        with self._lock:
            self._traces[trace.id] = trace, epochs
            while len(self._traces) > _TRACES:
                self._traces.popitem(last=False)
        if durable:
            self._write(trace, by, "a trace was asked for")
        elif self._sample > 0 and self._random() < self._sample:
            try:
                self._write(trace, by, "sampled")
            except StoreError as error:  # nobody asked for it, and an answer is worth more
                _log.warning("a sampled trace was not stored: %s", error)

    def _write(self, trace: Trace, by: Principal, reason: str) -> None:
        payload = to_payload(trace)
        payload |= {name: self._redact(payload[name]) for name in ("query", "block", "omitted")}
        entry = Entry(
            id=trace.id,
            at=trace.at,
            scope=trace.scope,
            by=f"{by.role}:{by.id}",
            action=_ACTION,
            kind="trace",
            reason=reason,
            payload=payload,
        )
        with self._store.write() as tx:
            tx.journal.append(entry)

    def get(self, scope: Scope, trace_id: str) -> Trace:
        """The trace, if it was made at ``scope.home`` (in any conversation).

        Raises:
            NotFound: no such trace, or it is another scope's.
        """
        trace = self._remembered(trace_id) or self._stored(scope, trace_id)
        if trace is not None and trace.scope.home == scope.home:
            return trace
        raise NotFound(
            f"no trace {trace_id!r} at {scope}: the latest {_TRACES} of this process are kept, and those stored because "
            "the call said trace=True (--explain) or by the setting trace_sample"
        )

    def _remembered(self, trace_id: str) -> Trace | None:
        """The trace in memory, unless something that it may show was erased since."""
        with self._lock:
            held = self._traces.get(trace_id)
        if held is None:
            return None
        trace, epochs = held
        if epochs.items() <= self._epochs(trace.scope).items():
            return trace
        with self._lock:
            self._traces.pop(trace_id, None)
        return None

    def _stored(self, scope: Scope, trace_id: str) -> Trace | None:
        with self._store.read() as tx, suppress(NotFound):
            entry = tx.journal.get(scope, trace_id)
            return from_payload(entry) if entry.kind == "trace" else None
        return None

    def latest(self, scope: Scope, *, limit: int = 20) -> tuple[Trace, ...]:
        """Traces made at ``scope.home``, of this process and stored ones, newest first."""
        with self._lock:
            names = [trace.id for trace, _ in self._traces.values() if trace.scope.home == scope.home]
        here = [trace for trace in map(self._remembered, reversed(names[-limit:])) if trace]
        with self._store.read() as tx:
            stored = tx.journal.list(scope.home, action=_ACTION, limit=limit).items
        known = {trace.id: trace for trace in (*map(from_payload, stored), *here)}
        mine = [trace for trace in known.values() if trace.scope.home == scope.home]
        return tuple(sorted(mine, key=lambda trace: trace.id, reverse=True)[:limit])

    def erase(self, scope: Scope) -> None:
        """Forgets every trace in memory that may show something kept within ``scope``."""
        with self._lock:
            for trace_id in [i for i, (trace, _) in self._traces.items() if scope.home.covers(trace.scope)]:
                del self._traces[trace_id]


def to_payload(trace: Trace) -> dict[str, Any]:
    """A trace as JSON can hold it."""
    payload: dict[str, Any] = _plain(trace)
    for name in ("id", "scope"):
        del payload[name]
    return payload


def _plain(value: Any) -> Any:
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value.isoformat() if isinstance(value, datetime) else value


def from_payload(entry: Entry) -> Trace:
    """The trace that a journal entry holds. What a later version added to traces and this one does not know is left
    out."""
    held = dict(entry.payload)
    query = _known(Query, held["query"])
    query |= {name: datetime.fromisoformat(query[name]) for name in _TIMES if query.get(name)}
    query |= {name: tuple(value) for name, value in query.items() if isinstance(value, list)}
    made = _known(Trace, held) | {
        "query": Query(**query),
        "at": datetime.fromisoformat(held["at"]),
        "considered": tuple(Considered(**_known(Considered, each)) for each in held["considered"]),
        "omitted": tuple(Omitted(**_known(Omitted, each)) for each in held.get("omitted", ())),
    }
    return Trace(id=entry.id, scope=entry.scope, **made)


def _known(record: type, values: Mapping[str, Any]) -> dict[str, Any]:
    names = {each.name for each in fields(record)}
    return {name: value for name, value in values.items() if name in names}
