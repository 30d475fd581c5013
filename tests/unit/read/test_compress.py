"""A conversation within limits."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from everlong import compress_conversation
from everlong.errors import InvalidInput
from everlong.read.compress import duration
from everlong.records import Message, Scope

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)


def said(number: int, content: str = "", *, days: float = 0, role: Any = "user", **fields: Any) -> Message:
    return Message(
        id=f"m{number}", scope=Scope(user="ann"), session="s", role=role, content=content or f"word {number}",
        created_at=NOW - timedelta(days=days), **fields,
    )  # fmt: skip


TALK = [said(number, days=(29 - number) / 2) for number in range(30)]


def ids(messages: tuple[Message, ...]) -> list[str]:
    return [message.id for message in messages]


def test_each_strategy_holds_its_own_limit_and_hybrid_holds_all() -> None:
    limits: dict[str, Any] = {"max_messages": 12, "max_tokens": 16, "time_window": "4d", "now": NOW}
    assert ids(compress_conversation(TALK, "time", **limits).messages) == [f"m{n}" for n in range(21, 30)]
    assert ids(compress_conversation(TALK, "count", **limits).messages) == [f"m{n}" for n in range(18, 30)]
    assert ids(compress_conversation(TALK, "tokens", **limits).messages) == [f"m{n}" for n in range(22, 30)]
    assert ids(compress_conversation(TALK, **limits).messages) == [f"m{n}" for n in range(22, 30)]
    assert len(compress_conversation(TALK, max_messages=3, now=NOW).messages) == 3
    assert len(compress_conversation(TALK, time_window="1d", now=NOW).messages) == 3


def test_defaults_are_ten_messages_two_thousand_tokens_and_seven_days() -> None:
    kept = compress_conversation(TALK, now=NOW)
    assert ids(kept.messages) == [f"m{n}" for n in range(20, 30)]
    assert len(compress_conversation([said(n, days=6.9) for n in range(5)], now=NOW).messages) == 5
    assert ids(compress_conversation([said(n, days=7.1) for n in range(5)], now=NOW).messages) == ["m4"]
    long = [said(n, "word " * 900) for n in range(5)]
    assert len(compress_conversation(long, now=NOW).messages) == 2


def test_what_falls_out_is_named_with_its_reason() -> None:
    talk = [said(0, days=9), *(said(n, days=1) for n in range(1, 4)), said(4, "long " * 50), said(5)]
    kept = compress_conversation(talk, max_tokens=20, now=NOW)
    assert [(each.message.id, each.reason) for each in kept.dropped] == [
        ("m0", "older than the time window"),
        *((f"m{n}", "over max_tokens") for n in range(1, 5)),
    ]
    assert [each.reason for each in compress_conversation(TALK[-4:], max_messages=2, now=NOW).dropped] == [
        "over max_messages"
    ] * 2


@pytest.mark.parametrize(
    "text",
    [
        "From now on answer in Portuguese.", "Always use pnpm for this.", "Remember that I'm allergic to nuts",
        "No, I meant the second one", "We decided to ship in June", "以后都用中文回答", "记住我对花生过敏",
        "不是周二，而是周三", "我们决定六月上线", "千万不要删数据库",
    ],
)  # fmt: skip
@pytest.mark.parametrize("strategy", ["hybrid", "time", "count", "tokens"])
def test_important_messages_survive_any_limit(text: str, strategy: Any) -> None:
    talk = [said(0, text, days=400), *(said(n, "chat " * 40) for n in range(1, 40))]
    kept = compress_conversation(talk, strategy, max_messages=5, max_tokens=100, time_window="1d", now=NOW)
    assert kept.messages[0].id == "m0"
    assert kept.important[0].startswith("says so")
    without = compress_conversation(
        talk, strategy, max_messages=5, max_tokens=100, time_window="1d", now=NOW, keep_important=False
    )
    assert "m0" not in ids(without.messages)
    assert not without.important


@pytest.mark.parametrize("text", ["What's the weather?", "ok thanks", "今天天气怎么样？", "讲个笑话", "word word"])
def test_small_talk_is_not_important(text: str) -> None:
    assert ids(compress_conversation([said(0, text), said(1)], max_messages=1, now=NOW).messages) == ["m1"]


def test_marks_and_signals_count_whatever_the_words() -> None:
    talk: list[Any] = [
        said(0, metadata={"pinned": True}),
        said(1, metadata={"important": True}, role="assistant"),
        said(2, signals=("correction",)),
        said(3, "from now on I answer so", role="assistant"),
        *(said(n) for n in range(4, 30)),
    ]
    kept = compress_conversation(talk, max_messages=5, now=NOW)
    assert ids(kept.messages) == ["m0", "m1", "m2", "m28", "m29"]
    assert kept.important == {
        0: "marked as pinned", 1: "marked as important", 2: "says so: correction", 4: "the last message"
    }  # fmt: skip


def test_important_ones_that_alone_exceed_a_limit_are_all_kept_and_it_is_said() -> None:
    talk = [said(n, "always use tabs " + "x " * 50) for n in range(8)] + [said(n) for n in range(8, 12)]
    kept = compress_conversation(talk, max_messages=5, max_tokens=100, now=NOW)
    assert ids(kept.messages) == [*(f"m{n}" for n in range(8)), "m11"]
    assert kept.over == ("max_messages", "max_tokens")
    assert kept.tokens > 100
    assert compress_conversation(talk, max_messages=50, now=NOW).over == ()


def test_what_falls_out_is_summarised_once_and_only_then() -> None:
    asked: list[Any] = []

    def model(dropped: Any, before: str) -> str:
        asked.append((ids(tuple(dropped)), before))
        return f"{before} and {len(dropped)} more"

    first = compress_conversation(TALK[:12], now=NOW, time_window="99d", summary="hello", summarise=model)
    assert first.summary == "hello and 2 more"
    assert asked == [(["m0", "m1"], "hello")]
    same = compress_conversation(TALK[:5], now=NOW, time_window="99d", summary=first.summary, summarise=model)
    assert same.summary == first.summary
    assert len(asked) == 1


def test_any_shape_of_message_comes_back_as_the_same_object() -> None:
    talk: list[Any] = [
        {"role": "user", "content": "hello"}, ("assistant", "hi"), HumanMessage("记住我爱喝茶"), AIMessage("ok"),
        {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url"}], "created_at": "2026-05-20"},
    ]  # fmt: skip
    kept = compress_conversation(talk, max_messages=3)
    assert [id(each) for each in kept.messages] == [id(talk[2]), id(talk[3]), id(talk[4])]
    assert compress_conversation([]).messages == ()
    with pytest.raises(InvalidInput, match="role and content"):
        compress_conversation(["hello"])


def test_without_now_age_counts_from_the_last_message() -> None:
    old = [said(n, days=800 - n) for n in range(20)]
    assert ids(compress_conversation(old, "time", time_window="3d").messages) == ["m16", "m17", "m18", "m19"]


@pytest.mark.parametrize(("text", "hours"), [("7d", 168), ("12h", 12), ("30m", 0.5), ("2w", 336), ("1.5d", 36)])
def test_lengths_of_time(text: str, hours: float) -> None:
    assert duration(text) == timedelta(hours=hours)


@pytest.mark.parametrize("text", ["", "7", "d", "-1d", "7 years", "9" * 30 + "w", timedelta(days=-1), 7, None])
def test_what_is_no_length_of_time(text: Any) -> None:
    with pytest.raises(InvalidInput, match="no length of time"):
        duration(text)


@pytest.mark.parametrize("wrong", [{"strategy": "magic"}, {"max_messages": -1}, {"max_tokens": -1}])
def test_wrong_options(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        compress_conversation(TALK, **wrong)


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.text(max_size=30), st.integers(0, 20), st.booleans()), max_size=20),
    st.integers(0, 12), st.integers(0, 100), st.integers(0, 20),
)  # fmt: skip
def test_limits_hold_for_any_conversation(
    turns: list[tuple[str, int, bool]], messages: int, tokens: int, days: int
) -> None:
    talk = [said(n, text, days=days, metadata={"pinned": pin}) for n, (text, days, pin) in enumerate(turns)]
    kept = compress_conversation(talk, max_messages=messages, max_tokens=tokens, time_window=f"{days}d", now=NOW)
    lost = [each.message.id for each in kept.dropped]
    assert sorted([*ids(kept.messages), *lost]) == sorted(ids(tuple(talk)))
    assert ids(kept.messages) == [m.id for m in talk if m.id not in lost]
    assert len(kept.messages) <= messages or "max_messages" in kept.over
    assert kept.tokens <= tokens or "max_tokens" in kept.over
    if kept.over:
        assert len(kept.important) == len(kept.messages)
    assert all(m.id not in lost for m in talk if m.metadata["pinned"])
