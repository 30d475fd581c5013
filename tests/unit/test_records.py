"""Scopes have an algebra; records are frozen values."""

from __future__ import annotations

import dataclasses
import pickle
from datetime import UTC, datetime
from itertools import product

import pytest

from everlong import records
from everlong.errors import InvalidInput, InvalidScope
from everlong.records import CATEGORIES, SECTIONS, TRUST, Fact, Hit, Message, Page, Profile, Scope, Usage

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SMALL = [Scope(org=o, agent=a, user=u, session=s) for o, a, u, s in product(("", "x", "y"), repeat=4)]


class TestScope:
    def test_fewer_parts_are_wider(self) -> None:
        ann = Scope(user="ann")
        assert ann.covers(Scope(user="ann", agent="coder"))
        assert Scope().covers(ann)
        assert not ann.covers(Scope(user="bob"))
        assert not ann.covers(Scope())
        assert not Scope(user="ann", agent="coder").covers(ann)

    def test_covers_is_a_partial_order(self) -> None:
        for a in SMALL:
            assert a.covers(a)
            for b in SMALL:
                if a != b:
                    assert not (a.covers(b) and b.covers(a))
        wide, middle, narrow = Scope(org="x"), Scope(org="x", user="y"), Scope(org="x", user="y", session="x")
        assert wide.covers(middle)
        assert middle.covers(narrow)
        assert wide.covers(narrow)

    def test_covering_is_exactly_what_covers(self) -> None:
        for scope in SMALL:
            covering = scope.covering()
            assert len(covering) == len(set(covering)) <= 16
            assert {other for other in SMALL if other.covers(scope)} == set(covering)

    def test_covering_goes_from_wide_to_narrow(self) -> None:
        for scope in SMALL:
            covering = scope.covering()
            assert (covering[0], covering[-1]) == (Scope(), scope)
            for i, earlier in enumerate(covering):
                assert not any(later.covers(earlier) for later in covering[i + 1 :])

    def test_home_is_the_scope_less_its_session(self) -> None:
        for scope in SMALL:
            assert scope.home == dataclasses.replace(scope, session="")
            assert scope.home.covers(scope)
            assert scope.home.home == scope.home

    @pytest.mark.parametrize("name", ["org", "agent", "user", "session"])
    @pytest.mark.parametrize(
        ("part", "why"),
        [
            (" ", "blank"),
            ("\t\n", "blank"),
            ("\u3000", "blank"),
            ("x" * 513, "513 characters"),
            ("a\x00b", "NUL"),
            ("\ud800", "surrogate"),
            (7, "not int"),
            (None, "not NoneType"),
            (b"ann", "not bytes"),
        ],
    )
    def test_parts_that_no_store_can_keep_are_refused(self, name: str, part: object, why: str) -> None:
        with pytest.raises(InvalidScope, match=why) as caught:
            Scope(**{name: part})  # type: ignore[arg-type]
        assert name in str(caught.value)
        assert isinstance(caught.value, InvalidInput)

    @pytest.mark.parametrize(
        "part", ["安娜", "ann@example.com", "a%", "a_", "'; DROP--", "x" * 512, " ann ", "👩‍👩‍👧", "../.."]
    )
    def test_any_other_text_is_a_name(self, part: str) -> None:
        scope = Scope(user=part)
        assert scope.user == part
        assert Scope(user=part[:1] + "~").covers(scope) is False

    def test_parts_are_compared_exactly(self) -> None:
        for other in ("Ann", "ann ", "an", "anna", "ａｎｎ"):
            assert not Scope(user="ann").covers(Scope(user=other))

    def test_it_reads_well(self) -> None:
        assert str(Scope()) == "everywhere"
        assert str(Scope(session="s1", user="安娜")) == "user=安娜 session=s1"

    def test_it_is_a_hashable_value(self) -> None:
        assert len({Scope(user="ann"), Scope(user="ann"), Scope(agent="ann")}) == 2
        assert pickle.loads(pickle.dumps(Scope(user="ann"))) == Scope(user="ann")
        assert sorted([Scope(user="b"), Scope(), Scope(user="a")]) == [Scope(), Scope(user="a"), Scope(user="b")]


def every_record() -> list[type]:
    found = [value for value in vars(records).values() if isinstance(value, type) and dataclasses.is_dataclass(value)]
    assert len(found) > 20
    return found


@pytest.mark.parametrize("cls", every_record())
def test_records_are_frozen_slotted_and_named_only(cls: type) -> None:
    parameters = cls.__dataclass_params__  # type: ignore[attr-defined]
    assert parameters.frozen
    assert "__slots__" in vars(cls)
    assert all(f.kw_only for f in dataclasses.fields(cls))
    assert cls.__doc__
    assert not cls.__doc__.startswith(f"{cls.__name__}(")


def a_fact(**changes: object) -> Fact:
    made = Fact(id="f1", scope=Scope(user="ann"), content="Ann likes tea.", created_at=NOW, updated_at=NOW)
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def test_records_with_mappings_are_hashable_and_equal_by_value() -> None:
    assert hash(a_fact(metadata={"a": 1})) == hash(a_fact(metadata={"a": 2}))
    assert a_fact(metadata={"a": 1}) != a_fact(metadata={"a": 2})
    assert a_fact(metadata={"a": 1}) == a_fact(metadata={"a": 1})


def test_default_mappings_are_not_shared() -> None:
    assert a_fact().metadata is not Profile(scope=Scope()).attributes
    first, second = (
        Message(id="m", scope=Scope(), session="s", role="user", content="x", created_at=NOW) for _ in "12"
    )
    assert first.metadata is not second.metadata


def test_a_record_cannot_be_changed_in_place() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        a_fact().content = "Ann likes coffee."  # type: ignore[misc]


def test_new_facts_begin_modestly() -> None:
    fact = a_fact()
    assert (fact.status, fact.version, fact.uses, fact.confirmations, fact.pinned) == ("active", 1, 0, 0, False)
    assert fact.category in CATEGORIES
    assert fact.trust == TRUST[fact.origin]


def test_trust_falls_from_operator_to_tool() -> None:
    order = ["operator", "user", "import", "assistant", "document"]
    assert [TRUST[origin] for origin in order] == sorted(TRUST.values(), reverse=True)[:5]  # type: ignore[index]
    assert TRUST["tool"] == TRUST["document"] == min(TRUST.values())
    with pytest.raises(TypeError):
        TRUST["tool"] = 1.0  # type: ignore[index]


def test_sections_are_deerflow_six_in_two_groups() -> None:
    assert list(SECTIONS) == [
        "workContext",
        "personalContext",
        "topOfMind",
        "recentMonths",
        "earlierContext",
        "longTermBackground",
    ]
    assert list(SECTIONS.values()) == ["user"] * 3 + ["history"] * 3


def test_usage_adds_up() -> None:
    spent = Usage(calls=1, input_tokens=10, output_tokens=2) + Usage(calls=2, input_tokens=5, output_tokens=1)
    assert spent == Usage(calls=3, input_tokens=15, output_tokens=3)
    assert sum([Usage(calls=1)] * 3, Usage()) == Usage(calls=3)


def test_a_hit_shows_the_text_as_stored() -> None:
    assert Hit(kind="fact", id="f1", score=0.5, record=a_fact()).text == "Ann likes tea."


def test_a_page_ends_with_an_empty_cursor() -> None:
    assert Page(items=(1, 2), total=2).next == ""
