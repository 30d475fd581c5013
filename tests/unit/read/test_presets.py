"""Presets, options of a call, a block without a question, and the settings behind them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from everlong import Principal, Scope, open_memory
from everlong.errors import ConfigError, InvalidInput
from everlong.read.compose import Shares
from everlong.read.presets import PRESETS, Preset, adapted, preset_of
from everlong.records import Profile, Query, Section
from tests.unit.read.desk import ANN, NOW, Desk

TOLD = {
    "en": ("Ann bakes bread in Lyon.", "Ann has a tabby cat", "Use grams, never cups", "The oven came", "cat"),
    "zh": ("安在里昂做面包。", "安有一只花猫", "一律用克，不用杯", "烤箱到了", "猫"),
}


def desk_of(language: str) -> Desk:
    summary, cat, rule, turn, _ = TOLD[language]
    desk = Desk()
    with desk.store.write() as tx:
        tx.profiles.put(
            Profile(scope=ANN, sections={"workContext": Section(summary=summary, updated_at=NOW)}), expected=0
        )
    desk.know(cat, confidence=0.8)
    desk.know(rule, category="correction", confidence=0.9)
    desk.say(turn, days=0.1)
    return desk


@pytest.mark.parametrize("language", [*TOLD])
@pytest.mark.parametrize(
    ("preset", "question", "shown"),
    [
        ("default", True, (1, 1, 1, 1)),
        ("default", False, (1, 1, 1, 1)),
        ("deerflow", True, (1, 1, 1, 0)),
        ("deerflow", False, (1, 1, 1, 0)),
        ("vector", True, (0, 1, 0, 0)),
        ("three-layer", True, (1, 1, 0, 1)),
    ],
)
def test_what_each_preset_takes(language: str, preset: str, question: bool, shown: tuple[int, ...]) -> None:
    desk = desk_of(language)
    chosen = preset_of(preset)
    query = Query(text=TOLD[language][-1] if question else "", **chosen.filters)
    text = desk.reader.context(ANN, query, preset=chosen).text
    assert tuple(text.count(piece) for piece in TOLD[language][:4]) == shown


def test_vector_injects_nothing_when_nothing_is_near() -> None:
    desk = desk_of("en")
    chosen = PRESETS["vector"]
    made = desk.reader.context(ANN, Query(text="quantum chromodynamics", **chosen.filters), preset=chosen)
    assert made.text == ""
    assert made.trace is not None
    assert [each.reason[:19] for each in made.trace.considered if not each.kept][:1] in (["below the threshold"], [])
    assert (chosen.filters["limit"], chosen.duplicate) == (5, 0.92)


def test_deerflow_takes_the_surest_as_far_as_the_budget_goes() -> None:
    desk = Desk()
    for number in range(90):
        desk.know(f"Fact number {number:02} about the bakery and its bread", confidence=round(0.1 + number / 100, 2))
    made = desk.reader.context(ANN, Query(text=""), preset=PRESETS["deerflow"], budget=500)
    shown = [line for line in made.text.splitlines() if line.startswith("- [")]
    assert [line.split("] ")[1][:14] for line in shown] == [f"Fact number {89 - n:02}" for n in range(len(shown))]
    assert len(shown) > 10
    assert len(made.omitted) == 90 - len(shown)


def test_without_a_question_pinned_and_important_facts_come_first() -> None:
    desk = Desk()
    desk.know("weak", confidence=0.6)
    desk.know("sure and important", confidence=0.9, importance=0.9)
    desk.know("sure", confidence=0.9, importance=0.2)
    desk.know("over", confidence=1.0, valid_until=NOW - timedelta(days=1))
    desk.know("pinned", confidence=0.5, pinned=True)
    text = desk.reader.context(ANN, Query(text="  ")).text
    places = [text.find(f"] {each} (") for each in ("pinned", "sure and important", "sure", "weak")]
    assert -1 not in places
    assert places == sorted(places)
    assert "over" not in text


def test_the_latest_turns_stay_within_all_limits_at_once() -> None:
    desk = Desk()
    for number in range(30):
        desk.say(f"turn {number:02} " + "x " * 20, days=(30 - number) / 3, session="s")
    query = Query(text="", kinds=("fact",))

    def shown(**options: Any) -> list[str]:
        made = desk.reader.context(ANN, query, preset=adapted(PRESETS["default"], **options), budget=8000)
        return [line.split("turn ")[1][:2] for line in made.layers.get("conversation_history", ())]

    assert shown() == [f"{n}" for n in range(20, 30)]
    assert shown(max_messages=40) == [f"{n:02}" for n in range(9, 30)]
    assert shown(max_messages=40, time_window="2d") == [f"{n}" for n in range(24, 30)]
    assert len(shown(max_messages=40, max_tokens=100)) in {3, 4}
    assert shown(max_messages=0) == []
    made = desk.reader.context(ANN, query, preset=adapted(PRESETS["default"], max_tokens=100))
    assert {each.reason for each in made.omitted} == {"over max_tokens"}


@pytest.mark.parametrize(
    "wrong",
    [{"max_messages": -1}, {"max_tokens": True}, {"max_messages": 1.5}, {"time_window": "soon"}, {"format": "xml"}],
)
def test_wrong_options_are_named(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        adapted(PRESETS["default"], **wrong)


def test_an_unknown_preset_is_named_with_those_there_are() -> None:
    with pytest.raises(InvalidInput, match="default, deerflow, vector, three-layer"):
        preset_of("magic")
    own = Preset(name="own", shares=Shares(static=0.1))
    assert preset_of(own) is own


# ---------------------------------------------------------------------------------------------------- the façade


def test_settings_choose_for_every_call_and_a_call_for_itself() -> None:
    with open_memory("sqlite://", worker="none", embedder="none", preset="three-layer", format="layers-zh") as memory:
        ann = memory.at(Scope(user="ann"))
        ann.remember("安有一只猫")
        assert "💡 相关事实" in ann.context("猫").text
        assert ann.context("猫", preset="vector").text.startswith("<memory>\nMemories that bear")
        assert ann.context("猫", format="json").text.startswith('{"memory"')
        assert ann.context().text == ann.context("").text != ""
        with pytest.raises(InvalidInput, match="no preset"):
            ann.context("猫", preset="magic")
    for wrong in ({"preset": "magic"}, {"format": "xml"}, {"token_counter": "gpt"}, {"static_share": 2}):
        with pytest.raises(ConfigError):
            open_memory("sqlite://", worker="none", embedder="none", **wrong)


def test_files_are_loaded_as_they_stand_for_whom_they_are_kept() -> None:
    with open_memory("sqlite://", worker="none", embedder="none") as memory:
        admin = Principal(id="root", role="operator")
        scope = Scope(org="acme", agent="coder", user="ann", session="s1")
        memory.at(scope, by=admin).files.write("/policies/tone.md", "Be kind.\n")
        memory.at(scope, by=admin).files.write("/agent/AGENTS.md", "You write code.\n")
        memory.at(scope).files.write("/memories/AGENTS.md", "安喜欢简短的回答。\n")
        memory.at(scope).files.write("/memories/notes.md", "not always\n")
        lines = memory.at(scope).context("hello").stable.splitlines()
        assert [line for line in lines if line.startswith("|")] == [
            "| Be kind.",
            "| You write code.",
            "| 安喜欢简短的回答。",
        ]
        bob = memory.at(Scope(org="acme", agent="coder", user="bob")).context("hello").text
        assert "Be kind." in bob
        assert "简短" not in bob
        assert "Be kind" not in memory.at(Scope(org="other", user="ann")).context().text
        assert memory.at(scope).context("hello", files=()).text == ""
        assert "not always" in memory.at(scope).context("hello", files=["/memories/"]).text
        assert memory.at(scope).context("hello", preset="deerflow").text == ""


def test_the_day_is_that_of_the_users_zone() -> None:
    days = set()
    for zone in ("Pacific/Kiritimati", "Pacific/Pago_Pago"):  # they never share a day
        with open_memory("sqlite://", worker="none", embedder="none", zone=zone) as memory:
            ann = memory.at(Scope(user="ann"))
            ann.remember("Ann has a cat")
            days.add(ann.context("cat").text.split("(user, ")[1][:10])
    assert len(days) == 2
