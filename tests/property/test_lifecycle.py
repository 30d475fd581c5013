"""What upkeep must hold for any facts and any summaries."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from everlong import Scope, text
from everlong.records import Evidence, Fact, Profile, Section
from everlong.write.consolidate import Consolidation, consolidated
from everlong.write.retention import Retention, ended
from everlong.write.review_stale import Review, stale
from everlong.write.rolling import Rolling, rolled
from everlong.write.sweep import groups, merged

NOW = datetime(2026, 6, 1, tzinfo=UTC)
HOME = Scope(user="ann")
SAID = ("User likes tea", "user likes tea.", "User likes no tea", "用户喜欢茶", "用户不喜欢茶", "User has 2 cats", "ok")
ORDER = ("topOfMind", "recentMonths", "earlierContext", "longTermBackground")


@st.composite
def known(draw: st.DrawFn) -> list[Fact]:
    size = draw(st.integers(0, 12))
    days = st.integers(0, 400).map(lambda n: NOW - timedelta(days=n))
    return [
        Fact(
            id=f"f{n}",
            scope=HOME,
            content=draw(st.sampled_from(SAID)),
            created_at=(made := draw(days)),
            updated_at=made,
            pinned=draw(st.booleans()),
            category=draw(st.sampled_from(["preference", "correction", "todo"])),
            trust=draw(st.sampled_from([0.2, 0.9])),
            confidence=draw(st.floats(0, 1)),
            confirmations=draw(st.integers(0, 3)),
            valid_until=draw(st.none() | days),
            evidence=(Evidence(message_id=f"m{n}", quote="q"),),
        )
        for n in range(size)
    ]


@settings(max_examples=150, deadline=None)
@given(known(), st.data())
def test_a_sweep_leaves_one_of_each_group_that_says_what_the_others_said(
    facts: list[Fact], data: st.DataObject
) -> None:
    angle = st.floats(0, 1.5)
    vectors = {f.id: np.array([np.cos(a), np.sin(a)], dtype=np.float32) for f in facts for a in [data.draw(angle)]}
    found = groups(facts, vectors, 0.95)
    ids = [fact.id for group in found for fact in group]
    assert len(ids) == len(set(ids)), "no fact stands in two groups"
    for group in found:
        kept, *gone = merged(group, NOW)
        assert kept.fact is not None and kept.fact.id == group[0].id and kept.fact.status == "active"
        assert (kept.fact.content, kept.fact.trust) == (group[0].content, group[0].trust)
        assert {e.message_id for f in group for e in f.evidence} == {e.message_id for e in kept.fact.evidence}
        assert all(c.kind == "retire" and c.fact is not None and c.fact.superseded_by == group[0].id for c in gone)
        assert group[0].pinned or not any(f.pinned for f in group)
    survivors = [f for f in facts if f.id not in {g.id for group in found for g in group[1:]}]
    assert not groups(survivors, vectors, 0.95), "a second sweep finds nothing"
    assert groups(list(reversed(facts)), vectors, 0.95) == found, "the order of asking does not matter"


@settings(max_examples=100, deadline=None)
@given(known(), st.integers(0, 200), st.integers(1, 200))
def test_pinned_facts_are_neither_expired_nor_reviewed(facts: list[Fact], days: int, silent: int) -> None:
    gone = ended(facts, NOW, Retention(ended=days, categories={"todo": silent}))
    assert all(change.fact is not None and not change.fact.pinned for change in gone)
    old = stale(facts, NOW, Review(days=silent))
    assert not old or len(old) >= 3
    assert not any(fact.pinned or fact.category == "correction" for fact in old)
    assert all(NOW - fact.created_at >= timedelta(days=silent) for fact in old)


sentence = st.sampled_from(["Ann moves to Oslo.", "她在学挪威语。", "She has 3.5 cats!", "Is it late?", "买了一辆车。"])


@settings(max_examples=150, deadline=None)
@given(st.fixed_dictionaries({name: st.tuples(st.lists(sentence, max_size=6), st.integers(0, 500)) for name in ORDER}))
def test_rolling_moves_whole_sentences_and_loses_none_but_the_oldest_of_all(
    told: dict[str, tuple[list[str], int]],
) -> None:
    sections = {
        name: Section(summary=" ".join(said), updated_at=NOW - timedelta(days=days))
        for name, (said, days) in told.items()
    }
    rules = Rolling(characters=40)
    changes = rolled(Profile(scope=HOME, sections=sections), NOW, rules)
    after = {name: section.summary for name, section in sections.items()} | {c.section: c.summary for c in changes}
    assert after["topOfMind"] == "" or "topOfMind" not in {c.section for c in changes} or len(after["topOfMind"]) <= 60
    spoken = {s for name in ORDER for s in told[name][0]}
    written = {after[n][a:b] for n in ORDER for a, b in text.sentences(after[n])}
    assert written <= spoken
    assert all(len(after[name]) <= 40 + 20 for name in {c.section for c in changes})


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=60), st.lists(st.sampled_from(["f0", "f1", "f2", "f9"]), max_size=4))
def test_no_answer_of_a_model_makes_a_surer_or_more_trusted_fact(content: str, ids: list[str]) -> None:
    facts = [
        Fact(
            id=f"f{n}", scope=HOME, content=f"User likes tea {n}", created_at=NOW, updated_at=NOW, confidence=c, trust=t
        )
        for n, (c, t) in enumerate([(0.9, 0.9), (0.6, 0.4), (0.8, 0.9)])
    ]
    for said in (content, "User likes tea 0 and tea 1", " and ".join(f.content for f in facts)):
        answer = json.dumps({"groups": [{"sourceIds": ids, "content": said}] * 2})
        changes = consolidated(answer, facts, NOW, Consolidation(), str)
        for change in changes:
            if change.kind == "supersede" and change.fact is not None:
                sources = [f for f in facts if f.id in change.fact.metadata["consolidated_from"]]
                assert len(sources) >= 2
                assert change.fact.confidence <= min(f.confidence for f in sources)
                assert change.fact.trust == min(f.trust for f in sources)
        assert len([c for c in changes if c.kind == "supersede"]) <= 1, "a source is used once"
