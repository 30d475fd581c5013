"""Metrics: every part tells its numbers, no label names anybody, and the dashboard asks for what there is."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everlong import Scope, open_memory
from everlong.config import build, load_settings
from everlong.errors import AccessDenied, ModelError
from everlong.records import Candidate, Extraction, Principal, Usage
from everlong.testing.fakes import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.memory import Memory
    from everlong.records import Batch
    from everlong.telemetry.metrics import Instruments

ROOT = Path(__file__).parent.parent.parent
TALK = Scope(org="acme-org", user="ann-user", session="s-session")


class Costly:
    """An extractor that costs tokens and fails when told."""

    name = "costly"

    def extract(self, batch: Batch) -> Extraction:
        if any("fail" in message.content for message in batch.messages):
            raise ModelError("the endpoint is away: SECRET-WORDS")
        candidates = tuple(Candidate(content=m.content, confidence=0.9) for m in batch.messages)
        return Extraction(
            candidates=candidates, extractor=self.name, usage=Usage(calls=2, input_tokens=70, output_tokens=9)
        )


@pytest.fixture
def memory() -> Iterator[Memory]:
    settings = load_settings(url="sqlite://", embedder="none", worker="none", metrics=True)
    with build(settings, extractor=Costly(), clock=FakeClock()) as opened:
        yield opened


def samples(memory: Memory) -> dict[str, float]:
    """Series with their labels, and their numbers."""
    assert memory.parts.instruments is not None
    lines = memory.parts.instruments.exposition().splitlines()
    pairs = (line.rpartition(" ") for line in lines if not line.startswith("#"))
    return {name: float(number) for name, _, number in pairs}


def instruments(memory: Memory) -> Instruments:
    assert memory.parts.instruments is not None
    return memory.parts.instruments


def test_capture_recall_and_what_is_injected(memory: Memory) -> None:
    ann = memory.at(TALK)
    turns = [("user", "I like green tea 我喜欢绿茶, password: hunter2secret9"), ("tool", "noise")]
    ann.add(turns)
    ann.add(turns)
    memory.drain()
    ann.recall("green tea 绿茶")
    ann.recall("zeppelin")
    block = ann.context("green tea")
    seen = samples(memory)
    assert seen['everlong_captured_messages_total{outcome="stored"}'] == 1
    assert seen['everlong_captured_messages_total{outcome="duplicate"}'] == 1
    assert seen['everlong_captured_messages_total{outcome="ignored"}'] == 2
    assert sum(number for name, number in seen.items() if name.startswith("everlong_redacted_total")) >= 1
    assert seen['everlong_recalls_total{outcome="miss"}'] == 1
    assert seen['everlong_recalls_total{outcome="hit"}'] == 2
    assert seen["everlong_injected_tokens_sum"] == block.tokens > 0
    assert seen["everlong_recall_candidates_count"] == 3
    assert seen['everlong_recall_stage_seconds_count{stage="compose"}'] == 1
    assert seen['everlong_operations_total{action="recall",outcome="ok"}'] == 2
    assert seen['everlong_operation_seconds_count{action="add"}'] == 2


def test_extraction_its_cost_its_failures_and_the_queue(memory: Memory) -> None:
    memory.at(TALK).add([("user", "I like green tea.")])
    seen = samples(memory)
    assert seen['everlong_jobs{state="waiting"}'] == 1
    assert seen["everlong_queue_lag_seconds"] == 0
    memory.drain()
    memory.at(TALK).add([("user", "please fail")])
    memory.drain()
    seen = samples(memory)
    assert seen['everlong_extractions_total{outcome="ok"}'] == 1
    assert seen['everlong_extractions_total{outcome="ModelError"}'] == 1
    assert seen["everlong_model_calls_total"] == 2
    assert seen['everlong_model_tokens_total{direction="input"}'] == 70
    assert seen['everlong_model_tokens_total{direction="output"}'] == 9
    assert seen['everlong_decisions_total{decision="add"}'] == 1
    assert seen['everlong_job_seconds_count{kind="extract",outcome="ok"}'] == 1
    assert seen['everlong_job_seconds_count{kind="extract",outcome="ModelError"}'] == 1
    clock = memory.parts.clock
    assert isinstance(clock, FakeClock)
    clock.advance(3600)
    assert samples(memory)["everlong_queue_lag_seconds"] > 3000


def test_the_store_and_its_refusals(memory: Memory) -> None:
    with pytest.raises(AccessDenied):
        memory.at(TALK, by=Principal(id="bob")).facts()
    seen = samples(memory)
    assert seen['everlong_operations_total{action="facts",outcome="AccessDenied"}'] == 1
    assert seen['everlong_store_seconds_count{mode="write"}'] >= 1
    assert seen['everlong_store_seconds_count{mode="read"}'] >= 1
    memory.parts.store.close()
    from everlong.errors import StoreError

    with pytest.raises(StoreError):
        memory.at(TALK).facts()
    assert re.search(r'everlong_store_errors_total\{error="\w+",mode="read"\} [1-9]', _without_queue(memory))


def _without_queue(memory: Memory) -> str:
    """The store is away, so the queue cannot be asked: the other families still can."""
    from prometheus_client import CollectorRegistry, generate_latest

    registry = CollectorRegistry()
    registry.register(instruments(memory)._store_errors)
    return generate_latest(registry).decode()


def test_no_label_names_anybody_or_holds_a_text(memory: Memory) -> None:
    ann = memory.at(TALK)
    ann.add([("user", "I like SECRET-WORDS tea"), ("user", "fail SECRET-WORDS")])
    memory.drain()
    ann.recall("SECRET-WORDS", trace=True)
    ann.forget_preview("SECRET-WORDS")
    text = instruments(memory).exposition()
    for word in ("SECRET-WORDS", "ann-user", "acme-org", "s-session"):
        assert word not in text
    labels = set(re.findall(r'(\w+)="', text))
    assert labels <= {"action", "outcome", "kind", "stage", "direction", "decision", "mode", "error", "state", "le"}


def test_the_dashboard_asks_for_exactly_what_is_exported(memory: Memory) -> None:
    dashboard = json.loads((ROOT / "deploy" / "grafana" / "everlong.json").read_text("utf-8"))
    asked = {
        name
        for panel in dashboard["panels"]
        for target in panel["targets"]
        for name in re.findall(r"\beverlong_\w+", target["expr"])
    }
    exported = instruments(memory).names()
    assert asked <= exported
    families = {re.sub(r"_(?:bucket|sum|count|total)$", "", name) for name in exported}
    assert families == {re.sub(r"_(?:bucket|sum|count|total)$", "", name) for name in asked}, "none is without a panel"


def test_every_metric_is_documented(memory: Memory) -> None:
    documented = set(re.findall(r"`(everlong_\w+)`", (ROOT / "docs" / "observability.md").read_text("utf-8")))
    families = {re.sub(r"_(?:bucket|sum|count)$", "", name) for name in instruments(memory).names()}
    assert documented == families


def test_memory_loads_no_metrics_unless_they_are_wished() -> None:
    program = (
        "import sys; from everlong import open_memory, Scope\n"
        "with open_memory('sqlite://', embedder='none', worker='none') as m: m.at(Scope(user='a')).remember('Tea is good')\n"
        "assert m.parts.instruments is None\n"
        "print([n for n in ('prometheus_client', 'opentelemetry') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_two_memories_in_one_process_count_each_for_itself() -> None:
    with (
        open_memory("sqlite://", embedder="none", worker="none", metrics=True) as one,
        open_memory("sqlite://", embedder="none", worker="none", metrics=True) as other,
    ):
        one.at(TALK).facts()
        assert 'everlong_operations_total{action="facts",outcome="ok"}' in samples(one)
        assert 'everlong_operations_total{action="facts",outcome="ok"}' not in samples(other)
