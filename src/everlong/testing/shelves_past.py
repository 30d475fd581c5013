"""What a store promises of earlier times, of neighbouring turns and of the text of files."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everlong.testing.samples import ANN, BOB, TALK, add_fact, at, file, indexed, say

if TYPE_CHECKING:
    from everlong.protocols import Store


class PastTests:
    """Facts as they were known, windows round turns, passages of files."""

    def test_facts_are_listed_as_they_were_known(self, store: Store) -> None:
        with store.write() as tx:
            first = add_fact(tx, "f1", seconds=0)
            add_fact(tx, "f2", seconds=5)
            add_fact(tx, "his", BOB, seconds=0)
            gone = replace(first, status="retired", updated_at=at(10))
            tx.facts.revise(gone, expected=1)
        with store.read() as tx:
            assert tx.facts.as_of(ANN, at(-1)) == ()
            assert tx.facts.as_of(ANN, at(0)) == (first,)
            assert [one.status for one in tx.facts.as_of(ANN, at(9))] == ["active", "active"]
            assert [one.id for one in tx.facts.list(ANN, as_of=at(9)).items] == ["f2", "f1"]
            assert [one.id for one in tx.facts.list(ANN, as_of=at(10)).items] == ["f2"]

    def test_rows_of_then_have_the_words_of_then(self, store: Store) -> None:
        with store.write() as tx:
            first = add_fact(tx, "f1", content="绿茶")
            tx.facts.set_vectors(ANN, "f1", indexed("绿茶", model="m", vectors=[[1, 0]]))
            new = replace(first, content="sails", updated_at=at(10))
            tx.facts.revise(new, expected=1, indexed=indexed("sails", model="m", vectors=[[0, 1]]))
        with store.read() as tx:
            now = tx.index.rows(ANN, "fact", model="m")
            then = tx.index.past(ANN, model="m", at=at(5))
            later = tx.index.past(ANN, model="m", at=at(10))
        assert then.ids == later.ids == ["f1"] and then.vectors == [None]
        assert then.terms != now.terms == later.terms and later.vectors == now.vectors

    def test_facts_are_listed_by_what_holds(self, store: Store) -> None:
        with store.write() as tx:
            add_fact(tx, "always")
            add_fact(tx, "later", valid_from=at(10))
            add_fact(tx, "until", valid_until=at(10))
        with store.read() as tx:
            assert {one.id for one in tx.facts.list(ANN, valid_at=at(9)).items} == {"always", "until"}
            assert {one.id for one in tx.facts.list(ANN, valid_at=at(10)).items} == {"always", "later"}

    def test_a_window_is_of_one_conversation(self, store: Store) -> None:
        with store.write() as tx:
            for number in range(3):
                say(tx, f"a{number}", seconds=number)
                say(tx, f"b{number}", session=replace(TALK, session="walk"), seconds=number)
        with store.read() as tx:
            turns = tx.messages.many(ANN, ["a1", "b2"])
            windows = tx.messages.windows([turns["a1"], turns["b2"]], before=1, after=1)
            assert [[one.id for one in window] for window in windows] == [["a0", "a1", "a2"], ["b1", "b2"]]
            (early,) = tx.messages.windows([turns["a1"]], before=1, after=1, until=at(1))
            assert [one.id for one in early] == ["a0", "a1"]

    def test_passages_follow_their_file(self, store: Store) -> None:
        with store.write() as tx:
            made = tx.files.put(file("/a.md", ANN, "绿茶 tea".encode()), expected=0)
            (passage,) = tx.passages.unembedded(ANN, "m", limit=9)
            assert tx.passages.set_vectors(passage, indexed("", model="m", vectors=[[1, 0]]))
            assert tx.passages.unembedded(ANN, "m", limit=9) == ()
        with store.read() as tx:
            assert tx.passages.many(TALK, [passage.id]) == {passage.id: passage}
            assert tx.passages.many(BOB, [passage.id]) == {}
            before = tx.index.revisions(ANN, ["file"])[ANN, "file"]
        with store.write() as tx:
            tx.files.put(replace(made, content=b"sails"), expected=1)
            assert not tx.passages.set_vectors(passage, indexed("", model="m", vectors=[[1, 0]]))
            assert [one.content for one in tx.passages.unembedded(ANN, "m", limit=9)] == ["sails"]
        with store.write() as tx:
            assert tx.index.revisions(ANN, ["file"])[ANN, "file"].number > before.number
            tx.files.delete(ANN, "/a.md", expected=2)
        with store.read() as tx:
            assert tx.index.rows(ANN, "file", model="m").ids == []
            assert tx.index.revisions(ANN, ["file"])[ANN, "file"].epoch != before.epoch
