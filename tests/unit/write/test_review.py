"""The inbox: what waits is invisible until a person approves it, and each decision is carried out once."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from everlong import Principal, Scope, open_memory
from everlong.errors import AccessDenied, Conflict, EmptyText, NotFound
from everlong.protocols import Indexed
from everlong.records import Fact, Proposal
from everlong.text import terms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.memory import Memory, ScopedMemory

HOME = Scope(user="ann")
THEN = datetime(2026, 3, 1, tzinfo=UTC)


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", embedder="none", worker="none") as opened:
        yield opened


@pytest.fixture
def ann(memory: Memory) -> ScopedMemory:
    return memory.at(HOME)


def hold(memory: Memory, content: str, *, supersedes: str = "", scope: Scope = HOME) -> Proposal:
    new_id = memory.parts.new_id
    fact = Fact(
        id=new_id("fact"),
        scope=scope,
        content=content,
        created_at=THEN,
        updated_at=THEN,
        status="held",
        confidence=0.5,
        supersedes=supersedes,
    )
    return put(memory, "fact", fact.id, scope=scope, fact=fact)


def put(memory: Memory, kind: str, target: str, *, scope: Scope = HOME, fact: Fact | None = None, **payload: str):
    with memory.parts.store.write() as tx:
        if fact is not None:
            tx.facts.add(fact, Indexed(terms=terms(fact.content)))
        return tx.proposals.put(
            Proposal(
                id=memory.parts.new_id("prop"),
                scope=scope,
                kind=kind,
                target=target,
                reason="confidence 0.50 is below 0.70",
                by="extractor:test",
                created_at=THEN,
                payload=payload,
            )
        )


@pytest.mark.parametrize("content", ["Ann may move to Beijing", "安可能要搬去北京"])
def test_held_is_invisible_until_approved(memory: Memory, ann: ScopedMemory, content: str) -> None:
    proposal = hold(memory, content)
    assert not ann.recall(content).hits
    assert ann.context(content).text == ""
    assert [p.target for p in ann.inbox.list().items] == [proposal.target]
    fact = ann.inbox.approve(proposal.id)
    assert fact.status == "active"
    assert [hit.text for hit in ann.recall(content).hits] == [content]
    assert not ann.inbox.list().items
    entry = ann.journal(action="approve").items[0]
    assert (entry.by, entry.target, entry.after) == ("user:ann", fact.id, 2)


def test_new_wording_is_what_is_found(memory: Memory, ann: ScopedMemory) -> None:
    proposal = hold(memory, "Ann may move to Beijing")
    ann.inbox.approve(proposal.id, content="Ann moves to Shanghai in May")
    assert not ann.recall("Beijing").hits
    assert [hit.text for hit in ann.recall("Shanghai").hits] == ["Ann moves to Shanghai in May"]


def test_wording_of_nothing_is_refused_and_the_proposal_still_waits(memory: Memory, ann: ScopedMemory) -> None:
    proposal = hold(memory, "Ann may move to Beijing")
    with pytest.raises(EmptyText):
        ann.inbox.approve(proposal.id, content=" \u200b ")
    assert [p.id for p in ann.inbox.list().items] == [proposal.id]


def test_approval_retires_what_the_fact_replaces(memory: Memory, ann: ScopedMemory) -> None:
    old = ann.remember("Ann lives in Paris").fact
    new = ann.inbox.approve(hold(memory, "Ann lives in Rome", supersedes=old.id).id)
    gone = ann.fact(old.id)
    assert (gone.status, gone.superseded_by) == ("retired", new.id)
    assert [f.content for f in ann.facts().items] == ["Ann lives in Rome"]


def test_rejected_is_kept_in_history_but_never_shown(memory: Memory, ann: ScopedMemory) -> None:
    proposal = hold(memory, "Ann may move to Beijing")
    ann.inbox.reject(proposal.id, reason="only a joke")
    assert not ann.recall("Beijing").hits
    assert (ann.fact(proposal.target).status, ann.fact(proposal.target).reason) == ("retired", "only a joke")
    assert ann.journal(action="reject").items[0].reason == "only a joke"
    with pytest.raises(NotFound):
        ann.inbox.approve(proposal.id)


def test_a_removal_removes_when_approved_and_not_before(memory: Memory, ann: ScopedMemory) -> None:
    fact = ann.remember("Ann speaks Portuguese").fact
    proposal = put(memory, "removal", fact.id)
    assert ann.recall("Portuguese").hits
    assert ann.inbox.approve(proposal.id).status == "retired"
    assert not ann.recall("Portuguese").hits


def test_a_summary_is_rewritten_when_approved(memory: Memory, ann: ScopedMemory) -> None:
    ann.update_profile(sections={"topOfMind": "The garden."})
    proposal = put(memory, "section", "topOfMind", summary="The new kitchen.")
    ann.inbox.approve(proposal.id)
    assert ann.profile().sections["topOfMind"].summary == "The new kitchen."


def test_what_changed_meanwhile_is_a_conflict_and_nothing_changes(memory: Memory, ann: ScopedMemory) -> None:
    fact = ann.remember("Ann speaks Portuguese").fact
    proposal = put(memory, "removal", fact.id)
    ann.forget(fact.id)
    with pytest.raises(Conflict):
        ann.inbox.approve(proposal.id)
    assert [p.id for p in ann.inbox.list().items] == [proposal.id]


def test_agents_may_look_but_not_decide_and_others_see_nothing(memory: Memory, ann: ScopedMemory) -> None:
    proposal = hold(memory, "Ann may move to Beijing")
    agent = memory.at(HOME, by=Principal(id="coder", role="agent"))
    assert agent.inbox.list().total == 1
    for decide in (agent.inbox.approve, agent.inbox.reject):
        with pytest.raises(AccessDenied):
            decide(proposal.id)
    bob = memory.at(Scope(user="bob"))
    assert bob.inbox.list().total == 0
    with pytest.raises(NotFound):
        bob.inbox.approve(proposal.id)
    assert ann.inbox.list().total == 1
