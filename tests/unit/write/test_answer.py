import json

import pytest

from everlong.errors import UnusableExtraction
from everlong.write.answer import parse

J = json.dumps(
    {"user": {}, "history": {}, "newFacts": [{"content": "User has a dog", "confidence": 0.9}], "factsToRemove": []}
)


@pytest.mark.parametrize(
    "answer",
    [
        f"```json\n{J}\n```\nExplanation: one fact.", f"Here are the facts:\n{J}", f"{J}\ntrailing {{note}} and }}",
        f"<think>short</think>{J}", J[:-1] + ",}", "\ufeff" + J, f"{J}\n{J}",
        [{"type": "thinking", "thinking": "x"}, {"type": "text", "text": J}],
        "{'newFacts': [{'content': 'User\\'s dog is Mochi', 'category': 'context', 'confidence': 0.9}]}",
        '[{"content": "用户养狗", "memory_type": "context", "confidence": "high"}]',
    ],
)  # fmt: skip
def test_wrapped_answers_yield_their_one_fact(answer):
    (fact,) = parse(answer).facts
    assert fact.confidence == 0.9


def test_bad_items_are_skipped_and_counted():
    items = [{"content": "good"}, {"content": None}, {"content": {"text": "x"}}, {"content": ""}, 7]
    found = parse(json.dumps({"newFacts": items, "user": [], "factsToRemove": [1, "f1"]}))
    assert [f.content for f in found.facts] == ["good"] and found.removals == ("f1",) and len(found.skipped) == 5


@pytest.mark.parametrize("answer", ["plain prose", "", '{"newFacts": 7, "factsToRemove": ["f1"]}'])
def test_unsafe_answers_are_refused_with_what_was_said(answer):
    with pytest.raises(UnusableExtraction) as caught:
        parse(answer)
    assert caught.value.raw == answer


@pytest.mark.parametrize(
    "part", [{"shouldUpdate": True, "summary": ""}, None, {"shouldUpdate": "false", "summary": "x"}, "x"]
)
def test_only_a_true_update_with_words_changes_a_section(part):
    assert parse(json.dumps({"user": {"workContext": part}})).sections == {}
