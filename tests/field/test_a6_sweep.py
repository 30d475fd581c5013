"""A6: a clean-up for which "resembles" is symmetric deletes every copy: doobidoo/mcp-memory-service#1180.

Here upkeep sweeps copies that are stored already, in one go, with a fault in the midst, and along chains of likeness."""

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.errors import StoreError
from everlong.protocols import Indexed
from everlong.records import Fact
from everlong.store.facts import Facts
from everlong.testing.fakes import FakeClock, TableEmbedder
from everlong.text import terms

HOME = Scope(user="ann")
COPIES = {
    "en": ("User speaks Portuguese", "The user is a speaker of Portuguese", "User talks in Portuguese"),
    "zh": ("用户会说葡萄牙语", "用户能讲葡萄牙语", "葡萄牙语用户会说"),
}


def opened(vectors):
    embedder = TableEmbedder(vectors, 2)
    memory = build(Settings(url="sqlite://", worker="none"), embedder=embedder, clock=FakeClock(tick=1.0))
    return memory, embedder


def keep(memory, embedder, fact_id, content, **changes):
    now = memory.parts.clock()
    fact = Fact(id=fact_id, scope=HOME, content=content, created_at=now, updated_at=now, **changes)
    row = Indexed(terms=terms(content), model=embedder.model, vectors=embedder.embed([content]))
    with memory.parts.store.write() as tx:
        tx.facts.add(fact, row)


def alive(memory):
    return [fact.id for fact in memory.at(HOME).facts().items]


@pytest.mark.parametrize("language", COPIES)
def test_one_of_equal_facts_stays_with_everyones_sources(language):
    content = COPIES[language][0]
    memory, embedder = opened({content: (1, 0)})
    with memory:
        keep(memory, embedder, "f1", content, confidence=0.7)
        keep(memory, embedder, "f2", content, confidence=0.9, confirmations=2)
        keep(memory, embedder, "f3", content, confidence=0.8)
        memory.at(HOME).upkeep.run()
        assert alive(memory) == ["f2"], "the most confirmed stays"
        assert {memory.at(HOME).fact(i).superseded_by for i in ("f1", "f3")} == {"f2"}
        assert memory.at(HOME).fact("f2").confirmations == 4
        assert memory.at(HOME).upkeep.run().steps == ()
        assert [hit.text for hit in memory.at(HOME).recall(content, kinds=("fact",)).hits] == [content]


@pytest.mark.parametrize("language", COPIES)
def test_a_fault_in_the_midst_leaves_all_and_a_second_run_ends_at_one(language, monkeypatch):
    content = COPIES[language][0]
    memory, embedder = opened({content: (1, 0)})
    with memory:
        for number in (1, 2, 3):
            keep(memory, embedder, f"f{number}", content)
        real, calls = Facts.revise, []

        def faulty(self, fact, **given):
            calls.append(fact.id)
            if len(calls) == 3:
                raise StoreError("the disk is full")
            return real(self, fact, **given)

        monkeypatch.setattr(Facts, "revise", faulty)
        with pytest.raises(StoreError):
            memory.at(HOME).upkeep.run()
        assert alive(memory) == ["f3", "f2", "f1"], "half a merge is none"
        memory.at(HOME).upkeep.run()
        assert alive(memory) == ["f1"], "the oldest stays"


@pytest.mark.parametrize("language", COPIES)
def test_a_chain_of_likeness_takes_away_nothing_that_is_said_nowhere_else(language):
    """a ~ b and b ~ c, but a is not like c: c may go into b or stay, never into a."""
    first, middle, last = COPIES[language]
    memory, embedder = opened({first: (1, 0), middle: (0.955, 0.296), last: (0.83, 0.56)})
    with memory:
        for number, content in enumerate((first, middle, last)):
            keep(memory, embedder, f"f{number}", content)
        memory.at(HOME).upkeep.run()
        assert "f0" in alive(memory) and len(alive(memory)) > 1
        for gone in memory.at(HOME).facts(status="retired").items:
            assert gone.superseded_by in alive(memory) and (gone.id, gone.superseded_by) != ("f2", "f0")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Deploying on Friday is allowed", "Deploying on Friday is not allowed"),
        ("用户吃辣", "用户不吃辣"),
        ("User has 2 cats", "User has 3 cats"),
        ("User's brother is Tom", "User's brother is Tim"),
        ("用户住在北京", "用户住在上海"),
    ],
)
def test_likeness_alone_merges_nothing_that_differs(one, other):
    memory, embedder = opened({one: (1, 0), other: (1, 0)})
    with memory:
        keep(memory, embedder, "f1", one)
        keep(memory, embedder, "f2", other)
        memory.at(HOME).upkeep.run()
        assert len(alive(memory)) == 2


@pytest.mark.parametrize("content", [texts[0] for texts in COPIES.values()])
def test_what_is_pinned_or_trusted_more_or_true_at_another_time_is_not_lost(content):
    memory, embedder = opened({content: (1, 0)})
    with memory:
        now = memory.parts.clock()
        keep(memory, embedder, "tool", content, origin="tool", trust=0.2, confirmations=9, confidence=1.0)
        keep(memory, embedder, "said", content, confidence=0.7)
        keep(memory, embedder, "then", content, valid_from=now)
        keep(memory, embedder, "pinned", content, pinned=True)
        memory.at(HOME).upkeep.run()
        assert set(alive(memory)) == {"pinned", "then"}
        assert memory.at(HOME).fact("pinned").pinned
