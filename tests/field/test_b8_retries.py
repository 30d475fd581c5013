"""B8, EverMind-AI/EverOS#274, varun29ankuS/shodh-memory#109: a client times out, the server finishes, and the retry
stores everything again; or the host sends the whole history with every turn."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

import pytest

from everlong import AsyncMemory, Scope
from tests.durability.gated import facts, opened

TALK = Scope(user="ann", session="talk")
TALKS = {
    "en": [
        "I live in Porto",
        "My sister is called Rita",
        "I am allergic to nuts",
        "I ride a red bike",
        "I teach maths",
    ],
    "zh": ["我住在大理", "我的姐姐叫晓梅", "我对花生过敏", "我骑一辆红色的自行车", "我是数学老师"],
}


def turns(language: str, *, ids: bool) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for number, words in enumerate(TALKS[language]):
        for role, content in (("user", words), ("assistant", f"OK {number}")):
            made.append({"role": role, "content": content} | ({"id": f"{role}-{number}"} if ids else {}))
    return made


@pytest.mark.parametrize("language", TALKS)
@pytest.mark.parametrize("ids", [True, False], ids=["with ids", "without ids"])
def test_the_whole_history_with_every_turn_is_kept_once(sqlite_url: str, language: str, *, ids: bool) -> None:
    history = turns(language, ids=ids)
    with opened(sqlite_url) as memory:
        talk = memory.at(TALK)
        for end in range(2, len(history) + 1, 2):
            talk.add(history[:end])
            talk.add(history[:end])  # and a retry of each
            memory.drain()
        assert [m.content for m in talk.messages()] == [turn["content"] for turn in history]
        assert facts(memory, TALK) == sorted(TALKS[language])
        assert {f.confirmations for f in talk.facts().items} == {0}


@pytest.mark.parametrize("language", TALKS)
def test_a_call_that_timed_out_and_is_made_again_adds_nothing(sqlite_url: str, language: str) -> None:
    history = turns(language, ids=True)

    async def twice() -> tuple[str, ...]:
        async with AsyncMemory(opened(sqlite_url)) as memory:
            talk = memory.at(TALK)
            with suppress(TimeoutError):
                await asyncio.wait_for(talk.add(history), 0.001)
            again = await talk.add(history)
            await memory.drain()
            assert len(await talk.messages()) == len(history)
            assert (await talk.facts()).total == len(TALKS[language])
            return (*again.message_ids, *again.duplicates)

    assert set(asyncio.run(twice())) == {turn["id"] for turn in history}


@pytest.mark.parametrize("language", TALKS)
def test_work_that_was_done_but_not_ended_is_not_done_twice(sqlite_url: str, language: str) -> None:
    with opened(sqlite_url) as memory:
        talk = memory.at(TALK)
        talk.add(turns(language, ids=False))
        memory.drain()
        known = talk.facts(limit=500).items
        # The same turns once more, as when only the answer to the first call was lost; then the work again.
        talk.add(turns(language, ids=False))
        memory.drain()
        assert talk.facts(limit=500).items == known
        assert len(talk.extractions().items) == 1
