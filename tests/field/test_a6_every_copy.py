"""A6: a clean-up for which "resembles" is symmetric deletes every copy: doobidoo/mcp-memory-service#1180."""

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.protocols import Indexed
from everlong.records import Candidate, Evidence, Extraction, Fact, Removal
from everlong.testing.fakes import FakeClock, TableEmbedder
from everlong.text import terms

HOME = Scope(user="ann")
COPIES = {"en": "User speaks Portuguese", "zh": "用户会说葡萄牙语"}


class Sweep:
    """An extractor that wants every copy gone, and says the same once more or not."""

    name = "sweep"

    def __init__(self, *, says_again):
        self.says_again = says_again

    def extract(self, batch):
        (message,) = batch.messages
        said = Candidate(
            content=message.content,
            confidence=0.9,
            evidence=(Evidence(message_id=message.id, quote=message.content),),
            removes=tuple(fact.id for fact in batch.facts),
        )
        return Extraction(
            extractor=self.name,
            candidates=(said,) if self.says_again else (),
            removals=tuple(Removal(fact_id=fact.id, reason="duplicate") for fact in batch.facts),
        )


@pytest.mark.parametrize("says_again", [True, False])
@pytest.mark.parametrize("language", COPIES)
def test_no_sweep_of_a_model_removes_the_last_copy(language, says_again):
    content = COPIES[language]
    alike, clock = TableEmbedder({content: (1.0, 0.0)}, 2), FakeClock(tick=1.0)
    made = build(
        Settings(url="sqlite://", worker="none"), embedder=alike, extractor=Sweep(says_again=says_again), clock=clock
    )
    with made as memory:
        with memory.parts.store.write() as tx:
            for number in range(3):
                now = clock()
                copy = Fact(
                    id=f"fact_{number}", scope=HOME, content=content, created_at=now, updated_at=now, confidence=0.9
                )
                tx.facts.add(copy, Indexed(terms=terms(content), model=alike.model, vectors=alike.embed([content])))
        for session in ("s1", "s2"):
            ann = memory.at(Scope(user="ann", session=session))
            ann.add([("user", content)])
            memory.drain()
            active, proposed = memory.at(HOME).facts().items, memory.at(HOME).inbox.list().items
            assert (
                len(active) == 3
                and sum(fact.confirmations for fact in active) <= 2
                and not ({p.kind for p in proposed} - {"removal"})
            )
            assert len({p.target for p in proposed}) == len(proposed)
        for proposal in memory.at(HOME).inbox.list().items[:2]:
            memory.at(HOME).inbox.approve(proposal.id)
        assert [hit.text for hit in memory.at(HOME).recall(content, kinds=("fact",)).hits]
