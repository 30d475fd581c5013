"""A recalled turn comes with those beside it in its conversation, so that a short answer is seen with its question."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from everlong import text
from everlong.protocols import Indexed
from everlong.read.reader import Reader
from everlong.records import Query, Scope
from everlong.search import BucketIndex
from everlong.store import open_store
from everlong.testing import CountingIds, FakeClock
from everlong.testing.samples import START, at, message

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.protocols import Store

ANN, BOB = Scope(user="ann"), Scope(user="bob")


@pytest.fixture(scope="module", params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> Iterator[Store]:
    """Three conversations that were held at once, turn by turn; one is another person's."""
    url = "sqlite://" if request.param == "sqlite" else request.getfixturevalue("postgres").fresh()
    opened = open_store(url, clock=FakeClock(START), new_id=CountingIds())
    with opened.write() as tx:
        for number in range(8):
            for home, session in ((ANN, "a"), (ANN, "b"), (BOB, "a")):
                place = replace(home, session=session)
                said = message(
                    f"{session}{number}", place, seconds=number, content=f"{home.user} {session} 第{number}句 turn"
                )
                tx.messages.append(place, [said], [Indexed(terms=text.terms(said.content))])
    yield opened
    opened.close()
    if request.param == "postgres":
        request.getfixturevalue("postgres").release(url)


@pytest.mark.parametrize(
    ("before", "after", "found"),
    [
        (1, 1, [["a0", "a1"], ["b3", "b4", "b5"], ["a6", "a7"]]),
        (0, 0, [["a0"], ["b4"], ["a7"]]),
        (2, 0, [["a0"], ["b2", "b3", "b4"], ["a5", "a6", "a7"]]),
        (0, 3, [["a0", "a1", "a2", "a3"], ["b4", "b5", "b6", "b7"], ["a7"]]),
    ],
)
def test_neighbours_are_of_the_same_conversation_and_person(
    store: Store, before: int, after: int, found: list[list[str]]
) -> None:
    with store.read() as tx:
        turns = tx.messages.many(ANN, ["a0", "b4", "a7"])
        windows = tx.messages.windows([turns[name] for name in ("a0", "b4", "a7")], before=before, after=after)
        assert [[one.id for one in window] for window in windows] == found
        assert all(one.scope == ANN for window in windows for one in window)
        assert tx.messages.windows([], before=1, after=1) == []


def test_nothing_said_later_than_asked_for_stands_beside(store: Store) -> None:
    with store.read() as tx:
        turn = tx.messages.many(ANN, ["b4"])["b4"]
        (window,) = tx.messages.windows([turn], before=1, after=2, until=at(5))
        assert [one.id for one in window] == ["b3", "b4", "b5"]


@pytest.mark.parametrize("count", [1, 2, 3, 16, 100])
def test_any_number_of_turns_at_once(store: Store, count: int) -> None:
    with store.read() as tx:
        turns = [tx.messages.many(ANN, [f"b{number % 8}"])[f"b{number % 8}"] for number in range(count)]
        windows = tx.messages.windows(turns, before=1, after=1)
        alone = [tx.messages.around(ANN, turn.id, before=1, after=1) for turn in turns]
        assert windows == alone


def asked(store: Store, question: str, **filters: object) -> list[list[str]]:
    reader = Reader(
        store=store, index=BucketIndex(model="", dimensions=0), embedder=None, counter=text.estimate_tokens,
        clock=FakeClock(START), new_id=CountingIds(),
    )  # fmt: skip
    hits = reader.recall(ANN, Query(text=question, limit=1, min_score=0.0, **filters)).hits
    assert all(hit.at == hit.record.created_at for hit in hits)
    return [[one.id for one in hit.window] for hit in hits]


def test_a_hit_brings_its_window(store: Store) -> None:
    assert asked(store, "b 第4句", sessions=["b"]) == [["b3", "b4", "b5"]]
    assert asked(store, "b 第4句", sessions=["b"], before=0, after=2) == [["b4", "b5", "b6"]]
    assert asked(store, "b 第4句", sessions=["b"], as_of=at(4)) == [["b3", "b4"]]
