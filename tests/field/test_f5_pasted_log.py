"""F5: one oversized message pushes out what matters, as the prompt block shows it: openclaw/openclaw#68060,
MemTensor/MemOS#1010."""

from __future__ import annotations

import pytest

from everlong.records import Query
from everlong.text import estimate_tokens
from tests.unit.read.desk import ANN, Desk

LOGS = {
    "lines": "ERROR at 0x4f in module seven\n" * 7000,
    "base64": "QUJD" * 750_000,
    "日志": "模块七出错了。\n" * 20_000,
}


@pytest.mark.parametrize("said", ["From now on answer in Portuguese.", "从现在起用葡萄牙语回答。"])
@pytest.mark.parametrize("log", list(LOGS))
@pytest.mark.parametrize("last", [True, False])
def test_the_turns_beside_a_log_stay_in_order_and_within_budget(said: str, log: str, last: bool) -> None:
    desk = Desk()
    turns = [("user", "My name is Ann."), ("user", f"BEGIN {LOGS[log]} END"), ("assistant", "parsed"), ("user", said)]
    turns = turns[:2] + turns[:1:-1] if last else turns
    turns = [turns[0], *turns[2:], turns[1]] if last else turns
    for number, (role, content) in enumerate(turns):
        desk.say(content, role=role, days=0.5 - number / 100)
    context = desk.reader.context(ANN, Query(text="what now?"), budget=1000)
    places = [context.text.find(content[:8]) for _, content in turns]
    assert -1 not in places
    assert places == sorted(places)
    assert context.text.count(" […] ") == 1
    assert "END" in context.text
    assert context.tokens == estimate_tokens(context.text) <= 1000
