"""The chain over the journal finds what was changed, removed or moved, and stays whole through erasures."""

from __future__ import annotations

import json
import sqlite3
import threading
from typing import TYPE_CHECKING

import pytest

from everlong import Principal, Scope, open_memory
from everlong.errors import AccessDenied, InvalidScope

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from everlong.memory import Memory
    from everlong.records import AuditReport

ACME = Scope(org="acme")
ANN = Scope(org="acme", user="ann")
ROOT = Principal(id="root", role="operator")


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def memory(url: str) -> Iterator[Memory]:
    with open_memory(url, embedder="none", worker="none", audit_chain=True) as opened:
        yield opened


def fill(memory: Memory, scope: Scope = ANN) -> None:
    ann = memory.at(scope)
    ann.remember("Ann works at Acme")
    memory.at(Scope(org=scope.org, user=scope.user, session="s1")).add([("user", "I live in Oslo 我住在奥斯陆.")])
    memory.drain()
    ann.update_profile(sections={"topOfMind": "Acme."})


def report(memory: Memory, org: str = "acme") -> AuditReport:
    return memory.at(Scope(org=org), by=ROOT).verify_journal()


def test_every_change_is_a_link_and_an_untouched_chain_is_whole(memory: Memory) -> None:
    fill(memory)
    with pytest.raises(AccessDenied):
        memory.at(ANN, by=Principal(id="bob")).facts()
    memory.at(ANN).recall("Oslo", trace=True)
    found = report(memory)
    entries = memory.at(ACME, by=ROOT).journal(limit=500).items
    assert found.whole
    assert found.links == sum(entry.kind != "trace" for entry in entries) > 4
    assert any(entry.action == "denied:facts" for entry in entries)
    assert found.erased == 0
    assert len(found.head) == 64


def test_organisations_have_chains_of_their_own(memory: Memory) -> None:
    fill(memory)
    fill(memory, Scope(org="umbrella", user="ann"))
    before = report(memory)
    fill(memory, Scope(user="ann"))
    assert report(memory) == before
    assert report(memory, "umbrella").links > 0
    assert report(memory, "").links > 0
    with pytest.raises(InvalidScope):
        memory.at(ANN, by=ROOT).verify_journal()


TAMPERED = {
    "changed": "UPDATE journal SET \"by\" = 'user:eve' WHERE action = 'update_profile'",
    "changed reason": "UPDATE journal SET reason = 'of no importance' WHERE action = 'add' AND kind = 'fact'",
    "changed payload": "UPDATE journal SET payload = '{\"x\":1}' WHERE action = 'update_profile'",
    "blanked without an order": "UPDATE journal SET reason = '[forgotten]', payload = '{}' WHERE action = 'update_profile'",
    "removed": "DELETE FROM journal WHERE action = 'update_profile'",
    "moved": "UPDATE chain SET number = number + 1000 WHERE number = 2",
    "swapped": "UPDATE chain SET entry = (SELECT entry FROM chain WHERE number = 2) WHERE number = 1",
    "called erased": "UPDATE chain SET erased = 'log_of_nobody' WHERE number = 2",
}


@pytest.mark.parametrize("how", sorted(TAMPERED))
def test_what_was_tampered_with_is_found(how: str, tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    with open_memory(f"sqlite:///{path}", embedder="none", worker="none", audit_chain=True) as memory:
        fill(memory)
        assert report(memory).whole
    with sqlite3.connect(path) as connection:
        assert connection.execute(TAMPERED[how]).rowcount >= 1
    connection.close()
    with open_memory(f"sqlite:///{path}", embedder="none", worker="none", audit_chain=True) as memory:
        found = report(memory)
        assert not found.whole
        assert {finding.fault for finding in found.findings} <= {"changed", "removed", "moved", "erased by nobody"}


def test_forgetting_and_erasing_leave_the_chain_whole(memory: Memory) -> None:
    fill(memory)
    fill(memory, Scope(org="acme", user="bob"))
    ann = memory.at(ANN)
    ann.remember("Ann left Acme", category="goal")
    ann.forget_topic("Acme", ann.forget_preview("Acme").refs, erase=True)
    assert report(memory).whole
    memory.at(Scope(org="acme", user="ann", session="s1")).erase()
    assert report(memory).whole
    ann.erase()
    found = report(memory)
    assert found.whole
    assert found.erased > 3
    memory.at(ACME, by=ROOT).erase()
    last = report(memory)
    assert last.whole
    assert last.links == found.links + 1
    assert last.erased == last.links - 1


def test_many_writers_make_one_chain(memory: Memory) -> None:
    failed: list[BaseException] = []

    def write(number: int) -> None:
        try:
            for turn in range(5):
                memory.at(Scope(org="acme", user=f"u{number % 3}")).remember(f"Fact {number} of turn {turn}")
        except BaseException as error:  # noqa: BLE001 (compared below, in the main thread)
            failed.append(error)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []
    found = report(memory)
    assert found.whole
    assert found.links >= 30


def test_the_journal_is_exported_whole_and_in_order(memory: Memory) -> None:
    fill(memory)
    lines = memory.at(ANN).journal_lines().splitlines()
    entries = [json.loads(line) for line in lines]
    kept = memory.at(ANN).journal(limit=500).items
    assert [entry["id"] for entry in entries] == [entry.id for entry in reversed(kept)]
    assert {"id", "at", "scope", "by", "action", "reason", "before", "after", "payload"} <= set(entries[0])


def test_without_the_setting_there_is_no_chain() -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        fill(memory)
        assert report(memory).links == 0
        assert report(memory).whole
