"""What the shelves of messages and sessions promise."""

from __future__ import annotations

import threading
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from everlong.errors import Conflict
from everlong.protocols import Backlog
from everlong.records import Scope
from everlong.testing.samples import ANN, BOB, ODD_TEXTS, TALK, at, indexed, message, say

if TYPE_CHECKING:
    from collections.abc import Iterable

    from everlong.protocols import Store
    from everlong.records import Message

WALK = replace(TALK, session="walk")
HIS = replace(BOB, session="talk")


class MessageTests:
    """Append once, read by conversation and over all conversations."""

    def test_a_message_comes_back_as_it_was_given(self, store: Store) -> None:
        full = message(
            "m1",
            seconds=0.000001,
            role="assistant",
            content='安娜 said "hi"',
            speaker="Анна",
            origin="assistant",
            signals=("correction", "喜好"),
            metadata={"n": [1, {"deep": None}]},
        )
        with store.write() as tx:
            (stored,) = tx.messages.append(TALK, [full], [indexed(full.content)])
        assert stored == replace(full, position=stored.position)
        assert stored.position >= 1
        with store.read() as tx:
            assert tx.messages.tail(TALK, limit=5) == (stored,)
            assert tx.messages.many(ANN, ["m1"]) == {"m1": stored}

    @pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
    def test_odd_text_is_kept_exactly(self, store: Store, text: str) -> None:
        odd = message("m1", content=text, speaker=text[:100], metadata={"odd": text})
        with store.write() as tx:
            tx.messages.append(TALK, [odd], [indexed(text)])
        with store.read() as tx:
            (found,) = tx.messages.tail(TALK, limit=1)
        assert (found.content, found.speaker, found.metadata) == (text, text[:100], {"odd": text})

    def test_positions_grow_from_1_in_order_of_appending(self, store: Store) -> None:
        with store.write() as tx:
            first = say(tx, "a", "b", seconds=100)
        with store.write() as tx:
            second = say(tx, "c", seconds=0)
        assert first[0].position == 1
        positions = [one.position for one in (*first, *second)]
        assert positions == sorted(set(positions))
        with store.read() as tx:
            assert tx.messages.tail(TALK, limit=9) == (*first, *second)

    def test_an_id_that_the_conversation_holds_changes_nothing(self, store: Store) -> None:
        with store.write() as tx:
            kept = say(tx, "a", "b")
        changed = message("b", content="something else")
        with store.write() as tx:
            added = tx.messages.append(TALK, [changed, message("c")], [indexed("else"), indexed("c")])
        assert ids(added) == ["c"]
        with store.read() as tx:
            assert tx.messages.tail(TALK, limit=9) == (*kept, *added)
        with store.write() as tx:
            assert say(tx, "a", "b", "c") == ()

    def test_an_id_given_twice_at_once_is_stored_once(self, store: Store) -> None:
        with store.write() as tx:
            assert ids(say(tx, "a", "a", "b")) == ["a", "b"]
        with store.read() as tx:
            assert ids(tx.messages.tail(TALK, limit=9)) == ["a", "b"]

    def test_one_id_may_stand_in_conversations_of_different_people(self, store: Store) -> None:
        with store.write() as tx:
            assert ids(say(tx, "a")) == ["a"]
            assert ids(say(tx, "a", session=HIS)) == ["a"]
        with store.read() as tx:
            assert tx.messages.many(ANN, ["a"])["a"].scope == ANN
            assert tx.messages.many(BOB, ["a"])["a"].scope == BOB

    def test_conversations_are_told_apart(self, store: Store) -> None:
        with store.write() as tx:
            say(tx, "a", "b")
            say(tx, "c", session=WALK)
            say(tx, "d", session=HIS)
        with store.read() as tx:
            assert ids(tx.messages.tail(TALK, limit=9)) == ["a", "b"]
            assert ids(tx.messages.tail(WALK, limit=9)) == ["c"]
            assert ids(tx.messages.after(HIS, 0)) == ["d"]
            assert tx.messages.tail(replace(TALK, session="tal_"), limit=9) == ()
            assert tx.messages.tail(replace(TALK, session="TALK"), limit=9) == ()
            assert tx.messages.tail(replace(TALK, agent="coder"), limit=9) == ()

    def test_tail_gives_the_last_in_order_and_those_before(self, store: Store) -> None:
        with store.write() as tx:
            said = say(tx, "a", "b", "c", "d")
        with store.read() as tx:
            assert ids(tx.messages.tail(TALK, limit=2)) == ["c", "d"]
            assert ids(tx.messages.tail(TALK, limit=2, before=said[2].position)) == ["a", "b"]
            assert ids(tx.messages.tail(TALK, limit=9, before=said[0].position)) == []

    def test_after_gives_what_follows_in_order(self, store: Store) -> None:
        with store.write() as tx:
            said = say(tx, "a", "b")
            say(tx, "x", session=WALK)
            said += say(tx, "c", "d")
        with store.read() as tx:
            assert tx.messages.after(TALK, 0) == said
            assert ids(tx.messages.after(TALK, said[1].position)) == ["c", "d"]
            assert ids(tx.messages.after(TALK, said[1].position, limit=1)) == ["c"]
            assert tx.messages.after(TALK, said[3].position) == ()

    def test_recent_goes_over_all_visible_conversations(self, store: Store) -> None:
        with store.write() as tx:
            say(tx, "a", seconds=1)
            say(tx, "b", session=WALK, seconds=2)
            say(tx, "c", seconds=3)
            say(tx, "his", session=HIS, seconds=4)
        with store.read() as tx:
            for scope in (ANN, TALK, replace(ANN, agent="coder")):
                assert ids(tx.messages.recent(scope, limit=9)) == ["a", "b", "c"]
            assert ids(tx.messages.recent(ANN, limit=2)) == ["b", "c"]
            assert ids(tx.messages.recent(ANN, limit=9, since=at(2))) == ["b", "c"]
            assert tx.messages.recent(Scope(org="acme"), limit=9) == ()

    def test_many_gives_only_what_is_visible(self, store: Store) -> None:
        with store.write() as tx:
            say(tx, "a")
            say(tx, "his", session=HIS)
        with store.read() as tx:
            assert list(tx.messages.many(WALK, ["a", "his", "nothing"])) == ["a"]
            assert tx.messages.many(Scope(org="acme"), ["a"]) == {}
            assert tx.messages.many(ANN, []) == {}

    def test_around_gives_neighbours_of_the_same_conversation(self, store: Store) -> None:
        with store.write() as tx:
            for i in range(6):
                say(tx, f"m{i}", seconds=i)
                say(tx, f"w{i}", session=WALK, seconds=i)
        with store.read() as tx:
            assert ids(tx.messages.around(ANN, "m3", before=2, after=1)) == ["m1", "m2", "m3", "m4"]
            assert ids(tx.messages.around(WALK, "m0", before=2, after=0)) == ["m0"]
            assert ids(tx.messages.around(ANN, "m5", before=0, after=5)) == ["m5"]

    def test_unembedded_names_what_lacks_a_vector_of_the_model(self, store: Store) -> None:
        with store.write() as tx:
            say(tx, "a", "b")
            say(tx, "c", session=WALK)
            say(tx, "his", session=HIS)
        with store.write() as tx:
            ready = indexed("This is b.", model="m", vectors=[[1, 0]])
            assert tx.messages.set_vectors(TALK, "b", ready) is True
            assert tx.messages.set_vectors(TALK, "nothing", ready) is False
            assert tx.messages.set_vectors(HIS, "b", ready) is False
        with store.read() as tx:
            assert ids(tx.messages.unembedded(TALK, "m", limit=9)) == ["a", "c"]
            assert len(tx.messages.unembedded(ANN, "m", limit=1)) == 1
            assert ids(tx.messages.unembedded(ANN, "other", limit=9)) == ["a", "b", "c"]

    def test_messages_appended_with_vectors_are_not_pending(self, store: Store) -> None:
        with store.write() as tx:
            tx.messages.append(TALK, [message("a")], [indexed("a", model="m", vectors=[[1, 0]])])
        with store.read() as tx:
            assert tx.messages.unembedded(ANN, "m", limit=9) == ()

    def test_many_speakers_at_once_lose_nothing_and_share_no_position(self, store: Store) -> None:
        def speak(name: str) -> None:
            for i in range(5):
                with store.write() as tx:
                    say(tx, f"{name}{i}", session=TALK if i % 2 else WALK)

        threads = [threading.Thread(target=speak, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        with store.read() as tx:
            both = tx.messages.recent(ANN, limit=99)
        assert len({one.id for one in both}) == 20
        assert len({one.position for one in both}) == 20


class SessionTests:
    """Made by appending, moved by a watermark, closed by a fence."""

    def test_appending_makes_the_session(self, store: Store) -> None:
        with store.write() as tx:
            assert tx.sessions.get(TALK) is None
            say(tx, "a")
        with store.read() as tx:
            session = tx.sessions.get(TALK)
            assert tx.sessions.get(WALK) is None
            assert tx.sessions.get(HIS) is None
        assert session is not None
        assert (session.scope, session.extracted) == (TALK, 0)

    def test_sessions_come_latest_first_in_pages(self, store: Store) -> None:
        for i in range(5):
            with store.write() as tx:
                say(tx, f"m{i}", session=replace(TALK, session=f"s{i}"), seconds=i * 10)
        with store.write() as tx:
            say(tx, "again", session=replace(TALK, session="s1"), seconds=90)
            say(tx, "his", session=HIS, seconds=99)
        seen: list[str] = []
        with store.read() as tx:
            page = tx.sessions.list(TALK, limit=2)
            assert page.total == 5
            seen += [one.scope.session for one in page.items]
            while page.next:
                page = tx.sessions.list(TALK, limit=2, cursor=page.next)
                seen += [one.scope.session for one in page.items]
        assert seen == ["s1", "s4", "s3", "s2", "s0"]

    def test_the_watermark_moves(self, store: Store) -> None:
        with store.write() as tx:
            said = say(tx, "a", "b")
            session = tx.sessions.get(TALK)
            assert session is not None
            moved = tx.sessions.advance(session, extracted=said[0].position)
        assert moved.extracted == said[0].position
        with store.write() as tx:
            found = tx.sessions.get(TALK)
            assert found is not None
            assert (found.extracted, found.epoch) == (moved.extracted, session.epoch)
            assert tx.sessions.advance(found, extracted=said[1].position).extracted == said[1].position

    def test_a_watermark_that_moved_meanwhile_is_a_conflict(self, store: Store) -> None:
        with store.write() as tx:
            said = say(tx, "a", "b")
            session = tx.sessions.get(TALK)
            assert session is not None
            tx.sessions.advance(session, extracted=said[0].position)
        with store.write() as tx, pytest.raises(Conflict):
            tx.sessions.advance(session, extracted=said[1].position)
        with store.read() as tx:
            found = tx.sessions.get(TALK)
            assert found is not None
            assert found.extracted == said[0].position

    def test_new_messages_do_not_disturb_work_in_flight(self, store: Store) -> None:
        with store.write() as tx:
            said = say(tx, "a")
            session = tx.sessions.get(TALK)
        assert session is not None
        with store.write() as tx:
            say(tx, "b", seconds=5)
        with store.write() as tx:
            assert tx.sessions.advance(session, extracted=said[0].position).extracted == said[0].position

    def test_the_backlog_is_what_lies_above_the_watermark(self, store: Store) -> None:
        with store.write() as tx:
            assert tx.messages.backlog(TALK) == Backlog(messages=0, characters=0, at_home=0)
            said = say(tx, "a", "安娜", "c")
            say(tx, "d", session=WALK)
            say(tx, "his", session=HIS)
            session = tx.sessions.get(TALK)
            assert session is not None
            assert (tx.messages.backlog(TALK).messages, tx.messages.backlog(TALK).at_home) == (3, 4)
            tx.sessions.advance(session, extracted=said[0].position)
            left = sum(len(one.content) for one in said[1:])
            assert tx.messages.backlog(TALK) == Backlog(messages=2, characters=left, at_home=3)
            tx.sessions.fence(TALK)
            assert tx.messages.backlog(TALK) == Backlog(messages=0, characters=0, at_home=1)

    def test_the_count_of_what_waits_follows_every_change(self, store: Store) -> None:
        def waits(expected: int) -> None:
            assert tx.messages.backlog(TALK).at_home == tx.messages.backlog(WALK).at_home == expected

        with store.write() as tx:
            said = say(tx, "a", "b", "安娜", seconds=1)
            say(tx, "c", "d", session=WALK, seconds=10)
            waits(5)
            session = tx.sessions.get(TALK)
            assert session is not None
            session = tx.sessions.advance(session, extracted=said[1].position)
            waits(3)
            tx.sessions.advance(session, extracted=said[0].position)
            waits(4)
        with suppress(Conflict), store.write() as tx:
            tx.sessions.advance(session, extracted=said[2].position)
        with store.write() as tx:
            waits(4)
            tx.erase(TALK)
            waits(2)
            say(tx, "again", seconds=20)
            waits(3)
            tx.sessions.fence(ANN)
            waits(0)
            say(tx, "e", session=WALK, seconds=30)
            waits(1)
            tx.erase(ANN)
            waits(0)

    def test_a_fence_stops_work_in_flight_and_counts_all_as_extracted(self, store: Store) -> None:
        with store.write() as tx:
            said = say(tx, "a", "b")
            say(tx, "c", session=WALK)
            say(tx, "his", session=HIS)
            session, his = tx.sessions.get(TALK), tx.sessions.get(HIS)
        assert session is not None
        assert his is not None
        with store.write() as tx:
            assert tx.sessions.fence(ANN) == 2
        with store.write() as tx, pytest.raises(Conflict):
            tx.sessions.advance(session, extracted=said[1].position)
        with store.write() as tx:
            fenced = tx.sessions.get(TALK)
            assert fenced is not None
            assert fenced.epoch != session.epoch
            assert tx.messages.after(TALK, fenced.extracted) == ()
            assert ids(tx.messages.tail(TALK, limit=9)) == ["a", "b"]
            assert tx.sessions.get(HIS) == his
        with store.write() as tx:
            later = say(tx, "d", seconds=9)
            assert ids(tx.messages.after(TALK, fenced.extracted)) == ["d"]
            assert tx.sessions.advance(fenced, extracted=later[0].position).extracted == later[0].position

    def test_a_fence_round_one_session_leaves_the_others(self, store: Store) -> None:
        with store.write() as tx:
            say(tx, "a")
            say(tx, "c", session=WALK)
            walk = tx.sessions.get(WALK)
            assert tx.sessions.fence(TALK) == 1
            assert tx.sessions.get(WALK) == walk
            assert tx.sessions.fence(replace(TALK, session="nothing")) == 0

    def test_a_session_made_anew_has_another_epoch(self, store: Store) -> None:
        with store.write() as tx:
            say(tx, "a")
            session = tx.sessions.get(TALK)
        assert session is not None
        with store.write() as tx:
            tx.erase(TALK)
        with store.write() as tx, pytest.raises(Conflict):
            tx.sessions.advance(session, extracted=1)
        with store.write() as tx:
            say(tx, "b")
        with store.write() as tx, pytest.raises(Conflict):
            tx.sessions.advance(session, extracted=1)


def ids(messages: Iterable[Message]) -> list[str]:
    """Ids in order."""
    return [one.id for one in messages]
