"""Where a record comes from, and how far it is believed, travels with it: nothing that happens to it makes it more than the
least trusted of those who had a hand in its words."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from everlong import Principal, Scope, open_memory
from everlong.memory import Memory
from everlong.records import TRUST

ANN = Scope(user="ann", session="s1")
CODER = Principal(id="coder", role="agent")


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", embedder="none", worker="none") as opened:
        yield opened


@pytest.mark.parametrize(("said", "turned"), [("I drink tea", "Ann drinks rum"), ("我喝茶", "安喝朗姆酒")])
def test_an_agent_that_rewrites_a_users_fact_makes_it_its_own_word(memory: Memory, said: str, turned: str) -> None:
    ann = memory.at(ANN)
    agent = ann.as_seen_by(CODER)
    fact = ann.remember(said).fact
    assert fact is not None and (fact.origin, fact.trust) == ("user", TRUST["user"])
    assert agent.revise(fact.id, importance=0.9).origin == "user"
    changed = agent.revise(fact.id, content=turned)
    assert (changed.origin, changed.trust) == ("assistant", TRUST["assistant"])
    assert [hit.id for hit in ann.recall(turned, min_score=0.0, min_trust=0.5, kinds=["fact"]).hits] == []
    assert ann.revise(fact.id, content=said).trust == TRUST["assistant"]
    assert [each.trust for each in ann.history(fact.id)][:2] == [TRUST["user"]] * 2


@pytest.mark.parametrize("said", ["I am allergic to peanuts.", "我对花生过敏。"])
@pytest.mark.parametrize("origin", ["document", "tool", "import"])
def test_what_is_said_again_by_others_is_believed_no_more(memory: Memory, said: str, origin: str) -> None:
    """Both orders: the less trusted first, and the user first."""
    low = {"role": "user", "content": said, "origin": origin}
    for number, turns in enumerate(([low, ("user", said)], [("user", said), low])):
        ann = memory.at(Scope(user=f"ann{number}"))
        for place, turn in enumerate(turns):
            memory.at(Scope(user=f"ann{number}", session=f"s{place}")).add([turn])
            memory.drain()
        known = ann.facts(status=None).items
        assert known
        for fact in known:
            claimed = {"user"} if fact.trust > TRUST[origin] else {"user", origin}
            sources = {memory_origin(memory, number, each.message_id) for each in fact.evidence}
            assert sources <= claimed, fact


def memory_origin(memory: Memory, number: int, message_id: str) -> str:
    with memory.parts.store.read() as tx:
        return tx.messages.many(Scope(user=f"ann{number}"), [message_id])[message_id].origin


@pytest.mark.parametrize("role", ["assistant", "tool"])
def test_a_caller_cannot_claim_more_trust_than_a_role_has(memory: Memory, role: str) -> None:
    ann = memory.at(ANN)
    ann.add([{"role": role, "content": "I prefer tea 我喜欢茶", "origin": "operator"}, ("user", "Good morning to you")])
    memory.drain()
    assert {message.origin for message in ann.messages()} <= {"user", "assistant"}
    assert all(message.origin == "assistant" for message in ann.messages() if message.role != "user")
    assert not [fact for fact in ann.facts().items if fact.trust > TRUST["assistant"]]
