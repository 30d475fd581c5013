"""What a question is made of."""

from __future__ import annotations

import pytest

from everlong.read.question import (
    asks_time,
    conversation_asked,
    last_turn,
    own_words,
    people,
    unlabelled,
    views,
    without_names,
)


@pytest.mark.parametrize(
    ("question", "time"),
    [
        ("When did Ann move?", True),
        ("How long have I had the dog?", True),
        ("What year was it?", True),
        ("我什么时候搬的家？", True),
        ("几月份开学", True),
        ("哪一年认识的", True),
        ("What did Ann buy?", False),
        ("Whenever", False),
        ("我买了什么", False),
        ("哪里有猫", False),
    ],
)
def test_a_question_for_a_time_is_known(question: str, time: bool) -> None:
    assert asks_time(question) is time


def test_names_leave_a_question_in_both_languages() -> None:
    assert without_names("What did Ann's sister say to ann?", ["Ann"]) == "What did sister say to ?"
    assert without_names("李雷喜欢什么书", ["李雷"]) == "喜欢什么书"
    assert without_names("Annabel sings", ["Ann"]) == "Annabel sings"
    assert without_names("Ann: hi\nBob: where is it", ["Ann"]) == ": hi\nBob: where is it"


@pytest.mark.parametrize("question", ["Ann?", "李雷呢", "Who is Ann?"])
def test_a_question_of_names_alone_keeps_them(question: str) -> None:
    assert without_names(question, ["Ann", "李雷"]) == question


def test_a_piece_of_conversation_is_seen_from_several_sides() -> None:
    assert views("one line") == ["one line"]
    assert views("two\nlines") == ["two\nlines"]
    talk = "甲：一\n乙：二\n\n甲：三\n乙：四"
    assert views(talk) == [talk, "甲：一", "乙：二\n甲：三\n乙：四", "乙：四"]
    assert last_turn(talk) == "乙：四"
    assert last_turn("two\nlines") == "two\nlines"


@pytest.mark.parametrize(
    ("question", "named"),
    [
        ("What did we talk about in our first conversation?", "first"),
        ("Do you remember the first time we talked?", "first"),
        ("你还记得我们第一次对话的时候，聊了什么吗？", "first"),
        ("第一次聊天我说了什么", "first"),
        ("What did I say in our last chat?", "last"),
        ("What was it, the last time we spoke?", "last"),
        ("上次聊天我们说到哪里了", "last"),
        ("上次我们聊的那本书", "last"),
        ("When did I first visit Rome?", ""),
        ("上次去医院是什么时候", ""),
        ("我第一次去罗马", ""),
        ("What is my last name?", ""),
    ],
)
def test_a_conversation_that_is_named_by_its_place_is_known(question: str, named: str) -> None:
    assert conversation_asked(question) == named


def test_words_of_people_are_told_from_those_of_an_assistant() -> None:
    assert own_words("Ann: hi\nAssistant: hello\nAnn: where is it?") == "hi\nwhere is it?"
    assert own_words("安：你好\n助手：您好\n安：在哪里") == "你好\n在哪里"
    assert own_words("Ann: hi\nBob: hello\nAnn: bye") == own_words("AI: hi") == own_words("hi") == ""


@pytest.mark.parametrize(
    ("question", "names", "bare"),
    [
        ("Bart: hi\nAssistant: hello\nBart: where is it?", ["Bart"], "hi\nhello\nwhere is it?"),
        ("小明：你好\n助手：你好\n小明：在哪里？", ["小明"], "你好\n你好\n在哪里？"),
        ("user: hi\nassistant: hello\nuser: where?", [], "hi\nhello\nwhere?"),
        ("Fix this:\nkey: value\nother: thing", [], "Fix this:\nkey: value\nother: thing"),
        ("Bart: where is it?", [], "Bart: where is it?"),
        (
            "At 10:30 we met\nAt 11:15 we left\nAt 12:00 we ate",
            [],
            "At 10:30 we met\nAt 11:15 we left\nAt 12:00 we ate",
        ),
    ],
)
def test_who_speaks_is_told_from_what_is_said(question: str, names: list[str], bare: str) -> None:
    assert people(question) == names
    assert unlabelled(question) == bare
