"""Facts that say the same merged into one, by the same rule as the reconciler's: pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from everlong.records import Change, Evidence
from everlong.write.compare import Meaning, meaning_of
from everlong.write.retention import retired

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    import numpy as np
    from numpy.typing import NDArray

    from everlong.records import Fact

__all__ = ["contradictions", "groups", "merged"]

_EVIDENCE: Final = 20
"""Sources that a merged fact keeps, the earliest first and the latest."""


def groups(
    facts: Sequence[Fact], vectors: Mapping[str, NDArray[np.float32]], duplicate: float
) -> list[tuple[Fact, ...]]:
    """Facts that say the same, the one that survives first: pinned, then of a correction, then the most trusted, the
    most confirmed, the oldest. Each of the others says the same as that very one, never as another that goes, so no
    chain of likenesses takes away what nothing else says."""
    meanings = {fact.id: meaning_of(fact.content) for fact in facts}
    found: list[list[Fact]] = []
    for fact in sorted(facts, key=_rank):
        home = next((g for g in found if _same(g[0], fact, meanings, vectors, duplicate)), None)
        if home is None:
            found.append([fact])
        else:
            home.append(fact)
    return [tuple(group) for group in found if len(group) > 1]


def _rank(fact: Fact) -> tuple[object, ...]:
    return (not fact.pinned, fact.category != "correction", -fact.trust, -fact.confirmations, fact.created_at, fact.id)


def _same(
    one: Fact, other: Fact, meanings: Mapping[str, Meaning], vectors: Mapping[str, NDArray[np.float32]], least: float
) -> bool:
    if one.scope != other.scope or (one.valid_from, one.valid_until) != (other.valid_from, other.valid_until):
        return False
    mine, theirs = meanings[one.id], meanings[other.id]
    if mine.plain == theirs.plain:
        return True
    if one.id not in vectors or other.id not in vectors or float(vectors[one.id] @ vectors[other.id]) < least:
        return False
    changes = mine.changes_value(theirs) or theirs.changes_value(mine)
    return not mine.differs(theirs) and not changes


def merged(group: Sequence[Fact], now: datetime) -> list[Change]:
    """The changes that leave the first of ``group`` with everyone's sources, and retire the others in its place."""
    best, *others = group
    equals = [fact for fact in others if fact.trust >= best.trust]
    sources: dict[tuple[str, str, str], Evidence] = {}
    for fact in (best, *others):
        for evidence in fact.evidence:
            sources.setdefault((evidence.message_id, evidence.quote, evidence.session), evidence)
    kept = list(sources.values())
    seen = [fact.last_used_at for fact in group if fact.last_used_at]
    survivor = replace(
        best,
        confidence=max(fact.confidence for fact in (best, *equals)),
        importance=max(fact.importance for fact in group),
        confirmations=sum(fact.confirmations for fact in group) + len(equals),
        last_used_at=max(seen, default=None),
        evidence=tuple(kept if len(kept) <= _EVIDENCE else kept[:1] + kept[1 - _EVIDENCE :]),
        updated_at=now,
    )
    ids = ", ".join(fact.id for fact in others)
    confirmed = Change(kind="confirm", reason=f"merged with {ids}: the same", fact=survivor, expected=best.version)
    return [confirmed, *(retired(fact, now, f"merged into {best.id}: it says the same", best.id) for fact in others)]


def contradictions(facts: Sequence[Fact]) -> list[tuple[Fact, Fact]]:
    """Pairs of facts, the older first, of which the newer says the opposite or gives another value to the same."""
    meanings = [(fact, meaning_of(fact.content)) for fact in sorted(facts, key=lambda f: (f.created_at, f.id))]
    return [
        (older, newer)
        for place, (older, said) in enumerate(meanings)
        for newer, later in meanings[place + 1 :]
        if said.opposes(later) or said.changes_value(later)
    ]
