"""A writer is killed at random moments: what it acknowledged is there, and what is there is whole.

``EVERLONG_KILLS`` sets how many times (default 10).
"""

from __future__ import annotations

import multiprocessing
import os
import random
import sqlite3
import threading
import time
from dataclasses import replace
from itertools import count, pairwise
from multiprocessing.connection import Connection

import pytest

from everlong.protocols import Store
from everlong.store import open_store
from everlong.testing import CountingIds, FakeClock
from everlong.testing.samples import ANN, TALK, add_fact, at, entry, job, say

KILLS = int(os.environ.get("EVERLONG_KILLS", "10"))
FORK = multiprocessing.get_context("fork")


def open_as(url: str, label: str) -> Store:
    return open_store(url, clock=FakeClock(), new_id=CountingIds(label))


def write_for_ever(url: str, labels: list[str], acknowledge: Connection) -> None:
    """In a thread for each label: records of five kinds in one unit of work after another, each told after its commit."""
    store, telling = open_as(url, labels[0]), threading.Lock()

    def write(label: str) -> None:
        last = None
        for number in count():
            name = f"{label}-{number:05d}"
            with store.write() as tx:
                add_fact(tx, name)
                if last:
                    tx.facts.revise(replace(last, reason=name), expected=1)
                last = tx.facts.get(ANN, name)
                say(tx, name, session=replace(TALK, session=label))
                tx.jobs.put(job(name, key=name), latest=at(60))
                tx.journal.append(entry(name))
            with telling:
                acknowledge.send(name)

    threads = [threading.Thread(target=write, args=(label,)) for label in labels]
    for thread in threads:
        thread.start()
    threads[0].join()


def killed_writer(url: str, labels: list[str], life: float) -> list[str]:
    """What a writer acknowledged that was killed ``life`` seconds after its first word."""
    ours, theirs = FORK.Pipe(duplex=False)
    writer = FORK.Process(target=write_for_ever, args=(url, labels, theirs), daemon=True)
    writer.start()
    theirs.close()
    heard = [ours.recv()] if ours.poll(30) else []
    time.sleep(life)
    writer.kill()
    writer.join(30)
    while True:
        try:
            heard.append(ours.recv())
        except EOFError:
            return heard


def stored_whole(store: Store, label: str) -> set[str]:
    """Names of this writer's units of work, each of which must be complete."""
    with store.read() as tx:
        said = {one.id for one in tx.messages.after(replace(TALK, session=label), 0)}
        facts = set(tx.facts.many(ANN, sorted(said)))
        jobs = {one.id for one in tx.jobs.list(ANN, limit=100_000)} & said
        lines = {one.id for one in tx.journal.list(ANN, limit=100_000).items} & said
        ordered = sorted(said)
        for name, follower in pairwise(ordered):
            assert tx.facts.get(ANN, name).reason == follower
    assert facts == jobs == lines == said
    return said


@pytest.mark.parametrize("threads", [1, 4], ids=["one thread", "four that share commits"])
def test_nothing_acknowledged_is_lost_when_the_writer_is_killed(sqlite_url: str, threads: int) -> None:
    chance = random.Random(7)
    open_as(sqlite_url, "first").close()
    acknowledged = written = 0
    for number in range(KILLS):
        labels = [f"w{number}{thread}" for thread in "abcd"[:threads]]
        heard = killed_writer(sqlite_url, labels, chance.random() * 0.06)
        store = open_as(sqlite_url, "check")
        for label in labels:
            stored = stored_whole(store, label)
            told = {name for name in heard if name.startswith(f"{label}-")}
            assert told <= stored
            assert len(stored) <= len(told) + 1
            written += len(stored)
        with store.write() as tx:
            tx.erase(replace(TALK, session="nothing"))
            add_fact(tx, f"after-{number}")
        store.close()
        acknowledged += len(heard)
    assert acknowledged >= KILLS
    with sqlite3.connect(sqlite_url.removeprefix("sqlite:///")) as raw:
        assert raw.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert raw.execute("PRAGMA foreign_key_check").fetchall() == []
    print(f"{KILLS} kills of {threads} threads, {acknowledged} of {written} units acknowledged, none lost")
