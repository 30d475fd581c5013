"""K3: questions that break a search syntax: spences10/ccrecall#29, spences10/ccrecall#23,
basicmachines-co/basic-memory#180, dezgit2025/auto-memory#27."""

from __future__ import annotations

import pytest

from everlong.errors import EmptyText
from tests.unit.read.desk import Desk

FACTS = {
    "multi-agent": "The team builds a multi-agent planner",
    "can't": "Ann can't eat gluten",
    "C++": "Ann writes C++ at work",
    "E-4021": "The washing machine shows E-4021",
    "GB/s": "The disk reads 7 GB/s",
    "CLAUDE.md": "House rules are in CLAUDE.md",
    "a_b": "The column is called a_b",
    "100%": "The battery is at 100%",
    "错误码E-77": "洗衣机显示错误码E-77",
    "“花生”": "安对花生过敏",
    "小（米）": "安的手机是小米",
}
ODD = [
    "title:foo", '"', '""', "AND", "a OR", "NOT", "*", "foo*", "NEAR(a b)", "(", ")", "'; DROP TABLE facts; --", "%", "_",
    "\\", "^", "{}", "[", "-", "--", "+", "🙂", "？？？", "“”", "的", "NULL", "\x00a", "\ud800", "a\tb\r\nc",
    "word " * 10_000, "词" * 10_000, "x" * 100_000,
]  # fmt: skip


@pytest.fixture(scope="module")
def desk() -> Desk:
    made = Desk()
    for fact in FACTS.values():
        made.know(fact)
        made.say(fact)
    return made


@pytest.mark.parametrize("question", list(FACTS))
def test_what_looks_like_syntax_finds_its_fact(desk: Desk, question: str) -> None:
    assert desk.found(question, kinds=("fact",))[0] == FACTS[question]
    assert FACTS[question] in desk.found(question, kinds=("message",))


@pytest.mark.parametrize("question", ODD)
def test_nothing_that_can_be_asked_raises(desk: Desk, question: str) -> None:
    assert all(0 <= hit.score <= 1 for hit in desk.ask(question).hits)


@pytest.mark.parametrize("question", ["", "   ", "\n\t", "\x00", "\u3000"])
def test_an_empty_question_is_refused_by_name(desk: Desk, question: str) -> None:
    with pytest.raises(EmptyText):
        desk.ask(question)
