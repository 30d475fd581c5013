"""I1: the same filter answers differently from store to store: langchain-ai/langgraph#7684, langchain-ai/langgraph#8786,
langchain-ai/langgraph#8759, MemTensor/MemOS#2290. Filters of a question are checked in one place, before ranking."""

from __future__ import annotations

from datetime import timedelta

import pytest

from everlong.records import Query
from tests.unit.read.desk import ANN, NOW, Desk

ODD_NAMES = ["a.b", "键", "' OR '1'='1", 'x") OR 1=1 --', "%", "_", "*", "t1", "t10", "T1"]


@pytest.fixture(scope="module")
def desk() -> Desk:
    made = Desk()
    for number, name in enumerate(ODD_NAMES):
        made.say(f"tea in {number}", session=name, days=number + 1)
        made.know(f"tea fact {number}", session=name, days=number + 1, category=("goal", "context")[number % 2])
    return made


@pytest.mark.parametrize("name", ODD_NAMES)
def test_a_name_is_a_name_and_nothing_else(desk: Desk, name: str) -> None:
    hits = desk.ask("tea", sessions=(name,), min_score=0.0, limit=99).hits
    assert {hit.record.session for hit in hits} == {name}
    assert {hit.kind for hit in hits} == {"fact", "message"}


@pytest.mark.parametrize("name", ["", "t", "t1%", "' OR 1=1", "键键"])
def test_a_name_nobody_has_finds_nothing(desk: Desk, name: str) -> None:
    assert desk.ask("tea", sessions=(name,), min_score=0.0).hits == ()
    assert desk.ask("tea", categories=(name,), min_score=0.0, kinds=("fact",)).hits == ()


def test_times_are_from_and_before(desk: Desk) -> None:
    edge = NOW - timedelta(days=3)
    since = desk.ask("tea", since=edge, min_score=0.0, limit=99).hits
    before = desk.ask("tea", until=edge, min_score=0.0, limit=99).hits
    assert {hit.record.created_at >= edge for hit in since} == {True}
    assert {hit.record.created_at < edge for hit in before} == {True}
    assert len(since) + len(before) == 2 * len(ODD_NAMES)


def test_filters_hold_together_and_in_the_block_too(desk: Desk) -> None:
    query = Query(text="tea", sessions=("t1",), categories=("context",), kinds=("fact",), min_score=0.0, limit=99)
    assert {hit.record.session for hit in desk.reader.recall(ANN, query).hits} == {"t1"}
    assert [hit.text for hit in desk.reader.context(ANN, query).hits] == ["tea fact 7"]
