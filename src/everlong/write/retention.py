"""How long things are kept, and which facts are over: pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from everlong.records import Change, Step

if TYPE_CHECKING:
    from everlong.protocols import Transaction
    from everlong.records import Fact, Scope

__all__ = ["Retention", "ended", "lifetime", "next_purge", "purge", "retired"]

_DAYS: Final = "expected_valid_days"
"""Metadata of one fact: how many days it is expected to hold, as DeerFlow names it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How many days each kind of record is kept; 0 keeps it for good.

    ``messages`` and ``max_messages`` (the newest so many of one user) concern what was extracted already.
    ``extractions`` are records of what models answered, ``traces`` those of questions, ``journal`` is all of it.
    ``retired`` facts and earlier ``versions`` of facts and profiles can be restored until they go. ``ended`` is how long
    a fact whose validity is over can still be asked for before it is retired; ``categories`` retires facts of a
    category that were neither confirmed nor used for so long. One run deletes ``limit`` records of each kind at most.
    """

    messages: int = 0
    max_messages: int = 0
    extractions: int = 90
    traces: int = 30
    journal: int = 0
    retired: int = 0
    versions: int = 0
    ended: int = 30
    categories: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    limit: int = 1000


def purge(tx: Transaction, home: Scope, rules: Retention, now: datetime, *, dry: bool) -> list[Step]:
    """Deletes what is older than the rules keep it, with a line for each kind of which anything went."""
    shelf = tx.retention
    steps = []
    if rules.messages or rules.max_messages:
        before = _ago(now, rules.messages) if rules.messages else None
        keep = rules.max_messages or None
        count = shelf.messages(home, before=before, keep=keep, limit=rules.limit, dry=dry)
        steps.append(Step(kind="purge", count=count, targets=("messages",), reason=_why_messages(rules)))
    plans: tuple[tuple[str, int, Any], ...] = (
        ("facts", rules.retired, shelf.facts),
        ("versions", rules.versions, shelf.versions),
        ("extractions", rules.extractions, shelf.extractions),
        ("journal", rules.journal, shelf.journal),
    )
    for name, days, forget in plans:
        if days:
            count = forget(home, before=_ago(now, days), limit=rules.limit, dry=dry)
            steps.append(Step(kind="purge", count=count, targets=(name,), reason=f"older than {days} days"))
    if rules.traces:
        count = shelf.journal(home, before=_ago(now, rules.traces), limit=rules.limit, traces=True, dry=dry)
        steps.append(Step(kind="purge", count=count, targets=("traces",), reason=f"older than {rules.traces} days"))
    return [step for step in steps if step.count]


def next_purge(tx: Transaction, home: Scope, rules: Retention, now: datetime) -> datetime | None:
    """When the oldest of what is kept for a time will be over, in a day at the soonest; ``None`` if nothing will. So
    the rules hold for a user, too, who never comes back."""
    days = {"messages": rules.messages, "extractions": rules.extractions, "journal": rules.journal}
    ends = [at + timedelta(days=days[name]) for name, at in tx.retention.oldest(home).items() if days[name]]
    return max(min(ends), now + timedelta(days=1)) if ends else None


def _why_messages(rules: Retention) -> str:
    old = f"older than {rules.messages} days" if rules.messages else ""
    many = f"beyond the newest {rules.max_messages}" if rules.max_messages else ""
    return " or ".join(filter(None, (old, many)))


def _ago(now: datetime, days: int) -> datetime:
    return now - timedelta(days=days)


def ended(facts: Sequence[Fact], now: datetime, rules: Retention) -> list[Change]:
    """Retires facts whose validity is over, and those of a category that is kept for a time; pinned ones never."""
    found = []
    for fact in facts:
        reason = "" if fact.pinned else _over(fact, now, rules)
        if reason:
            found.append(retired(fact, now, reason))
    return found


def _over(fact: Fact, now: datetime, rules: Retention) -> str:
    if rules.ended and fact.valid_until and fact.valid_until <= _ago(now, rules.ended):
        return f"expired: it held until {fact.valid_until:%Y-%m-%d}"
    days = rules.categories.get(fact.category, 0)
    if days and last_sign(fact) <= _ago(now, days):
        return f"expired: {fact.category} is kept for {days} days and this was not confirmed or used since"
    return ""


def retired(fact: Fact, now: datetime, reason: str, successor: str = "") -> Change:
    """The change that retires ``fact``; it can be restored."""
    gone = replace(fact, status="retired", retired_at=now, updated_at=now, reason=reason, superseded_by=successor)
    return Change(kind="retire", reason=reason, fact=gone, expected=fact.version)


def last_sign(fact: Fact) -> datetime:
    """When a fact was last learned, confirmed or recalled."""
    return max(fact.created_at, fact.last_used_at or fact.created_at)


def lifetime(fact: Fact, default: int) -> int:
    """Days after which a fact is worth a second look: its own (30 to 1,800, as DeerFlow bounds them), or ``default``."""
    own = fact.metadata.get(_DAYS)
    if isinstance(own, bool) or not isinstance(own, (int, float)):
        return default
    return int(min(max(own, 30), 1800))
