"""What the review inbox and the shelf of extraction records promise."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from everlong.errors import Conflict, NotFound
from everlong.records import Outcome, Scope, Skipped, Usage
from everlong.testing.samples import ANN, BOB, ODD_NAMES, ODD_TEXTS, TALK, at, extraction, proposal

if TYPE_CHECKING:
    from everlong.protocols import Store

WALK = replace(TALK, session="walk")
CODER = replace(ANN, agent="coder")
ORG = Scope(org="acme")
ELSEWHERE = Scope(org="umbrella", user="ann")


class ProposalTests:
    """Put without piling up, get, list, delete once."""

    def test_a_proposal_comes_back_as_it_was_given(self, store: Store) -> None:
        given = proposal(
            scope=TALK,
            kind="section",
            target="topOfMind",
            reason="说了",
            seconds=1.000001,
            payload={"summary": ["安", 1]},
        )
        with store.write() as tx:
            assert tx.proposals.put(given) == given
        with store.read() as tx:
            assert tx.proposals.get(ANN, "p1") == given
            assert tx.proposals.get(WALK, "p1") == given
            assert tx.proposals.list(ANN).items == (given,)

    @pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
    def test_odd_text_is_kept_exactly(self, store: Store, text: str) -> None:
        with store.write() as tx:
            tx.proposals.put(proposal(reason=text, payload={"summary": text}))
        with store.read() as tx:
            found = tx.proposals.get(ANN, "p1")
        assert (found.reason, found.payload) == (text, {"summary": text})

    def test_a_proposal_is_found_within_its_home_only(self, store: Store) -> None:
        with store.write() as tx:
            tx.proposals.put(proposal())
            tx.proposals.put(proposal("theirs", ELSEWHERE))
        with store.read() as tx:
            assert tx.proposals.get(ORG, "p1").id == "p1"
            for scope, name in ((BOB, "p1"), (CODER, "p1"), (ELSEWHERE, "p1"), (ANN, "theirs"), (ANN, "nothing")):
                with pytest.raises(NotFound):
                    tx.proposals.get(scope, name)

    def test_the_same_idea_does_not_pile_up(self, store: Store) -> None:
        first = proposal(target="f1", reason="first")
        with store.write() as tx:
            tx.proposals.put(first)
            assert tx.proposals.put(proposal("p2", target="f1", reason="second", seconds=5)) == first
        with store.write() as tx:
            assert tx.proposals.put(proposal("p3", target="f1", reason="third", seconds=9)) == first
            assert tx.proposals.list(ANN).items == (first,)

    def test_other_scopes_kinds_and_targets_wait_beside_it(self, store: Store) -> None:
        with store.write() as tx:
            tx.proposals.put(proposal(target="f1"))
            others = [
                proposal("p2", target="F1"),
                proposal("p3", target="f1", kind="fact"),
                proposal("p4", TALK, target="f1"),
                proposal("p5", BOB, target="f1"),
                proposal("p6", ELSEWHERE, target="f1"),
            ]
            for other in others:
                assert tx.proposals.put(other) == other
            assert tx.proposals.list(Scope()).total == 6

    def test_calls_wait_each_for_itself(self, store: Store) -> None:
        with store.write() as tx:
            for i in range(3):
                one = proposal(f"p{i}", kind="call", target="forget", payload={"fact_id": f"f{i}"}, seconds=i)
                assert tx.proposals.put(one) == one
            assert [one.id for one in tx.proposals.list(ANN, kind="call").items] == ["p2", "p1", "p0"]

    def test_an_id_in_use_is_a_conflict(self, store: Store) -> None:
        with store.write() as tx:
            tx.proposals.put(proposal())
            for taken in (proposal(target="other"), proposal(kind="call"), proposal(scope=BOB)):
                with pytest.raises(Conflict):
                    tx.proposals.put(taken)
            assert tx.proposals.list(Scope()).items == (proposal(),)

    def test_it_is_decided_once(self, store: Store) -> None:
        with store.write() as tx:
            one = tx.proposals.put(proposal(target="f1"))
            tx.proposals.put(proposal("his", BOB, target="f1"))
        with store.write() as tx:
            assert tx.proposals.delete(replace(one, scope=BOB)) is False
            assert tx.proposals.delete(one) is True
            assert tx.proposals.delete(one) is False
        with store.write() as tx:
            assert tx.proposals.list(ANN).total == 0
            assert tx.proposals.list(BOB).total == 1
            again = proposal("p2", target="f1")
            assert tx.proposals.put(again) == again

    def test_many_who_propose_the_same_at_once_make_one(self, store: Store) -> None:
        got: list[str] = []

        def propose(name: str) -> None:
            for i in range(5):
                with store.write() as tx:
                    got.append(tx.proposals.put(proposal(f"{name}{i}", target=f"f{i}")).target)

        threads = [threading.Thread(target=propose, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(got) == 20
        with store.read() as tx:
            assert sorted(one.target for one in tx.proposals.list(ANN).items) == [f"f{i}" for i in range(5)]

    def test_the_inbox_lists_its_home_by_kind_newest_first(self, store: Store) -> None:
        with store.write() as tx:
            tx.proposals.put(proposal("p1", seconds=1))
            tx.proposals.put(proposal("p2", TALK, seconds=2, kind="fact"))
            tx.proposals.put(proposal("p3", WALK, seconds=3))
            tx.proposals.put(proposal("p4", CODER, seconds=4))
            tx.proposals.put(proposal("p5", ORG, seconds=5))
            tx.proposals.put(proposal("p6", BOB, seconds=6))
        with store.read() as tx:
            for scope in (ANN, TALK, WALK):
                page = tx.proposals.list(scope)
                assert ([one.id for one in page.items], page.total) == (["p4", "p3", "p2", "p1"], 4)
            page = tx.proposals.list(ANN, kind="fact")
            assert ([one.id for one in page.items], page.total) == (["p2"], 1)
            assert tx.proposals.list(ORG).total == 6

    def test_look_alike_names_are_different_people(self, store: Store) -> None:
        with store.write() as tx:
            for i, name in enumerate(ODD_NAMES):
                tx.proposals.put(proposal(f"p{i}", Scope(org="acme", user=name), target="f1"))
        with store.read() as tx:
            for i, name in enumerate(ODD_NAMES):
                assert [one.id for one in tx.proposals.list(Scope(org="acme", user=name)).items] == [f"p{i}"], name


class ExtractionTests:
    """Append, get, list, sum up, purge."""

    def test_a_record_comes_back_as_it_was_given(self, store: Store) -> None:
        given = extraction(
            seconds=0.000001,
            prompt="v3",
            messages=("m1", "消息"),
            decisions=(
                Outcome(kind="add", reason="new", content="安娜喜欢茶。", fact_id="f1"),
                Outcome(kind="reject", reason="too vague", content="Ann is."),
            ),
            skipped=(Skipped(reason="no text", raw='{"x": "安'), Skipped(reason="not a list")),
            raw='{"facts": ["安娜喜欢茶。"]}',
            usage=Usage(calls=2, input_tokens=3_000_000_000, output_tokens=7),
            milliseconds=12.345,
            error="",
        )
        failed = extraction("x2", error="timed out", usage=Usage(), seconds=1)
        with store.write() as tx:
            tx.extractions.append(given)
            tx.extractions.append(failed)
        with store.read() as tx:
            assert tx.extractions.get(ANN, "x1") == given
            assert tx.extractions.get(WALK, "x2") == failed
            assert tx.extractions.list(TALK).items == (failed, given)

    @pytest.mark.parametrize("text", ODD_TEXTS, ids=range(len(ODD_TEXTS)))
    def test_odd_text_is_kept_exactly(self, store: Store, text: str) -> None:
        skipped = (Skipped(reason=text, raw=text),)
        with store.write() as tx:
            tx.extractions.append(extraction(raw=text, error=text, skipped=skipped))
        with store.read() as tx:
            found = tx.extractions.get(ANN, "x1")
        assert (found.raw, found.error, found.skipped) == (text, text, skipped)

    def test_a_record_is_found_within_its_home_only(self, store: Store) -> None:
        with store.write() as tx:
            tx.extractions.append(extraction())
        with store.read() as tx:
            assert tx.extractions.get(ORG, "x1").id == "x1"
            for scope, name in ((BOB, "x1"), (CODER, "x1"), (ELSEWHERE, "x1"), (ANN, "nothing")):
                with pytest.raises(NotFound):
                    tx.extractions.get(scope, name)

    def test_records_within_a_scope_come_newest_first(self, store: Store) -> None:
        with store.write() as tx:
            for i, scope in enumerate((TALK, WALK, replace(TALK, user="bob"), TALK, replace(CODER, session="talk"))):
                tx.extractions.append(extraction(f"x{i}", scope, seconds=i))
        with store.read() as tx:
            assert [one.id for one in tx.extractions.list(TALK).items] == ["x4", "x3", "x0"]
            assert [one.id for one in tx.extractions.list(ANN).items] == ["x4", "x3", "x1", "x0"]
            assert tx.extractions.list(ORG).total == 5
            assert tx.extractions.list(ELSEWHERE).total == 0

    def test_usage_sums_what_was_used_within_a_scope_since(self, store: Store) -> None:
        with store.write() as tx:
            for i, scope in enumerate((TALK, WALK, replace(TALK, user="bob"), replace(ELSEWHERE, session="talk"))):
                for j in range(3):
                    used = Usage(calls=1, input_tokens=10**i, output_tokens=j)
                    failed = "timed out" if j == 2 else ""
                    tx.extractions.append(extraction(f"x{i}{j}", scope, seconds=j, usage=used, error=failed))
        with store.read() as tx:
            assert tx.extractions.usage(TALK, since=at(0)) == Usage(calls=3, input_tokens=3, output_tokens=3)
            assert tx.extractions.usage(ANN, since=at(1)) == Usage(calls=4, input_tokens=22, output_tokens=6)
            assert tx.extractions.usage(ORG, since=at(2)) == Usage(calls=3, input_tokens=111, output_tokens=6)
            assert tx.extractions.usage(Scope(), since=at(0)).input_tokens == 3333
            assert tx.extractions.usage(ORG, since=at(2.1)) == Usage()
            assert tx.extractions.usage(Scope(org="nobody"), since=at(0)) == Usage()

    def test_purging_deletes_what_is_older_within_a_scope(self, store: Store) -> None:
        with store.write() as tx:
            for i, scope in enumerate((TALK, WALK, replace(TALK, user="bob"))):
                for j in range(3):
                    tx.extractions.append(extraction(f"x{i}{j}", scope, seconds=j))
        with store.write() as tx:
            assert tx.extractions.purge(ANN, before=at(1)) == 2
            assert tx.extractions.purge(ANN, before=at(1)) == 0
            assert tx.extractions.purge(TALK, before=at(9)) == 2
            left = {one.id for one in tx.extractions.list(ORG).items}
        assert left == {"x11", "x12", "x20", "x21", "x22"}
