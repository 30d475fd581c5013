"""A worker in a process of its own whose model answers only when the test lets it."""

from __future__ import annotations

import multiprocessing
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from everlong import Principal, Scope
from everlong.config import Settings, build
from everlong.records import Candidate, Evidence, Extraction

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.memory import Memory
    from everlong.records import Batch

FORK = multiprocessing.get_context("fork")
OPERATOR = Principal(id="op", role="operator")


@dataclass(frozen=True)
class Gate:
    """``asked`` is set while a model call has begun; it ends when ``answer`` is set."""

    asked: Any
    answer: Any


class Echo:
    """Makes each user message one fact, its words a section of the profile; waits at the gate if there is one."""

    name = "echo"

    def __init__(self, gate: Gate | None = None) -> None:
        self._gate = gate
        self.calls = 0

    def extract(self, batch: Batch) -> Extraction:
        self.calls += 1
        if self._gate:
            self._gate.asked.set()
            assert self._gate.answer.wait(30)
        said = [m for m in batch.messages if m.role == "user"]
        facts = (
            Candidate(content=m.content, confidence=0.9, evidence=(Evidence(message_id=m.id, quote=m.content),))
            for m in said
        )
        focus = {"topOfMind": said[-1].content} if said else {}
        return Extraction(candidates=tuple(facts), sections=focus, extractor=self.name)


def opened(url: str, gate: Gate | None = None, **settings: Any) -> Memory:
    values: dict[str, Any] = {"embedder": "none", "worker": "none", "max_facts": 500, **settings}
    return build(Settings(url=url, **values), extractor=Echo(gate))


def _work(url: str, gate: Gate, settings: dict[str, Any]) -> None:
    opened(url, gate, **settings).parts.worker.run_forever()


@contextmanager
def elsewhere(url: str, **settings: Any) -> Iterator[Gate]:
    """A worker process, from now until the block ends."""
    gate = Gate(FORK.Event(), FORK.Event())
    worker = FORK.Process(target=_work, args=(url, gate, settings), daemon=True)
    worker.start()
    try:
        yield gate
    finally:
        worker.kill()
        worker.join()


def settle(memory: Memory, seconds: float = 20) -> None:
    """Waits until no work is left, hurrying what waits."""
    everything = memory.at(Scope(), by=OPERATOR)
    until = time.monotonic() + seconds
    while jobs := everything.jobs():
        assert time.monotonic() < until, jobs
        everything.flush()
        time.sleep(0.02)


def facts(memory: Memory, scope: Scope) -> list[str]:
    """What is known at ``scope`` in any state, sorted."""
    found = memory.at(scope, by=OPERATOR).facts(status=None, limit=500)
    return sorted(fact.content for fact in found.items)
