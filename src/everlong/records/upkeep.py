"""What upkeep did or would do, and what it thinks of the facts kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from datetime import datetime

    from everlong.records.kept import Scope

StepKind = Literal["purge", "expire", "merge", "roll", "review", "extend", "consolidate", "skip"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing done (or, in a preview, to be done) and why.

    ``targets`` are ids of facts, or names of sections. ``count`` is how many records it touches; a ``skip`` says why
    something was left for the next run.
    """

    kind: StepKind
    reason: str
    targets: tuple[str, ...] = ()
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkept:
    """One run of upkeep at one scope. ``preview`` is true when nothing was changed. ``more`` says that a bound was
    reached and the next run goes on."""

    scope: Scope
    at: datetime
    preview: bool
    steps: tuple[Step, ...] = ()
    more: bool = False


SuggestionKind = Literal["retire", "merge"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Suggestion:
    """Something worth doing about facts: to ``retire`` the targets, or to ``merge`` them into the best of them. Its
    ``id`` stays the same as long as it is about the same facts."""

    id: str
    kind: SuggestionKind
    targets: tuple[str, ...]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueReport:
    """What the facts of one scope are worth: ids of those ``used``, ``never_recalled``, ``outdated``, and pairs that
    are ``contradicted`` (older, newer) or the ``same``. ``questions`` are those whose traces are known, ``answered``
    those that found anything."""

    scope: Scope
    at: datetime
    facts: int
    used: tuple[str, ...] = ()
    never_recalled: tuple[str, ...] = ()
    outdated: tuple[str, ...] = ()
    contradicted: tuple[tuple[str, str], ...] = ()
    same: tuple[tuple[str, ...], ...] = ()
    questions: int = 0
    answered: int = 0
    suggestions: tuple[Suggestion, ...] = ()

    @property
    def hit_rate(self) -> float | None:
        """Share of known questions that found anything, 0 to 1; ``None`` when none is known."""
        return self.answered / self.questions if self.questions else None
