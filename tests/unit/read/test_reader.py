"""What is found, in which order, and what is left out."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from everlong.errors import EmptyText, InvalidInput, ModelError
from everlong.protocols import Calibration
from everlong.read.features import spread
from everlong.read.weights import Weights
from everlong.records import Hit, Query, Scope
from everlong.testing.fakes import TableEmbedder
from tests.unit.read.desk import ANN, NOW, Desk


def test_an_answer_is_found_by_its_question() -> None:
    desk = Desk()
    for line in ("Nice weather.", "Which gym do you go to?", "The one on Elm Street.", "Great.", "Bye."):
        desk.say(line, speaker=("Ann", "Bob")[len(line) % 2])
    assert "The one on Elm Street." in desk.found("which gym?", min_score=0.0, limit=2)


@pytest.mark.parametrize(
    ("turns", "question", "answer"),
    [
        (["I love the cello.", "We bought a cello yesterday.", "A cello is loud."], "When was the cello bought?", 1),
        (["大提琴很好听。", "我昨天买了大提琴。", "大提琴声音很大。"], "大提琴是什么时候的事？", 1),
    ],
)
def test_a_question_for_a_time_finds_the_turn_that_tells_one(turns: list[str], question: str, answer: int) -> None:
    desk = Desk()
    for turn in turns:
        desk.say(turn)
    assert desk.found(question, min_score=0.0)[0] == turns[answer]


def test_what_the_named_speaker_said_comes_first() -> None:
    desk = Desk()
    desk.say("My favourite tea is green.", speaker="Ann")
    desk.say("My favourite tea is black.", speaker="Bob")
    assert desk.found("What is Bob's favourite tea?", min_score=0.0)[0] == "My favourite tea is black."
    assert desk.found("What is Ann's favourite tea?", min_score=0.0)[0] == "My favourite tea is green."


def test_a_named_day_pulls_its_turns() -> None:
    desk = Desk()
    for days in range(5):
        desk.say(f"We talked about bread number {days}.", days=days, session=f"t{days}")
    assert desk.found("What bread did we talk about yesterday?")[0].endswith("number 1.")
    assert desk.found("昨天说了什么 bread", min_score=0.0)[0].endswith("number 1.")


def test_filters_decide_what_is_searched() -> None:
    desk = Desk()
    for number in range(40):
        desk.say(f"tea tea tea {number}", session="loud", days=2)
    quiet = desk.say("I once drank tea.", session="quiet", days=5)
    assert desk.found("tea", kinds=("message",), sessions=("quiet",)) == [quiet.content]
    assert desk.found("tea", kinds=("message",), until=NOW - timedelta(days=4)) == [quiet.content]
    assert quiet.content not in desk.found("tea", kinds=("message",), exclude_sessions=("quiet",), limit=99)
    lent = [
        hit.parts["conversation"] for hit in desk.ask("tea", sessions=("quiet",), kinds=("message",), min_score=0).hits
    ]
    assert lent == [0.0], "a conversation that is not searched must not weigh in"


def test_categories_filter_facts() -> None:
    desk = Desk()
    desk.know("Ann likes tea", category="preference")
    desk.know("Ann's goal is a tea house", category="goal")
    assert desk.found("tea", categories=("goal",)) == ["Ann's goal is a tea house"]


@pytest.mark.parametrize("content", ["Ann's badge is blue", "Ann 的工牌是蓝色的"])
def test_what_has_expired_is_not_shown_and_takes_no_place(content: str) -> None:
    desk = Desk()
    for number in range(70):
        desk.know(f"{content} {number}", valid_until=NOW - timedelta(days=1))
    desk.know(f"{content} now", days=9)
    recall = desk.ask(content, limit=3)
    assert [hit.text for hit in recall.hits] == [f"{content} now"]
    assert sum(each.reason == "expired" for each in recall.trace.considered) == 70
    assert len(desk.ask(content, limit=3, at=NOW - timedelta(days=1, hours=1)).hits) == 3


def test_what_holds_only_later_is_recalled_and_marked() -> None:
    desk = Desk()
    desk.know("Ann moves to Lisbon", valid_from=NOW + timedelta(days=30))
    recall = desk.ask("Lisbon")
    assert len(recall.hits) == 1
    assert "holds only from 2026-06-19" in recall.trace.considered[0].reason
    block = desk.reader.context(ANN, Query(text="Lisbon"))
    assert "holds from 2026-06-19" in block.text


def test_kinds_are_merged_without_breaking_the_order_of_either() -> None:
    desk = Desk()
    for number in range(6):
        desk.know(f"Ann drinks tea {'tea ' * number}")
        desk.say(f"We drank tea {'and water ' * number}")
    both = desk.ask("drinks tea", limit=6, min_score=0.0).hits
    for kind in ("fact", "message"):
        alone = [hit.id for hit in desk.ask("drinks tea", limit=6, min_score=0.0, kinds=(kind,)).hits]
        assert [hit.id for hit in both if hit.kind == kind] == alone


def test_the_limit_is_for_each_kind() -> None:
    desk = Desk()
    for number in range(9):
        desk.know(f"Ann owns cup {number}")
        desk.say(f"I bought cup {number}")
    kinds = [hit.kind for hit in desk.ask("cup", limit=4).hits]
    assert kinds.count("fact") == kinds.count("message") == 4


class _Failing(TableEmbedder):
    def embed(self, texts: object, *, query: bool = False) -> object:  # type: ignore[override]
        if query:
            raise ModelError("the server is away")
        return super().embed(list(texts), query=query)  # type: ignore[call-overload]


@pytest.mark.parametrize(
    ("fact", "question"), [("Ann is allergic to nuts", "nuts allergy"), ("安对坚果过敏", "坚果过敏")]
)
def test_a_failing_embedder_leaves_search_by_words(fact: str, question: str) -> None:
    desk = Desk(_Failing({}, 16))
    desk.know(fact)
    recall = desk.ask(question)
    assert [hit.text for hit in recall.hits] == [fact]
    assert recall.trace.embedder.startswith("words only: ")
    assert "the server is away" in recall.trace.embedder


def test_rows_without_a_vector_yet_are_found_by_words() -> None:
    desk = Desk(TableEmbedder({}, 64))
    with_vector = desk.know("Ann has a red boat")
    desk.embedder = None
    without = desk.know("Ann has a red kite")
    assert {hit.id for hit in desk.ask("red").hits} == {with_vector.id, without.id}


def test_an_empty_question_is_refused_and_an_empty_memory_gives_nothing() -> None:
    desk = Desk()
    with pytest.raises(EmptyText):
        desk.ask(" \x00\n")
    assert desk.ask("anything").hits == ()
    desk.say("hello")
    with pytest.raises(InvalidInput):
        desk.ask("hello today", zone="Mars/Base")


@pytest.mark.parametrize(("mine", "other"), [("ann", "anna"), ("ann", "an"), ("a", "a/b"), ("安", "安娜")])
def test_a_scope_whose_name_begins_alike_sees_nothing(mine: str, other: str) -> None:
    desk = Desk()
    desk.know("The door code is 4711", scope=Scope(user=other))
    desk.say("The door code is 4711", user=other)
    assert desk.ask("door code 4711", scope=Scope(user=mine), min_score=0.0).hits == ()
    block = desk.reader.context(Scope(user=mine), Query(text="door code 4711"))
    assert block.text == ""


def test_scores_are_those_of_calibration() -> None:
    table = {"q": [1.0, 0.0], "near": [0.9, 0.436], "far": [0.2, 0.98]}
    desk = Desk(TableEmbedder(table, 2, calibration=Calibration(unrelated=0.2, related=0.9, duplicate=0.95)))
    desk.know("near")
    desk.know("far")
    hits: dict[str, Hit] = {hit.text: hit for hit in desk.ask("q", min_score=0.0).hits}
    assert hits["near"].score == pytest.approx(0.85, abs=0.01)
    assert hits["far"].score == pytest.approx(0, abs=0.01)


@pytest.mark.parametrize(
    ("question", "session"),
    [
        ("What did we say in our first conversation?", "t0"),
        ("第一次聊天说了什么", "t0"),
        ("What did we say in our last chat?", "t4"),
        ("上次聊天说了什么", "t4"),
    ],
)
def test_the_first_and_the_last_conversation_can_be_asked_for(question: str, session: str) -> None:
    desk = Desk()
    for number in range(5):
        desk.say(f"We chat in conversation {number}", session=f"t{number}", days=9 - number)
    recall = desk.ask(question, kinds=("message",), min_score=0.0)
    assert recall.hits[0].record.session == session


def test_the_last_conversation_is_the_one_before_this() -> None:
    desk = Desk()
    for number in range(3):
        desk.say(f"We chat in conversation {number}", session=f"t{number}", days=9 - number)
    here = Scope(user="ann", session="t2")
    recall = desk.ask("What did we say in our last chat?", scope=here, kinds=("message",), min_score=0.0)
    assert recall.hits[0].record.session == "t1"


def test_a_conversation_loses_with_each_turn_that_was_taken_from_it() -> None:
    session = np.array([0, 0, 1, 0, 1, 2], np.int32)
    ranked = np.array([1, 0, 4, 3, 5, 2])
    lost = spread(ranked, session, Weights(spread=1.0))
    np.testing.assert_allclose(lost, -np.log1p([0, 1, 0, 2, 0, 1]))


@pytest.mark.parametrize(
    ("question", "answer", "day"),
    [
        ("Which gym do you go to?", "Elm Street, mostly.", "What did we talk about yesterday?"),
        ("你去哪家健身房？", "多半是榆树街。", "我们昨天聊了什么"),
    ],
)
def test_the_threshold_keeps_an_answer_and_a_named_day(question: str, answer: str, day: str) -> None:
    desk = Desk()
    for line in ("Bread, please.", question, answer, "Bye now."):
        desk.say(line, days=1)
    desk.say("Rain again.", days=5, session="t2")
    assert answer in desk.found(question)
    assert "Rain again." not in desk.found(question)
    assert set(desk.found(day, limit=9)) == {"Bread, please.", question, answer, "Bye now."}


@pytest.mark.parametrize("question", ["What's the weather like today?", "今天天气怎么样"])
def test_today_in_a_question_about_anything_else_recalls_nothing(question: str) -> None:
    desk = Desk()
    desk.say("I bought a cello.", days=0)
    assert desk.found(question) == []


@pytest.mark.parametrize(
    ("mine", "others", "asked"),
    [
        (
            "Bart won a race and was happy",
            "Lisa won a race and was happy",
            "Bart: I won!\nAssistant: Great!\nBart: So happy!",
        ),
        ("小明赢了比赛，很开心", "小红赢了比赛，很开心", "小明：我赢了！\n助手：太好了！\n小明：真开心，比赛！"),
    ],
)
def test_notes_on_who_speaks_come_before_those_on_somebody_else(mine: str, others: str, asked: str) -> None:
    desk = Desk()
    desk.know(mine, days=2)
    desk.know(others, days=1)
    assert [hit.text for hit in desk.ask(asked, min_score=0.0).hits] == [mine, others]


@pytest.mark.parametrize(
    ("question", "fact", "found"),
    [
        ("鸡蛋怎么煮", "我家住在城东", False),
        ("鸡蛋怎么煮", "水开后煮鸡蛋十分钟", True),
        ("鸡蛋怎么煮", "I boil eggs for ten minutes", True),
        ("How do I boil an egg?", "I live in the east", True),
    ],
)
def test_a_chinese_fact_that_shares_no_character_needs_more_meaning(question: str, fact: str, found: bool) -> None:
    desk = Desk(TableEmbedder({question: [1.0, 0.0], fact: [0.5, 0.75**0.5]}, 2))
    desk.know(fact)
    assert desk.found(question) == ([fact] if found else [])


def test_what_was_said_days_apart_in_one_session_lends_nothing() -> None:
    desk = Desk()
    for days, line in ((9, "Nice weather."), (6, "Which gym do you go to?"), (3, "The one on Elm Street.")):
        desk.say(line, days=days)
    parts = {hit.text: hit.parts["neighbours"] for hit in desk.ask("which gym?", min_score=0.0).hits}
    assert set(parts.values()) == {0.0}
    desk.say("The blue one.", days=5.9)
    parts = {hit.text: hit.parts["neighbours"] for hit in desk.ask("which gym?", min_score=0.0).hits}
    assert parts["The blue one."] > 0
