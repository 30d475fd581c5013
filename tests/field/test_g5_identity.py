"""G5, bytedance/deer-flow#2647, #3010: the request's user lives in a context variable, which is empty on the worker's
thread, so that updates land with the default user. Here identity is part of what is queued."""

from __future__ import annotations

import asyncio
import contextvars
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from everlong import AsyncMemory, Scope
from tests.durability.gated import facts, opened, settle

if TYPE_CHECKING:
    from everlong.memory import Memory

current: contextvars.ContextVar[str] = contextvars.ContextVar("current", default="")
USERS = [*(f"u_{n}" for n in range(12)), "安娜", "李雷", "a@b.c", " x "]


def words(user: str) -> str:
    return f"my badge says {user!r}"


def scope() -> Scope:
    return Scope(user=current.get(), agent="coder", session="t1")


def check(memory: Memory) -> None:
    settle(memory)
    for user in USERS:
        assert facts(memory, Scope(user=user, agent="coder")) == [words(user)]
        (fact,) = memory.at(Scope(user=user, agent="coder")).facts().items
        assert fact.scope == Scope(user=user, agent="coder")
        assert fact.session == "t1"
    assert {fact.scope.user for fact in memory.at(Scope(user="nobody")).facts().items} == set()


def test_the_user_is_taken_when_it_is_queued_not_when_it_is_done(sqlite_url: str) -> None:
    with opened(sqlite_url, worker="thread") as memory:
        for user in USERS:
            current.set(user)
            memory.at(scope()).add([("user", words(user))])
        current.set("")
        check(memory)


def test_the_same_from_threads_that_share_nothing(sqlite_url: str) -> None:
    with opened(sqlite_url, worker="thread") as memory:

        def request(user: str) -> None:
            current.set(user)
            memory.at(scope()).add([("user", words(user))])

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(request, USERS))
        check(memory)


def test_the_same_from_tasks_of_one_loop(sqlite_url: str) -> None:
    core = opened(sqlite_url, worker="thread")

    async def request(memory: AsyncMemory, user: str) -> None:
        current.set(user)
        await asyncio.sleep(0)
        await memory.at(scope()).add([("user", words(user))])

    async def serve() -> None:
        async with AsyncMemory(core) as memory:
            await asyncio.gather(*(request(memory, user) for user in USERS))
            await asyncio.to_thread(check, core)

    asyncio.run(serve())
