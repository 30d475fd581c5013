"""F4: long summaries take the budget and the facts never reach the model: bytedance/deer-flow#3592,
bytedance/deer-flow#1059."""

from __future__ import annotations

import pytest

from everlong.records import SECTIONS, Profile, Query, Section
from everlong.text import estimate_tokens
from tests.unit.read.desk import ANN, NOW, Desk

LONG = {
    "en": "Ann talked at length about the tidy and steady progress of her work. " * 34,
    "zh": "安详细讲了她工作的进展。" * 42,
}
RULE = {"en": "Use pnpm, never npm", "zh": "只用 pnpm，绝不用 npm"}
LIKE = {"en": "Ann likes the colour of package {}", "zh": "安喜欢第 {} 种包装的颜色"}
ASKED = {"en": "how do I install the package?", "zh": "这个包装怎么安装？"}


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("budget", [400, 1000, 2000])
def test_facts_have_their_share_whatever_the_summaries_say(language: str, budget: int) -> None:
    desk = Desk()
    sections = {name: Section(summary=LONG[language], updated_at=NOW) for name in SECTIONS}
    assert all(estimate_tokens(section.summary) > 400 for section in sections.values())
    with desk.store.write() as tx:
        tx.profiles.put(Profile(scope=ANN, sections=sections, updated_at=NOW), expected=0)
    desk.know(RULE[language], days=200, category="correction", confidence=0.95)
    for number in range(20):
        desk.know(LIKE[language].format(number), category="preference")
    context = desk.reader.context(ANN, Query(text=ASKED[language], min_score=0.0), budget=budget)
    assert RULE[language] in context.text
    assert LIKE[language][:5] in context.text
    assert context.tokens == estimate_tokens(context.text) <= budget
    shortened = {each.what for each in context.omitted if "section" in each.what}
    assert shortened == {f"section {name}" for name in SECTIONS}
    assert estimate_tokens(context.stable) <= budget * 0.6
    if budget >= 1000:
        assert context.stable.count(LONG[language][:8]) >= len(SECTIONS)
