"""What a shelf of facts promises."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from everlong.errors import Conflict, NotFound
from everlong.records import Evidence, Scope
from everlong.testing.samples import ANN, BOB, ODD_TEXTS, TALK, add_fact, at, fact, indexed

if TYPE_CHECKING:
    from everlong.protocols import Store
    from everlong.records import Fact, Page


class FactTests:
    """Add, get, revise, list, history, touch, vectors."""

    def test_the_lock_tells_the_revision_and_moves_nothing(self, store: Store) -> None:
        with store.write() as tx:
            assert tx.facts.lock(ANN) == 0
            tx.facts.add(fact("f1"), indexed("tea"))
        with store.write() as tx:
            first = tx.index.revisions(ANN, ["fact"])[ANN, "fact"].number
            assert tx.facts.lock(ANN) == tx.facts.lock(ANN) == first > 0

    def test_a_fact_comes_back_as_it_was_given(self, store: Store) -> None:
        full = fact(
            content='安娜 likes "tea"',
            category="preference",
            confidence=0.875,
            importance=0.25,
            pinned=True,
            origin="document",
            trust=0.2,
            evidence=(Evidence(message_id="m1", quote="我喜欢茶", session="talk"), Evidence(message_id="m2", quote="")),
            session="talk",
            status="held",
            confirmations=3,
            uses=2,
            last_used_at=at(1.5),
            valid_from=at(-86_400),
            valid_until=at(86_400.000001),
            reason="said so",
            supersedes="f0",
            superseded_by="f2",
            metadata={"tags": ["a", "乙"], "nested": {"n": 1, "none": None, "yes": True}},
        )
        with store.write() as tx:
            assert tx.facts.add(full, indexed(full.content)) == full
        with store.read() as tx:
            assert tx.facts.get(ANN, "f1") == full

    @pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
    def test_odd_text_is_kept_exactly(self, store: Store, text: str) -> None:
        with store.write() as tx:
            add_fact(tx, content=text, reason=text, metadata={"odd": text, text[:50]: 1})
        with store.read() as tx:
            found = tx.facts.get(ANN, "f1")
        assert (found.content, found.reason) == (text, text)
        assert found.metadata == {"odd": text, text[:50]: 1}

    def test_times_keep_microseconds_and_are_in_utc(self, store: Store) -> None:
        with store.write() as tx:
            add_fact(tx, seconds=0.123456)
        with store.read() as tx:
            found = tx.facts.get(ANN, "f1")
        assert found.created_at == at(0.123456)
        assert found.created_at.utcoffset() is not None
        assert not found.created_at.utcoffset()

    def test_a_fact_is_seen_from_every_scope_that_its_own_covers_and_no_other(self, store: Store) -> None:
        with store.write() as tx:
            add_fact(tx)
        with store.read() as tx:
            for near in (ANN, TALK, replace(ANN, agent="coder"), replace(TALK, agent="coder")):
                assert tx.facts.get(near, "f1").scope == ANN
            for far in (BOB, Scope(org="acme"), Scope(user="ann"), Scope(org="umbrella", user="ann"), Scope()):
                with pytest.raises(NotFound):
                    tx.facts.get(far, "f1")

    def test_an_unknown_fact_is_not_found(self, store: Store) -> None:
        with store.read() as tx, pytest.raises(NotFound):
            tx.facts.get(ANN, "nothing")

    def test_many_gives_the_visible_ones_by_id(self, store: Store) -> None:
        with store.write() as tx:
            add_fact(tx, "mine")
            add_fact(tx, "wide", Scope())
            add_fact(tx, "his", BOB)
        with store.read() as tx:
            found = tx.facts.many(TALK, ["his", "wide", "mine", "nothing", "mine"])
            assert {key: one.id for key, one in found.items()} == {"mine": "mine", "wide": "wide"}
            assert tx.facts.many(ANN, []) == {}

    def test_many_takes_more_ids_than_a_statement_has_room_for(self, store: Store) -> None:
        with store.write() as tx:
            add_fact(tx, "mine")
        with store.read() as tx:
            asked = [f"nothing{i}" for i in range(40_000)]
            assert list(tx.facts.many(ANN, [*asked, "mine"])) == ["mine"]

    def test_revising_counts_versions_and_keeps_the_old(self, store: Store) -> None:
        with store.write() as tx:
            first = add_fact(tx)
        changed = replace(first, content="Ann drinks coffee.", updated_at=at(5), status="retired", retired_at=at(5))
        with store.write() as tx:
            second = tx.facts.revise(changed, expected=1, indexed=indexed(changed.content))
        assert second == replace(changed, version=2)
        with store.write() as tx:
            third = tx.facts.revise(replace(second, confirmations=1), expected=2)
        with store.read() as tx:
            assert tx.facts.get(ANN, "f1") == third
            assert tx.facts.history(TALK, "f1") == (first, second, third)

    def test_revising_a_version_that_is_gone_is_a_conflict_and_changes_nothing(self, store: Store) -> None:
        with store.write() as tx:
            first = add_fact(tx)
            tx.facts.revise(replace(first, confidence=0.75), expected=1)
        for expected in (1, 3, 0):
            with store.write() as tx, pytest.raises(Conflict) as caught:
                tx.facts.revise(replace(first, confidence=0.5), expected=expected)
            assert (caught.value.expected, caught.value.actual) == (expected, 2)
        with store.read() as tx:
            assert tx.facts.get(ANN, "f1").confidence == 0.75
            assert len(tx.facts.history(ANN, "f1")) == 2

    def test_a_fact_never_moves_to_another_scope(self, store: Store) -> None:
        with store.write() as tx:
            first = add_fact(tx)
        for elsewhere in (BOB, TALK, Scope(org="acme"), Scope()):
            with store.write() as tx, pytest.raises(NotFound):
                tx.facts.revise(replace(first, scope=elsewhere), expected=1)
        with store.read() as tx:
            assert tx.facts.get(ANN, "f1") == first

    def test_an_unknown_fact_cannot_be_revised(self, store: Store) -> None:
        with store.write() as tx, pytest.raises(NotFound):
            tx.facts.revise(fact("nothing"), expected=1)

    def test_history_shows_nothing_to_others(self, store: Store) -> None:
        with store.write() as tx:
            add_fact(tx)
        with store.read() as tx, suppress(NotFound):
            assert tx.facts.history(BOB, "f1") == ()

    def test_of_two_writers_of_one_version_one_wins(self, store: Store) -> None:
        with store.write() as tx:
            first = add_fact(tx)
        outcomes: list[str] = []

        def revise(content: str) -> None:
            try:
                with store.write() as tx:
                    tx.facts.revise(replace(first, content=content), expected=1, indexed=indexed(content))
                outcomes.append(content)
            except Conflict:
                outcomes.append("conflict")

        threads = [threading.Thread(target=revise, args=(f"by {i}",)) for i in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert len(outcomes) == 6
        assert outcomes.count("conflict") == 5
        with store.read() as tx:
            assert tx.facts.get(ANN, "f1").version == 2
            assert tx.facts.get(ANN, "f1").content in outcomes

    def test_list_gives_visible_active_facts_newest_first(self, store: Store) -> None:
        with store.write() as tx:
            add_fact(tx, "old", seconds=1)
            add_fact(tx, "new", Scope(), seconds=3)
            add_fact(tx, "middle", seconds=2)
            add_fact(tx, "his", BOB, seconds=4)
            add_fact(tx, "held", seconds=5, status="held")
            add_fact(tx, "retired", seconds=6, status="retired")
        with store.read() as tx:
            page = tx.facts.list(TALK)
            assert (names(page), page.total, page.next) == (["new", "middle", "old"], 3, "")
            assert names(tx.facts.list(ANN, status="held")) == ["held"]
            assert names(tx.facts.list(ANN, status=None)) == ["retired", "held", "new", "middle", "old"]

    def test_list_filters_by_category(self, store: Store) -> None:
        with store.write() as tx:
            for i, category in enumerate(("goal", "todo", "preference", "goal")):
                add_fact(tx, f"f{i}", seconds=i, category=category)
        with store.read() as tx:
            page = tx.facts.list(ANN, categories=["goal", "todo"])
            assert (names(page), page.total) == (["f3", "f1", "f0"], 3)
            assert tx.facts.list(ANN, categories=["plan"]).total == 0

    def test_pages_are_stable_while_others_write(self, store: Store) -> None:
        with store.write() as tx:
            for i in range(7):
                add_fact(tx, f"f{i}", seconds=i)
        with store.read() as tx:
            page = tx.facts.list(ANN, limit=3)
        seen = names(page)
        assert page.total == 7
        with store.write() as tx:
            add_fact(tx, "newer", seconds=99)
            tx.facts.revise(replace(tx.facts.get(ANN, "f5"), status="retired"), expected=1)
        while page.next:
            with store.read() as tx:
                page = tx.facts.list(ANN, limit=3, cursor=page.next)
            seen += names(page)
        assert seen == [f"f{i}" for i in range(6, -1, -1)]

    def test_pages_part_facts_of_one_moment(self, store: Store) -> None:
        with store.write() as tx:
            for i in range(10):
                add_fact(tx, f"f{i}", (ANN, Scope(), TALK)[i % 3], seconds=i // 5)
        seen: list[str] = []
        cursor, more = "", True
        with store.read() as tx:
            while more:
                page = tx.facts.list(TALK, limit=2, cursor=cursor)
                seen, cursor, more = seen + names(page), page.next, bool(page.next)
        assert sorted(seen) == sorted(f"f{i}" for i in range(10))
        assert set(seen[:5]) == {f"f{i}" for i in range(5, 10)}

    def test_touch_counts_uses_without_a_new_version(self, store: Store) -> None:
        with store.write() as tx:
            first = add_fact(tx)
            add_fact(tx, "his", BOB)
        for seconds in (10, 20):
            with store.write() as tx:
                assert tx.facts.touch(TALK, ["f1", "his", "nothing"], at(seconds)) == 1
        with store.read() as tx:
            assert tx.facts.get(ANN, "f1") == replace(first, uses=2, last_used_at=at(20))
            assert tx.facts.get(BOB, "his").uses == 0
            assert len(tx.facts.history(ANN, "f1")) == 1

    def test_touching_nothing_is_allowed(self, store: Store) -> None:
        with store.write() as tx:
            assert tx.facts.touch(ANN, [], at(1)) == 0

    def test_vectors_may_come_later(self, store: Store) -> None:
        with store.write() as tx:
            first = add_fact(tx)
        ready = indexed(first.content, model="m", vectors=[[1, 0], [0, 1]])
        with store.write() as tx:
            assert tx.facts.set_vectors(ANN, "f1", ready) is True
        with store.read() as tx:
            assert tx.index.rows(ANN, "fact", model="m").vectors == [ready.vectors.tobytes()]  # type: ignore[union-attr]
            assert tx.facts.get(ANN, "f1") == first

    def test_vectors_of_a_text_that_changed_meanwhile_are_refused(self, store: Store) -> None:
        with store.write() as tx:
            first = add_fact(tx)
            late = indexed(first.content, model="m", vectors=[[1, 0]])
            changed = replace(first, content="Ann drinks coffee.")
            tx.facts.revise(changed, expected=1, indexed=indexed(changed.content))
        with store.write() as tx:
            assert tx.facts.set_vectors(ANN, "f1", late) is False
            assert tx.facts.set_vectors(BOB, "f1", late) is False
            assert tx.facts.set_vectors(ANN, "nothing", late) is False
        with store.read() as tx:
            assert tx.index.rows(ANN, "fact", model="m").vectors == [None]

    def test_unembedded_names_active_facts_that_lack_a_vector_of_the_model(self, store: Store) -> None:
        ready = indexed("f1 is a fact.", model="m", vectors=[[1, 0]])
        with store.write() as tx:
            for i in range(4):
                add_fact(tx, f"f{i}", seconds=9 - i)
            add_fact(tx, "held", status="held")
            add_fact(tx, "wide", Scope(org="acme"))
            add_fact(tx, "here", TALK)
            add_fact(tx, "his", BOB)
            tx.facts.set_vectors(ANN, "f1", ready)
            tx.facts.revise(replace(tx.facts.get(ANN, "f2"), status="retired"), expected=1)
        with store.read() as tx:
            assert [one.id for one in tx.facts.unembedded(ANN, "m", limit=9)] == ["f3", "f0"]
            assert [one.id for one in tx.facts.unembedded(ANN, "m", limit=1)] == ["f3"]
            assert [one.id for one in tx.facts.unembedded(ANN, "other", limit=9)] == ["f3", "f1", "f0"]
            assert [one.id for one in tx.facts.unembedded(TALK, "m", limit=9)] == ["here"]
        with store.write() as tx:
            changed = replace(tx.facts.get(ANN, "f1"), content="f1 is new.")
            tx.facts.revise(changed, expected=1, indexed=indexed(changed.content))
        with store.read() as tx:
            assert [one.id for one in tx.facts.unembedded(ANN, "m", limit=9)] == ["f3", "f1", "f0"]


def names(page: Page[Fact]) -> list[str]:
    """Ids of a page in order."""
    return [one.id for one in page.items]
