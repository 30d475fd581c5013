"""What erasing promises: all that was kept there is gone, and nothing else."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from everlong.errors import Conflict, NotFound
from everlong.records import ALL_KINDS, Evidence, Scope
from everlong.testing.samples import (
    ANN,
    BOB,
    ODD_NAMES,
    TALK,
    add_fact,
    at,
    entry,
    extraction,
    file,
    indexed,
    job,
    message,
    profile,
    proposal,
    say,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from everlong.protocols import Store, Transaction

WALK = replace(TALK, session="walk")


def fill(tx: Transaction, scope: Scope, tag: str) -> None:
    """One record of every kind for ``scope``, its ids marked by ``tag``."""
    talk = replace(scope, session="talk")
    first = add_fact(tx, f"{tag}-f", scope, session="talk")
    tx.facts.revise(replace(first, confidence=1.0), expected=1)
    tx.facts.set_vectors(scope, first.id, indexed(first.content, model="m", vectors=[[1, 0]]))
    said = message(f"{tag}-m", talk)
    tx.messages.append(talk, [said], [indexed(said.content, model="m", vectors=[[0, 1]])])
    tx.profiles.put(profile(scope), expected=0)
    tx.files.put(file("/notes.md", scope, b"one"), expected=0)
    tx.files.put(file("/notes.md", scope, b"two"), expected=1)
    tx.jobs.put(job(f"{tag}-j", talk, key=f"{tag}-k"), latest=at(60))
    tx.journal.append(entry(f"{tag}-e", scope, target=first.id), entry(f"{tag}-t", talk))
    tx.proposals.put(proposal(f"{tag}-p", scope, kind="section", target="topOfMind", payload={"summary": "Kites."}))
    tx.extractions.append(extraction(f"{tag}-x", talk))


def left(tx: Transaction, scope: Scope) -> list[int]:
    """How much of each kind can be found from ``scope`` that is kept at it or within it."""
    talk = replace(scope, session="talk")
    return [
        sum(one.scope == scope for one in tx.facts.list(scope, status=None).items),
        len(tx.messages.tail(talk, limit=9)),
        int(tx.sessions.get(talk) is not None),
        tx.profiles.get(scope).version,
        sum(one.scope == scope for one in tx.files.list(scope)),
        len(tx.jobs.list(scope)),
        tx.journal.list(scope).total,
        tx.proposals.list(scope).total,
        tx.extractions.list(scope).total,
        len(tx.index.rows(scope, "fact", model="m").ids),
        len(tx.index.rows(scope, "message", model="m").ids),
        len(tx.index.rows(scope, "file", model="m").ids),
    ]


FULL = [1, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1, 1]
NONE = [0] * len(FULL)


class EraseTests:
    """Erase a person, a conversation, an org; the neighbours stay."""

    def test_nothing_is_left_of_what_was_erased(self, store: Store) -> None:
        with store.write() as tx:
            fill(tx, ANN, "ann")
            assert left(tx, ANN) == FULL
        with store.write() as tx:
            counts = tx.erase(ANN)
        assert sum(counts.values()) >= sum(FULL[:9])
        assert all(number >= 0 for number in counts.values())
        with store.read() as tx:
            assert left(tx, ANN) == NONE
            assert tx.messages.recent(TALK, limit=9) == ()
            assert tx.jobs.count() == 0
            with pytest.raises(NotFound):
                tx.facts.get(ANN, "ann-f")

    def test_erasing_what_is_not_there_deletes_nothing(self, store: Store) -> None:
        with store.write() as tx:
            fill(tx, BOB, "bob")
        with store.write() as tx:
            assert sum(tx.erase(ANN).values()) == 0
        with store.read() as tx:
            assert left(tx, BOB) == FULL

    def test_what_lies_within_goes_too_and_what_is_wider_stays(self, store: Store) -> None:
        coder = replace(ANN, agent="coder")
        wide = Scope(org="acme")
        with store.write() as tx:
            for scope, tag in ((ANN, "ann"), (coder, "coder"), (wide, "wide")):
                fill(tx, scope, tag)
            add_fact(tx, "in-session", TALK)
        with store.write() as tx:
            tx.erase(ANN)
        with store.read() as tx:
            assert left(tx, coder) == NONE
            assert left(tx, ANN) == NONE
            assert tx.facts.many(TALK, ["in-session"]) == {}
            assert tx.facts.get(ANN, "wide-f").scope == wide

    @pytest.mark.parametrize("ours", [{"user": "ann"}, {"agent": "coder"}, {"user": "ann", "session": "talk"}])
    def test_a_tenant_without_a_name_is_one_and_not_all(self, store: Store, ours: dict[str, str]) -> None:
        here, there = Scope(**ours), Scope(org="acme", **ours)
        with store.write() as tx:
            fill(tx, here.home, "here")
            fill(tx, there.home, "there")
            assert left(tx, here.home) == left(tx, there.home) == FULL
            assert [one.id for one in tx.jobs.list(here)] == ["here-j"]
            assert {one.id for one in tx.proposals.list(here).items} == {"here-p"}
            assert {one.id for one in tx.extractions.list(here).items} == {"here-x"}
            for find, name in ((tx.journal.get, "there-e"), (tx.proposals.get, "there-p")):
                with pytest.raises(NotFound):
                    find(here, name)
            with pytest.raises(NotFound):
                tx.extractions.get(here, "there-x")
            assert tx.extractions.usage(here, since=at(-60)).calls == tx.extractions.usage(there, since=at(-60)).calls
            assert tx.sessions.fence(here) == tx.jobs.hurry(here, now=at(5)) == 1
            assert tx.jobs.cancel(here, ("extract",)) == tx.extractions.purge(here, before=at(999)) == 1
            assert len(tx.jobs.list(there)) == len(tx.extractions.list(there).items) == 1
        with store.write() as tx:
            tx.erase(here)
        with store.read() as tx:
            assert left(tx, there.home) == FULL
        with store.write() as tx:
            tx.erase(Scope())
        with store.read() as tx:
            assert left(tx, there.home) == NONE

    @pytest.mark.parametrize("gone", ODD_NAMES, ids=range(len(ODD_NAMES)))
    def test_neighbours_with_look_alike_names_are_untouched(self, store: Store, gone: str) -> None:
        with store.write() as tx:
            for i, name in enumerate(ODD_NAMES):
                add_fact(tx, f"f{i}", Scope(org="acme", user=name))
                say(tx, f"m{i}", session=Scope(org="acme", user=name, session="talk"))
        with store.write() as tx:
            tx.erase(Scope(org="acme", user=gone))
        with store.read() as tx:
            for i, name in enumerate(ODD_NAMES):
                scope = Scope(org="acme", user=name)
                kept = 0 if name == gone else 1
                assert len(tx.facts.many(scope, [f"f{i}"])) == kept, name
                assert len(tx.messages.recent(scope, limit=9)) == kept, name
                assert tx.facts.list(scope).total == kept, name

    def test_erasing_a_conversation_takes_its_messages_and_the_facts_learned_in_it(self, store: Store) -> None:
        with store.write() as tx:
            fill(tx, ANN, "ann")
            say(tx, "w1", session=WALK)
            add_fact(tx, "walked", session="walk")
            add_fact(tx, "by-hand")
            add_fact(tx, "only-here", TALK, session="talk")
            add_fact(tx, "his", BOB, session="talk")
            tx.jobs.put(job("walk-j", WALK, key="walk"), latest=at(60))
            tx.extractions.append(extraction("walk-x", WALK))
            for target in ("ann-f", "walked", "by-hand", "only-here"):
                tx.proposals.put(proposal(f"p-{target}", target=target))
            tx.proposals.put(proposal("p-talk", TALK, kind="call", target="forget"))
            tx.journal.append(entry("e-walked", kind="fact", target="walked"), entry("e-kept", target="ann-f"))
            tx.journal.append(entry("e-learned", kind="fact", target="ann-f", reason="She said so."))
        with store.write() as tx:
            tx.erase(TALK)
        with store.read() as tx:
            assert set(tx.facts.many(WALK, ["ann-f", "walked", "by-hand", "only-here"])) == {"walked", "by-hand"}
            assert tx.facts.many(TALK, ["only-here", "ann-f"]) == {}
            assert tx.facts.get(BOB, "his").id == "his"
            assert [one.id for one in tx.messages.recent(ANN, limit=9)] == ["w1"]
            assert tx.sessions.get(TALK) is None
            assert tx.sessions.get(WALK) is not None
            assert [one.id for one in tx.jobs.list(ANN)] == ["walk-j"]
            assert [one.id for one in tx.journal.list(TALK).items] == []
            assert {one.id for one in tx.journal.list(ANN).items} == {"ann-e", "e-walked", "e-kept"}
            assert {one.id for one in tx.proposals.list(ANN).items} == {"ann-p", "p-walked", "p-by-hand"}
            assert [one.id for one in tx.extractions.list(ANN).items] == ["walk-x"]
            assert tx.profiles.get(ANN).version == 1
            assert tx.files.get(ANN, "/notes.md").content == b"two"

    @pytest.mark.parametrize("session", ["talk", 'a "b" \\ %_!', "安", "TALK"])
    def test_erasing_a_conversation_takes_its_words_out_of_facts_learned_elsewhere(
        self, store: Store, session: str
    ) -> None:
        """A fact that two conversations support loses the quotes of one, in its past too."""
        gone = replace(TALK, session=session)
        ours = Evidence(message_id="m1", quote="She said so on a walk.", session="walk")
        near = Evidence(message_id="m2", quote=f"Not in {session}.", session=f"{session}s")
        theirs = Evidence(message_id="m3", quote="She said so there. 她在那里说的。", session=session)
        with store.write() as tx:
            first = add_fact(tx, "walked", session="walk", evidence=(ours,))
            second = tx.facts.revise(replace(first, evidence=(ours, near, theirs)), expected=1)
            third = tx.facts.revise(replace(second, confirmations=1), expected=2)
            add_fact(tx, "other", session="walk", evidence=(ours, near))
            add_fact(tx, "his", BOB, evidence=(theirs,))
        with store.write() as tx:
            tx.erase(gone)
        with store.read() as tx:
            history = tx.facts.history(WALK, "walked")
            assert [one.evidence for one in history] == [(ours,), (ours, near), (ours, near)]
            assert history[-1] == replace(third, evidence=(ours, near), version=history[-1].version)
            assert tx.facts.get(ANN, "other").version == 1
            assert tx.facts.get(BOB, "his").evidence == (theirs,)
        with store.write() as tx, pytest.raises(Conflict):
            tx.facts.revise(replace(third, confirmations=2), expected=third.version)

    def test_erasing_an_org_leaves_other_orgs(self, store: Store) -> None:
        elsewhere = Scope(org="umbrella", user="ann")
        with store.write() as tx:
            fill(tx, ANN, "ann")
            fill(tx, elsewhere, "other")
        with store.write() as tx:
            tx.erase(Scope(org="acme"))
        with store.read() as tx:
            assert left(tx, ANN) == NONE
            assert left(tx, elsewhere) == FULL

    def test_what_was_erased_can_be_begun_anew(self, store: Store) -> None:
        with store.write() as tx:
            fill(tx, ANN, "ann")
        with store.write() as tx:
            tx.erase(ANN)
        with store.write() as tx:
            fill(tx, ANN, "ann")
        with store.read() as tx:
            assert left(tx, ANN) == FULL
            assert len(tx.facts.history(ANN, "ann-f")) == 2
            assert {key[1] for key in tx.index.revisions(ANN, ALL_KINDS)} == {"fact", "file", "message"}

    def test_an_erasure_that_fails_deletes_nothing(self, store: Store) -> None:
        with store.write() as tx:
            fill(tx, ANN, "ann")
        with pytest.raises(ZeroDivisionError), store.write() as tx:
            tx.erase(ANN)
            1 / 0  # noqa: B018
        with store.read() as tx:
            assert left(tx, ANN) == FULL

    def test_erasing_and_writing_at_once_fail_nobody(self, store: Store) -> None:
        """Neither waits for the other in a circle; what is left was written after the last erasure, and is whole."""
        failed: list[BaseException] = []

        def repeat(work: Callable[[Transaction, str], object], name: str) -> None:
            try:
                for i in range(15):
                    with store.write() as tx:
                        work(tx, f"{name}{i}")
            except Exception as error:  # noqa: BLE001 (compared below, in the main thread)
                failed.append(error)

        jobs: dict[str, Callable[[Transaction, str], object]] = {
            "s": say,
            "w": lambda tx, name: say(tx, name, session=WALK),
            "f": lambda tx, name: add_fact(tx, name, session="talk"),
            "e": lambda tx, _: tx.erase(TALK),
            "a": lambda tx, _: tx.erase(ANN),
        }
        threads = [threading.Thread(target=repeat, args=(work, name)) for name, work in jobs.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert failed == []
        with store.read() as tx:
            for session in (TALK, WALK):
                assert bool(tx.messages.tail(session, limit=1)) <= (tx.sessions.get(session) is not None)
        with store.write() as tx:
            tx.erase(ANN)
            assert left(tx, ANN) == NONE
