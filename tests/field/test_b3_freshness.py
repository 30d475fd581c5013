"""B3, bytedance/deer-flow#4279: a cache checked by file time and size serves old data when both stay the same."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.testing.fakes import CountingIds, FakeClock

if TYPE_CHECKING:
    from pathlib import Path

    from everlong.memory import Memory

ANN = Scope(user="ann")


def opened(url: str, label: str) -> Memory:
    """A memory whose clock stands still, as on a file system with coarse times."""
    settings = Settings(url=url, embedder="none", worker="none")
    return build(settings, clock=FakeClock(), new_id=CountingIds(label))


def seen(memory: Memory, question: str) -> list[str]:
    return [hit.text for hit in memory.at(ANN).recall(question, kinds=("fact",), min_score=0).hits]


def freeze(folder: Path) -> dict[Path, tuple[int, int]]:
    return {path: (path.stat().st_atime_ns, path.stat().st_mtime_ns) for path in folder.iterdir()}


@pytest.mark.parametrize(
    ("old", "new", "question"),
    [
        ("Ann's dog is called abc", "Ann's dog is called xyz", "What is Ann's dog called?"),
        ("安娜的狗叫阿黄", "安娜的狗叫小白", "安娜的狗叫什么？"),
    ],
)
def test_a_change_of_the_same_size_at_the_same_time_is_seen(tmp_path: Path, old: str, new: str, question: str) -> None:
    url = f"sqlite:///{tmp_path}/memory.db"
    with opened(url, "a") as first, opened(url, "b") as second:
        fact = first.at(ANN).remember(old).fact
        assert fact is not None
        assert seen(first, question) == [old]
        assert seen(second, question) == [old]
        times = freeze(tmp_path)
        second.at(ANN).revise(fact.id, content=new)
        for path, stamps in times.items():
            os.utime(path, ns=stamps)
        assert seen(first, question) == [new]
        assert new in first.at(ANN).context(question).text
        second.at(ANN).forget(fact.id)
        for path, stamps in times.items():
            os.utime(path, ns=stamps)
        assert seen(first, question) == []
        second.at(ANN).remember(old)
        assert seen(first, question) == [old]
        second.at(ANN).erase()
        assert seen(first, question) == []
