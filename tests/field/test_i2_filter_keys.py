"""I2: a crafted filter key turns the condition off: langchain-ai/langgraph#5666 (CVE-2025-8709),
run-llama/llama_index#22475. A key is data: it is looked up, and never becomes part of a statement."""

from __future__ import annotations

import pytest

from everlong.errors import InvalidInput
from tests.unit.read.desk import Desk

CRAFTED = [
    "author' = 'alice' OR '1'='1' --", 'x") OR 1=1 --', "'; DROP TABLE facts; --", "$.author", "author' OR 'a'='a", "%", "*",
    "键' OR '1'='1", "",
]  # fmt: skip
UNUSUAL = ["a.b", "键", "with space", "a'b", 'a"b', "..", "%s", "🎉", ""]


@pytest.mark.parametrize("key", CRAFTED)
def test_a_crafted_key_finds_nothing(key: str) -> None:
    desk = Desk()
    desk.know("green tea 绿茶", metadata={"author": "alice"})
    assert desk.found("green tea 绿茶", metadata={"author": "alice"}, min_score=0.0)
    assert not desk.found("green tea 绿茶", metadata={key: "bob"}, min_score=0.0)
    assert not desk.found("green tea 绿茶", metadata={"author": "' OR '1'='1"}, min_score=0.0)
    assert desk.found("green tea 绿茶", min_score=0.0)


@pytest.mark.parametrize("key", UNUSUAL)
def test_an_unusual_key_works(key: str) -> None:
    desk = Desk()
    desk.know("green tea", metadata={key: 1})
    desk.say("绿茶 green tea", metadata={key: 2})
    assert desk.found("green tea", metadata={key: 1}, min_score=0.0) == ["green tea"]
    assert desk.found("绿茶", metadata={key: {"$gt": 1}}, min_score=0.0) == ["绿茶 green tea"]


@pytest.mark.parametrize("operator", ["$where", "$regex", "$or", "$", "$eq' OR 1=1"])
def test_an_operator_nobody_knows_is_refused(operator: str) -> None:
    with pytest.raises(InvalidInput, match="unknown operator"):
        Desk().found("tea", metadata={"author": {operator: 1}})
