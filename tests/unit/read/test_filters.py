"""Filters decide what is searched: one truth table, equal on both databases."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from everlong import text
from everlong.errors import InvalidInput
from everlong.protocols import Indexed
from everlong.read.filters import matches
from everlong.read.reader import Reader
from everlong.records import Fact, MemoryFile, Message, Query, Scope
from everlong.search import BucketIndex
from everlong.store import open_store
from everlong.testing import CountingIds, FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.protocols import Store

ANN = Scope(user="ann")
START = datetime(2026, 3, 1, tzinfo=UTC)

ROWS: dict[str, dict[str, Any]] = {
    "two": {"score": 2},
    "nine": {"score": 9.0},
    "ten": {"score": 10},
    "hundred": {"score": 100},
    "text": {"score": "n/a"},
    "word": {"score": "9"},
    "true": {"score": True, "flag": True},
    "false": {"flag": False},
    "null": {"score": None, "flag": None},
    "tags": {"tags": ["a", "b"]},
    "one_tag": {"tags": "a"},
    "cfg": {"cfg": {"k": {"x": 1, "y": [1]}}},
    "dotted": {"a.b": 1},
    "nested": {"a": {"b": 1}},
    "both": {"a.b": 2, "a": {"b": 1}},
    "chinese": {"键": "值", "项目": {"名称": "长城"}},
    "odd": {"": 0, "author' = 'x' OR '1'='1": 1},
    "none": {},
}
EVERY = set(ROWS)

TABLE: list[tuple[dict[str, Any], set[str]]] = [
    ({"score": 10}, {"ten"}),
    ({"score": 9}, {"nine"}),
    ({"score": "9"}, {"word"}),
    ({"score": 1}, set()),
    ({"score": True}, {"true"}),
    ({"score": None}, {"null"}),
    ({"score": {"$eq": 10.0}}, {"ten"}),
    ({"score": {"$ne": 10}}, EVERY - {"ten"}),
    ({"score": {"$ne": None}}, EVERY - {"null"}),
    ({"score": {"$gte": 10}}, {"ten", "hundred"}),
    ({"score": {"$gt": 10}}, {"hundred"}),
    ({"score": {"$lt": 9}}, {"two"}),
    ({"score": {"$lte": 9}}, {"two", "nine"}),
    ({"score": {"$gt": 2, "$lt": 100}}, {"nine", "ten"}),
    ({"score": {"$gte": "9"}}, {"word", "text"}),
    ({"score": {"$lt": "a"}}, {"word"}),
    ({"score": {"$in": [2, 10.0, "n/a", None]}}, {"two", "ten", "text", "null"}),
    ({"score": {"$in": []}}, set()),
    ({"score": {"$exists": True}}, {"two", "nine", "ten", "hundred", "text", "word", "true", "null"}),
    ({"flag": {"$exists": False}}, EVERY - {"true", "false", "null"}),
    ({"flag": None}, {"null"}),
    ({"flag": False}, {"false"}),
    ({"flag": 0}, set()),
    ({"tags": ["a", "b"]}, {"tags"}),
    ({"tags": ["b", "a"]}, set()),
    ({"tags": "a"}, {"one_tag"}),
    ({"tags": {"$in": [["a", "b"], "z"]}}, {"tags"}),
    ({"cfg.k": {"x": 1.0, "y": [1]}}, {"cfg"}),
    ({"cfg.k": {"x": 1}}, set()),
    ({"cfg.k.x": 1}, {"cfg"}),
    ({"cfg.k.x.z": {"$exists": True}}, set()),
    ({"cfg": {"$exists": True}}, {"cfg"}),
    ({"cfg": {}}, set()),
    ({"a.b": 1}, {"dotted", "nested"}),
    ({"a.b": 2}, {"both"}),
    ({"键": "值"}, {"chinese"}),
    ({"项目.名称": {"$gte": "长"}}, {"chinese"}),
    ({"": 0}, {"odd"}),
    ({"author' = 'x' OR '1'='1": 1}, {"odd"}),
    ({"score": {"$gte": 10}, "flag": {"$exists": True}}, set()),
    ({"score": True, "flag": True}, {"true"}),
    ({}, EVERY),
]


@pytest.mark.parametrize(("conditions", "met"), TABLE)
def test_the_truth_table(conditions: dict[str, Any], met: set[str]) -> None:
    assert {name for name, metadata in ROWS.items() if matches(metadata, conditions)} == met


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Facts, turns and files with all the metadata of the table, on each database."""
    url = "sqlite://" if request.param == "sqlite" else request.getfixturevalue("postgres").fresh()
    opened = open_store(url, clock=FakeClock(START), new_id=CountingIds())
    fill(opened)
    yield opened
    opened.close()
    if request.param == "postgres":
        request.getfixturevalue("postgres").release(url)


def fill(store: Store) -> None:
    with store.write() as tx:
        for number, (name, metadata) in enumerate(ROWS.items()):
            at = START + timedelta(days=number)
            words = Indexed(terms=text.terms("green tea 绿茶"))
            fact = Fact(
                id=name, scope=ANN, content="Green tea 绿茶.", created_at=at, updated_at=at, metadata=metadata,
                confidence=number / 20, trust=number / 20, origin=("user", "tool")[number % 2],
                category=("goal", "todo")[number % 2], session=f"s{number % 3}",
                valid_from=at if number % 2 else None, valid_until=at + timedelta(days=5) if number % 3 else None,
            )  # fmt: skip
            tx.facts.add(fact, words)
            turn = Message(
                id=name, scope=ANN, session="", role="user", content="Green tea 绿茶.", created_at=at,
                metadata=metadata, origin=("user", "tool")[number % 2],
            )  # fmt: skip
            tx.messages.append(replace(ANN, session=f"s{number % 3}"), [turn], [words])
            file = MemoryFile(
                scope=ANN, path=f"/memories/{name}.md", content="Green tea 绿茶.".encode(), created_at=at,
                updated_at=at, metadata=metadata,
            )  # fmt: skip
            tx.files.put(file, expected=0)


def found(store: Store, **filters: Any) -> dict[str, set[str]]:
    reader = Reader(
        store=store, index=BucketIndex(model="", dimensions=0), embedder=None, counter=text.estimate_tokens,
        clock=FakeClock(START), new_id=CountingIds(),
    )  # fmt: skip
    query = Query(text="green tea 绿茶", limit=100, min_score=0.0, **{"kinds": ("fact", "message", "file"), **filters})
    hits = reader.recall(ANN, query).hits
    named = {"file": lambda hit: hit.record.path.removeprefix("/memories/").removesuffix(".md")}
    return {
        kind: {named.get(kind, lambda one: one.id)(hit) for hit in hits if hit.kind == kind}
        for kind in ("fact", "message", "file")
    }


@pytest.mark.parametrize(("conditions", "met"), TABLE)
def test_every_kind_on_every_store_obeys_the_table(store: Store, conditions: dict[str, Any], met: set[str]) -> None:
    far = START + timedelta(days=-1)
    assert found(store, metadata=conditions, at=far) == {"fact": met, "message": met, "file": met}


def wanted(test: Any) -> set[str]:
    return {name for number, name in enumerate(ROWS) if test(number)}


def test_columns_filter_too(store: Store) -> None:
    early = START - timedelta(days=1)
    days = {"since": START + timedelta(days=3), "until": START + timedelta(days=7)}
    some = wanted(lambda number: 3 <= number < 7)
    assert found(store, at=early, **days) == {"fact": some, "message": some, "file": some}
    odd = wanted(lambda number: number % 2)
    assert found(store, at=early, origins=["tool"]) == {"fact": odd, "message": odd, "file": set()}
    assert found(store, at=early, origins=["document"])["file"] == EVERY
    assert found(store, at=early, min_confidence=0.5)["fact"] == wanted(lambda number: number >= 10)
    assert found(store, at=early, min_confidence=0.5)["message"] == EVERY
    trusted = found(store, at=early, min_trust=0.45)
    assert trusted["fact"] == wanted(lambda number: number >= 9)
    assert trusted["message"] == EVERY - odd and not trusted["file"]
    assert found(store, at=early, categories=["todo"]) == {"fact": odd, "message": set(), "file": set()}
    second = wanted(lambda number: number % 3 == 1)
    assert found(store, at=early, sessions=["s1"]) == {"fact": second, "message": second, "file": set()}
    assert found(store, at=early, kinds=["file"]) == {"fact": set(), "message": set(), "file": EVERY}


@pytest.mark.parametrize("day", [-1, 0, 4, 5, 9, 30])
def test_valid_at_is_what_holds_then(store: Store, day: int) -> None:
    holds = wanted(lambda n: (not n % 2 or n <= day) and (not n % 3 or day < n + 5))
    assert found(store, valid_at=START + timedelta(days=day))["fact"] == holds
    with store.read() as tx:
        listed = tx.facts.list(ANN, valid_at=START + timedelta(days=day)).items
        assert {fact.id for fact in listed} == holds


def test_what_is_to_come_is_found_unless_it_is_asked_what_holds(store: Store) -> None:
    assert found(store, at=START - timedelta(days=9))["fact"] == EVERY


def test_metadata_follows_a_change(store: Store) -> None:
    index = BucketIndex(model="", dimensions=0)
    with store.read() as tx:
        before = index.corpus(tx, ANN, "fact", metadata=True)
        kept = dict(zip(before.ids, before.metadata, strict=True))
        assert kept == ROWS
        fact = tx.facts.get(ANN, "two")
    with store.write() as tx:
        fact = tx.facts.revise(replace(fact, metadata={"score": 3}), expected=fact.version)
    with store.read() as tx:
        plain = index.corpus(tx, ANN, "fact")
        assert not hasattr(plain, "metadata")
        after = index.corpus(tx, ANN, "fact", metadata=True)
        assert dict(zip(after.ids, after.metadata, strict=True)) == ROWS | {"two": {"score": 3}}
    with store.write() as tx:
        tx.facts.revise(replace(fact, metadata={"score": 2}), expected=fact.version)


@pytest.mark.parametrize(
    "filters",
    [
        {"metadata": {"score": {"$near": 1}}},
        {"metadata": {"score": {"$gt": 1, "x": 1}}},
        {"metadata": {"score": {"$gt": None}}},
        {"metadata": {"score": {"$lt": [1]}}},
        {"metadata": {"score": {"$gt": True}}},
        {"metadata": {"score": {"$in": "abc"}}},
        {"metadata": {"score": {"$exists": 1}}},
        {"metadata": {1: 2}},
        {"metadata": [("a", 1)]},
        {"kinds": ("facts",)},
        {"kinds": "fact"},
        {"origins": ("nobody",)},
        {"min_confidence": 2},
        {"min_trust": True},
        {"before": -1},
        {"after": 1.5},
        {"since": datetime(2026, 1, 1)},  # noqa: DTZ001 - what is refused
        {"as_of": "2026-01-01"},
    ],
)
def test_malformed_filters_are_refused(store: Store, filters: dict[str, Any]) -> None:
    with pytest.raises(InvalidInput):
        found(store, **filters)
