"""Prometheus metrics (extra ``metrics``): the instruments, and what each operation tells them.

No label holds a text or names a user, a session or an organisation: labels are actions, kinds, stages and classes of
errors, all of them few. ``everlong.telemetry`` itself imports none of this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from everlong.errors import MissingExtra
from everlong.records import Added, Context, Recall, Scope

try:
    from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
    from prometheus_client.core import GaugeMetricFamily
except ImportError as missing:
    raise MissingExtra("metrics", "metrics") from missing

if TYPE_CHECKING:
    from collections.abc import Iterable

    from everlong.protocols import Clock, Store
    from everlong.records import ExtractionRecord, Trace

__all__ = ["Instruments"]

_FAST: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
"""Seconds: from a question answered from memory (0.03 ms) to a store that makes writers wait."""
_SLOW: Final = (0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300)
"""Seconds of work that may ask a model."""
_COUNTS: Final = (0, 1, 2, 5, 10, 20, 50, 100, 1000, 10_000)
_TOKENS: Final = (0, 50, 100, 250, 500, 1000, 2000, 4000, 8000)


class Instruments:
    """All metrics of one memory, in a registry of its own. Safe for many threads."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self.registry = CollectorRegistry()
        self.registry.register(_Queue(store, clock))
        made: dict[str, Any] = {"registry": self.registry}
        self._operations = Counter(
            "everlong_operations", "Operations by outcome: ok, or the class of an error.", ["action", "outcome"], **made
        )
        self._operation_seconds = Histogram(
            "everlong_operation_seconds", "How long operations took.", ["action"], buckets=_FAST, **made
        )
        self._captured = Counter(
            "everlong_captured_messages", "Messages given to add: stored, duplicate or ignored.", ["outcome"], **made
        )
        self._redacted = Counter(
            "everlong_redacted", "What was taken out of text before it was stored.", ["kind"], **made
        )
        self._recalls = Counter(
            "everlong_recalls", "Questions by whether something was found: hit or miss.", ["outcome"], **made
        )
        self._stage_seconds = Histogram(
            "everlong_recall_stage_seconds", "How long each stage of a question took.", ["stage"], buckets=_FAST, **made
        )
        self._candidates = Histogram(
            "everlong_recall_candidates", "Candidates that were scored for a question.", buckets=_COUNTS, **made
        )
        self._injected = Histogram("everlong_injected_tokens", "Tokens of a prompt block.", buckets=_TOKENS, **made)
        self._extractions = Counter(
            "everlong_extractions", "Extractions by outcome: ok, or the class of an error.", ["outcome"], **made
        )
        self._extraction_seconds = Histogram(
            "everlong_extraction_seconds", "How long the extractor took.", buckets=_SLOW, **made
        )
        self._calls = Counter("everlong_model_calls", "Calls of the extraction model.", **made)
        self._tokens = Counter(
            "everlong_model_tokens",
            "Tokens of the extraction model, as the endpoint counts them.",
            ["direction"],
            **made,
        )
        self._decisions = Counter(
            "everlong_decisions", "What became of what extractions proposed, by decision.", ["decision"], **made
        )
        self._jobs = Histogram(
            "everlong_job_seconds", "Background work by kind and outcome.", ["kind", "outcome"], buckets=_SLOW, **made
        )
        self._store_seconds = Histogram(
            "everlong_store_seconds", "Transactions, read or write.", ["mode"], buckets=_FAST, **made
        )
        self._store_errors = Counter(
            "everlong_store_errors", "Transactions that the store failed.", ["mode", "error"], **made
        )

    def exposition(self) -> str:
        """Every metric in Prometheus' text format."""
        return generate_latest(self.registry).decode()

    def names(self) -> frozenset[str]:
        """The names of all series, as queries use them."""
        suffixes = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}
        return frozenset(
            family.name + suffix for family in self.registry.collect() for suffix in suffixes.get(family.type, ("",))
        )

    def operation(self, action: str, outcome: str, seconds: float, result: object) -> None:
        """One operation has ended; ``result`` is what it gave."""
        self._operations.labels(action, outcome).inc()
        self._operation_seconds.labels(action).observe(seconds)
        if isinstance(result, Added):
            self._added(result)
        elif isinstance(result, Recall):
            self._asked(result.trace, found=bool(result.hits))
        elif isinstance(result, Context):
            self._injected.observe(result.tokens)
            if result.trace is not None:
                self._asked(result.trace, found=bool(result.hits))

    def _added(self, added: Added) -> None:
        numbers = {"stored": added.message_ids, "duplicate": added.duplicates, "ignored": added.ignored}
        for outcome, found in numbers.items():
            self._captured.labels(outcome).inc(len(found))
        for kind, number in added.redacted.items():
            self._redacted.labels(kind).inc(number)

    def _asked(self, trace: Trace, *, found: bool) -> None:
        self._recalls.labels("hit" if found else "miss").inc()
        self._candidates.observe(len(trace.considered))
        for stage, milliseconds in trace.milliseconds.items():
            self._stage_seconds.labels(stage).observe(milliseconds / 1000)

    def extraction(self, record: ExtractionRecord) -> None:
        """One extraction was recorded, landed or failed."""
        self._extractions.labels(record.error.partition(":")[0] or "ok").inc()
        self._extraction_seconds.observe(record.milliseconds / 1000)
        self._calls.inc(record.usage.calls)
        self._tokens.labels("input").inc(record.usage.input_tokens)
        self._tokens.labels("output").inc(record.usage.output_tokens)
        for decision in record.decisions:
            self._decisions.labels(decision.kind).inc()
        if record.skipped:
            self._decisions.labels("skipped").inc(len(record.skipped))

    def job(self, kind: str, outcome: str, seconds: float) -> None:
        """One job was run."""
        self._jobs.labels(kind, outcome).observe(seconds)

    def transaction(self, mode: str, error: str, seconds: float) -> None:
        """One transaction has ended; ``error`` is empty, or the class of the store's failure."""
        self._store_seconds.labels(mode).observe(seconds)
        if error:
            self._store_errors.labels(mode, error).inc()


class _Queue:
    """How much work waits and for how long, asked of the store when metrics are read: it is shared by all processes."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def collect(self) -> Iterable[Any]:
        jobs = GaugeMetricFamily("everlong_jobs", "Jobs in the store by state.", labels=["state"])
        late = GaugeMetricFamily("everlong_queue_lag_seconds", "For how long the most overdue job has been due.")
        with self._store.read() as tx:
            for state in ("waiting", "running", "parked"):
                jobs.add_metric([state], tx.jobs.count(state=state))
            waiting = tx.jobs.list(Scope(), state="waiting", limit=1)
        now = self._clock()
        late.add_metric([], max([0.0, *((now - job.run_after).total_seconds() for job in waiting)]))
        yield jobs
        yield late

    def describe(self) -> Iterable[Any]:
        """The same families without numbers, so that registering asks nothing of the store."""
        return [
            GaugeMetricFamily("everlong_jobs", "Jobs in the store by state."),
            GaugeMetricFamily("everlong_queue_lag_seconds", "For how long the most overdue job has been due."),
        ]
