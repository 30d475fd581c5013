"""What the index shelf promises to a search cache."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from everlong.protocols import Revision
from everlong.records import ALL_KINDS, Scope
from everlong.testing.samples import ANN, BOB, TALK, add_fact, at, fact, indexed, message, say
from everlong.text import pack_terms, terms

if TYPE_CHECKING:
    from everlong.protocols import IndexRows, Store
    from everlong.records import Kind


class IndexTests:
    """Revisions that tell when to look, rows that tell what changed."""

    def test_an_empty_store_has_no_buckets_to_load(self, store: Store) -> None:
        with store.read() as tx:
            assert all(one.number == 0 for one in tx.index.revisions(ANN, ALL_KINDS).values())
            assert tx.index.rows(ANN, "fact", model="m").ids == []

    def test_revisions_name_every_visible_bucket_and_no_other(self, store: Store) -> None:
        with store.write() as tx:
            add_fact(tx, "mine")
            add_fact(tx, "wide", Scope())
            add_fact(tx, "his", BOB)
            say(tx, "m1")
            say(tx, "m2", session=replace(BOB, session="talk"))
        with store.read() as tx:
            seen = {key for key, one in tx.index.revisions(TALK, ALL_KINDS).items() if one.number}
            assert seen == {(ANN, "fact"), (Scope(), "fact"), (ANN, "message")}
            only = {key for key, one in tx.index.revisions(TALK, ["message"]).items() if one.number}
            assert only == {(ANN, "message")}

    def test_every_change_that_search_can_see_moves_the_revision(self, store: Store) -> None:
        numbers = [revision(store).number]
        with store.write() as tx:
            first = add_fact(tx)
        numbers.append(revision(store).number)
        with store.write() as tx:
            tx.facts.revise(replace(first, category="goal"), expected=1)
        numbers.append(revision(store).number)
        with store.write() as tx:
            tx.facts.set_vectors(ANN, "f1", indexed(first.content, model="m", vectors=[[1, 0]]))
        numbers.append(revision(store).number)
        with store.write() as tx:
            add_fact(tx, "f2")
        numbers.append(revision(store).number)
        assert numbers == sorted(set(numbers))
        with store.write() as tx:
            add_fact(tx, "his", BOB)
            say(tx, "m1")
        assert revision(store).number == numbers[-1]

    def test_messages_move_the_revision_of_their_home(self, store: Store) -> None:
        with store.write() as tx:
            say(tx, "a")
        before = revision(store, "message")
        with store.write() as tx:
            say(tx, "b", session=replace(TALK, session="walk"))
        middle = revision(store, "message")
        with store.write() as tx:
            tx.messages.set_vectors(TALK, "a", indexed("This is a.", model="m", vectors=[[1, 0]]))
        assert before.number < middle.number < revision(store, "message").number
        assert before.epoch == revision(store, "message").epoch

    def test_rows_of_facts_hold_what_search_needs(self, store: Store) -> None:
        made = fact(
            content="安娜 drinks green tea tea",
            category="preference",
            confidence=0.75,
            origin="document",
            session="talk",
            seconds=1.5,
        )
        given = indexed(made.content, model="m", vectors=[[1, 0, 0], [0, 0.5, -1]])
        with store.write() as tx:
            tx.facts.add(made, given)
        with store.read() as tx:
            rows = tx.index.rows(ANN, "fact", model="m")
        assert aligned(rows) == 1
        assert (rows.ids, rows.live, rows.session, rows.speaker) == (["f1"], [True], ["talk"], [""])
        assert (rows.role, rows.category, rows.confidence) == (["document"], ["preference"], [0.75])
        assert rows.created_at == [at(1.5).timestamp()]
        assert sorted_terms(rows.terms[0]) == sorted_terms(pack_terms(terms(made.content)))
        assert given.vectors is not None
        assert rows.vectors == [given.vectors.tobytes()]

    def test_rows_of_messages_hold_what_search_needs(self, store: Store) -> None:
        said = [
            message("a", content="Do you like tea?", speaker="Ann", seconds=1),
            message("b", content="Yes, very much.", speaker="helper", role="assistant", seconds=2),
        ]
        with store.write() as tx:
            stored = tx.messages.append(TALK, said, [indexed(one.content) for one in said])
        with store.read() as tx:
            rows = tx.index.rows(ANN, "message", model="m")
        assert aligned(rows) == 2
        assert (rows.ids, rows.live, rows.session) == (["a", "b"], [True, True], ["talk", "talk"])
        assert (rows.speaker, rows.role) == (["Ann", "helper"], ["user", "assistant"])
        assert rows.position == [one.position for one in stored]
        assert rows.question == [True, False]
        assert rows.vectors == [None, None]

    def test_a_question_mark_of_any_script_is_a_question(self, store: Store) -> None:
        contents = ["你喜欢茶吗？", "tea? ", "？不是", "no."]
        said = [message(f"m{i}", content=text) for i, text in enumerate(contents)]
        with store.write() as tx:
            tx.messages.append(TALK, said, [indexed(one.content) for one in said])
        with store.read() as tx:
            assert tx.index.rows(ANN, "message", model="m").question == [True, True, False, False]

    def test_rows_after_a_revision_are_only_what_changed(self, store: Store) -> None:
        with store.write() as tx:
            first = add_fact(tx, "f1")
            add_fact(tx, "f2")
        before = revision(store).number
        with store.write() as tx:
            add_fact(tx, "f3")
            tx.facts.revise(replace(first, status="retired"), expected=1)
        with store.read() as tx:
            delta = tx.index.rows(ANN, "fact", model="m", after=before)
            assert dict(zip(delta.ids, delta.live, strict=True)) == {"f3": True, "f1": False}
            assert delta.revision == sorted(delta.revision)
            assert min(delta.revision) > before
            assert max(delta.revision) <= revision(store).number
            assert tx.index.rows(ANN, "fact", model="m", after=revision(store).number).ids == []

    def test_held_and_retired_facts_are_not_live_until_they_return(self, store: Store) -> None:
        with store.write() as tx:
            held = add_fact(tx, "held", status="held")
            add_fact(tx, "retired", status="retired")
            add_fact(tx, "active")
        assert live(store) == {"active"}
        with store.write() as tx:
            tx.facts.revise(replace(held, status="active"), expected=1)
        assert live(store) == {"active", "held"}

    def test_rows_are_of_one_bucket_exactly(self, store: Store) -> None:
        with store.write() as tx:
            add_fact(tx, "mine")
            add_fact(tx, "wide", Scope(org="acme"))
            add_fact(tx, "session", TALK)
            add_fact(tx, "his", BOB)
        with store.read() as tx:
            for bucket, found in ((ANN, "mine"), (Scope(org="acme"), "wide"), (TALK, "session"), (BOB, "his")):
                assert tx.index.rows(bucket, "fact", model="m").ids == [found]

    def test_vectors_of_another_model_are_never_returned(self, store: Store) -> None:
        with store.write() as tx:
            made = fact()
            tx.facts.add(made, indexed(made.content, model="old", vectors=[[1, 0]]))
            said = message("m1")
            tx.messages.append(TALK, [said], [indexed(said.content, model="old", vectors=[[1, 0]])])
        with store.read() as tx:
            assert tx.index.rows(ANN, "fact", model="new").vectors == [None]
            assert tx.index.rows(ANN, "message", model="new").vectors == [None]
            assert tx.index.rows(ANN, "fact", model="ol_").vectors == [None]
            assert tx.index.rows(ANN, "fact", model="old").vectors != [None]

    def test_a_new_text_takes_its_old_vectors_away(self, store: Store) -> None:
        with store.write() as tx:
            made = fact()
            first = tx.facts.add(made, indexed(made.content, model="m", vectors=[[1, 0], [0, 1]]))
            changed = replace(first, content="Something else.")
            tx.facts.revise(changed, expected=1, indexed=indexed(changed.content))
        with store.read() as tx:
            rows = tx.index.rows(ANN, "fact", model="m")
            assert rows.vectors == [None]
            assert sorted_terms(rows.terms[0]) == sorted_terms(pack_terms(terms(changed.content)))

    def test_revising_without_a_new_text_keeps_the_index(self, store: Store) -> None:
        with store.write() as tx:
            made = fact()
            given = indexed(made.content, model="m", vectors=[[1, 0]])
            first = tx.facts.add(made, given)
            tx.facts.revise(replace(first, confidence=1.0), expected=1)
        with store.read() as tx:
            rows = tx.index.rows(ANN, "fact", model="m")
            assert given.vectors is not None
            assert rows.vectors == [given.vectors.tobytes()]
            assert rows.confidence == [1.0]

    def test_unembedded_names_every_place_with_a_text_that_lacks_a_vector_of_the_model(self, store: Store) -> None:
        other = Scope(user="bob")
        with store.write() as tx:
            say(tx, "a")
            add_fact(tx, "f1", session="talk")
            made = replace(fact("f9"), scope=other)
            tx.facts.add(made, indexed(made.content, model="m", vectors=[[1, 0]]))
        with store.read() as tx:
            assert set(tx.index.unembedded("other")) >= {ANN, other}
            assert other not in tx.index.unembedded("m")

    def test_removing_for_good_makes_every_cache_load_anew(self, store: Store) -> None:
        with store.write() as tx:
            say(tx, "a")
            say(tx, "b", session=replace(TALK, session="walk"))
            add_fact(tx, "f1", session="talk")
            add_fact(tx, "f2", session="walk")
        facts, messages = revision(store), revision(store, "message")
        with store.write() as tx:
            tx.erase(TALK)
        assert revision(store).epoch != facts.epoch
        assert revision(store, "message").epoch != messages.epoch
        with store.read() as tx:
            assert tx.index.rows(ANN, "message", model="m").ids == ["b"]
            assert tx.index.rows(ANN, "fact", model="m").ids == ["f2"]

    def test_a_bucket_that_was_erased_whole_never_shows_its_old_epoch(self, store: Store) -> None:
        with store.write() as tx:
            add_fact(tx)
        before = revision(store)
        with store.write() as tx:
            tx.erase(ANN)
        with store.write() as tx:
            add_fact(tx)
        assert revision(store).epoch != before.epoch


def revision(store: Store, kind: Kind = "fact") -> Revision:
    """State of Ann's bucket, at 0 while there is none."""
    with store.read() as tx:
        found = tx.index.revisions(ANN, [kind])
    return found.get((ANN, kind), Revision(epoch="", number=0))


def live(store: Store) -> set[str]:
    """Ann's searchable facts."""
    with store.read() as tx:
        rows = tx.index.rows(ANN, "fact", model="m")
    return {name for name, alive in zip(rows.ids, rows.live, strict=True) if alive}


def aligned(rows: IndexRows) -> int:
    """The one length of all columns."""
    lengths = {len(getattr(rows, name)) for name in rows.__slots__}
    assert len(lengths) == 1
    return lengths.pop()


def sorted_terms(packed: bytes) -> list[bytes]:
    """Hashes of the terms, whatever their order."""
    return sorted(packed[i : i + 8] for i in range(0, len(packed), 8))
