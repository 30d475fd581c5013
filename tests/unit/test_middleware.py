"""The onion: order, refusal, change, and what passes through untouched."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from everlong.errors import AccessDenied
from everlong.middleware import compose
from everlong.protocols import Call
from everlong.records import Principal, Scope

CALL = Call(action="recall", scope=Scope(user="ann"), by=Principal(id="ann"), arguments={"text": "tea"})
Handler = Callable[[Call], Any]


def skin(name: str, seen: list[str]) -> Callable[[Call, Handler], Any]:
    def wrap(call: Call, handler: Handler) -> Any:
        seen.append(f"{name} in")
        result = handler(call)
        seen.append(f"{name} out")
        return result

    return wrap


def test_the_first_skin_sees_the_call_first_and_the_result_last() -> None:
    seen: list[str] = []
    run = compose([skin("a", seen), skin("b", seen)], lambda call: seen.append(call.action))
    run(CALL)
    assert seen == ["a in", "b in", "recall", "b out", "a out"]


def test_without_skins_the_operation_is_itself() -> None:
    assert compose([], lambda call: call)(CALL) is CALL


def test_a_refusal_keeps_the_operation_from_running() -> None:
    ran: list[Call] = []

    def refuse(call: Call, handler: Handler) -> Any:
        raise AccessDenied(call.action, call.scope, "not today")

    with pytest.raises(AccessDenied, match="not today"):
        compose([refuse], ran.append)(CALL)
    assert ran == []


def test_a_skin_may_change_the_call_and_the_result() -> None:
    def redact(call: Call, handler: Handler) -> Any:
        return [handler(replace(call, arguments={"text": "***"}))]

    assert compose([redact], lambda call: call.arguments["text"])(CALL) == ["***"]
    assert CALL.arguments == {"text": "tea"}


def test_errors_of_the_operation_reach_every_skin_and_the_caller() -> None:
    seen: list[str] = []

    def watch(call: Call, handler: Handler) -> Any:
        try:
            return handler(call)
        except ValueError as error:
            seen.append(str(error))
            raise

    def fail(call: Call) -> None:
        msg = f"{call.action} broke"
        raise ValueError(msg)

    with pytest.raises(ValueError, match="recall broke"):
        compose([watch, watch], fail)(CALL)
    assert seen == ["recall broke", "recall broke"]


def test_a_composed_onion_can_run_many_times() -> None:
    seen: list[str] = []
    run = compose([skin("a", seen)], lambda call: call.scope)
    assert [run(CALL), run(CALL)] == [Scope(user="ann")] * 2
    assert seen == ["a in", "a out"] * 2
