"""The three layers of memory as one block needs them: static facts exactly, extracted facts, the latest conversation."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from everlong.errors import NotFound
from everlong.read.compose import Material, shortened
from everlong.read.compress import compress_conversation
from everlong.records import Fact, Message, Omitted

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from everlong.protocols import TokenCounter, Transaction
    from everlong.read.presets import Preset
    from everlong.records import Hit, MemoryFile, Query, Scope

__all__ = ["Latest", "latest", "material"]

_STANDING: Final = 100
"""Corrections, and pinned facts, that a block can hold at most: at five tokens each they fill the smallest budget."""
_FACTS: Final = 500
"""Facts that are looked at where all are weighed by their worth: so many are kept at one scope at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latest:
    """The latest turns within all their limits, oldest first, and those that fell out."""

    turns: tuple[Message, ...] = ()
    omitted: tuple[Omitted, ...] = ()


def latest(
    tx: Transaction, scope: Scope, query: Query, preset: Preset, *, session: str, at: datetime, counter: TokenCounter
) -> Latest:
    """The latest turns of ``session``, or of all conversations, within ``preset``'s number, tokens and age at once.

    A turn that is too long counts as what is shown of it.
    """
    if not preset.max_messages:
        return Latest()
    if session:
        found = tx.messages.tail(replace(scope.home, session=session), limit=preset.max_messages)
    else:
        found = tx.messages.recent(scope, limit=preset.max_messages, since=_before(at, preset.time_window))
    most = preset.max_tokens // 4
    kept = compress_conversation(
        [message for message in found if message.session not in query.exclude_sessions],
        max_messages=preset.max_messages,
        max_tokens=preset.max_tokens,
        time_window=preset.time_window,
        keep_important=False,
        now=at,
        counter=lambda text: counter(shortened(text, most, counter)),
    )
    omitted = tuple(Omitted(what=f"message {each.message.id}", reason=each.reason) for each in kept.dropped)
    return Latest(turns=kept.messages, omitted=omitted)


def _before(at: datetime, window: timedelta) -> datetime:
    """So long before ``at``, or the first time there is."""
    try:
        return at - window
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)


def material(
    tx: Transaction, scope: Scope, preset: Preset, *, hits: Sequence[Hit], recent: Sequence[Message], at: datetime
) -> Material:
    """Everything that a block may be made of."""
    facts = [hit.record for hit in hits if isinstance(hit.record, Fact)]
    if preset.by_worth:
        facts = _by_worth(tx, scope, at)
    elif preset.standing:
        facts += _standing(tx, scope, at)
    return Material(
        profiles=tx.profiles.visible(scope) if preset.profile else (),
        files=_always_loaded(tx, scope, preset.files),
        facts=facts,
        turns=[hit for hit in hits if not isinstance(hit.record, Fact)],
        recent=recent,
    )


def current(fact: Fact, at: datetime) -> bool:
    """Whether a fact's validity is not over at ``at``."""
    return fact.valid_until is None or fact.valid_until > at


def _by_worth(tx: Transaction, scope: Scope, at: datetime) -> list[Fact]:
    """Every fact: pinned ones first, then the surest, then the most important, then the newest."""
    found = tx.facts.list(scope, limit=_FACTS).items
    return sorted(
        (fact for fact in found if current(fact, at)),
        key=lambda fact: (fact.pinned, fact.confidence, fact.importance),
        reverse=True,
    )


def _standing(tx: Transaction, scope: Scope, at: datetime) -> list[Fact]:
    """Corrections and pinned facts, which count whatever is asked; the surest first, then the newest."""
    found = [
        *tx.facts.list(scope, categories=("correction",), limit=_STANDING).items,
        *tx.facts.list(scope, pinned=True, limit=_STANDING).items,
    ]
    return sorted((fact for fact in found if current(fact, at)), key=lambda fact: -fact.confidence)


def _always_loaded(tx: Transaction, scope: Scope, paths: Sequence[str]) -> list[MemoryFile]:
    """The files at ``paths`` and below those that end in ``/``, in that order."""
    found: dict[str, MemoryFile] = {}
    for path in paths:
        below = [info.path for info in tx.files.list(scope.home, prefix=path)] if path.endswith("/") else [path]
        for each in below:
            try:
                found.setdefault(each, tx.files.get(scope.home, each))
            except NotFound:
                continue
    return list(found.values())
