"""F2, joshuaswarren/remnic#2188 and volcengine/OpenViking#661: four characters a token is wrong for Chinese, so that a
budget lets in several times as much. The counts beside the texts are those of ``cl100k_base``, counted once."""

from __future__ import annotations

import pytest

from everlong import Scope, open_memory
from everlong.read.formats import FORMATS
from everlong.read.presets import PRESETS, adapted
from everlong.records import Query
from everlong.text import estimate_tokens
from tests.unit.read.desk import ANN, Desk

ENGLISH = (
    "I moved to Porto last June with my sister and our two cats. We found a small flat near the river, and I cycle "
    "to work every morning when it does not rain. My manager asked me whether I would like to lead the new team, but "
    "I haven't decided yet, because it would mean more travel and fewer evenings at the pottery studio."
)
CHINESE = (
    "去年六月我和妹妹带着两只猫搬到了波尔图。我们在河边找到了一间小公寓，不下雨的时候我每天早上骑车去上班。"
    "经理问我愿不愿意带新的团队，我还没有决定，因为那样要经常出差，晚上也没有时间去陶艺工作室了。"
)
COUNTED = {"en": (ENGLISH, 71), "zh": (CHINESE, 125)}


@pytest.mark.parametrize("language", COUNTED)
def test_running_text_is_estimated_within_five_percent(language: str) -> None:
    text, real = COUNTED[language]
    assert abs(estimate_tokens(text) - real) <= real * 0.05


@pytest.mark.parametrize(
    ("text", "least"), [("你好世界" * 25, 60), ("かなのもじ" * 20, 60), ("👍" * 50, 50), ("a" * 400, 80)]
)
def test_no_script_is_counted_by_fours(text: str, least: int) -> None:
    assert estimate_tokens(text) >= least


@pytest.mark.parametrize("budget", [200, 500, 1500])
def test_a_block_of_chinese_facts_stays_within_its_budget(budget: int) -> None:
    with open_memory("sqlite://", worker="none", max_facts=300, embedder="none") as memory:
        ann = memory.at(Scope(user="ann"))
        places = "北京上海广州深圳成都杭州武汉西安南京重庆"
        for number in range(60):
            ann.remember(
                f"用户第{number}次出差去了{places[number % 20]}，住在靠近火车站的一家小旅馆里，晚饭总是吃面条和青菜。"
            )
        block = ann.context("用户出差住在哪里？", budget=budget, min_score=0.0, limit=60)
        assert "旅馆" in block.text
        assert block.tokens <= budget
        # No character of Chinese prose costs less than about a token in this vocabulary.
        assert sum("\u4e00" <= c <= "\u9fff" for c in block.text) <= budget


@pytest.mark.parametrize("question", ["茶馆的老师傅", ""])
def test_no_format_lets_more_in(question: str) -> None:
    """200 facts of forty characters and a budget of 500: the Chinese that is shown cannot cost more than the budget."""
    desk = Desk()
    for number in range(200):
        desk.know(f"第{number}条：用户去年秋天在杭州西湖边的一家茶馆里认识了一位会做陶艺的老师傅，后来每周都去。")
    query = Query(text=question, min_score=0.0, limit=100)
    for look in FORMATS:
        block = desk.reader.context(ANN, query, budget=500, preset=adapted(PRESETS["default"], format=look))
        shown = sum("\u4e00" <= c <= "\u9fff" for c in block.text)
        assert 120 < shown <= 500
        assert block.tokens <= 500
        assert len(block.omitted) + len(block.layers["extracted_facts"]) == (100 if question else 200)
