"""What a store promises of whole records that leave it and come in."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everlong.records import COPY_KINDS, Earlier, Fact, Message, Scope, Session
from everlong.testing.samples import (
    ANN,
    BOB,
    TALK,
    add_fact,
    at,
    entry,
    extraction,
    fact,
    file,
    indexed,
    message,
    profile,
    proposal,
    say,
)

if TYPE_CHECKING:
    from everlong.protocols import Store, Transaction
    from everlong.records import CopyKind, Kept


def _fill(tx: Transaction) -> None:
    """One of every kind, with history."""
    first = add_fact(tx, "f1", content="绿茶")
    tx.facts.revise(replace(first, content="red tea", updated_at=at(5)), expected=1, indexed=indexed("red tea"))
    say(tx, "m1", "m2")
    made = tx.profiles.put(profile(), expected=0)
    tx.profiles.put(replace(made, updated_at=at(6)), expected=1)
    tx.files.put(file("/memories/a.md"), expected=0)
    tx.files.put(file("/memories/a.md", content="茶".encode()), expected=1)
    tx.proposals.put(proposal())
    tx.journal.append(entry("e1"))
    tx.extractions.append(extraction())


def _all(tx: Transaction, scope: Scope = ANN) -> dict[CopyKind, list[Kept]]:
    return {kind: list(tx.copies.each(kind, scope)) for kind in COPY_KINDS}


def _known(record: Kept) -> Kept:
    """Less what begins anew in every store."""
    return replace(record, epoch="") if isinstance(record, Session) else record


class CopyTests:
    """Every record of every kind, out and in, as it stands."""

    def test_each_kind_is_copied_as_it_stands(self, store: Store) -> None:
        with store.write() as tx:
            _fill(tx)
            before = _all(tx)
            tx.erase(ANN)
            assert not any(_all(tx).values())
            for kind, records in before.items():
                assert records, kind
                for record in records:
                    words = indexed("x") if isinstance(record, Fact | Message) else None
                    assert tx.copies.find(kind, record) is None
                    assert tx.copies.put(kind, record, words)
        with store.read() as tx:
            after = _all(tx)
            for kind, records in before.items():
                assert [_known(each) for each in after[kind]] == [_known(each) for each in records]
                assert [tx.copies.find(kind, each) for each in records] == after[kind]
            assert [one.content for one in tx.facts.history(ANN, "f1")] == ["绿茶", "red tea"]
            assert [one.content for one in tx.facts.as_of(ANN, at(4))] == ["绿茶"]

    def test_a_key_that_is_taken_changes_nothing(self, store: Store) -> None:
        with store.write() as tx:
            add_fact(tx, "f1", content="first")
            assert not tx.copies.put("fact", fact("f1", BOB, content="second"), indexed("second"))
            assert [one.content for one in map(_content, tx.copies.each("fact", Scope()))] == ["first"]
            found = tx.copies.find("fact", fact("f1", BOB))
            assert found is not None and _content(found).scope == ANN

    def test_only_what_lies_within_leaves(self, store: Store) -> None:
        with store.write() as tx:
            add_fact(tx, "f1")
            add_fact(tx, "f2", BOB)
            add_fact(tx, "f3", Scope(user="ann", org="other"))
            assert [_content(one).id for one in tx.copies.each("fact", ANN)] == ["f1"]
            assert len(list(tx.copies.each("fact", Scope()))) == 3

    def test_more_than_one_portion_comes_whole_and_in_order(self, store: Store) -> None:
        with store.write() as tx:
            for number in range(1203):
                tx.copies.put("fact", fact(f"f{number:04}"), indexed("x"))
        with store.read() as tx:
            names = [_content(one).id for one in tx.copies.each("fact", ANN)]
        assert names == [f"f{number:04}" for number in range(1203)]

    def test_the_next_message_comes_behind_those_that_came_in(self, store: Store) -> None:
        with store.write() as tx:
            assert tx.copies.last_position(ANN) == 0
            tx.copies.put("session", Session(scope=TALK, created_at=at(0), updated_at=at(0)))
            tx.copies.put("message", replace(message("m9"), position=9), indexed("x"))
            tx.copies.put("message", replace(message("m4"), position=4), indexed("x"))
            assert tx.copies.last_position(ANN) >= 9
            (said,) = say(tx, "m10")
            assert said.position > 9
            assert [one.id for one in tx.messages.tail(TALK, limit=9)] == ["m4", "m9", "m10"]

    def test_what_came_in_is_found_by_its_words(self, store: Store) -> None:
        with store.write() as tx:
            tx.copies.put("fact", fact("f1"), indexed("绿茶"))
            assert tx.index.rows(ANN, "fact", model="").ids == ["f1"]
            tx.copies.put("fact_version", Earlier(record=fact("f1", content="old"), ended=at(3)))
            assert [one.content for one in tx.facts.as_of(ANN, at(2))] == ["old"]


def _content(record: Kept) -> Fact:
    assert isinstance(record, Fact)
    return record
