"""What it costs to ask how much waits to be extracted, counted in steps of SQLite's machine."""

from dataclasses import replace

import pytest

from everlong.store import open_store
from everlong.testing import CountingIds, FakeClock
from everlong.testing.samples import TALK, say


def steps(tx, work):
    """How many instructions of the database ``work`` takes."""
    taken = 0

    def count():
        nonlocal taken
        taken += 1
        return 0

    connection = tx.messages._work._cursor.connection
    connection.set_progress_handler(count, 1)
    try:
        work()
    finally:
        connection.set_progress_handler(None, 1)
    return taken


@pytest.fixture
def store(tmp_path):
    made = open_store(f"sqlite:///{tmp_path / 'a.db'}", clock=FakeClock(), new_id=CountingIds())
    yield made
    made.close()


def test_to_add_costs_the_same_however_many_conversations_wait(store):
    costs = []
    for conversations in (5, 300):
        with store.write() as tx:
            for number in range(conversations):
                say(tx, "茶 tea", session=replace(TALK, session=f"{conversations}-{number}"))
        with store.write() as tx:
            asked = replace(TALK, session=f"last-{conversations}")
            say(tx, "a")  # statements are made once
            costs.append(steps(tx, lambda: (say(tx, "b", session=asked), tx.messages.backlog(asked))))  # noqa: B023 - run at once
            assert tx.messages.backlog(asked).messages == 1
    assert costs[1] < 1.5 * costs[0]


def test_to_move_the_watermark_costs_what_was_read(store):
    costs = []
    for conversations in (5, 300):
        with store.write() as tx:
            for number in range(conversations):
                say(tx, "茶 tea", session=replace(TALK, session=f"{conversations}-{number}"))
            session = tx.sessions.get(replace(TALK, session=f"{conversations}-0"))
            costs.append(steps(tx, lambda: tx.sessions.advance(session, extracted=10**6)))  # noqa: B023 - run at once
    assert costs[1] < 1.5 * costs[0]
