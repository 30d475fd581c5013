"""J3, mem0ai/mem0#5245 and codecoradev/uteke#1273: an embedding model that fails for some texts loses them silently."""

from __future__ import annotations

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.errors import ModelError
from everlong.testing.fakes import CountingIds, FakeClock, TableEmbedder
from everlong.testing.model_server import ModelServer

ANN = Scope(user="ann")
FACTS = [
    "Ann is allergic to peanuts.",
    "Ann plays tennis on Mondays.",
    "Ann's sister is called Zoe.",
    "用户养了一只叫豆豆的狗。",
    "用户住在上海浦东。",
    "用户喜欢喝乌龙茶。",
]
REFUSED = {FACTS[1], FACTS[4]}


class Failing(TableEmbedder):
    """Fails for every call that holds a text of ``refused``; ``"*"`` refuses all, ``broken`` gives what is no answer."""

    def __init__(self) -> None:
        super().__init__({}, 32)
        self.refused: set[str] = set()

    def embed(self, texts, *, query=False):
        if "*" in self.refused or self.refused & set(texts):
            raise ModelError("the embedding endpoint failed: 500")
        return super().embed(texts, query=query)


@pytest.fixture(params=["sqlite", "postgres"])
def memory(request, tmp_path):
    url = f"sqlite:///{tmp_path / 'm.db'}" if request.param == "sqlite" else request.getfixturevalue("postgres_url")
    embedder, clock = Failing(), FakeClock()
    settings = Settings(url=url, worker="none")
    with build(settings, embedder=embedder, clock=clock, new_id=CountingIds()) as opened:
        yield opened, embedder, clock


def pending(memory) -> set[str]:
    with memory.parts.store.read() as tx:
        return {fact.content for fact in tx.facts.unembedded(ANN, memory.parts.embedder.model, limit=100)}


def found(memory, text: str) -> set[str]:
    hits = memory.at(ANN).recall(text, min_score=0.0, kinds=("fact",)).hits
    return {hit.text for hit in hits}


@pytest.mark.parametrize("refused", [REFUSED, {"*"}], ids=["two of six", "all"])
def test_every_fact_is_stored_and_found_by_its_words_and_gets_its_vector_later(memory, refused):
    opened, embedder, clock = memory
    embedder.refused = set(refused)
    for content in FACTS:
        opened.at(ANN).remember(content)
    assert {fact.content for fact in opened.at(ANN).facts().items} == set(FACTS)
    opened.drain()
    missing = set(FACTS) if "*" in refused else set(refused)
    assert pending(opened) == missing
    assert opened.status().waiting == 1, "the work that is left is seen"
    for content in FACTS:
        assert content in found(opened, content)
    embedder.refused = set()
    clock.advance(3600)
    opened.drain()
    assert pending(opened) == set()
    assert opened.status().waiting == 0
    with opened.parts.store.read() as tx:
        rows = tx.index.rows(ANN, "fact", model=embedder.model)
    assert all(vector is not None for vector in rows.vectors)


def test_a_text_that_always_fails_holds_up_no_other_message(memory):
    opened, embedder, clock = memory
    talk = Scope(user="ann", session="s1")
    said = [f"message number {n} about tea 第{n}条消息" for n in range(80)]
    embedder.refused = {"*"}
    opened.at(talk).add([("user", text) for text in said])
    embedder.refused = {said[7]}
    clock.advance(3600)
    opened.drain()
    with opened.parts.store.read() as tx:
        left = tx.messages.unembedded(ANN, embedder.model, limit=100)
    assert [message.content for message in left] == [said[7]]
    assert opened.at(talk).recall(said[7], min_score=0.0, kinds=("message",)).hits[0].text == said[7]


@pytest.mark.parametrize("broken", [[], [0.0] * 8, [float("nan")] * 8], ids=["nothing", "zero", "nan"])
def test_an_endpoint_that_answers_with_no_vector_loses_nothing(tmp_path, broken):
    openai = pytest.importorskip("everlong.models.openai", reason="needs everlong[openai]")
    answers = dict.fromkeys(REFUSED, broken)
    with ModelServer(vector=lambda text: answers.get(text, [1.0, *map(float, range(7))])) as server:
        embedder = openai.OpenAIEmbedder("m", base_url=server.url, dimensions=8, max_retries=0)
        clock, settings = FakeClock(), Settings(url=f"sqlite:///{tmp_path / 'm.db'}", worker="none")
        with build(settings, embedder=embedder, clock=clock, new_id=CountingIds()) as opened:
            for content in sorted(REFUSED):
                opened.at(ANN).remember(content)
            opened.drain()
            assert pending(opened) == REFUSED
            assert {fact.content for fact in opened.at(ANN).facts().items} == REFUSED
            answers.clear()
            clock.advance(3600)
            opened.drain()
            assert pending(opened) == set()
