"""What the shelf of what is kept for a time only promises."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from everlong.errors import NotFound
from everlong.testing.samples import ANN, BOB, TALK, add_fact, at, entry, extraction, say

if TYPE_CHECKING:
    from everlong.protocols import Store

CODER = replace(ANN, agent="coder")
WALK = replace(TALK, session="walk")


class RetentionTests:
    """The oldest goes, a bounded number at once, at one place only, and never what nobody has read yet."""

    @staticmethod
    def talked(store: Store, *, read: int = 4) -> None:
        """Four messages in one conversation, of which so many were extracted."""
        with store.write() as tx:
            for number in range(4):
                say(tx, f"m{number}", seconds=number)
            session = tx.sessions.get(TALK)
            assert session is not None
            tail = tx.messages.tail(TALK, limit=4)
            tx.sessions.advance(session, extracted=tail[read - 1].position if read else 0)

    def left(self, store: Store) -> list[str]:
        with store.read() as tx:
            return [one.id for one in tx.messages.tail(TALK, limit=10)]

    def test_messages_go_by_age_the_oldest_first_and_so_many_at_once(self, store: Store) -> None:
        self.talked(store)
        with store.write() as tx:
            assert tx.retention.messages(ANN, before=at(3), keep=None, limit=2) == 2
        assert self.left(store) == ["m2", "m3"]
        with store.write() as tx:
            assert tx.retention.messages(ANN, before=at(3), keep=None, limit=2) == 1
        assert self.left(store) == ["m3"]

    def test_messages_go_beyond_the_newest_so_many(self, store: Store) -> None:
        self.talked(store)
        with store.write() as tx:
            assert tx.retention.messages(ANN, before=None, keep=1, limit=9) == 3
            assert tx.retention.messages(ANN, before=None, keep=1, limit=9) == 0
        assert self.left(store) == ["m3"]

    def test_what_was_not_extracted_yet_stays(self, store: Store) -> None:
        self.talked(store, read=1)
        with store.write() as tx:
            assert tx.retention.messages(ANN, before=at(9), keep=0, limit=9) == 1
        assert self.left(store) == ["m1", "m2", "m3"]

    def test_the_oldest_of_each_kind_is_known(self, store: Store) -> None:
        self.talked(store)
        with store.write() as tx:
            tx.extractions.append(extraction("x1", WALK, seconds=7))
        with store.read() as tx:
            assert tx.retention.oldest(ANN) == {"messages": at(0), "extractions": at(7)}
            assert tx.retention.oldest(CODER) == {}

    def test_a_dry_run_counts_and_changes_nothing(self, store: Store) -> None:
        self.talked(store)
        with store.read() as tx:
            assert tx.retention.messages(ANN, before=at(3), keep=None, limit=9, dry=True) == 3
        assert len(self.left(store)) == 4

    def test_other_places_keep_theirs(self, store: Store) -> None:
        self.talked(store)
        with store.write() as tx:
            for other in (BOB, CODER):
                assert tx.retention.messages(other, before=at(9), keep=0, limit=9) == 0
        assert len(self.left(store)) == 4

    def test_a_conversation_that_is_empty_and_old_goes_and_may_begin_again(self, store: Store) -> None:
        self.talked(store)
        with store.write() as tx:
            tx.retention.messages(ANN, before=at(9), keep=None, limit=9)
            assert tx.sessions.get(TALK) is None
            (stored,) = say(tx, "m9", seconds=20)
            session = tx.sessions.get(TALK)
        assert session is not None
        assert session.extracted < stored.position

    def test_the_search_cache_loads_anew(self, store: Store) -> None:
        self.talked(store)
        with store.read() as tx:
            before = tx.index.revisions(ANN, ("message",))[ANN, "message"]
        with store.write() as tx:
            tx.retention.messages(ANN, before=at(9), keep=None, limit=9)
        with store.read() as tx:
            assert tx.index.revisions(ANN, ("message",))[ANN, "message"].epoch != before.epoch
            assert not tx.index.rows(ANN, "message", model="").ids

    def test_retired_facts_go_with_their_history(self, store: Store) -> None:
        with store.write() as tx:
            gone, kept = add_fact(tx, "gone"), add_fact(tx, "kept")
            retired = replace(gone, status="retired", retired_at=at(5), updated_at=at(5))
            tx.facts.revise(retired, expected=gone.version)
        with store.write() as tx:
            assert tx.retention.facts(ANN, before=at(5), limit=9) == 0
            assert tx.retention.facts(ANN, before=at(6), limit=9) == 1
        with store.read() as tx:
            with pytest.raises(NotFound):
                tx.facts.get(ANN, "gone")
            assert tx.facts.list(ANN, status=None).items == (kept,)

    def test_versions_that_ended_before_go_the_present_one_stays(self, store: Store) -> None:
        with store.write() as tx:
            fact = add_fact(tx)
            for second in (1, 2, 3):
                fact = tx.facts.revise(replace(fact, importance=second / 4, updated_at=at(second)), expected=second)
            assert tx.retention.versions(ANN, before=at(3), limit=9) == 2
            assert [one.importance for one in tx.facts.history(ANN, "f1")] == [0.5, 0.75]

    def test_records_and_entries_go_by_age(self, store: Store) -> None:
        with store.write() as tx:
            for second in (1, 2):
                tx.extractions.append(extraction(f"e{second}", TALK, seconds=second))
                tx.journal.append(entry(f"j{second}", TALK, seconds=second))
            tx.journal.append(entry("t1", WALK, seconds=1, kind="trace"))
        with store.write() as tx:
            assert tx.retention.extractions(ANN, before=at(2), limit=9) == 1
            assert tx.retention.journal(ANN, before=at(2), limit=9, traces=True) == 1
            assert tx.retention.journal(ANN, before=at(2), limit=9) == 1
            assert [one.id for one in tx.extractions.list(ANN).items] == ["e2"]
            assert [one.id for one in tx.journal.list(ANN).items] == ["j2"]
