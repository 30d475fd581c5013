"""B6: an update deletes first and then fails, and the memory is gone: tickernelz/opencode-mem#116,
moorcheh-ai/memanto#1384."""

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.errors import ModelError
from everlong.testing.fakes import FakeClock, TableEmbedder

CASES = {
    "en": ("User drives an old Volvo", "User rides a red Vespa", "Volvo"),
    "zh": ("用户开一辆旧沃尔沃", "用户骑一辆红色摩托", "沃尔沃"),
}


class Failing(TableEmbedder):
    """An embedder that fails with ``error`` while it is set."""

    error = None

    def embed(self, texts, *, query=False):
        if self.error is not None:
            raise self.error
        return super().embed(texts, query=query)


@pytest.fixture(params=CASES)
def case(request):
    embedder, clock = Failing({}, 256), FakeClock(tick=1.0)
    with build(Settings(url="sqlite://", worker="none"), embedder=embedder, clock=clock) as memory:
        yield memory.at(Scope(user="ann")), embedder, CASES[request.param], memory


def test_an_update_that_fails_leaves_the_fact_as_it_was(case):
    ann, embedder, (old, new, word), _ = case
    before = ann.remember(old).fact
    embedder.error = TimeoutError("no answer")
    with pytest.raises(TimeoutError):
        ann.revise(before.id, content=new)
    assert ann.fact(before.id) == before
    embedder.error = None
    assert before.id in {hit.id for hit in ann.recall(word, kinds=("fact",), min_score=0).hits}
    after = ann.revise(before.id, content=new)
    assert (after.id, after.created_at, after.content) == (before.id, before.created_at, new)
    assert [fact.content for fact in ann.history(before.id)] == [old, new]


def test_a_model_that_is_away_delays_only_the_vector(case):
    ann, embedder, (old, new, _), memory = case
    before = ann.remember(old).fact
    embedder.error = ModelError("away")
    after = ann.revise(before.id, content=new)
    assert after.content == new and after.created_at == before.created_at
    embedder.error = None
    memory.drain()
    assert ann.recall(new, kinds=("fact",)).hits[0].text == new and not ann.jobs()


def test_a_replacement_that_fails_retires_nothing(case):
    ann, embedder, _, _ = case
    before = ann.remember("User lives in Berlin").fact
    embedder.error = TimeoutError("no answer")
    with pytest.raises(TimeoutError):
        ann.remember("User lives in Paris")
    assert ann.facts().items == (before,)
