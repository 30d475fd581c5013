"""What happened and how long it took: counters, refusals, the log, traces, uses of facts, and an examination of it all."""

from everlong.telemetry.calls import Metrics, audit, log_recall, measure
from everlong.telemetry.traces import TraceLog
from everlong.telemetry.usage import Uses

__all__ = ["Metrics", "TraceLog", "Uses", "audit", "log_recall", "measure"]
