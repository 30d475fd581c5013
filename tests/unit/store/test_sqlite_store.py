"""What only SQLite can show: settings, turns between threads and processes, places that cannot be."""

import multiprocessing
import os
import random
import signal
import threading
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep

import pytest

from everlong.errors import ConfigError, Conflict, InvalidInput, StoreError, StoreUnavailable
from everlong.records import Scope
from everlong.store import open_store
from everlong.store.sqlite import Sqlite
from everlong.store.turns import Turns, hold
from everlong.testing import CountingIds, FakeClock
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
    job,
    message,
    profile,
    proposal,
)


def opened(url):
    return open_store(url, clock=FakeClock(), new_id=CountingIds())


@pytest.fixture
def store(sqlite_url):
    made = opened(sqlite_url)
    yield made
    made.close()


def test_acknowledged_writes_are_durable_and_erased_text_is_overwritten(tmp_path):
    driver = Sqlite(tmp_path / "a.db")
    with driver.writing() as cursor:
        settings = {
            name: cursor.execute(f"PRAGMA {name}").fetchone()[0]
            for name in ("journal_mode", "synchronous", "secure_delete")
        }
    driver.close()
    assert settings == {"journal_mode": "wal", "synchronous": 2, "secure_delete": 1}


@pytest.mark.parametrize("url", ["mysql://host/db", "", "sqlite://host", "http://user:password@host"])
def test_an_unknown_url_is_refused_without_its_password(url):
    with pytest.raises(ConfigError) as caught:
        opened(url)
    assert "password" not in str(caught.value)


def test_a_bare_path_is_a_file(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    opened("memory.db").close()
    opened("sqlite:///other.db").close()
    assert (tmp_path / "memory.db").exists()
    assert (tmp_path / "other.db").exists()


def test_a_place_that_cannot_be_says_what_to_do(tmp_path):
    with pytest.raises(ConfigError, match="does not exist"):
        opened(f"sqlite:///{tmp_path}/no/such.db")
    with pytest.raises(ConfigError, match="is a folder"):
        opened(f"sqlite:///{tmp_path}")


def test_a_file_that_is_no_database_is_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes\n" * 100)
    before = path.read_bytes()
    with pytest.raises(StoreUnavailable, match="no SQLite database"):
        opened(f"sqlite:///{path}")
    assert path.read_bytes() == before


def test_one_thread_holds_one_transaction(store):
    with store.write():
        with pytest.raises(StoreError, match="inside write"), store.write():
            pass
        with pytest.raises(StoreError, match="inside write"), store.read():
            pass
    with store.write() as tx:
        add_fact(tx)


def test_a_reader_cannot_write(store):
    with store.read() as tx, pytest.raises(StoreError):
        add_fact(tx)
    memory = opened("sqlite://")
    with memory.read() as tx, pytest.raises(StoreError):
        add_fact(tx)
    with memory.write() as tx:
        add_fact(tx)
    memory.close()


def test_text_that_cannot_be_kept_is_invalid_input(store):
    with pytest.raises(InvalidInput), store.write() as tx:
        add_fact(tx, content="\ud800")
    with pytest.raises(InvalidInput), store.write() as tx:
        add_fact(tx, metadata={"at": object()})


def test_a_closed_store_says_so(sqlite_url):
    store = opened(sqlite_url)
    store.close()
    with pytest.raises(StoreUnavailable, match="closed"), store.read():
        pass
    with pytest.raises(StoreUnavailable, match="closed"), store.write():
        pass


def test_threads_write_in_the_order_in_which_they_came():
    turns, order, threads = Turns(10), [], []

    def write(number):
        with turns.turn():
            order.append(number)

    with turns.turn():
        for number in range(5):
            threads.append(threading.Thread(target=write, args=(number,)))
            threads[-1].start()
            sleep(0.02)
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4]


def test_a_turn_that_does_not_come_in_time_is_given_up():
    turns, failed = Turns(0.1), []

    def write():
        with pytest.raises(StoreUnavailable, match="a thread"), turns.turn():
            pass
        failed.append(True)

    with turns.turn():
        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
        assert failed == [True]
        assert turns.pass_on() is False
    with turns.turn():
        pass


def test_a_lock_that_does_not_come_in_time_is_given_up(tmp_path):
    ours = hold(tmp_path / "lock", 0.1)
    with pytest.raises(StoreUnavailable, match="another process"):
        hold(tmp_path / "lock", 0.1)
    ours.close()
    sleep(0.05)
    hold(tmp_path / "lock", 5).close()


def writers(store, blocks):
    """Runs each block in a thread and a write of its own, in this order; ``None`` or what it raised, of each."""
    ended = [None] * len(blocks)

    def write(number):
        try:
            with store.write() as tx:
                blocks[number](tx)
        except Exception as error:  # noqa: BLE001 (compared below, in the main thread)
            ended[number] = error

    threads = [threading.Thread(target=write, args=(number,)) for number in range(len(blocks))]
    for thread in threads:
        thread.start()
        sleep(0.02)
    for thread in threads:
        thread.join(30)
    return ended


def slow(tx):
    add_fact(tx, "slow")
    sleep(0.3)  # meanwhile the others queue


def adding(name):
    return lambda tx: add_fact(tx, name)


def failing(tx):
    add_fact(tx, "never")
    raise ZeroDivisionError


def commits(store):
    """A list that grows by one with each commit from now on."""
    seen = []
    store._driver._writer.set_trace_callback(lambda said: seen.append(said) if said == "COMMIT" else None)
    return seen


def kept(store):
    with store.read() as tx:
        return {one.id for one in tx.facts.list(ANN).items}


def test_threads_that_queue_share_a_commit_and_one_that_fails_undoes_itself_alone(store, monkeypatch):
    monkeypatch.setattr("everlong.store.turns._LONGEST", 5)
    seen = commits(store)
    ended = writers(store, [slow, adding("a"), failing, adding("b"), failing])
    assert [type(error) for error in ended] == [
        type(None),
        type(None),
        ZeroDivisionError,
        type(None),
        ZeroDivisionError,
    ]
    assert kept(store) == {"slow", "a", "b"}
    assert len(seen) == 1
    assert [type(error) for error in writers(store, [failing, adding("c"), adding("c")])] == [
        ZeroDivisionError,
        type(None),
        Conflict,
    ]
    assert kept(store) == {"slow", "a", "b", "c"}


def test_what_made_a_unit_fail_is_seen_by_whoever_reads_because_of_it(store, monkeypatch):
    monkeypatch.setattr("everlong.store.turns._LONGEST", 5)
    seen = []

    def slower(tx):
        add_fact(tx, "later")
        sleep(0.3)

    def refused_then_read():
        try:
            with store.write() as tx:
                add_fact(tx, "a")
        except Conflict:
            seen.append(kept(store))

    threads = [
        threading.Thread(target=each)
        for each in (
            lambda: writers(store, [slow, adding("a")]),
            refused_then_read,
            lambda: writers(store, [slower]),
        )
    ]
    for thread in threads:
        thread.start()
        sleep(0.1)
    for thread in threads:
        thread.join(30)
    assert [found >= {"slow", "a"} for found in seen] == [True]


def test_a_shared_commit_waits_for_nobody_for_long(store):
    """The slow one took longer than others are let wait: it commits at once, alone."""
    seen = commits(store)
    assert writers(store, [slow, adding("a"), adding("b")]) == [None] * 3
    assert len(seen) >= 2


def test_nothing_is_acknowledged_when_the_shared_transaction_breaks(store, monkeypatch):
    monkeypatch.setattr("everlong.store.turns._LONGEST", 5)

    def breaking(tx):
        add_fact(tx, "broken")
        tx._work._cursor.execute("ROLLBACK")  # as SQLite does by itself when the disk is full
        raise StoreUnavailable("disk is full")

    ended = writers(store, [slow, adding("a"), breaking, adding("after")])
    assert [str(error) for error in ended[:2]] == ["the transaction that several threads shared broke: try again"] * 2
    assert [type(error) for error in ended] == [StoreUnavailable] * 3 + [type(None)]
    assert kept(store) == {"after"}


def test_nothing_is_acknowledged_when_the_shared_commit_fails(store, monkeypatch):
    monkeypatch.setattr("everlong.store.turns._LONGEST", 5)
    do = Sqlite._do

    def failing_commit(cursor, statement):
        if statement == "COMMIT":
            raise StoreUnavailable("disk is full")
        do(cursor, statement)

    monkeypatch.setattr(Sqlite, "_do", staticmethod(failing_commit))
    ended = writers(store, [slow, adding("a")])
    assert [str(error) for error in ended] == ["disk is full"] * 2
    monkeypatch.undo()
    assert kept(store) == set()
    assert writers(store, [adding("later")]) == [None]


def test_closing_commits_what_is_shared(sqlite_url, monkeypatch):
    monkeypatch.setattr("everlong.store.turns._LONGEST", 5)
    store = opened(sqlite_url)
    threads = [threading.Thread(target=writers, args=(store, [slow]))]
    threads[0].start()
    sleep(0.1)
    store.close()
    threads[0].join(30)
    store = opened(sqlite_url)
    assert kept(store) == {"slow"}
    store.close()


def test_a_program_that_locks_the_file_in_its_own_way_is_named(tmp_path):
    driver = Sqlite(tmp_path / "a.db", patience=0.1)
    other = driver._module.connect(tmp_path / "a.db", isolation_level=None)  # two modules in one process share locks
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreUnavailable, match="another program"), driver.writing():
        pass
    other.execute("ROLLBACK")
    with driver.writing():
        pass
    other.close()
    driver.close()


def write_some(url, name, waits):
    store = opened(url)
    worst = 0.0
    for number in range(15):
        began = monotonic()
        with store.write() as tx:
            made = fact(f"{name}-{number}", ANN)
            tx.facts.add(made, indexed(made.content))
        worst = max(worst, monotonic() - began)
    store.close()
    waits.put(worst)


def test_processes_open_a_new_store_and_write_to_it_together(sqlite_url):
    context = multiprocessing.get_context("spawn")
    waits = context.Queue()
    processes = [context.Process(target=write_some, args=(sqlite_url, name, waits)) for name in "abc"]
    for process in processes:
        process.start()
    worst = [waits.get(timeout=60) for _ in processes]
    for process in processes:
        process.join(60)
    assert [process.exitcode for process in processes] == [0, 0, 0]
    assert max(worst) < 5
    store = opened(sqlite_url)
    with store.read() as tx:
        assert tx.facts.list(ANN).total == 45
    store.close()


WORDS = (b"xyzzy", "暗号是芝麻".encode())
"""What every text of Ann's holds, and no other."""


def fill_with_words(store, rounds=30):
    """Ann's records of every kind between Bob's, of lengths that part and join pages, some changed and moved."""
    chance = random.Random(7)
    for number in range(rounds):
        with store.write() as tx:
            for scope, tag, words in ((ANN, "ann", "xyzzy 暗号是芝麻"), (BOB, "bob", "nothing odd 没什么")):
                said = f"{words} {number} " + words[:9] * chance.randrange(1, 400)
                talk, name = replace(scope, session=f"{words} {number}"), f"{tag}{number} {words}"
                made = add_fact(tx, name, scope, content=said, metadata={"w": said}, session=talk.session)
                again = said[: chance.randrange(10, 900)]
                tx.facts.revise(replace(made, content=again, reason=words), expected=1, indexed=indexed(again))
                tx.messages.append(talk, [message(name, talk, content=said)], [indexed(said)])
                tx.profiles.put(profile(talk, attributes={"w": said}), expected=0)
                tx.files.put(file(f"/{name}", scope, said.encode()), expected=0)
                tx.files.put(file(f"/{name}", scope, said[:50].encode()), expected=1)
                tx.jobs.put(job(name, talk, key=name, payload={"w": said}), latest=at(60))
                tx.journal.append(entry(name, scope, reason=said))
                tx.proposals.put(proposal(name, scope, payload={"summary": said}))
                tx.extractions.append(extraction(name, talk, raw=said, error=words))
            if number % 4 == 2:
                tx.erase(Scope(org="acme", user="ann", session=f"xyzzy 暗号是芝麻 {number - 1}"))


def leftovers(folder):
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    return {name for name, data in found.items() if any(word in data for word in WORDS)}


def test_no_byte_of_what_was_erased_is_left_in_any_file(store, sqlite_url, tmp_path):
    fill_with_words(store)
    assert leftovers(tmp_path) == {"everlong.db", "everlong.db-wal"}
    other = opened(sqlite_url)
    with other.read() as tx:
        assert tx.facts.list(ANN).total > 9
    with store.write() as tx:
        tx.erase(ANN)
    assert leftovers(tmp_path) == set()
    with other.read() as tx:
        assert tx.facts.list(ANN).total == 0
        assert tx.facts.list(BOB, limit=99).total == 30
    other.close()


def test_a_reader_of_an_older_state_only_puts_off_the_overwriting(store, sqlite_url, tmp_path, monkeypatch):
    monkeypatch.setattr("everlong.store.sqlite.READERS", 0.05)
    fill_with_words(store, 5)
    other = opened(sqlite_url)
    with other.read() as tx:
        assert tx.facts.list(ANN).total > 0
        began = monotonic()
        with store.write() as writing:
            writing.erase(ANN)
        assert monotonic() - began < 5
        assert tx.facts.list(ANN).total > 0
    assert leftovers(tmp_path)
    with store.write() as tx:
        add_fact(tx, "f", BOB)
    assert leftovers(tmp_path) == set()
    other.close()


def erase_and_die(url):
    store = opened(url)
    reader = opened(url)
    with reader.read() as tx:
        tx.facts.list(ANN)
        with store.write() as writing:
            writing.erase(ANN)
        os.kill(os.getpid(), signal.SIGKILL)


def test_opening_finishes_the_overwriting_of_one_that_was_killed(store, sqlite_url, tmp_path):
    fill_with_words(store, 5)
    store.close()
    process = multiprocessing.get_context("fork").Process(target=erase_and_die, args=(sqlite_url,))
    process.start()
    process.join(60)
    assert leftovers(tmp_path)
    again = opened(sqlite_url)
    assert leftovers(tmp_path) == set()
    again.close()


def test_a_fresh_job_is_not_missed_between_looking_and_waiting(store):
    store.wait(0)
    with store.write() as tx:
        tx.jobs.put(job(), latest=at(60))
    assert store.wait(5) is True
    assert store.wait(0.01) is False


def test_a_conversation_is_erased_with_versions_and_vectors_of_its_facts(store):
    with store.write() as tx:
        first = add_fact(tx, session="talk")
        tx.facts.set_vectors(ANN, "f1", indexed(first.content, model="m", vectors=[[1, 0]]))
        tx.facts.revise(replace(first, confidence=1), expected=1)
        add_fact(tx, "other", Scope(org="acme", user="bob"), session="talk")
    with store.write() as tx:
        counts = tx.erase(TALK)
    assert (counts["facts"], counts["vectors"], counts["revisions"]) == (1, 1, 1)


def test_the_plain_module_does_too(monkeypatch, tmp_path):
    monkeypatch.setattr("everlong.store.sqlite.find_spec", lambda _: None)
    store = opened(f"sqlite:///{Path(tmp_path, 'plain.db')}")
    with store.write() as tx:
        add_fact(tx)
    store.close()
