"""C1: a search for one tenant matches another whose name begins alike: langchain-ai/langgraph#8478 (CVE-2026-71433),
langchain-ai/deepagents#1654. C7: whoever guesses an id reads another's memory: mem0ai/mem0#6080, MemTensor/MemOS#2202."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

import pytest

from everlong import Scope, open_memory
from everlong.errors import NotFound
from everlong.memory import Memory

NAMES = ["acme", "acme-corp", "ACME", "acme%", "acm_", "acme/", "公司", "公司甲", "*"]


@pytest.fixture(scope="module")
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", embedder="none", worker="none") as opened:
        for name in NAMES:
            place = opened.at(Scope(user=name))
            place.remember(f"The tea budget of {name} 预算 is fixed")
            place.files.write("/memories/tea.md", f"The tea budget of {name} 预算 is fixed")
        yield opened


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_not_the_beginning_of_another(memory: Memory, name: str) -> None:
    mine = memory.at(Scope(user=name))
    hits = mine.recall("tea budget 预算", kinds=["fact", "file"], min_score=0.0, limit=99).hits
    assert sorted(hit.kind for hit in hits) == ["fact", "file"]
    assert {hit.record.scope.user for hit in hits} == {name}
    assert mine.facts().total == 1 and len(mine.files.list()) == 1


def test_a_guessed_id_is_not_found(memory: Memory) -> None:
    ids = {name: memory.at(Scope(user=name)).facts().items[0].id for name in NAMES}
    for mine, other in permutations(NAMES[:4], 2):
        scoped = memory.at(Scope(user=mine))
        for call in (scoped.fact, scoped.history, scoped.forget, scoped.restore):
            with pytest.raises(NotFound):
                call(ids[other])
        with pytest.raises(NotFound):
            scoped.revise(ids[other], content="taken over")
    assert memory.at(Scope(user="acme")).fact(ids["acme"]).version == 1
