"""What a store promises as a whole: units of work, isolation by org, many threads, waking up."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from everlong.errors import Conflict
from everlong.records import Scope
from everlong.testing.erasing import FULL, NONE, fill, left
from everlong.testing.samples import ANN, ODD_NAMES, TALK, add_fact, at, job, say

if TYPE_CHECKING:
    from everlong.protocols import Store


class TransactionTests:
    """All or nothing; one state inside; nobody sees another org."""

    def test_a_block_that_raises_leaves_nothing_on_any_shelf(self, store: Store) -> None:
        with pytest.raises(ZeroDivisionError), store.write() as tx:
            fill(tx, ANN, "ann")
            assert left(tx, ANN) == FULL
            1 / 0  # noqa: B018
        with store.read() as tx:
            assert left(tx, ANN) == NONE
            assert tx.jobs.count() == 0
            assert not any(one.number for one in tx.index.revisions(ANN, ["fact", "message"]).values())

    def test_a_store_goes_on_after_a_block_that_raised(self, store: Store) -> None:
        for _ in range(3):
            with pytest.raises(ZeroDivisionError), store.write() as tx:
                add_fact(tx)
                1 / 0  # noqa: B018
        with store.write() as tx:
            add_fact(tx)
        with store.read() as tx:
            assert tx.facts.list(ANN).total == 1

    def test_a_caught_conflict_does_not_spoil_the_rest_of_the_block(self, store: Store) -> None:
        with store.write() as tx:
            first = add_fact(tx)
            with pytest.raises(Conflict):
                tx.facts.revise(first, expected=7)
            add_fact(tx, "f2")
        with store.read() as tx:
            assert tx.facts.list(ANN).total == 2

    def test_writes_are_seen_inside_at_once_and_outside_after_the_end(self, store: Store) -> None:
        with store.write() as tx:
            add_fact(tx)
            assert tx.facts.get(ANN, "f1").id == "f1"
            assert tx.facts.list(ANN).total == 1
        with store.read() as tx:
            assert tx.facts.list(ANN).total == 1

    def test_reads_inside_one_block_see_one_state(self, store: Store) -> None:
        with store.write() as tx:
            add_fact(tx)

        def write() -> None:
            with store.write() as tx:
                add_fact(tx, "f2")
                say(tx, "m1")

        with store.read() as tx:
            assert tx.facts.list(ANN).total == 1
            writer = threading.Thread(target=write)
            writer.start()
            writer.join(0.3)
            assert tx.facts.list(ANN).total == 1
            assert tx.messages.recent(ANN, limit=9) == ()
        writer.join(30)
        with store.read() as tx:
            assert tx.facts.list(ANN).total == 2

    def test_many_threads_write_without_an_error_or_a_loss(self, store: Store) -> None:
        failed: list[BaseException] = []

        def write(name: str) -> None:
            try:
                for i in range(10):
                    with store.write() as tx:
                        add_fact(tx, f"{name}{i}")
            except Exception as error:  # noqa: BLE001 (reported below, in the main thread)
                failed.append(error)

        threads = [threading.Thread(target=write, args=(name,)) for name in "abcd"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert failed == []
        with store.read() as tx:
            assert tx.facts.list(ANN).total == 40
            rows = tx.index.rows(ANN, "fact", model="")
            assert sorted(rows.revision) == sorted(set(rows.revision))

    def test_the_same_ids_live_side_by_side_in_different_orgs(self, store: Store) -> None:
        orgs = [Scope(org=name, user="ann") for name in ("acme", "umbrella")]
        with store.write() as tx:
            for scope in orgs:
                fill(tx, scope, "same")
                tx.facts.revise(replace(tx.facts.many(scope, ["same-f"])["same-f"], reason=scope.org), expected=2)
        with store.read() as tx:
            for scope in orgs:
                assert [one.reason for one in tx.facts.list(scope).items] == [scope.org]
                assert left(tx, scope) == FULL

    def test_look_alike_names_are_different_people(self, store: Store) -> None:
        with store.write() as tx:
            for i, name in enumerate(ODD_NAMES):
                for part in ("org", "agent", "user"):
                    add_fact(tx, f"{part}{i}", Scope(**{part: name}), content=name)
        with store.read() as tx:
            for i, name in enumerate(ODD_NAMES):
                for part in ("org", "agent", "user"):
                    page = tx.facts.list(Scope(**{part: name}))
                    assert [one.id for one in page.items] == [f"{part}{i}"], name

    def test_a_waiting_worker_is_woken(self, store: Store) -> None:
        woken: list[bool] = []
        waiter = threading.Thread(target=lambda: woken.append(store.wait(20)))
        waiter.start()
        began = time.monotonic()
        while waiter.is_alive() and time.monotonic() - began < 10:
            store.notify()
            waiter.join(0.05)
        assert woken == [True]

    def test_waiting_ends_by_itself(self, store: Store) -> None:
        store.wait(0)
        began = time.monotonic()
        assert store.wait(0.05) is False
        assert time.monotonic() - began < 5

    def test_a_new_job_wakes_a_waiting_worker(self, store: Store) -> None:
        store.wait(0)
        woken: list[bool] = []
        waiter = threading.Thread(target=lambda: woken.append(store.wait(20)))
        waiter.start()
        time.sleep(0.1)
        with store.write() as tx:
            tx.jobs.put(job(scope=TALK), latest=at(60))
        waiter.join(30)
        assert woken == [True]

    def test_its_url_shows_no_credentials(self, store: Store) -> None:
        assert "password" not in store.url
        assert ":" in store.url
