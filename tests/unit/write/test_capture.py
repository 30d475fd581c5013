"""What is kept of a conversation, from every shape it comes in."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from itertools import count
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage

from everlong import open_memory
from everlong.errors import Conflict, InvalidInput, TooLarge
from everlong.records import Message, Scope
from everlong.write.capture import Captured, capture, reshape

SESSION = Scope(user="ann", session="t1")
NOW = datetime(2026, 3, 4, 5, 6, tzinfo=UTC)
_ids = count(1)


def take(*messages: object, tail: tuple[Message, ...] = (), **more: Any) -> Captured:
    return capture(
        messages, session=SESSION, tail=tail, now=NOW, new_id=lambda prefix: f"{prefix}_{next(_ids)}", **more
    )


def said(captured: Captured) -> list[tuple[str, str]]:
    return [(message.role, message.content) for message in captured.messages]


TALK = [("user", "I like tea"), ("assistant", "Noted."), ("user", "ok"), ("assistant", "Anything else?")]


@pytest.mark.parametrize(
    "raw",
    [
        ("user", "hi there"),
        ["human", "hi there"],
        {"role": "user", "content": "hi there"},
        {"type": "human", "content": [{"type": "text", "text": "hi there"}]},
        {"type": "human", "data": {"content": "hi there"}},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi there"}]},
        {"role": "user", "content": ["hi there"]},
        HumanMessage("hi there"),
        HumanMessage([{"type": "text", "text": "hi there"}]),
        Message(id="m", scope=SESSION.home, session="other", role="user", content="hi there", created_at=NOW),
    ],
)
def test_every_shape_gives_the_same_message(raw: object) -> None:
    [message] = take(raw).messages
    assert (message.role, message.content, message.origin) == ("user", "hi there", "user")
    assert (message.scope, message.session, message.created_at) == (Scope(user="ann"), "t1", NOW)


def test_fields_are_taken_over() -> None:
    raw = {"role": "user", "content": "hello", "id": "m1", "name": "Ann", "metadata": {"channel": "mail"}}
    [message] = take(raw).messages
    assert (message.id, message.speaker, message.metadata) == ("m1", "Ann", {"channel": "mail"})


def test_only_words_of_user_and_assistant_remain() -> None:
    captured = take(
        SystemMessage("Be brief"),
        HumanMessage("what is it?"),
        AIMessage("let me look", tool_calls=[{"name": "f", "args": {}, "id": "1"}]),
        ToolMessage("secret result", tool_call_id="1"),
        {"role": "assistant", "tool_calls": [{"id": "2"}]},
        {"role": "assistant", "content": [{"type": "text", "text": "hm"}, {"type": "tool_use", "id": "3"}]},
        {"type": "function_call_output", "output": "x"},
        HumanMessage("old notes", additional_kwargs={"hide_from_ui": True}),
        HumanMessage("old notes", additional_kwargs={"everlong": {}}),
        {"role": "user", "content": "old notes", "metadata": {"everlong": True}},
        HumanMessage("<memory>\n- User prefers Vim\n</memory>"),
        ("user", ""),
        ("user", None),
        ("assistant", "<think>easy</think>It is 4."),
    )
    assert said(captured) == [("user", "what is it?"), ("assistant", "It is 4.")]
    assert len(captured.ignored) == 12
    assert all(skipped.reason.startswith("message ") for skipped in captured.ignored)


def test_injected_memory_is_cut_out_of_a_message() -> None:
    assert said(take(("user", "<memory>- prefers Vim</memory>\nWhat is 2+2?"))) == [("user", "What is 2+2?")]


def test_parts_are_joined_in_order_without_images_and_thoughts() -> None:
    data_url = "data:image/png;base64," + "A" * 2_000_000
    content = [
        {"type": "thinking", "thinking": "private"},
        {"type": "text", "text": "one"},
        {"type": "image_url", "image_url": {"url": data_url}},
        "two",
        {"type": "text", "text": {"value": "three"}},
    ]
    captured = take({"role": "user", "content": content}, ("user", f"see ![pic]({data_url}) here"))
    assert said(captured) == [("user", "one\ntwo\nthree"), ("user", "see  here")]
    assert take({"role": "user", "content": {"type": "image_url", "image_url": {"url": data_url}}}).messages == ()


@pytest.mark.parametrize("block", ["uploaded_files", "current_uploads"])
def test_an_upload_without_words_goes_with_its_answer(block: str) -> None:
    notice = f"<{block}>- filename: a.pdf path: /mnt/user-data/uploads/t1/a.pdf</{block}>"
    captured = take(
        ("user", [{"type": "text", "text": notice}]), ("assistant", "I see a.pdf"), ("user", "thanks"), ("ai", "sure")
    )
    assert said(captured) == [("user", "thanks"), ("assistant", "sure")]
    assert said(take(("user", f"{notice}\n这份报告讲什么？"))) == [("user", "这份报告讲什么？")]


def test_characters_that_no_store_keeps_are_replaced() -> None:
    [message] = take(("user", json.loads(r'"ok \ud83d a\u0000b \ud83d\ude00"'))).messages
    assert message.content == "ok \ufffd ab 😀"


@pytest.mark.parametrize(
    "raw", ["hi", 3, None, ("user",), ("boss", "hi"), {"content": "hi"}, {"role": 3, "content": ""}]
)
def test_what_is_no_message_is_named_by_its_index(raw: object) -> None:
    with pytest.raises(InvalidInput, match="message 1"):
        take(("user", "fine"), raw)


def test_too_much_text_is_refused() -> None:
    with pytest.raises(TooLarge, match="max_chars"):
        take(("user", "x" * 11), max_chars=10)
    assert take(("tool", "x" * 11), max_chars=10).messages == ()


@pytest.mark.parametrize(
    ("at", "utc"),
    [
        ("2025-06-10T14:20:00Z", "2025-06-10T14:20:00+00:00"),
        ("2025-06-10T22:20:00+08:00", "2025-06-10T14:20:00+00:00"),
        ("2025-06-10T14:20:00", "2025-06-10T14:20:00+00:00"),
        (datetime(2025, 6, 10, 22, 20, tzinfo=timezone(timedelta(hours=8))), "2025-06-10T14:20:00+00:00"),
        (1_749_565_200, "2025-06-10T14:20:00+00:00"),
        (1_749_565_200_000, "2025-06-10T14:20:00+00:00"),
        ("", NOW.isoformat()),
    ],
)
def test_times_become_utc(at: object, utc: str) -> None:
    for key in ("created_at", "timestamp"):
        [message] = take({"role": "user", "content": "hi", key: at}).messages
        assert message.created_at.isoformat() == utc


@pytest.mark.parametrize("at", ["not a date", True, [], 1e300, float("nan"), "2025-13-01"])
def test_a_bad_time_is_refused(at: object) -> None:
    with pytest.raises(InvalidInput, match="message 0 has the time"):
        take({"role": "user", "content": "hi", "created_at": at})


def test_trust_of_a_message_can_be_lowered_but_not_raised() -> None:
    for claimed, origin in (("operator", "user"), ("import", "import")):
        [message] = take({"role": "user", "content": "hi", "origin": claimed}).messages
        assert message.origin == origin
    assert take(("ai", "hi")).messages[0].origin == "assistant"


# ------------------------------------------------------------------------------------------------------- replays


def test_a_replayed_history_a_window_and_a_retry_add_nothing() -> None:
    tail = take(*TALK).messages
    for replay in (TALK, TALK[2:], TALK[3:]):
        again = take(*replay, tail=tail)
        assert again.messages == ()
        assert again.duplicates == tuple(message.id for message in tail[-len(replay) :])


def test_only_what_follows_a_repetition_is_new() -> None:
    tail = take(*TALK).messages
    for history in (TALK, TALK[1:]):
        captured = take(("system", "be brief"), *history, ("user", "I moved to Berlin"), tail=tail)
        assert said(captured) == [("user", "I moved to Berlin")]


def test_a_later_ok_is_kept() -> None:
    tail = take(*TALK).messages
    assert said(take(("user", "ok"), tail=tail)) == [("user", "ok")]
    assert said(take(*TALK, ("user", "ok"), tail=tail)) == [("user", "ok")]


def test_known_ids_are_duplicates_wherever_they_stand() -> None:
    given = [HumanMessage("a", id="1"), AIMessage("b", id="2")]
    tail = take(*given).messages
    captured = take(HumanMessage("a", id="3"), *given, HumanMessage("c", id="4"), HumanMessage("c", id="4"), tail=tail)
    assert [message.id for message in captured.messages] == ["3", "4"]
    assert captured.duplicates == ("1", "2", "4")


# ------------------------------------------------------------------------------------------------------- signals


def test_signals_stand_on_user_messages_only() -> None:
    captured = take(("user", "记住，我对花生过敏"), ("assistant", "Remember this: peanuts"), ("user", "好的"))
    assert [message.signals for message in captured.messages] == [("remember",), (), ("trivial",)]
    assert captured.urgent
    assert not take(("assistant", "remember this"), ("user", "fine weather")).urgent


# ---------------------------------------------------------------------------------------------- replays, once more

REPEATS = [("user", "ok"), ("assistant", "好"), ("user", "ok"), ("assistant", "好"), ("user", "ok"), ("user", "ok")]


def replayed(history: list[tuple[str, str]], ids_from: int = 99) -> list[dict[str, str]]:
    """The history as a host sends it whose ids begin with message ``ids_from``."""
    return [
        {"role": role, "content": content} | ({"id": f"h{n}"} if n >= ids_from else {})
        for n, (role, content) in enumerate(history)
    ]


@pytest.mark.parametrize("history", [REPEATS, [*TALK, *REPEATS], [("user", "ok")] * 6], ids=["ok", "talk", "only ok"])
@pytest.mark.parametrize("step", [1, 2, 3])
def test_a_growing_history_is_kept_once_whatever_it_repeats(history: list[tuple[str, str]], step: int) -> None:
    kept: tuple[Message, ...] = ()
    for end in range(step, len(history) + step, step):
        kept += take(*history[:end], tail=kept[-end:]).messages
    assert [(m.role, m.content) for m in kept] == history


@pytest.mark.parametrize("ids_from", range(len(TALK) + 1))
def test_ids_that_come_later_make_nothing_new(ids_from: int) -> None:
    history = [*TALK, ("user", "I moved"), ("assistant", "Where to?")]
    kept = take(*replayed(TALK)).messages
    for end in (4, 5, 6, 6):
        kept += take(*replayed(history[:end], ids_from), tail=kept).messages
    assert [(m.role, m.content) for m in kept] == history


def test_the_same_words_under_other_ids_are_said_again() -> None:
    tail = take({"role": "user", "content": "ok", "id": "a"}).messages
    assert len(take({"role": "user", "content": "ok", "id": "b"}, tail=tail).messages) == 1


def test_a_key_makes_ids_that_a_retry_makes_too() -> None:
    first = take(("system", "x"), *TALK, key="call-1").messages
    late = take(("system", "x"), *TALK, tail=(), key="call-1").messages
    assert [m.id for m in first] == [m.id for m in late]
    assert take(("system", "x"), *TALK, tail=first, key="call-1").messages == ()


def test_the_same_words_under_another_key_are_said_again() -> None:
    tail = take(("user", "ok"), key="call-1").messages
    assert said(take(("user", "ok"), tail=tail, key="call-2")) == [("user", "ok")]
    grown = take(*TALK, ("user", "new"), tail=take(*TALK, key="call-3").messages, key="call-4")
    assert said(grown) == [("user", "new")]


@pytest.mark.parametrize("key", ["k" * 257, "a\x00b", 3])
def test_a_malformed_key_is_refused(key: Any) -> None:
    with pytest.raises(InvalidInput, match="idempotency key"):
        take(("user", "hi"), key=key)


def test_reshaped_messages_are_captured_alike() -> None:
    raws = [*TALK, HumanMessage([{"type": "text", "text": "<memory>x</memory>\nhi"}], id="7", name="Ann")]
    seen: list[Any] = []
    reshaped = reshape(raws, lambda part: (seen.append(part), part)[1])
    assert said(take(*reshaped)) == said(take(*raws))
    assert take(*reshaped).messages[-1].speaker == "Ann" and "I like tea" in seen
    assert reshape(3, str) == 3


def test_a_keyed_call_can_be_made_again_long_after() -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        talk = memory.at(SESSION)
        first = talk.add([("user", "I like tea")], idempotency_key="k1")
        for number in range(5):
            talk.add([("user", f"more {number}")])
        grown = talk.add([("user", "I like tea"), ("user", "我也喜欢咖啡")], idempotency_key="k1")
        assert grown.duplicates == first.message_ids and len(grown.message_ids) == 1
        assert talk.add([("user", "I like tea"), ("user", "我也喜欢咖啡")], idempotency_key="k1").status == "duplicate"
        assert len(talk.messages()) == 7


@pytest.mark.parametrize(("first", "other"), [("I like tea", "I like coffee"), ("我喜欢茶", "我喜欢咖啡")])
def test_a_key_used_for_other_words_is_a_conflict_and_loses_nothing(first: str, other: str) -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        talk = memory.at(Scope(user="ann", session="s"))
        talk.add([("user", first)], idempotency_key="k1")
        with pytest.raises(Conflict, match="k1"):
            talk.add([("user", other)], idempotency_key="k1")
        assert [m.content for m in talk.messages()] == [first]
        talk.add([("user", other)], idempotency_key="k2")
        assert [m.content for m in talk.messages()] == [first, other]
