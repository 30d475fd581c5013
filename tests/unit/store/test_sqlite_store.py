"""What only SQLite can show: settings, turns between threads and processes, places that cannot be."""

import multiprocessing
import threading
from dataclasses import replace
from pathlib import Path
from time import monotonic, sleep

import pytest

from everlong.errors import ConfigError, InvalidInput, StoreError, StoreUnavailable
from everlong.records import Scope
from everlong.store import open_store
from everlong.store.sqlite import Sqlite, Turns
from everlong.testing import CountingIds, FakeClock
from everlong.testing.samples import ANN, TALK, add_fact, at, fact, indexed, job


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
    turns, order, threads = Turns(None, 10), [], []

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


def test_a_turn_that_does_not_come_in_time_is_given_up(tmp_path):
    lock = tmp_path / "lock"
    ours, theirs = Turns(lock, 0.1), Turns(lock, 0.1)
    with ours.turn():
        with pytest.raises(StoreUnavailable, match="another process"), theirs.turn():
            pass
        failed = []

        def write():
            with pytest.raises(StoreUnavailable, match="a thread"), ours.turn():
                pass
            failed.append(True)

        thread = threading.Thread(target=write)
        thread.start()
        thread.join()
        assert failed == [True]
    sleep(0.05)
    with theirs.turn(), Turns(None, 0.1).turn():
        pass


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


def test_erased_words_are_not_left_in_the_files(sqlite_url, tmp_path):
    store = opened(sqlite_url)
    with store.write() as tx:
        add_fact(tx, content="The password is xyzzy-plugh.")
    with store.write() as tx:
        assert tx.erase(ANN)["facts"] == 1
    store.close()
    assert not [path for path in tmp_path.iterdir() if b"xyzzy" in path.read_bytes()]


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
