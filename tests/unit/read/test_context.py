"""The block for a prompt, as the reader fills it."""

from __future__ import annotations

import pytest

from everlong.records import Query
from everlong.text import estimate_tokens
from tests.unit.read.desk import ANN, Desk


def block(desk: Desk, question: str, **options: object) -> str:
    return desk.reader.context(ANN, Query(text=question), **options).text  # type: ignore[arg-type]


@pytest.mark.parametrize("rule", ["Use pnpm, never npm", "回答一律用中文"])
def test_corrections_and_pinned_facts_come_from_all_of_memory(rule: str) -> None:
    desk = Desk()
    desk.know(rule, days=300, category="correction", confidence=0.95)
    desk.know(f"pinned: {rule}", days=301, pinned=True)
    for number in range(150):
        desk.know(f"Ann saw film {number}")
    text = block(desk, "which film?")
    assert f"] {rule} (" in text
    assert f"pinned: {rule}" in text


def test_turns_shown_as_the_latest_do_not_take_the_place_of_recalled_ones() -> None:
    desk = Desk()
    old = [desk.say(f"The tea in Kyoto was fine {number}", days=40, session=f"old{number}") for number in range(5)]
    for number in range(8):
        desk.say(f"tea tea tea {number}", days=0.1, session="now")
    context = desk.reader.context(ANN, Query(text="tea", limit=5))
    assert all(message.content in context.text for message in old)
    assert context.trace is not None
    assert sum(each.reason == "shown among the latest turns" for each in context.trace.considered) == 8


def test_the_latest_turns_are_those_of_the_conversation_and_of_the_window() -> None:
    desk = Desk()
    desk.say("long ago here", days=20, session="t1")
    desk.say("here", session="t1")
    desk.say("elsewhere", session="t2")
    text = block(desk, "nothing alike", session="t1")
    assert "] here" in text
    assert "elsewhere" not in text
    assert "long ago" not in text
    left_out = desk.reader.context(ANN, Query(text="nothing alike", exclude_sessions=("t2",))).text
    assert "elsewhere" not in left_out


@pytest.mark.parametrize("said", ["From now on answer in Portuguese.", "从现在起用葡萄牙语回答。"])
@pytest.mark.parametrize("log", ["ERROR at 0x4f " * 15_000, "A" * 300_000, "日志" * 50_000])
def test_a_pasted_log_does_not_push_out_what_was_said(said: str, log: str) -> None:
    desk = Desk()
    desk.say("My name is Ann.", days=0.3)
    desk.say(f"BEGIN {log} END", days=0.2)
    desk.say("parsed", days=0.15, role="assistant")
    desk.say(said, days=0.1)
    text = block(desk, "what now?", budget=1000)
    assert said in text
    assert "My name is Ann." in text
    assert "BEGIN" in text
    assert " […] " in text
    assert "END" in text
    assert estimate_tokens(text) <= 1000
