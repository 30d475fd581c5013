"""Spans: one for each operation, job and transaction, nested as they happen, without a word of what was said."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from everlong import Scope, open_memory
from everlong.errors import AccessDenied
from everlong.records import Principal

if TYPE_CHECKING:
    from collections.abc import Iterator

TALK = Scope(org="acme-org", user="ann-user", session="s-session")


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer", provider.get_tracer)
    yield exporter
    provider.shutdown()


def test_operations_jobs_and_transactions_are_spans(spans: InMemorySpanExporter) -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        ann = memory.at(TALK)
        ann.add([("user", "I am allergic to SECRET-WORDS.")])
        memory.drain()
        ann.recall("SECRET-WORDS")
        with pytest.raises(AccessDenied):
            memory.at(TALK, by=Principal(id="bob")).recall("SECRET-WORDS")
    made = spans.get_finished_spans()
    by_id = {each.context.span_id: each for each in made if each.context}
    names = {each.name for each in made}
    assert {
        "everlong.add",
        "everlong.recall",
        "everlong.job.extract",
        "everlong.store.write",
        "everlong.store.read",
    } <= names
    parents = {by_id[each.parent.span_id].name for each in made if each.parent and each.name == "everlong.store.write"}
    assert {"everlong.add", "everlong.job.extract"} <= parents
    recalls = [each for each in made if each.name == "everlong.recall"]
    assert dict(recalls[0].attributes or {})["everlong.hits"] == 2, "the fact and the turn"
    assert dict(recalls[1].attributes or {})["error.type"] == "AccessDenied"
    assert recalls[1].status.status_code is trace.StatusCode.ERROR
    told = " ".join(each.to_json() for each in made)
    for word in ("SECRET-WORDS", "ann-user", "acme-org", "s-session"):
        assert word not in told


def test_without_a_provider_nothing_happens() -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        assert memory.at(TALK).facts().items == ()
