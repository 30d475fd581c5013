"""R4: nobody can see what was considered, used or cut, and why: bytedance/deer-flow#1908,
NousResearch/hermes-agent#56474, mnemosyne-oss/mnemosyne#956, vectorize-io/hindsight#4217."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from everlong import Scope, open_memory
from everlong.errors import NotFound
from everlong.records import Query
from everlong.testing.fakes import TableEmbedder
from tests.unit.read.desk import ANN, NOW, Desk

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(("question", "word"), [("question", "fact"), ("问题", "事实")])
def test_every_candidate_is_listed_with_its_parts_and_the_reason(question: str, word: str) -> None:
    near, far = [0.9, 0.436], [0.1, 0.995]
    table = {f"{word} {n}": (far if n >= 25 else near) for n in range(31)}
    desk = Desk(TableEmbedder({question: [1.0, 0.0], **table}, 2))
    for number in range(30):
        desk.know(f"{word} {number}")
    desk.know(f"{word} 24", valid_until=NOW - timedelta(days=1))
    held = desk.know(f"{word} 23", status="held")
    recall = desk.ask(question, limit=10, kinds=("fact",))
    why = Counter(each.reason for each in recall.trace.considered)
    assert why == {"relevant": 10, "over the limit": 15, "below the threshold of 0.35": 5, "expired": 1}
    assert held.id not in {each.id for each in recall.trace.considered}, "what waits for review is never shown"
    assert [each.id for each in recall.trace.considered if each.kept] == [hit.id for hit in recall.hits]
    for each in recall.trace.considered:
        assert {"bm25", "words", "cosine", "meaning", "fused", "date", "strength"} <= each.parts.keys()


def test_times_in_a_trace_are_those_of_the_question() -> None:
    desk = Desk()
    desk.know("Ann sails", valid_until=NOW - timedelta(days=2))
    then = NOW - timedelta(days=3)
    trace = desk.ask("sails", at=then).trace
    assert trace.at == trace.query.at == then
    assert [each.reason for each in trace.considered] == ["relevant"]
    assert [each.reason for each in desk.ask("sails").trace.considered] == ["expired"]
    assert {"embed", "fact", "message"} <= trace.milliseconds.keys()


def test_a_block_tells_what_had_no_room() -> None:
    desk = Desk()
    known = [desk.know(f"Ann keeps {number} bees in the garden behind the house", days=number) for number in range(30)]
    context = desk.reader.context(ANN, Query(text="bees in the garden", limit=30), budget=300)
    assert context.trace is not None
    left = {each.what for each in context.omitted}
    for fact in known:
        assert (f"fact {fact.id}" in left) != (fact.content in context.text)
    assert {hit.id for hit in context.hits} == {each.id for each in context.trace.considered if each.kept}


@pytest.mark.parametrize("word", ["garden", "花园"])
def test_a_trace_can_be_asked_for_later_by_its_scope_alone(word: str) -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        ann, bob = memory.at(Scope(user="ann")), memory.at(Scope(user="bob"))
        ann.remember(f"My {word} has bees")
        trace = ann.recall(word).trace
        assert ann.explain(trace.id) == trace
        with pytest.raises(NotFound):
            bob.explain(trace.id)


@pytest.mark.parametrize(
    ("said", "asked"), [("My parrot sings opera", "parrot opera"), ("我的鹦鹉会唱歌剧", "鹦鹉 歌剧")]
)
def test_a_turn_is_explained_later_elsewhere_and_forgotten_with_its_owner(
    tmp_path: Path, said: str, asked: str
) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    with open_memory(url, embedder="none", worker="none") as memory:
        memory.at(Scope(user="ann")).remember(said)
        block = memory.at(Scope(user="ann", session="s")).context(asked, trace=True)
    assert block.trace is not None
    with open_memory(url, embedder="none", worker="none") as memory:
        ann = memory.at(Scope(user="ann"))
        told = ann.explanation(block.trace.id)
        assert told.trace.block == block.text
        assert [(row.text, row.shown) for row in told.rows] == [(said, True)]
        assert told.trace.at == block.trace.at
        with pytest.raises(NotFound):
            memory.at(Scope(user="bob")).explanation(block.trace.id)
        ann.erase()
        with pytest.raises(NotFound):
            ann.explanation(block.trace.id)
