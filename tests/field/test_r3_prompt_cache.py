"""R3: the system prompt changes every turn, so every request is billed in full: can1357/oh-my-pi#3111,
nextlevelbuilder/goclaw#1506, open-webui/open-webui#30239, langchain-ai/deepagents#2070."""

from __future__ import annotations

import itertools

import pytest

from everlong.read.formats import FORMATS
from everlong.read.presets import PRESETS, adapted
from everlong.records import MemoryFile, Profile, Query, Section
from tests.unit.read.desk import ANN, NOW, Desk

TOLD = {
    "en": (
        "Bakes bread in Lyon.",
        ["Ann has a cat", "Ann has a car", "Ann drinks tea"],
        ["cat?", "car", "tea", "weather"],
    ),
    "zh": ("在里昂做面包。", ["安有一只猫", "安有一辆车", "安喝茶"], ["猫呢", "车", "喝茶", "天气"]),
}


def desk_of(language: str, order: tuple[int, ...] = (0, 1, 2)) -> Desk:
    summary, facts, _ = TOLD[language]
    desk = Desk()
    sections = {name: Section(summary=summary, updated_at=NOW) for name in ("workContext", "topOfMind")}
    profile = Profile(scope=ANN, attributes={"name": "Ann", "city": "Lyon"}, sections=sections, updated_at=NOW)
    with desk.store.write() as tx:
        tx.profiles.put(profile, expected=0)
    for number in order:
        desk.know(facts[number])
    return desk


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_stable_part_is_the_same_bytes_until_the_profile_is_written(language: str) -> None:
    desk = desk_of(language)
    seen = set()
    for question, hours in itertools.product(TOLD[language][2], (0, 7, 400)):
        desk.clock.advance(hours * 3600)
        context = desk.reader.context(ANN, Query(text=question))
        assert context.text == context.stable + context.relevant
        seen.add(context.stable)
    desk.know("One more fact, of no weight")
    desk.say("and one more turn", days=0)
    seen.add(desk.reader.context(ANN, Query(text="fact")).stable)
    assert len(seen) == 1
    [stable] = seen
    assert TOLD[language][0] in stable
    with desk.store.write() as tx:
        profile = tx.profiles.get(ANN)
        tx.profiles.put(
            Profile(scope=ANN, attributes={"name": "Anna"}, sections=profile.sections, updated_at=NOW), expected=1
        )
    assert desk.reader.context(ANN, Query(text="fact")).stable not in seen


@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_order_of_arrival_changes_nothing(language: str) -> None:
    question = Query(text=TOLD[language][2][0], min_score=0.0)
    stable, lines = set(), set()
    for order in itertools.permutations(range(3)):
        context = desk_of(language, order).reader.context(ANN, question)
        stable.add(context.stable)
        lines.add(tuple(sorted(context.relevant.splitlines())))
    assert len(stable) == len(lines) == 1


@pytest.mark.parametrize("look", [*FORMATS])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_every_format_keeps_its_stable_part(language: str, look: str) -> None:
    """With files that are always loaded, questions of both languages, facts that come, and a clock that goes on."""
    desk = desk_of(language)
    preset = adapted(PRESETS["default"], format=look)
    file = MemoryFile(scope=ANN, path="/AGENTS.md", content="# 规则 Rules\n".encode(), created_at=NOW, updated_at=NOW)
    with desk.store.write() as tx:
        tx.files.put(file, expected=0)
    seen = set()
    for number, question in enumerate([*TOLD["en"][2], *TOLD["zh"][2], ""]):
        desk.clock.advance(5 * 3600)
        context = desk.reader.context(ANN, Query(text=question), preset=preset)
        assert context.text == context.stable + context.relevant
        seen.add(context.stable)
        desk.know(f"Rule {number}", category="correction")
    assert len(seen) == 1
    assert "# 规则 Rules" in seen.pop()
