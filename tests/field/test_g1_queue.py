"""G1, bytedance/deer-flow#2547, #2548, #4073, #2176: a queue keyed by thread only loses the second agent's turn, spins
on timers of no delay, and lets an urgent flush wait for the whole pause."""

from __future__ import annotations

import threading
import time

import pytest

from everlong import Scope
from everlong.testing.fakes import CountingIds, FakeClock
from tests.durability.gated import OPERATOR, Gate, facts, opened
from tests.durability.soak import marker

SAID = {
    Scope(user="u_a", agent="coder", session="t1"): "I write Rust",
    Scope(user="u_a", agent="writer", session="t1"): "我写小说",
    Scope(user="u_b", agent="coder", session="t1"): "I write Go",
    Scope(user="u_b", session="t1"): "我喜欢读诗",
    Scope(org="acme", user="u_a", agent="coder", session="t1"): "I write COBOL",
    Scope(user="u_a", agent="coder", session="t2"): "I also write Zig",
}


def test_equal_threads_of_other_agents_users_and_orgs_are_work_of_their_own(sqlite_url: str) -> None:
    with opened(sqlite_url) as memory:
        for scope, words in SAID.items():
            memory.at(scope).add([("user", words)])
        assert len(memory.at(Scope(), by=OPERATOR).jobs()) == len(SAID)
        memory.drain()
        for scope, words in SAID.items():
            assert words in facts(memory, scope)
        assert facts(memory, Scope(user="u_a", agent="writer")) == ["我写小说"]
        assert facts(memory, Scope(user="u_a", agent="coder")) == ["I also write Zig", "I write Rust"]


@pytest.fixture
def gate() -> Gate:
    return Gate(threading.Event(), threading.Event())


def test_a_hundred_adds_during_a_call_start_no_threads_and_do_not_spin(sqlite_url: str, gate: Gate) -> None:
    talk = Scope(user="u_a", session="t1")
    with opened(sqlite_url, gate, worker="thread") as memory:
        memory.at(talk).add([("user", marker(0, 0))])
        memory.at(talk).flush()
        assert gate.asked.wait(10)
        threads = threading.active_count()
        for number in range(1, 100):
            memory.at(talk).add([("user", marker(number % 2, number))])
        assert threading.active_count() <= threads
        states = [job.state for job in memory.at(talk).jobs()]
        assert sorted(states) == ["running", "waiting"]
        before = time.process_time()
        time.sleep(1)
        assert time.process_time() - before < 0.3
        gate.answer.set()
        memory.drain()
        assert len(facts(memory, talk)) == 100


def test_a_flush_while_busy_runs_right_after_the_present_work(sqlite_url: str, gate: Gate) -> None:
    talk = Scope(user="u_a", session="t1")
    with opened(sqlite_url, gate, worker="thread", worker_threads=1) as memory:
        memory.at(talk).add([("user", "first")])
        memory.at(talk).flush()
        assert gate.asked.wait(10)
        memory.at(talk).add([("user", "第二句")])
        assert memory.at(talk).flush() == 1
        gate.answer.set()
        began = time.monotonic()
        while facts(memory, talk) != ["first", "第二句"]:
            assert time.monotonic() - began < 2
            time.sleep(0.01)


def test_a_flush_outlasts_what_is_said_next() -> None:
    from everlong.config import Settings, build
    from tests.durability.gated import Echo

    clock = FakeClock()
    settings = Settings(url="sqlite://", embedder="none", worker="none")
    talk = Scope(user="u_a", session="t1")
    with build(settings, extractor=Echo(), clock=clock, new_id=CountingIds()) as memory:
        memory.at(talk).add([("user", "first")])
        memory.at(talk).flush()
        clock.advance(0.5)
        memory.at(talk).add([("user", "second")])
        assert memory.parts.worker.run_due() == 1
        assert facts(memory, talk) == ["first", "second"]
