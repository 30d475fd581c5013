"""What one server erases, no other shows any more: a trace in memory holds the question and the block, so it ends with
what it was made of, whichever process erased that."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from everlong import Scope, open_memory
from everlong.errors import NotFound

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from everlong.memory import Memory, ScopedMemory

ANN = Scope(user="ann", session="s1")
SAID = {"en": "My passport is zanzibar and I live in Rome.", "zh": "我的护照是桑给巴尔，我住在罗马。"}
TOPIC = {"en": "zanzibar", "zh": "桑给巴尔"}


def _topic(ann: ScopedMemory, topic: str) -> None:
    found = ann.forget_preview(topic).mentions
    ann.forget_topic(topic, [each.ref for each in found], erase=True)


WAYS: dict[str, Callable[[Memory, str], object]] = {
    "user": lambda memory, _: memory.at(ANN.home).erase(),
    "conversation": lambda memory, _: memory.at(ANN).erase(),
    "topic": lambda memory, topic: _topic(memory.at(ANN.home), topic),
}


@pytest.mark.parametrize("lang", SAID)
@pytest.mark.parametrize("way", WAYS)
def test_a_trace_in_another_process_ends_with_what_it_shows(tmp_path: Path, way: str, lang: str) -> None:
    settings = {"url": f"sqlite:///{tmp_path / 'm.db'}", "embedder": "none", "worker": "none"}
    with open_memory(**settings) as here, open_memory(**settings) as there:
        here.at(ANN).add([("user", SAID[lang])])
        here.drain()
        seen = there.at(ANN)
        block = seen.context(TOPIC[lang], min_score=0)
        bob = there.at(Scope(user="bob"))
        bob.remember("likes tea")
        other = bob.recall("tea")
        assert block.trace is not None
        assert TOPIC[lang] in seen.explain(block.trace.id).block
        WAYS[way](here, TOPIC[lang])
        with pytest.raises(NotFound):
            seen.explain(block.trace.id)
        assert TOPIC[lang] not in str(seen.traces())
        assert bob.explain(other.trace.id).id == other.trace.id


def test_a_trace_outlives_what_is_only_added(tmp_path: Path) -> None:
    with open_memory(f"sqlite:///{tmp_path / 'm.db'}", embedder="none", worker="none") as memory:
        ann = memory.at(ANN)
        empty = ann.recall("tea").trace
        ann.remember("likes tea")
        full = ann.recall("tea").trace
        ann.remember("likes coffee")
        assert [trace.id for trace in ann.traces()] == [full.id, empty.id]


def test_a_question_that_an_erasure_overtakes_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_memory(f"sqlite:///{tmp_path / 'm.db'}", embedder="none", worker="none") as memory:
        ann = memory.at(ANN)
        ann.remember("likes zanzibar")
        reader = memory.parts.reader
        asked = reader.context

        def overtaken(*args: object, **options: object) -> object:
            found = asked(*args, **options)  # type: ignore[arg-type]
            memory.at(ANN.home).erase()
            return found

        monkeypatch.setattr(reader, "context", overtaken)
        block = ann.context("zanzibar")
        assert block.trace is not None
        with pytest.raises(NotFound):
            ann.explain(block.trace.id)
