"""What a model may make of many facts, and what is refused."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from everlong import Scope
from everlong.errors import UnusableExtraction
from everlong.records import Change, Evidence, Fact
from everlong.testing.fakes import CountingIds
from everlong.write.consolidate import Consolidation, consolidated, crowded, question

NOW = datetime(2026, 6, 1, tzinfo=UTC)


def fact(fact_id: str, content: str, **changes: Any) -> Fact:
    made: dict[str, Any] = {"created_at": NOW, "updated_at": NOW, "category": "preference"}
    return Fact(id=fact_id, scope=Scope(user="ann"), content=content, **(made | changes))


def asked(facts: list[Fact], *groups: tuple[list[str], str]) -> list[Change]:
    answer = json.dumps({"groups": [{"sourceIds": ids, "content": said} for ids, said in groups]}, ensure_ascii=False)
    return consolidated(f"Sure!\n```json\n{answer}\n```", facts, NOW, Consolidation(), CountingIds())


TEA = [fact("a", "User drinks green tea"), fact("b", "User drinks black tea"), fact("c", "User pays Tom 20 dollars")]
ZH = [fact("a", "用户喜欢喝绿茶"), fact("b", "用户喜欢喝红茶"), fact("c", "用户每周游泳3次")]


@pytest.mark.parametrize(
    ("facts", "said"), [(TEA, "User drinks green tea and black tea"), (ZH, "用户喜欢喝绿茶和红茶")]
)
def test_what_says_everything_takes_the_place_of_its_sources(facts: list[Fact], said: str) -> None:
    made, gone = asked(facts, (["a", "b"], said))
    assert made.kind == "supersede" and made.fact is not None and made.old is not None
    assert (made.fact.content, made.fact.supersedes, made.old.superseded_by) == (said, "a", made.fact.id)
    assert gone.fact is not None and (gone.fact.status, gone.fact.superseded_by) == ("retired", made.fact.id)


@pytest.mark.parametrize(
    ("facts", "ids", "said", "why"),
    [
        (TEA, ["a", "c"], "User drinks green tea and pays Tom", "numbers differ"),
        (ZH, ["a", "c"], "用户喜欢喝绿茶，每周游泳4次", "numbers differ: 3, 4"),
        ([fact("a", "用户有三只猫"), fact("b", "用户有两只狗")], ["a", "b"], "用户有三只猫和三只狗", "numbers differ"),
        (TEA, ["a", "c"], "User drinks green tea and pays someone 20 dollars", "names are missing: tom"),
        (TEA, ["a", "b"], "User drinks green tea and black tea with Ann", "stand in no source: ann"),
        (TEA, ["a", "b"], "User never drinks green tea and black tea", "denial"),
        (TEA, ["a", "b"], "User drinks things", "of the sources' words"),
        (TEA, ["a", "b"], "", "empty"),
        (TEA, ["a"], "User drinks green tea", "2 to 8"),
        (TEA, ["a", "a"], "User drinks green tea", "2 to 8"),
        (TEA, ["a", "x"], "User drinks green tea", "not there"),
        (ZH, ["a", "c"], "用户喜欢喝绿茶，每周游泳", "numbers differ"),
        (ZH, ["a", "b"], "用户不喜欢喝绿茶和红茶", "denial"),
        (ZH, ["a", "b"], "用户爱好广泛", "of the sources' words"),
    ],
)
def test_what_loses_or_adds_is_refused_with_the_reason(facts: list[Fact], ids: list[str], said: str, why: str) -> None:
    (refused,) = asked(facts, (ids, said))
    assert refused.kind == "reject" and why in refused.reason


def test_a_fact_belongs_to_one_group_and_a_run_makes_three() -> None:
    facts = [fact(f"f{n}", f"User likes song {n} well") for n in range(12)]

    def group(first: int) -> tuple[list[str], str]:
        return [f"f{first}", f"f{first + 1}"], f"User likes song {first} well and song {first + 1} well"

    changes = asked(facts, group(0), group(0), *(group(n) for n in (2, 4, 6)))
    reasons = [change.reason for change in changes if change.kind == "reject"]
    assert len([c for c in changes if c.kind == "supersede"]) == 3
    assert "another group" in reasons[0] and "3 groups" in reasons[1]


def test_it_is_no_surer_than_its_sources_and_has_their_evidence() -> None:
    sources = [
        fact("a", "User drinks green tea", confidence=0.6, evidence=(Evidence(message_id="m1", quote="q"),)),
        fact(
            "b",
            "User drinks black tea",
            trust=0.4,
            origin="assistant",
            evidence=(Evidence(message_id="m2", quote="q"),),
        ),
    ]
    made = asked(sources, (["a", "b"], "User drinks green tea and black tea"))[0].fact
    assert made is not None
    assert (made.confidence, made.trust, made.origin) == (0.5, 0.4, "assistant")
    assert [e.message_id for e in made.evidence] == ["m1", "m2"]


@pytest.mark.parametrize("answer", ["no", "{}", '{"groups": 3}', ""])
def test_no_answer_is_an_error_not_an_update(answer: str) -> None:
    with pytest.raises(UnusableExtraction):
        consolidated(answer, TEA, NOW, Consolidation(), CountingIds())


def test_only_crowded_categories_are_asked_about_and_never_what_is_fixed() -> None:
    many = [fact(f"f{n}", f"User likes song {n}") for n in range(8)]
    fixed = [
        fact("p", "pinned", pinned=True),
        fact("t", "timed", valid_until=NOW + timedelta(days=1)),
        fact("k", "User is not Bob", category="correction"),
        fact("r", "restored"),
    ]
    assert crowded([*many, *fixed], Consolidation(), but=frozenset({"r"})) == [many]
    assert crowded(many[:7], Consolidation()) == []
    assert crowded(many, Consolidation(enabled=False)) == []
    assert all(f.id in question(many, Consolidation())[1].content for f in many)
