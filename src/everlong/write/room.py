"""Which facts go when more are known than are kept, by a value that is stated in the reason."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal

from everlong.records import Change

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from everlong.records import Fact

__all__ = ["Eviction", "crowded_out", "turned_away", "value"]

Eviction = Literal["value", "confidence"]


def value(fact: Fact, now: datetime) -> float:
    """0 to 1: confidence .65, confirmations .25 (full at four), use or age .10 (halved each 90 days).

    The weights are a judgement: they let a fact of today with 0.90 outlive an unused one of 0.95 from a year ago.
    """
    days: float = max((now - (fact.last_used_at or fact.created_at)).total_seconds() / 86_400, 0.0)
    return 0.65 * fact.confidence + 0.25 * min(fact.confirmations, 4) / 4 + 0.10 * math.pow(0.5, days / 90)


def crowded_out(
    alive: Sequence[Fact],
    *,
    new: frozenset[str],
    limit: int,
    by: Eviction,
    protected: Sequence[str],
    now: datetime,
) -> list[tuple[Fact, str]]:
    """The facts beyond ``limit``, each with the reason; pinned ones never, ``protected`` categories last.

    By ``value`` what is new (ids in ``new``) goes only when nothing else may, so that a full memory still learns. By
    ``confidence`` the most certain stay, and of equals the oldest, whoever is new: DeerFlow's rule.
    """
    excess = len(alive) - limit
    if excess <= 0:
        return []
    free = [fact for fact in alive if not fact.pinned]
    if by == "confidence":
        free.sort(key=lambda f: (f.created_at, f.id), reverse=True)
        free.sort(key=lambda f: (f.category in protected, f.confidence))
        worth = {f.id: f"confidence {f.confidence:.2f}" for f in free}
    else:
        free.sort(key=lambda f: (f.id in new, f.category in protected, value(f, now), f.created_at, f.id))
        worth = {f.id: f"value {value(f, now):.2f}" for f in free}
    return [
        (fact, f"evicted: {limit} facts are kept and its {worth[fact.id]} was least of what may go")
        for fact in free[:excess]
    ]


def turned_away(change: Change, reason: str) -> Change:
    """A change that would have added a fact for which there is no room: the fact waits for review instead."""
    if change.kind == "supersede" or change.fact is None:
        return Change(kind="reject", reason=reason, candidate=change.candidate)
    return replace(change, kind="hold", fact=replace(change.fact, status="held", reason=reason), reason=reason)
