"""O2: an import lets in what no other door would, or an export loses part of what is kept.

studiomeyer-io/local-memory-mcp#29 (an id ``../x``, confidence 999 and 50,000 characters accepted), mnemosyne-oss/mnemosyne#602
(tables missing after a round trip), agentic-os-org/ANOLISA#952 (lists in metadata dropped).
"""

from __future__ import annotations

import io
import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from everlong import Scope, open_memory
from everlong.errors import EverlongError, InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.memory import ScopedMemory

ANN = Scope(user="ann")
FACT: dict[str, Any] = {
    "type": "fact",
    "id": "f",
    "scope": {"user": "ann"},
    "content": "喜欢茶 and tea",
    "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z",
}
FILE = {**{k: v for k, v in FACT.items() if k != "id"}, "type": "file", "path": "/memories/a.md"}


@pytest.fixture
def ann() -> Iterator[ScopedMemory]:
    with open_memory("sqlite://", embedder="none", worker="none", max_file_bytes=2048, max_files=3) as memory:
        yield memory.at(ANN)


def sealed(*records: dict[str, Any]) -> io.BytesIO:
    head = {"format": "everlong", "version": 1, "scope": {"user": "ann"}, "at": "2026-01-01T00:00:00Z", "kinds": []}
    body = b"".join(json.dumps(each).encode() + b"\n" for each in records)
    end = {"type": "end", "records": {"all": len(records)}, "sha256": sha256(body).hexdigest()}
    return io.BytesIO(json.dumps(head).encode() + b"\n" + body + json.dumps(end).encode() + b"\n")


@pytest.mark.parametrize(
    "wrong",
    [
        {**FACT, "confidence": 999},
        {**FACT, "confidence": -0.1},
        {**FACT, "confidence": "high"},
        {**FACT, "importance": float("nan")},
        {**FACT, "category": "nope"},
        {**FACT, "category": "类别"},
        {**FACT, "content": "A" * 50_000},
        {**FACT, "content": "茶" * 2001},
        {**FACT, "content": " \u200b "},
        {**FACT, "content": ["x"]},
        {**FACT, "id": ""},
        {**FACT, "id": "a\nb"},
        {**FACT, "id": "x" * 513},
        {**FACT, "version": 0},
        {**FACT, "version": 2**70},
        {**FACT, "status": "deleted"},
        {**FACT, "origin": "god"},
        {**FACT, "created_at": "yesterday"},
        {**FACT, "created_at": "2026-01-01T00:00:00"},
        {**FACT, "scope": {"user": "bob"}},
        {**FACT, "scope": {}},
        {**FACT, "scope": {"user": "ann", "planet": "x"}},
        {**FACT, "expiration_date": "2027-01-01"},
        {k: v for k, v in FACT.items() if k != "content"},
        {**FACT, "type": "rumour"},
        {**FILE, "path": "../x"},
        {**FILE, "path": "/memories/../../etc/passwd"},
        {**FILE, "content": "A" * 2049},
        {**FILE, "base64": "AA=="},
        {**FILE, "content": None, "base64": "?"},
    ],
)
def test_what_no_other_door_lets_in_does_not_come_in_here(ann: ScopedMemory, wrong: dict[str, Any]) -> None:
    found = ann.transfer.preview(sealed({**FACT, "id": "good"}, wrong))
    assert (found.count("new"), found.count("invalid"), found.faults[0].line) == (1, 1, 3)
    with pytest.raises(InvalidInput):
        ann.transfer.import_(sealed({**FACT, "id": "good"}, wrong))
    assert ann.facts(status=None).total == 0
    assert ann.files.list() == ()


def test_a_text_that_is_too_long_is_too_long_at_every_door(ann: ScopedMemory) -> None:
    with pytest.raises(EverlongError):
        ann.remember("A" * 2001)
    ann.remember("A" * 2000)
    ann.transfer.import_(sealed({**FACT, "content": "B" * 2000}))


def test_no_more_files_come_in_than_may_be_kept(ann: ScopedMemory) -> None:
    files = [{**FILE, "path": f"/memories/文{n}.md"} for n in range(4)]
    with pytest.raises(InvalidInput, match="max_files"):
        ann.transfer.import_(sealed(*files))
    assert ann.files.list() == ()
    assert ann.transfer.import_(sealed(*files[:3])).count("new") == 3


def test_an_id_is_a_name_and_never_a_path(ann: ScopedMemory) -> None:
    """Ids of other programs are any text; here one names a row and nothing on a disk."""
    ann.transfer.import_(sealed({**FACT, "id": "../x"}))
    assert ann.fact("../x").content == FACT["content"]


def test_trust_is_never_above_what_its_origin_deserves(ann: ScopedMemory) -> None:
    ann.transfer.import_(sealed({**FACT, "origin": "tool", "trust": 1.0}))
    assert ann.fact("f").trust == 0.2


def test_ten_thousand_at_once(ann: ScopedMemory) -> None:
    records = [{**FACT, "id": f"f{n}", "content": f"Fact {n} 事实"} for n in range(10_000)]
    assert ann.transfer.import_(sealed(*records)).count("new") == 10_000
    assert ann.facts(status=None).total == 10_000


def test_metadata_of_every_shape_comes_back(ann: ScopedMemory) -> None:
    odd = {"int": 2**53 + 1, "float": 0.1, "no": False, "none": None, "list": [1, [2]], "in": {"深": {"😀": "e\u0301"}}}
    ann.transfer.import_(sealed({**FACT, "metadata": odd}))
    assert dict(ann.fact("f").metadata) == odd
    out = io.BytesIO()
    ann.transfer.export(out)
    (line,) = [json.loads(each) for each in out.getvalue().splitlines() if b'"type":"fact"' in each]
    assert line["metadata"] == odd
