"""P1: content that is not a string: mem0ai/mem0#4799, #3646, #5067, adaptive_memory_owui#4."""

from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from everlong import Scope, open_memory

IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 2_000_000}}
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CASES: list[tuple[Any, list[str]]] = [
    ({"role": "user", "content": [{"type": "text", "text": "I love hiking"}]}, ["I love hiking"]),
    (
        {
            "role": "user",
            "content": [{"type": "text", "text": "看这张图"}, IMAGE, {"type": "text", "text": "是我的猫"}],
        },
        ["看这张图\n是我的猫"],
    ),
    ({"role": "user", "content": IMAGE}, []),
    ({"role": "user", "content": [IMAGE]}, []),
    ({"role": "user", "content": None}, []),
    ({"role": "user"}, []),
    ({"role": "assistant", "tool_calls": [CALL]}, []),
    ({"role": "user", "content": ""}, []),
    ({"role": "user", "content": ["我喜欢茶", "and coffee"]}, ["我喜欢茶\nand coffee"]),
    ({"role": "tool", "content": [{"type": "text", "text": "rows: 3"}], "tool_call_id": "1"}, []),
    (
        {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "Four."}]},
        ["Four."],
    ),
    ({"role": "user", "content": 42}, []),
    ({"role": "user", "content": {"a": [1, {"b": None}]}}, []),
    ({"role": "user", "content": [None, 3, {"type": "audio", "data": "x"}, {"type": "text"}]}, []),
    (HumanMessage("hi there"), ["hi there"]),
    (HumanMessage([{"type": "text", "text": "你好呀"}, IMAGE]), ["你好呀"]),
    (("user", "hi"), ["hi"]),
    (AIMessage("", tool_calls=[{"name": "f", "args": {}, "id": "1"}]), []),
    (ToolMessage("rows: 3", tool_call_id="1"), []),
]


@pytest.mark.parametrize("level", ["secrets", "none"])
@pytest.mark.parametrize("number", range(len(CASES)))
def test_text_parts_are_used_in_order_and_nothing_raises(number: int, level: str) -> None:
    raw, expected = CASES[number]
    with open_memory("sqlite://", embedder="none", worker="none", redact=level) as memory:
        ann = memory.at(Scope(user="ann", session="t1"))
        ann.add([("user", "first words"), raw])
        kept = [m.content for m in ann.messages()]
        assert kept == ["first words", *expected]
        shown = repr(kept) + ann.context("first words", min_score=0).text
        assert "base64" not in shown and "'type'" not in shown
