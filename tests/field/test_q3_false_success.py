"""Q3: success is told though nothing was stored or removed.

MemTensor/MemOS#1355 (200, nothing stored), nhadaututtheky/neural-memory#209 (delete prints success, deletes nothing),
MemMachine/MemMachine#703 (nothing until five messages), mem0ai/mem0#3696 (a field that is accepted and ignored).
"""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everlong import Scope, open_memory
from everlong.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.memory import Memory


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", embedder="none", worker="none") as opened:
        yield opened


@pytest.mark.parametrize("said", ["I live in Lima.", "我住在利马。"])
def test_stored_known_and_nothing_are_told_apart(memory: Memory, said: str) -> None:
    talk = memory.at(Scope(user="ann", session="s"))
    first = talk.add([("user", said)], idempotency_key="k")
    assert first.status == "queued" and first.job_id and len(first.message_ids) == 1
    again = talk.add([("user", said)], idempotency_key="k")
    assert (again.status, again.message_ids, again.job_id) == ("duplicate", (), "")
    none = talk.add([("tool", "{}")])
    assert none.status == "nothing" and none.ignored[0].reason


@pytest.mark.parametrize("said", ["I live in Lima.", "我住在利马。"])
def test_one_message_is_enough_after_a_flush(memory: Memory, said: str) -> None:
    talk = memory.at(Scope(user="ann", session="s"))
    talk.add([("user", said)])
    assert talk.flush() == 1
    memory.parts.worker.run_due()
    assert memory.at(Scope(user="ann")).facts().total == 1


def test_an_import_counts_only_what_it_stored(memory: Memory) -> None:
    here = memory.at(Scope(user="ann"))
    here.remember("Has a cat 有一只猫")
    out = io.BytesIO()
    here.transfer.export(out)
    assert here.transfer.import_(out).count("new") == 0
    fact = here.facts().items[0]
    here.revise(fact.id, content="Has two cats 有两只猫")
    result = here.transfer.import_(out)
    assert (result.count("new"), result.count("conflicting")) == (0, 1)
    assert result.faults[0].id == fact.id
    with pytest.raises(InvalidInput, match="empty"):
        here.transfer.import_(io.BytesIO(b""))


@pytest.mark.parametrize(
    "arguments",
    [
        ("forget", "fact_unknown", "--user", "ann"),
        ("erase", "--user", "ann"),
        ("import", "none.jsonl", "--user", "ann"),
        ("import", "empty.jsonl", "--user", "ann"),
        ("restore-backup", "empty.jsonl"),
        ("inbox", "approve", "prop_unknown", "--user", "ann"),
    ],
)
def test_a_command_that_did_nothing_does_not_end_well(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    (tmp_path / "empty.jsonl").touch()
    command = [str(Path(sys.executable).parent / "everlong"), *arguments, "--url", f"sqlite:///{tmp_path / 'a.db'}"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        env={"EVERLONG_EMBEDDER": "none", "PATH": ""},
    )
    assert done.returncode != 0
    assert done.stderr.strip()
    assert done.stdout.strip() == ""
