"""H1: deleted, yet still found; deleted, and cannot be added again: mem0ai/mem0#3695, simstudioai/sim#622."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from everlong import Scope, open_memory
from everlong.integrations.deerflow.document import document
from everlong.records import ALL_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from everlong.memory import Memory, ScopedMemory

ANN = Scope(org="acme", user="ann")


@pytest.fixture(params=["use", "none"])
def memory(request: pytest.FixtureRequest) -> Iterator[Memory]:
    with open_memory("sqlite://", embedder=request.param, worker="none") as opened:
        yield opened


def by_id(ann: ScopedMemory, content: str) -> None:
    for fact in ann.facts().items:
        if fact.content == content:
            ann.forget(fact.id)


def by_topic(ann: ScopedMemory, content: str, *, erase: bool) -> None:
    ann.forget_topic(content, ann.forget_preview(content).refs, erase=erase)


def by_scope(ann: ScopedMemory) -> None:
    ann.erase()


DELETES: dict[str, Callable[[ScopedMemory, str], None]] = {
    "forget": by_id,
    "topic": lambda ann, content: by_topic(ann, content, erase=False),
    "topic, history too": lambda ann, content: by_topic(ann, content, erase=True),
    "erase": lambda ann, _: by_scope(ann),
}


def found(ann: ScopedMemory, question: str) -> list[str]:
    return [hit.text for hit in ann.recall(question, kinds=ALL_KINDS, min_score=0.0, limit=20).hits]


@pytest.mark.parametrize("delete", DELETES.values(), ids=DELETES)
@pytest.mark.parametrize(
    ("content", "question", "meaning"),
    [("User plays chess", "plays chess", "board games"), ("用户下象棋", "下象棋", "用户玩什么棋类游戏")],
    ids=["en", "zh"],
)
def test_three_times_added_and_deleted(
    memory: Memory, content: str, question: str, meaning: str, delete: Callable[[ScopedMemory, str], None]
) -> None:
    ann = memory.at(ANN)
    other = "User has two cats 用户有两只猫"
    for _ in range(3):
        ann.remember(other)
        added = ann.remember(content)
        memory.drain()
        assert added.outcome == "add", added.reason
        assert content in found(ann, question), "at once, with no stale cache"
        assert content in ann.context(question).text
        delete(ann, content)
        for asked in (question, meaning, content):
            assert content not in found(ann, asked)
            assert content not in ann.context(asked).text
        assert content not in {fact.content for fact in ann.facts().items}
        assert content not in str(document(ann))


def test_a_second_process_sees_it_at_once(tmp_path: object) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    with (
        open_memory(url, embedder="none", worker="none") as one,
        open_memory(url, embedder="none", worker="none") as other,
    ):
        one.at(ANN).remember("User plays chess")
        assert found(other.at(ANN), "chess") == ["User plays chess"]
        by_topic(one.at(ANN), "chess", erase=True)
        assert found(other.at(ANN), "chess") == []
        one.at(ANN).remember("User plays chess")
        assert found(other.at(ANN), "chess") == ["User plays chess"]
