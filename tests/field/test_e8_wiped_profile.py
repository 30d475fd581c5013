"""E8: an empty or much shorter answer wipes what was known: run-llama/llama_index#21103."""

import json

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.testing.fakes import FakeClock, ScriptedChatModel

SESSION = Scope(user="ann", session="s")
SHORT = {"en": "Leads the DataOps team", "zh": "负责数据运维团队"}
LONG = {
    "en": "Leads the DataOps team of nine people in Lyon. Owns the nightly billing pipeline on Airflow and Postgres. "
    "Moves everything to Kubernetes before summer, reports to Marta, and reviews each release on Thursday morning.",
    "zh": "负责里昂的九人数据运维团队，主管每晚运行的计费流水线，使用开源调度器与关系数据库。夏天之前要把全部服务迁移到容器平台，"
    "向玛尔塔汇报，每周四上午评审发布版本。",
}
OTHER = {"en": "Likes short answers", "zh": "喜欢简短回答"}
SAID = {"en": "I like short answers", "zh": "我喜欢简短回答"}


def opened(*answers):
    model = ScriptedChatModel([a if isinstance(a, str) else json.dumps(a, ensure_ascii=False) for a in answers])
    chosen = Settings(url="sqlite://", embedder="none", worker="none", extractor="llm")
    return build(chosen, chat_model=model, clock=FakeClock(tick=1.0))


def proposing(section):
    return {"user": {"workContext": section}, "history": {}, "newFacts": [], "factsToRemove": []}


@pytest.mark.parametrize("section", [
    {"shouldUpdate": True, "summary": ""}, {"shouldUpdate": True, "summary": " \u200b\n"}, {"shouldUpdate": True, "summary": None},
    {"shouldUpdate": True}, None, {"shouldUpdate": "false", "summary": "OTHER"}, {"shouldUpdate": False, "summary": "OTHER"},
    "OTHER", {"summary": "OTHER"}, [], {"shouldUpdate": True, "summary": "None"}, {"shouldUpdate": True, "summary": "无"},
])  # fmt: skip
@pytest.mark.parametrize("language", SHORT)
def test_a_summary_changes_only_when_told_to_and_never_to_nothing(language, section):
    proposed = json.loads(json.dumps(section).replace("OTHER", OTHER[language]))
    with opened(proposing(proposed)) as memory:
        ann = memory.at(SESSION)
        before = ann.update_profile(sections={"workContext": SHORT[language]})
        ann.add([("user", SAID[language])])
        memory.drain()
        after = ann.profile()
        assert after.sections == before.sections and after.version == before.version
        assert len(ann.extractions().items) == 1


@pytest.mark.parametrize("language", LONG)
def test_a_summary_that_drops_most_of_a_long_one_waits_for_a_person(language):
    proposed = proposing({"shouldUpdate": True, "summary": OTHER[language]})
    with opened(proposed, proposed) as memory:
        ann = memory.at(SESSION)
        before = ann.update_profile(sections={"workContext": LONG[language]})
        for turn in range(2):
            ann.add([("user", f"{SAID[language]} {turn}")])
            memory.drain()
        assert ann.profile() == before
        (waiting,) = memory.at(Scope(user="ann")).inbox.list().items
        assert (waiting.kind, waiting.target) == ("section", "workContext") and "drops most" in waiting.reason
        memory.at(Scope(user="ann")).inbox.approve(waiting.id)
        assert ann.profile().sections["workContext"].summary == OTHER[language]


@pytest.mark.parametrize("language", LONG)
def test_a_summary_that_keeps_what_matters_may_be_shorter(language):
    shorter = LONG[language][: len(LONG[language]) * 2 // 3]
    with opened(proposing({"shouldUpdate": True, "summary": shorter})) as memory:
        ann = memory.at(SESSION)
        ann.update_profile(sections={"workContext": LONG[language]})
        ann.add([("user", SAID[language])])
        memory.drain()
        assert ann.profile().sections["workContext"].summary == shorter


@pytest.mark.parametrize("language", SHORT)
def test_forty_facts_do_not_go_because_a_model_says_so(language):
    words = [
        chr(0x4E00 + 97 * n) * 3 if language == "zh" else f"code{chr(97 + n % 26)}{chr(97 + n // 26)}"
        for n in range(40)
    ]
    everything = {"user": {}, "history": {}, "newFacts": [], "factsToRemove": [f"f{n}" for n in range(1, 41)]}
    with opened(everything) as memory:
        ann = memory.at(SESSION)
        for word in words:
            assert ann.remember(f"用户认识{word}" if language == "zh" else f"User knows {word}").outcome == "add"
        ann.add([("user", SAID[language])])
        memory.drain()
        waiting = memory.at(Scope(user="ann")).inbox.list().items
        assert len(ann.facts().items) == 40 and waiting and {p.kind for p in waiting} == {"removal"}
