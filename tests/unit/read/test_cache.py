"""Equal questions are answered from memory until something changes, in whatever process."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from everlong import Scope, open_memory
from everlong.read.reader import Reader
from everlong.records import Query
from everlong.search import BucketIndex
from everlong.testing.fakes import TableEmbedder
from everlong.text import estimate_tokens
from tests.unit.read.desk import ANN, NOW, Desk


def test_an_equal_question_is_answered_again_without_search() -> None:
    desk = Desk()
    desk.know("Ann keeps bees")
    first, second = desk.ask("bees"), desk.ask("bees")
    assert second.hits == first.hits
    assert second.trace.considered == first.trace.considered
    assert second.trace.id != first.trace.id
    assert list(second.trace.milliseconds) == ["known"]
    for other in (desk.ask("bees", limit=3), desk.ask("bees", scope=Scope(user="bob")), desk.ask("bees", at=NOW)):
        assert "known" not in other.trace.milliseconds


@pytest.mark.parametrize(("question", "text"), [("bees", "Ann sold the bees"), ("蜜蜂", "安妮卖掉了蜜蜂")])
def test_a_write_is_seen_at_once(question: str, text: str) -> None:
    desk = Desk()
    kept = desk.know(text)
    wider = desk.know(f"everyone: {text}", scope=Scope())
    assert len(desk.ask(question).hits) == 2
    said = desk.say(text)
    assert {hit.id for hit in desk.ask(question).hits} == {kept.id, wider.id, said.id}
    with desk.store.write() as tx:
        tx.facts.revise(replace(kept, status="retired"), expected=kept.version)
        tx.facts.revise(replace(wider, content="nothing"), expected=wider.version, indexed=desk.indexed("x", "x"))
    assert [hit.id for hit in desk.ask(question).hits] == [said.id]
    with desk.store.write() as tx:
        tx.erase(ANN)
    assert not desk.ask(question).hits


def test_an_answer_grows_old() -> None:
    desk = Desk()
    desk.know("Ann keeps bees", valid_until=NOW + timedelta(seconds=4))
    assert desk.ask("bees").hits
    desk.clock.advance(6)
    assert not desk.ask("bees").hits
    desk.clock.advance(-60)
    assert "known" not in desk.ask("bees").trace.milliseconds, "a clock that went back"


def test_an_answer_without_the_embedder_is_not_kept() -> None:
    class Away(TableEmbedder):
        away = True

        def embed(self, texts, *, query=False):
            from everlong.errors import ModelError

            if query and self.away:
                raise ModelError("away")
            return super().embed(texts, query=query)

    embedder = Away({"bees": [1.0, 0.0], "insects with stings": [1.0, 0.0]}, 2)
    desk = Desk(embedder)
    desk.know("insects with stings")
    assert not desk.ask("bees").hits
    embedder.away = False
    assert desk.ask("bees").hits


def test_questions_with_lists_are_answered_anew() -> None:
    desk = Desk()
    desk.know("Ann keeps bees")
    query = Query(text="bees", kinds=("fact",), categories=["context"])  # type: ignore[arg-type]
    assert desk.reader.recall(ANN, query).hits == desk.reader.recall(ANN, query).hits


def test_another_process_writes() -> None:
    desk = Desk()
    other = Reader(
        store=desk.store,
        index=BucketIndex(model="", dimensions=0),
        embedder=None,
        counter=estimate_tokens,
        clock=desk.clock,
        new_id=desk.ids,
    )
    desk.know("Ann keeps bees")
    assert len(other.recall(ANN, Query(text="bees")).hits) == 1
    desk.know("Ann sells bees")
    assert len(other.recall(ANN, Query(text="bees")).hits) == 2


def test_nothing_erased_stays_in_memory() -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        ann = memory.at(Scope(user="ann"))
        ann.remember("My garden has bees")
        memory.at(Scope(user="ann", session="s")).recall("bees")
        ann.recall("bees")
        ann.erase()
        assert not memory.parts.reader._answers._kept
