"""The async face has every operation of the core, with the same parameters, and works from any event loop."""

from __future__ import annotations

import asyncio
import inspect

import pytest

from everlong import AsyncMemory, Scope, open_memory
from everlong.aio import AsyncFiles, AsyncInbox, AsyncScopedMemory, AsyncSkillShelf, AsyncTransfer, AsyncUpkeep
from everlong.memory import Files, Inbox, Memory, ScopedMemory, SkillShelf, Transfer, Upkeep


def _public(cls: type) -> dict[str, inspect.Signature]:
    members = inspect.getmembers(cls, inspect.isfunction)
    return {name: inspect.signature(member) for name, member in members if not name.startswith("_")}


@pytest.mark.parametrize(
    ("core", "face"),
    [
        (ScopedMemory, AsyncScopedMemory),
        (Memory, AsyncMemory),
        (Inbox, AsyncInbox),
        (Files, AsyncFiles),
        (SkillShelf, AsyncSkillShelf),
        (Transfer, AsyncTransfer),
        (Upkeep, AsyncUpkeep),
    ],
)
def test_same_operations_with_the_same_parameters(core: type, face: type) -> None:
    mine = _public(core)
    for here_only in ("wake", "as_seen_by", "approved_at"):
        mine.pop(here_only, None)
    assert {name: s.parameters for name, s in mine.items()} == {name: s.parameters for name, s in _public(face).items()}


def test_works_from_several_loops_one_after_another() -> None:
    memory = AsyncMemory(open_memory("sqlite://", embedder="none", worker="none"))

    async def one_turn(number: int) -> int:
        ann = memory.at(Scope(user="ann", session="s"))
        await ann.add([("user", f"I have {number + 2} cats.")])
        await memory.drain()
        return len(await ann.messages())

    assert [asyncio.run(one_turn(n)) for n in range(3)] == [1, 2, 3]
    asyncio.run(memory.close())


def test_many_at_once_are_served_without_blocking_the_loop() -> None:
    async def body() -> tuple[int, float]:
        async with AsyncMemory(open_memory("sqlite://", embedder="none", worker="none")) as memory:
            gaps = []

            async def heartbeat() -> None:
                loop = asyncio.get_running_loop()
                while True:
                    before = loop.time()
                    await asyncio.sleep(0.01)
                    gaps.append(loop.time() - before)

            beat = asyncio.create_task(heartbeat())
            users = [memory.at(Scope(user=f"u{n}", session="s")) for n in range(100)]
            await asyncio.gather(*(u.add([("user", "I like tea.")]) for u in users))
            beat.cancel()
            return sum([len(await u.messages()) for u in users]), max(gaps)

    stored, longest = asyncio.run(body())
    assert stored == 100
    assert longest < 0.5
