"""J1, mem0ai/mem0#4985 and open-webui/open-webui#28316: another embedding model is set; writes vanish, calls fail."""

from __future__ import annotations

import numpy as np
import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.errors import ModelError
from everlong.testing.fakes import CountingIds, FakeClock, TableEmbedder
from everlong.text import terms

ANN, BOB = Scope(user="ann"), Scope(user="bob")
TALK = Scope(user="ann", session="s1")
FACTS = [
    "Ann is allergic to peanuts.",
    "Ann plays tennis on Mondays.",
    "用户养了一只叫豆豆的狗。",
    "用户住在上海浦东。",
    "用户喜欢喝乌龙茶。",
]
SAID = [f"line {n} of a talk about gardens 第{n}句关于花园的话" for n in range(70)]


class Dying(TableEmbedder):
    """Texts with the same words are near each other. Fails after ``left`` calls."""

    left = 1_000_000

    def embed(self, texts, *, query=False):
        self.left -= 1
        if self.left < 0:
            raise ModelError("the process was killed")
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        self.embedded.extend(texts)
        vectors = np.stack([sum(self._seeded(term) for term in ("", *terms(text))) for text in texts])
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def old() -> Dying:
    return Dying({}, 48, model="small")


def new() -> Dying:
    return Dying({}, 96, model="large")


@pytest.fixture(params=["sqlite", "postgres"])
def open_with(request, tmp_path):
    url = f"sqlite:///{tmp_path / 'm.db'}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    clock, ids = FakeClock(), CountingIds()
    settings = Settings(url=url, worker="none")
    return lambda embedder: build(settings, embedder=embedder, clock=clock, new_id=ids), clock


@pytest.fixture
def opened(open_with):
    """A function that opens a store which was filled with the old model."""
    start, clock = open_with
    with start(old()) as memory:
        for content in FACTS:
            memory.at(ANN).remember(content)
        memory.at(BOB).remember("Bob drives a blue Volvo.")
        memory.at(TALK).add([("user", text) for text in SAID])
        memory.drain()
        assert places(memory, "small") == set()
    return start, clock


def places(memory, model: str) -> set[Scope]:
    with memory.parts.store.read() as tx:
        return set(tx.index.unembedded(model))


def texts(memory, question: str, kind: str = "fact") -> list[str]:
    return [hit.text for hit in memory.at(ANN).recall(question, min_score=0.0, kinds=(kind,)).hits]


def test_search_by_words_and_every_write_go_on_under_the_new_model(opened):
    start, _ = opened
    with start(new()) as memory:
        assert texts(memory, "peanuts allergic")[0] == FACTS[0]
        assert texts(memory, "豆豆")[0] == FACTS[2]
        assert texts(memory, "第33句", "message")[0] == SAID[33]
        known = {fact.content: fact for fact in memory.at(ANN).facts().items}
        memory.at(ANN).revise(known[FACTS[1]].id, content="Ann plays chess on Mondays.")
        memory.at(ANN).remember("Ann collects stamps.")
        assert texts(memory, "chess")[0] == "Ann plays chess on Mondays."
        assert texts(memory, "stamps")[0] == "Ann collects stamps."
        assert len(memory.at(ANN).facts().items) == 6


def test_vectors_of_two_models_are_never_compared_even_when_they_are_of_one_length(opened):
    start, _ = opened
    with start(Dying({}, 48, model="same length")) as memory:
        assert texts(memory, "peanuts allergic")[0] == FACTS[0]
        with memory.parts.store.read() as tx:
            assert not any(tx.index.rows(ANN, "fact", model="same length").vectors)


def test_reembedding_goes_on_where_it_was_killed_and_ends_with_all(opened):
    start, clock = opened
    dying = new()
    with start(dying) as memory:
        assert memory.reembed() == 2
        dying.left = 1
        memory.drain()
        half = places(memory, "large")
        assert half, "it was killed half-way"
    again = new()
    with start(again) as memory:
        assert memory.reembed() == len(half)
        clock.advance(3600)
        memory.drain()
        assert places(memory, "large") == set()
        assert len(again.embedded) < len(SAID) + len(FACTS) + 1, "what was done is not done again"
        assert memory.reembed() == 0
        assert len(memory.at(ANN).facts().items) == 5
        assert texts(memory, "peanuts allergic")[0] == FACTS[0]


def test_going_back_to_the_old_model_needs_no_work(opened):
    start, _ = opened
    with start(new()) as memory:
        memory.reembed()
        memory.drain()
    with start(old()) as memory:
        assert memory.reembed() == 0
        assert texts(memory, "peanuts allergic")[0] == FACTS[0]
