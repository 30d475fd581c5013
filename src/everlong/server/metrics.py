"""What a memory counts, in the text format of Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from everlong.memory import Memory

__all__ = ["exposition"]


def exposition(memory: Memory) -> str:
    """Calls by action and outcome, the seconds they took, and jobs by state (of the whole store); with the setting
    ``metrics`` all that is measured, see ``docs/observability.md``."""
    if memory.parts.instruments is not None:
        return memory.parts.instruments.exposition()
    state = memory.status()
    lines = ["# HELP everlong_calls_total Operations on memory.", "# TYPE everlong_calls_total counter"]
    lines += [f"everlong_calls_total{_labels(*key)} {count}" for key, count in sorted(state.calls.items())]
    lines += ["# HELP everlong_call_seconds_total Seconds spent in them.", "# TYPE everlong_call_seconds_total counter"]
    seconds = dict(memory.parts.metrics.seconds)
    lines += [f"everlong_call_seconds_total{_labels(*key)} {spent:.6f}" for key, spent in sorted(seconds.items())]
    lines += ["# HELP everlong_jobs Background work in the store.", "# TYPE everlong_jobs gauge"]
    counts = {"waiting": state.waiting, "running": state.running, "parked": state.parked}
    lines += [f'everlong_jobs{{state="{name}"}} {count}' for name, count in counts.items()]
    return "\n".join(lines) + "\n"


def _labels(action: str, outcome: str) -> str:
    return f'{{action="{action}",outcome="{outcome}"}}'
