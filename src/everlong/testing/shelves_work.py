"""What a shelf of jobs promises."""

from __future__ import annotations

import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from everlong.errors import NotFound
from everlong.records import Scope
from everlong.testing.samples import ANN, BOB, START, TALK, at, job

if TYPE_CHECKING:
    from datetime import datetime

    from everlong.protocols import Store, Transaction
    from everlong.records import Job

ALL = ("extract", "embed")


def take(tx: Transaction, seconds: float = 0, *, worker: str = "w", lease: float = 60) -> Job | None:
    """Claims at ``START`` and ``seconds``."""
    return tx.jobs.claim(ALL, worker=worker, now=at(seconds), lease_until=at(seconds + lease))


def put(store: Store, one: Job, *, latest: datetime | None = None) -> Job:
    """Enqueues, by default with a minute of patience."""
    with store.write() as tx:
        return tx.jobs.put(one, latest=latest or at(60))


def claimed(store: Store, seconds: float = 0, *, worker: str = "w", lease: float = 60) -> Job:
    """Claims what must be there."""
    with store.write() as tx:
        got = take(tx, seconds, worker=worker, lease=lease)
    assert got is not None
    return got


class JobTests:
    """Enqueue, merge, claim, finish, give back, set aside."""

    def test_a_job_comes_back_as_it_was_given(self, store: Store) -> None:
        given = job(seconds=1.000001, kind="extract", key="安娜 '%_", payload={"a": ["乙", None, 1.5]})
        assert put(store, given) == given
        with store.read() as tx:
            assert tx.jobs.list(ANN) == (given,)
            assert tx.jobs.count() == 1

    def test_work_is_claimed_done_and_gone(self, store: Store) -> None:
        put(store, job())
        got = claimed(store, 5, worker="w1", lease=30)
        assert got == replace(
            job(), state="running", attempts=1, lease_until=at(35), worker="w1", run_after=got.run_after
        )
        with store.write() as tx:
            assert take(tx, 6) is None
            assert tx.jobs.done(got) is True
            assert tx.jobs.done(got) is False
            assert tx.jobs.count() == 0

    def test_nothing_is_claimed_before_it_is_due(self, store: Store) -> None:
        put(store, job(seconds=10))
        with store.write() as tx:
            assert take(tx, 9.999) is None
            assert take(tx, 10) is not None

    def test_the_most_overdue_of_the_asked_kinds_goes_first(self, store: Store) -> None:
        for name, kind, seconds in (("j1", "extract", 3), ("j2", "other", 1), ("j3", "embed", 2), ("j4", "extract", 4)):
            put(store, job(name, kind=kind, key=name, seconds=seconds))
        assert [claimed(store, 9).id for _ in range(3)] == ["j3", "j1", "j4"]
        with store.write() as tx:
            assert take(tx, 9) is None
            assert tx.jobs.claim((), worker="w", now=at(9), lease_until=at(10)) is None

    def test_a_second_request_merges_and_waits_anew(self, store: Store) -> None:
        put(store, job("j1", seconds=30))
        merged = put(store, job("j2", seconds=40, first_at=at(10)), latest=at(70))
        assert (merged.run_after, merged.first_at, merged.state) == (at(40), START, "waiting")
        with store.read() as tx:
            (only,) = tx.jobs.list(ANN)
        assert only == merged

    def test_debouncing_never_waits_longer_than_the_first_request_allows(self, store: Store) -> None:
        for seconds in range(0, 100, 20):
            asked = job(f"j{seconds}", seconds=seconds + 30, first_at=at(seconds))
            stored = put(store, asked, latest=at(seconds + 60))
            assert stored.run_after == at(min(seconds + 30, 60))
            assert stored.first_at == START
        with store.read() as tx:
            assert tx.jobs.count() == 1
            assert tx.jobs.next_due(ALL) == at(60)

    def test_an_urgent_request_pulls_a_patient_one_forward(self, store: Store) -> None:
        put(store, job("j1", seconds=30))
        assert put(store, job("j2", seconds=1, first_at=at(1)), latest=at(61)).run_after == at(1)

    def test_what_is_due_stays_due_whatever_is_said_next(self, store: Store) -> None:
        put(store, job("urgent", seconds=1))
        assert put(store, job("j2", seconds=32, first_at=at(2)), latest=at(62)).run_after == at(1)

    def test_more_work_does_not_cut_short_the_pause_after_a_failure(self, store: Store) -> None:
        put(store, job("j1"))
        got = claimed(store, 0)
        with store.write() as tx:
            assert tx.jobs.retry(got, run_after=at(600), error="model is away")
        merged = put(store, job("j2", seconds=31, first_at=at(1)), latest=at(61))
        assert (merged.run_after, merged.attempts, merged.error) == (at(600), 1, "model is away")

    @pytest.mark.parametrize(
        "other",
        [{"kind": "embed"}, {"key": "walk"}, {"key": "TALK"}, {"key": "t%"}, {"scope": Scope(org="x", session="talk")}],
        ids=str,
    )
    def test_other_orgs_kinds_and_keys_do_not_merge(self, store: Store, other: dict[str, str]) -> None:
        put(store, job("j1"))
        put(store, replace(job("j2"), **other))  # type: ignore[arg-type]
        with store.read() as tx:
            assert tx.jobs.count() == 2

    def test_two_jobs_of_one_key_never_run_at_once(self, store: Store) -> None:
        put(store, job("j1"))
        first = claimed(store, 1)
        put(store, job("j2", seconds=2, first_at=at(2)))
        put(store, job("other", key="walk", seconds=3))
        assert claimed(store, 5).id == "other"
        with store.write() as tx:
            assert take(tx, 5) is None
            assert tx.jobs.count(state="waiting") == 1
            assert tx.jobs.done(first) is True
        assert claimed(store, 5).id == "j2"

    def test_one_key_in_two_orgs_runs_side_by_side(self, store: Store) -> None:
        put(store, job("j1"))
        put(store, job("j2", Scope(org="umbrella", user="ann", session="talk")))
        assert {claimed(store, 1).id, claimed(store, 1).id} == {"j1", "j2"}

    def test_a_lapsed_lease_lets_another_worker_in(self, store: Store) -> None:
        put(store, job())
        lost = claimed(store, 0, worker="w1", lease=10)
        with store.write() as tx:
            assert take(tx, 9.9, worker="w2") is None
        again = claimed(store, 10.1, worker="w2")
        assert (again.id, again.worker, again.attempts) == ("j1", "w2", 2)
        with store.write() as tx:
            assert tx.jobs.done(lost) is False
            assert tx.jobs.retry(lost, run_after=at(0), error="late") is False
            assert tx.jobs.postpone(lost, run_after=at(0), reason="late") is False
            assert tx.jobs.park(lost, error="late") is False
            assert tx.jobs.count(state="running") == 1
            assert tx.jobs.done(again) is True

    def test_the_same_worker_that_lost_its_lease_holds_nothing_by_the_old_claim(self, store: Store) -> None:
        put(store, job())
        lost = claimed(store, 0, lease=10)
        again = claimed(store, 20, lease=10)
        with store.write() as tx:
            assert tx.jobs.done(lost) is False
            assert tx.jobs.done(again) is True

    def test_a_lapsed_job_and_its_successor_do_not_run_at_once(self, store: Store) -> None:
        put(store, job("j1"))
        claimed(store, 0, lease=10)
        put(store, job("j2", seconds=1, first_at=at(1)))
        with store.write() as tx:
            assert take(tx, 20) is not None
            assert take(tx, 20) is None

    def test_a_lease_can_be_renewed_by_who_holds_it(self, store: Store) -> None:
        put(store, job())
        mine = claimed(store, 0, worker="w1", lease=10)
        with store.write() as tx:
            assert tx.jobs.renew(mine, lease_until=at(30)) is True
            assert take(tx, 29, worker="w2") is None
        assert claimed(store, 30, worker="w2").worker == "w2"
        with store.write() as tx:
            assert tx.jobs.renew(mine, lease_until=at(99)) is False
            assert tx.jobs.list(ANN)[0].lease_until == at(90)

    def test_a_held_job_can_be_given_back(self, store: Store) -> None:
        put(store, job())
        got = claimed(store, 1)
        with store.write() as tx:
            assert tx.jobs.retry(got, run_after=at(30), error="model is 忙") is True
            assert tx.jobs.retry(got, run_after=at(30), error="again") is False
            (waiting,) = tx.jobs.list(ANN)
            assert take(tx, 29) is None
        assert (waiting.state, waiting.run_after, waiting.error) == ("waiting", at(30), "model is 忙")
        assert waiting.attempts == 1
        assert claimed(store, 30).attempts == 2

    def test_giving_back_merges_with_the_one_that_waits(self, store: Store) -> None:
        put(store, job("j1"))
        got = claimed(store, 1)
        put(store, job("j2", seconds=5, first_at=at(2)))
        with store.write() as tx:
            assert tx.jobs.retry(got, run_after=at(30), error="busy") is True
            (only,) = tx.jobs.list(ANN)
        assert only.state == "waiting"
        assert claimed(store, 60).state == "running"

    def test_a_postponed_job_waits_and_its_attempt_does_not_count(self, store: Store) -> None:
        put(store, job())
        for round_ in range(3):
            got = claimed(store, round_ * 30)
            assert got.attempts == 1
            with store.write() as tx:
                assert tx.jobs.postpone(got, run_after=at(round_ * 30 + 30), reason="budget 用完了") is True
                assert tx.jobs.postpone(got, run_after=at(0), reason="again") is False
                (waiting,) = tx.jobs.list(ANN)
                assert take(tx, round_ * 30 + 29) is None
            assert (waiting.state, waiting.attempts, waiting.error) == ("waiting", 0, "budget 用完了")
            assert (waiting.worker, waiting.lease_until) == ("", None)

    def test_postponing_keeps_the_attempts_that_failed_before(self, store: Store) -> None:
        put(store, job())
        with store.write() as tx:
            got = take(tx)
            assert got is not None
            tx.jobs.retry(got, run_after=at(10), error="busy")
        got = claimed(store, 10)
        with store.write() as tx:
            tx.jobs.postpone(got, run_after=at(20), reason="budget")
        assert claimed(store, 20).attempts == 2

    def test_postponing_merges_with_the_one_that_waits(self, store: Store) -> None:
        put(store, job("j1"))
        got = claimed(store, 1)
        put(store, job("j2", seconds=5, first_at=at(2)))
        with store.write() as tx:
            assert tx.jobs.postpone(got, run_after=at(30), reason="budget") is True
            (only,) = tx.jobs.list(ANN)
        assert (only.state, only.run_after, only.attempts, only.error) == ("waiting", at(30), 0, "budget")

    def test_a_parked_job_waits_for_people(self, store: Store) -> None:
        put(store, job())
        got = claimed(store, 1)
        with store.write() as tx:
            assert tx.jobs.park(got, error="gave up") is True
            assert tx.jobs.park(got, error="gave up") is False
            assert take(tx, 99_999) is None
            (parked,) = tx.jobs.list(ANN, state="parked")
            assert (parked.state, parked.error) == ("parked", "gave up")
            assert tx.jobs.next_due(ALL) is None
        assert put(store, job("j2", seconds=2)).id == "j2"
        assert claimed(store, 5).id == "j2"

    def test_a_released_job_starts_afresh(self, store: Store) -> None:
        put(store, job())
        with store.write() as tx:
            got = take(tx)
            assert got is not None
            tx.jobs.park(got, error="gave up")
            for scope, name in ((BOB, "j1"), (replace(TALK, session="walk"), "j1"), (ANN, "nothing")):
                with pytest.raises(NotFound):
                    tx.jobs.release(scope, name, now=at(50))
            free = tx.jobs.release(ANN, "j1", now=at(50))
            assert (free.state, free.attempts) == ("waiting", 0)
            assert free.run_after <= at(50)
            with pytest.raises(NotFound):
                tx.jobs.release(ANN, "j1", now=at(50))
        assert claimed(store, 50).attempts == 1

    def test_releasing_keeps_one_waiting_job_of_a_key(self, store: Store) -> None:
        put(store, job("j1"))
        with store.write() as tx:
            got = take(tx)
            assert got is not None
            tx.jobs.park(got, error="gave up")
        put(store, job("j2", seconds=500, first_at=at(2)), latest=at(600))
        with store.write() as tx:
            tx.jobs.release(ANN, "j1", now=at(50))
            assert tx.jobs.count(state="waiting") == 1
            assert tx.jobs.count(state="parked") == 0
            assert take(tx, 50) is not None

    def test_done_work_takes_what_was_parked_of_its_key_along(self, store: Store) -> None:
        for name, key in (("j1", "talk"), ("j2", "walk")):
            put(store, job(name, key=key))
            got = claimed(store)
            with store.write() as tx:
                assert tx.jobs.park(got, error="gave up")
        put(store, job("j3", seconds=1))
        got = claimed(store, 1)
        with store.write() as tx:
            assert tx.jobs.done(got)
            assert [one.id for one in tx.jobs.list(ANN)] == ["j2"]

    def test_only_the_latest_of_a_key_stays_parked(self, store: Store) -> None:
        for name in ("j1", "j2"):
            put(store, job(name))
            got = claimed(store)
            with store.write() as tx:
                assert tx.jobs.park(got, error=f"{name} gave up")
        with store.read() as tx:
            assert [(one.id, one.error) for one in tx.jobs.list(ANN)] == [("j2", "j2 gave up")]

    def test_cancelling_takes_what_waits_or_is_parked_and_leaves_what_runs(self, store: Store) -> None:
        walk = replace(TALK, session="walk")
        put(store, job("parked"))
        got = claimed(store)
        with store.write() as tx:
            tx.jobs.park(got, error="gave up")
        put(store, job("running", seconds=1))
        claimed(store, 1)
        put(store, job("waits", seconds=2, first_at=at(2)))
        put(store, job("other kind", kind="embed"))
        put(store, job("other talk", walk, key="walk"))
        put(store, job("other user", BOB, key="bob"))
        with store.write() as tx:
            assert tx.jobs.cancel(TALK, ("extract",)) == 2
            assert tx.jobs.cancel(TALK, ()) == 0
            left = {one.id for one in tx.jobs.list(Scope())}
        assert left == {"running", "other kind", "other talk", "other user"}

    def test_lists_and_counts_stay_within_scope_and_state(self, store: Store) -> None:
        put(store, job("j1", seconds=3))
        put(store, job("j2", replace(TALK, session="walk"), key="walk", seconds=1))
        put(store, job("j3", BOB, key="bob", seconds=2))
        put(store, job("j4", Scope(org="umbrella"), key="u", seconds=4))
        with store.read() as tx:
            assert [one.id for one in tx.jobs.list(ANN)] == ["j2", "j1"]
            assert [one.id for one in tx.jobs.list(TALK)] == ["j1"]
            assert [one.id for one in tx.jobs.list(Scope(org="acme"), limit=2)] == ["j2", "j3"]
            assert [one.id for one in tx.jobs.list(Scope())] == ["j2", "j3", "j1", "j4"]
            assert tx.jobs.list(ANN, state="running") == ()
            assert (tx.jobs.count(), tx.jobs.count(org="acme"), tx.jobs.count(org="umbrella")) == (4, 3, 1)
            assert (tx.jobs.count(state="waiting"), tx.jobs.count(state="parked", org="acme")) == (4, 0)

    def test_hurrying_makes_waiting_jobs_within_scope_due(self, store: Store) -> None:
        put(store, job("j1", seconds=300))
        put(store, job("j2", replace(TALK, session="walk"), key="walk", seconds=400))
        put(store, job("j3", BOB, key="bob", seconds=300))
        with store.write() as tx:
            assert tx.jobs.hurry(ANN, now=at(5)) == 2
            assert {one.run_after for one in tx.jobs.list(ANN)} == {at(5)}
        assert {claimed(store, 5).id, claimed(store, 5).id} == {"j1", "j2"}
        with store.write() as tx:
            assert take(tx, 5) is None
            assert tx.jobs.hurry(ANN, now=at(6)) == 0

    def test_hurrying_never_delays(self, store: Store) -> None:
        put(store, job("j1", seconds=1))
        with store.write() as tx:
            assert tx.jobs.hurry(ANN, now=at(5)) == 1
            assert tx.jobs.list(ANN)[0].run_after <= at(5)

    def test_next_due_tells_how_long_a_worker_may_sleep(self, store: Store) -> None:
        with store.read() as tx:
            assert tx.jobs.next_due(ALL) is None
        put(store, job("j1", seconds=20))
        put(store, job("j2", kind="other", key="o", seconds=1))
        put(store, job("j3", BOB, kind="embed", key="e", seconds=10))
        with store.read() as tx:
            assert tx.jobs.next_due(ALL) == at(10)
            assert tx.jobs.next_due(["extract"]) == at(20)
            assert tx.jobs.next_due(["nothing"]) is None
        got = claimed(store, 20, lease=100)
        assert got.id == "j3"
        with store.read() as tx:
            assert tx.jobs.next_due(["embed"]) == at(120)

    def test_many_workers_share_the_work_without_doing_it_twice(self, store: Store) -> None:
        with store.write() as tx:
            for i in range(20):
                tx.jobs.put(job(f"j{i}", key=f"k{i}"), latest=at(60))
        done: list[str] = []

        def work(name: str) -> None:
            while True:
                with store.write() as tx:
                    got = take(tx, 1, worker=name)
                if got is None:
                    return
                with store.write() as tx:
                    assert tx.jobs.done(got)
                done.append(got.id)

        threads = [threading.Thread(target=work, args=(f"w{i}",)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sorted(done) == sorted(f"j{i}" for i in range(20))
