"""Filters that are malformed are refused by name, on every way to a question; equal to Python is not the same to us."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from everlong import Scope, open_memory
from everlong.errors import InvalidInput
from everlong.memory import ScopedMemory

INFINITE = float("inf")


@pytest.fixture(scope="module")
def ann() -> Iterator[ScopedMemory]:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        scoped = memory.at(Scope(user="ann", session="s1"))
        scoped.add(
            [
                {"role": "user", "content": "boats float 船会浮", "metadata": {"known": True}},
                {"role": "user", "content": "boats sink 船会沉", "metadata": {"known": 1}},
            ]
        )
        yield scoped


@pytest.mark.parametrize(
    "wrong",
    [
        {"limit": 1.5},
        {"limit": "3"},
        {"limit": True},
        {"limit": -1},
        {"min_score": "x"},
        {"min_score": float("nan")},
        {"min_score": INFINITE},
        {"categories": "goal"},
        {"sessions": "s1"},
        {"exclude_sessions": "s1"},
        {"files": "/memories/a.md"},
        {"metadata": {"a": INFINITE}},
        {"metadata": {"a": {"$in": [float("nan")]}}},
        {"zone": 3},
    ],
    ids=str,
)
def test_a_malformed_filter_is_refused(ann: ScopedMemory, wrong: dict[str, Any]) -> None:
    name = next(iter(wrong))
    for ask in (lambda: ann.recall("boats", **wrong), lambda: ann.context("船", **wrong), lambda: ann.context(**wrong)):
        with pytest.raises(InvalidInput, match="zone" if name == "zone" else name):
            ask()


@pytest.mark.parametrize("question", ["boats", "船"])
def test_an_answer_to_true_is_none_to_one(ann: ScopedMemory, question: str) -> None:
    def found(value: object) -> list[str]:
        hits = ann.recall(question, metadata={"known": value}, min_score=0, before=0, after=0).hits
        return [hit.record.content.split()[1] for hit in hits]  # type: ignore[union-attr]

    assert [found(value) for value in (True, 1, 1.0, "1")] == [["float"], ["sink"], ["sink"], []]


@pytest.mark.parametrize("question", [None, "boats", "船"])
def test_the_edges_of_time_and_of_windows(ann: ScopedMemory, question: str | None) -> None:
    home = ann._memory.at(ann.scope.home)
    first = datetime.min.replace(tzinfo=UTC)
    assert home.context(question, at=first).tokens >= 0
    assert "boats float" in home.context(question, time_window="999999999d").text
