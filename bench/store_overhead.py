"""What the store adds to the statements it sends: each path through the store against plain SQL on one driver.

The statements are recorded while the store runs, then repeated by hand on a copy with the same settings, in turns.
Prints a table, or JSON with ``--json``. Target: at most twice plain SQL.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from everlong.protocols import Indexed
from everlong.records import Job, Message, Scope
from everlong.store.engine import SqlStore
from everlong.store.sqlite import Sqlite
from everlong.testing import CountingIds, FakeClock
from everlong.testing.samples import at, fact, indexed

HOME = Scope(org="acme", user="ann")
TALK = Scope(org="acme", user="ann", session="talk")


class Recorder:
    """A cursor that also notes what it was asked."""

    def __init__(self, cursor: Any, log: list[tuple[str, Any]]) -> None:
        self._cursor, self._log = cursor, log

    def execute(self, text: str, values: Any = ()) -> Any:
        self._log.append((text, values))
        return self._cursor.execute(text, values)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._cursor, name)


class Recording(Sqlite):
    """SQLite whose transactions can be recorded."""

    log: list[tuple[str, Any]] | None = None

    @contextmanager
    def reading(self) -> Any:
        with super().reading() as cursor:
            yield cursor if self.log is None else Recorder(cursor, self.log)

    @contextmanager
    def writing(self) -> Any:
        with super().writing() as cursor:
            yield cursor if self.log is None else Recorder(cursor, self.log)


def capture(store: SqlStore, number: int) -> None:
    said = [
        Message(
            id=f"m{number}-{i}", scope=HOME, session="talk", role="user", content="I like green tea.", created_at=at(0)
        )
        for i in range(2)
    ]
    words = Indexed(terms=("like", "green", "tea"))
    job = Job(id=f"j{number}", kind="extract", key="talk", scope=TALK, run_after=at(30), first_at=at(0))
    with store.write() as tx:
        tx.messages.append(TALK, said, [words, words])
        tx.jobs.put(job, latest=at(60))


def recall(store: SqlStore, number: int) -> None:
    with store.read() as tx:
        tx.index.revisions(TALK, ("fact", "message"))
        tx.facts.many(TALK, [f"f{(number + i) % 100}" for i in range(5)])
        tx.messages.many(TALK, [f"m{(number + i) % 100}-0" for i in range(5)])


def plainly(connection: Any, begin: str, end: str, log: list[tuple[str, Any]]) -> None:
    cursor = connection.cursor()
    cursor.execute(begin)
    for text, values in log:
        cursor.execute(text, values)
        cursor.fetchall()
    cursor.execute(end)
    cursor.close()


def renamed(log: list[tuple[str, Any]], number: int) -> list[tuple[str, Any]]:
    """The same statements for new rows."""
    fresh = {"id": lambda v: f"{v}-{number}", "v0": lambda v: f"{v}-{number}", "v1": lambda v: f"{v}-{number}"}
    return [(t, {k: fresh[k](v) if k in fresh else v for k, v in values.items()}) for t, values in log]


def measure(rounds: int, folder: Path) -> dict[str, dict[str, float]]:
    driver = Recording(folder / "bench.db")
    store = SqlStore(driver, clock=FakeClock(), new_id=CountingIds())
    with store.write() as tx:
        for i in range(100):
            tx.facts.add(fact(f"f{i}", HOME), indexed("I like green tea."))
    for i in range(100):
        capture(store, i)
    plain = driver._connect()
    numbers = count(1000)
    answers = {}
    for name, path, begin, end in (
        ("capture", capture, "BEGIN IMMEDIATE", "COMMIT"),
        ("recall", recall, "BEGIN", "ROLLBACK"),
    ):
        ours, theirs = [], []
        for _ in range(rounds):
            number = next(numbers)
            driver.log = log = []
            path(store, number)
            driver.log = None
            repeated = renamed(log, number) if name == "capture" else log
            began = perf_counter()
            path(store, number + 10**6)
            middle = perf_counter()
            plainly(plain, begin, end, repeated)
            ours.append(middle - began)
            theirs.append(perf_counter() - middle)
        a, b = median(ours) * 1e6, median(theirs) * 1e6
        answers[name] = {"store_us": round(a, 1), "plain_us": round(b, 1), "ratio": round(a / b, 2)}
    plain.close()
    store.close()
    return answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--rounds", type=int, default=500)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        answers = measure(given.rounds, Path(folder))
    if given.json:
        json.dump(answers, sys.stdout, indent=1)
        return
    print(f"{'path':10}{'store µs':>12}{'plain µs':>12}{'ratio':>8}")
    for name, row in answers.items():
        print(f"{name:10}{row['store_us']:12}{row['plain_us']:12}{row['ratio']:8}")


if __name__ == "__main__":
    main()
