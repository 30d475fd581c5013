"""What reconciliation promises for every extraction, however hostile; EVERLONG_EXAMPLES sets how many are tried."""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime, timedelta

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everlong.records import (
    CATEGORIES,
    SECTIONS,
    Batch,
    Candidate,
    Evidence,
    Extraction,
    Fact,
    Message,
    Profile,
    Removal,
    Scope,
    Section,
)
from everlong.testing.fakes import CountingIds
from everlong.text import terms
from everlong.write.reconcile import Gates, reconcile

EXAMPLES = settings(
    max_examples=int(os.environ.get("EVERLONG_EXAMPLES", "200")),
    deadline=None,
    derandomize="EVERLONG_EXAMPLES" not in os.environ,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
HOME = Scope(user="ann")
HERE = replace(HOME, session="s")
NOW = datetime(2026, 1, 2, tzinfo=UTC)

SENTENCES = [
    "User lives in Berlin", "User lives in Paris", "user lives in paris.", "User loves jazz", "User hates jazz",
    "User does not love jazz", "User is 30 years old", "User is 31 years old", "Please forget that I love jazz",
    "用户住在北京", "用户住在上海", "用户吃辣", "用户不吃辣", "用户喜欢咖啡", "忘掉咖啡这件事", "Tom manages Ann",
    "Ann manages Tom", "User prefers short answers", "User prefers answers that are short",
]  # fmt: skip
HOSTILE = [
    "",
    " ",
    "\x00",
    "\ud800 lone",
    "None",
    "{}",
    "x" * 3000,
    "\u202e",
    "👩‍👩‍👧",
    "<think>",
    "no",
    "不",
    "9" * 400,
]
sentences = st.sampled_from(SENTENCES)
texts = st.one_of(sentences, sentences, st.sampled_from(HOSTILE), st.text(max_size=30))
numbers = st.one_of(st.floats(0, 1), st.floats(), st.sampled_from([0.69, 0.7, 0.9, 1.0]))
ids = st.sampled_from(["old_0", "old_1", "old_2", "old_3", "other", "invented", "", "\ud800", "x" * 999])


@st.composite
def messages(draw):
    said = draw(
        st.lists(st.tuples(st.sampled_from(["user", "user", "assistant", "tool"]), texts), min_size=1, max_size=5)
    )
    return tuple(
        Message(id=f"m{n}", scope=HOME, session="s", role=role, content=content, created_at=NOW,
                origin="user" if role == "user" else role)
        for n, (role, content) in enumerate(said)
    )  # fmt: skip


@st.composite
def known(draw):
    made = []
    for n in range(draw(st.integers(0, 5))):
        age = timedelta(days=draw(st.integers(0, 900)))
        made.append(
            Fact(
                id=f"old_{n}",
                scope=draw(st.sampled_from([HOME, HOME, HOME, HERE, Scope(user="bob"), Scope()])),
                content=draw(sentences),
                created_at=NOW - age,
                updated_at=NOW - age,
                category=draw(st.sampled_from(CATEGORIES)),
                confidence=draw(st.floats(0.7, 1)),
                pinned=draw(st.booleans()),
                trust=draw(st.sampled_from([0.2, 0.9, 1.0])),
                status=draw(st.sampled_from(["active", "active", "active", "held", "retired"])),
                version=draw(st.integers(1, 9)),
            )
        )
    return tuple(made)


@st.composite
def candidates(draw, content=texts, confidence=numbers):
    said = draw(content)
    quoted = draw(
        st.lists(st.tuples(st.sampled_from(["m0", "m1", "m9", ""]), st.one_of(st.just(said), texts)), max_size=2)
    )
    return Candidate(
        content=said,
        category=draw(st.sampled_from([*CATEGORIES, "", "Goal", "\ud800"])),
        confidence=draw(confidence),
        importance=draw(confidence),
        origin=draw(st.sampled_from(["user", "user", "assistant", "tool", "document", "operator", "import"])),
        evidence=tuple(Evidence(message_id=i, quote=q, session="s") for i, q in quoted),
        session_only=draw(st.booleans()),
        removes=tuple(draw(st.lists(ids, max_size=2))),
    )


extractions = st.builds(
    Extraction,
    candidates=st.lists(candidates(), max_size=6).map(tuple),
    removals=st.lists(st.builds(Removal, fact_id=ids, reason=texts), max_size=4).map(tuple),
    sections=st.dictionaries(st.sampled_from([*SECTIONS, "", "nothing"]), texts, max_size=3),
)
gates = st.builds(
    Gates,
    below=st.sampled_from(["hold", "downweight", "drop"]),
    max_facts=st.integers(1, 5),
    eviction=st.sampled_from(["value", "confidence"]),
    review_categories=st.sampled_from([frozenset(), frozenset({"goal", "preference"})]),
)


def alike(one, other):
    """A cosine as an embedder would give it: near 1 for what says much the same."""
    mine, theirs = set(terms(one)), set(terms(other))
    return 0.99 if 2 * len(mine & theirs) > max(len(mine | theirs), 1) else 0.3


def decide(extraction, said, facts, gate, ids_from="a", cosine=lambda _, __: 0.99):
    profile = Profile(scope=HOME, sections={"topOfMind": Section(summary="Ships the release", updated_at=NOW)})
    batch = Batch(scope=HERE, messages=said, profile=profile, facts=facts, now=NOW)
    near = [[(fact, cosine(c.content, fact.content)) for fact in facts] for c in extraction.candidates]
    return reconcile(extraction, batch, near=near, facts=facts, gates=gate, new_id=CountingIds(label=ids_from)).changes


def after(facts, changes):
    """What is kept once the changes are applied as the store would."""
    state = {fact.id: fact for fact in facts}
    for change in changes:
        if change.old is not None and change.expected is not None:
            assert state[change.old.id].version == change.expected
            state[change.old.id] = replace(change.old, version=change.expected + 1)
        if change.fact is not None and change.kind in {"add", "supersede", "hold"}:
            assert change.fact.id not in state
            state[change.fact.id] = change.fact
        elif change.fact is not None:
            assert state[change.fact.id].version == change.expected
            state[change.fact.id] = replace(change.fact, version=change.expected + 1)
    return state


def touched(changes):
    return [
        (c.old if c.old is not None else c.fact).id for c in changes if c.expected is not None and c.kind != "section"
    ]


@EXAMPLES
@given(extractions, messages(), known(), gates)
def test_nothing_hostile_raises_and_nothing_goes_without_a_reason(extraction, said, facts, gate):
    changes = decide(extraction, said, facts, gate)
    kept = after(facts, changes)
    before = {fact.id: fact for fact in facts}
    assert all(change.reason for change in changes)
    assert len(touched(changes)) == len(set(touched(changes)))
    for fact_id, fact in before.items():
        if kept[fact_id] != fact:
            assert fact.scope in {HOME, HERE} and fact.status != "retired"
            assert kept[fact_id].content == fact.content and kept[fact_id].trust <= fact.trust
        if kept[fact_id].status != fact.status:
            assert kept[fact_id].status == "retired" and kept[fact_id].reason
            successor = kept[fact_id].superseded_by
            assert not successor or kept[successor].status == "active"
            assert not fact.pinned or fact.status == "held" or successor or "forget" in kept[fact_id].reason


@EXAMPLES
@given(extractions, messages(), known(), gates)
def test_what_becomes_active_is_sure_grounded_and_has_room(extraction, said, facts, gate):
    changes = decide(extraction, said, facts, gate)
    kept = after(facts, changes)
    users = [m for m in said if m.role == "user"]
    for fact_id in set(kept) - {fact.id for fact in facts}:
        fact = kept[fact_id]
        if fact.status != "active":
            continue
        assert gate.below == "downweight" or fact.confidence >= gate.confidence_threshold
        assert 0 <= fact.confidence <= 1 and 0 <= fact.importance <= 1
        assert fact.confidence < gate.confidence_threshold or fact.category not in gate.review_categories
        if fact.origin in {"user", "assistant"}:
            assert {e.message_id for e in fact.evidence} <= {m.id for m in users} and fact.evidence
    for scope in (HOME, HERE):
        active = [f for f in kept.values() if f.status == "active" and f.scope == scope]
        settled = [f for f in active if f.pinned or f.supersedes]
        assert len(active) <= max(gate.max_facts, len(settled))
    assert not any(f.status == "active" for f in (c.fact for c in changes if c.kind == "hold" and c.fact))


@EXAMPLES
@given(st.lists(candidates(content=sentences, confidence=st.floats(0, 1)), max_size=4), messages(), known())
def test_the_same_extraction_again_changes_nothing_but_confirmations(proposed, said, facts):
    def grounded(candidate):
        quotes = tuple(Evidence(message_id=m.id, quote=m.content, session="s") for m in said if m.role == "user")
        return replace(candidate, origin="user", removes=(), session_only=False, evidence=quotes[-1:])

    extraction = Extraction(candidates=tuple(map(grounded, proposed)))
    once = after(facts, decide(extraction, said, facts, Gates(), cosine=alike))
    changes = decide(extraction, said, tuple(once.values()), Gates(), ids_from="b", cosine=alike)
    assert {c.kind for c in changes} <= {"confirm", "reject"}
