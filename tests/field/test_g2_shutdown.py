"""G2, bytedance/deer-flow#4180: a queued turn, SIGTERM, and nothing is ever remembered of it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from everlong import Scope
from everlong.testing.model_server import Fault, ModelServer
from tests.durability.gated import facts, opened

if TYPE_CHECKING:
    from collections.abc import Mapping

ANN, BOB = Scope(user="ann", session="s"), Scope(user="bob", session="s")
SAID = {ANN: "I keep bees on the roof", BOB: "我在屋顶上养蜜蜂"}


def answer(body: Mapping[str, Any]) -> str:
    """One fact for what was said, whichever it was."""
    words = next(each for each in SAID.values() if each in str(body["messages"]))
    fact = {"message": "m1", "quote": words, "content": words, "category": "context", "confidence": 0.95}
    more = {"valid_from": None, "valid_until": None, "scope": "user", "durability": "lasting", "replaces": []}
    part = {"shouldUpdate": False, "summary": ""}
    user = dict.fromkeys(("workContext", "personalContext", "topOfMind"), part)
    history = dict.fromkeys(("recentMonths", "earlierContext", "longTermBackground"), part)
    update = {"newFacts": [fact | more], "factsToRemove": [], "user": user, "history": history}
    return json.dumps(update, ensure_ascii=False)


def worker(url: str, server: ModelServer) -> subprocess.Popen[bytes]:
    settings = {
        "EVERLONG_EXTRACTOR": "llm",
        "EVERLONG_MODEL": "openai:stub",
        "EVERLONG_BASE_URL": server.url,
        "EVERLONG_API_KEY": "none",
        "EVERLONG_EMBEDDER": "none",
        "EVERLONG_LEASE_SECONDS": "1",
        "EVERLONG_WORKER_THREADS": "1",
    }
    command = [sys.executable, "-m", "everlong", "worker", "--url", url]
    return subprocess.Popen(command, env={**os.environ, **settings}, stdout=subprocess.DEVNULL)


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_a_worker_that_is_stopped_finishes_its_call_and_leaves_the_rest(sqlite_url: str, how: signal.Signals) -> None:
    with ModelServer() as server, opened(sqlite_url) as memory:
        server.rules.append(answer)
        server.fail(Fault(delay=1.0))
        for scope, words in SAID.items():
            memory.at(scope).add([("user", words)])
        memory.at(ANN).flush()
        process = worker(sqlite_url, server)
        try:
            until = time.monotonic() + 20
            while not server.requests:
                assert time.monotonic() < until
                time.sleep(0.01)
            process.send_signal(how)
            code = process.wait(10)
        finally:
            process.kill()
        killed = how == signal.SIGKILL
        assert code == (-how if killed else 0)
        assert facts(memory, ANN) == ([] if killed else [SAID[ANN]])
        assert facts(memory, BOB) == []
        assert [job.state for job in memory.at(BOB).jobs()] == ["waiting"]
        if killed:
            time.sleep(1.1)  # its lease lapses
        memory.drain()
        for scope, words in SAID.items():
            assert facts(memory, scope) == [words]
            assert [f.confirmations for f in memory.at(scope).facts().items] == [0]


HOST = """
import os, signal, sys
from everlong import Scope, open_memory
memory = open_memory(sys.argv[1], embedder="none", lease_seconds=1)
memory.at(Scope(user="ann", session="s")).add([("user", sys.argv[3])])
end = sys.argv[2]
if end == "raises":
    raise SystemExit(3)
if end in ("SIGTERM", "SIGKILL"):
    os.kill(os.getpid(), getattr(signal, end))
"""


@pytest.mark.parametrize(
    ("end", "code", "words"),
    [
        ("returns", 0, "I live in Lisbon."),
        ("raises", 3, "我住在里斯本。"),
        ("SIGTERM", -15, "I live in Lisbon."),
        ("SIGKILL", -9, "我住在里斯本。"),
    ],
)
def test_a_host_that_ends_in_the_pause_has_learned_or_left_it_to_the_next(
    sqlite_url: str, end: str, code: int, words: str
) -> None:
    from everlong import open_memory

    host = subprocess.run([sys.executable, "-c", HOST, sqlite_url, end, words], check=False, timeout=30)
    assert host.returncode == code
    with open_memory(sqlite_url, embedder="none", worker="none") as memory:
        orderly = code >= 0
        assert len(memory.at(ANN).facts().items) == orderly
        assert memory.drain() == (not orderly)
        assert len(memory.at(ANN).facts().items) == 1
        assert len(memory.at(ANN).extractions().items) == 1
