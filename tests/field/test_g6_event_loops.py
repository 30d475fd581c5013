"""G6, bytedance/deer-flow#2615, #3411, doobidoo/mcp-memory-service#433: "Event loop is closed" on the second update, or
a loop that stands still while something is stored."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from everlong import AsyncMemory, Scope
from everlong.config import Settings, build
from everlong.testing.fakes import TableEmbedder
from tests.durability.gated import Echo, facts, opened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everlong.protocols import Vectors

ANN = Scope(user="ann", session="t1")


class SlowEmbedder(TableEmbedder):
    """Takes 50 ms for each call, as a service would."""

    def embed(self, texts: Sequence[str], *, query: bool = False) -> Vectors:
        time.sleep(0.05)
        return super().embed(texts, query=query)


def test_three_loops_one_after_another_a_running_loop_and_a_plain_thread(sqlite_url: str) -> None:
    core = opened(sqlite_url)
    memory = AsyncMemory(core)

    async def turn(words: str) -> None:
        await memory.at(ANN).add([("user", words)])
        await memory.drain()
        await memory.at(ANN).context(words)

    async def inside() -> None:
        """The synchronous API from within a running loop."""
        core.at(ANN).add([("user", "in a loop")])
        core.drain()

    said = ["first loop", "第二个循环", "third loop"]
    for words in said:
        asyncio.run(turn(words))
    asyncio.run(inside())
    thread = threading.Thread(target=lambda: (core.at(ANN).add([("user", "in a thread")]), core.drain()))
    thread.start()
    thread.join(20)
    assert facts(core, ANN) == sorted([*said, "in a loop", "in a thread"])
    core.close()


@pytest.mark.parametrize("worker", ["thread", "none"])
def test_the_loop_beats_on_while_facts_are_written_embedded_and_searched(sqlite_url: str, worker: Any) -> None:
    settings = Settings(url=sqlite_url, worker=worker, max_facts=500)
    core = build(settings, embedder=SlowEmbedder({}, 64), extractor=Echo())
    gaps: list[float] = []

    async def beat() -> None:
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.01)
            gaps.append(time.perf_counter() - before)

    async def serve() -> None:
        async with AsyncMemory(core) as memory:
            heart = asyncio.create_task(beat())
            users = [memory.at(Scope(user=f"user-{n}", session="s")) for n in range(20)]
            for number in range(3):
                await asyncio.gather(*(u.remember(f"note {number} 笔记") for u in users))
                await asyncio.gather(*(u.add([("user", f"turn {number}")]) for u in users))
                await asyncio.gather(*(u.recall("note 笔记") for u in users))
            heart.cancel()

    asyncio.run(serve())
    late = sorted(gaps)
    assert len(gaps) > 20
    # A loop blocked by a call would miss 50 ms each time; one long gap may be this machine's.
    assert late[int(len(late) * 0.95)] < 0.1
