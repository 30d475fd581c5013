"""What is proposed against what is known: one decision with a reason for every candidate, removal and section.

Pure: the same arguments give the same changes, but for the ids of new facts.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Literal

from everlong import text
from everlong.records import (
    CATEGORIES,
    TRUST,
    Batch,
    Candidate,
    Change,
    ChangeSet,
    Evidence,
    Extraction,
    Fact,
    Message,
    Origin,
    Removal,
)
from everlong.write.compare import Meaning, junk, meaning_of
from everlong.write.room import Eviction, crowded_out, turned_away
from everlong.write.summaries import decide_section
from everlong.write.wish import Wish

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everlong.protocols import NewId

__all__ = ["Gates", "reconcile"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """What a candidate must pass.

    ``confidence_threshold``: 0 to 1, DeerFlow's default. ``below``: what happens to less certain candidates: kept
    for review, stored with less importance, or rejected. ``max_facts``: active facts at one scope.
    ``duplicate``: cosine from which two statements say the same, calibrated per embedding model (the default is
    the vector design's). ``protected`` categories are evicted last; ``eviction`` says by what the others go.
    Facts of ``review_categories`` always wait for a person, however certain they are.
    """

    confidence_threshold: float = 0.7
    below: Literal["hold", "downweight", "drop"] = "hold"
    max_facts: int = 100
    duplicate: float = 0.92
    categories: tuple[str, ...] = CATEGORIES
    protected: tuple[str, ...] = ("correction",)
    eviction: Eviction = "value"
    review_categories: frozenset[str] = frozenset()


def reconcile(
    extraction: Extraction,
    batch: Batch,
    *,
    near: Sequence[Sequence[tuple[Fact, float]]],
    facts: Sequence[Fact],
    gates: Gates,
    new_id: NewId,
) -> ChangeSet:
    """Decides what becomes of an extraction; at most one change touches any existing fact.

    Args:
        extraction: what was proposed.
        batch: the messages it was made of; new facts are kept at ``batch.scope.home``, dated ``batch.now``.
        near: for each candidate, existing facts with their cosine to it; may be empty or shorter.
        facts: what is kept at the home scope and in the batch's conversation, held facts too; no other fact is
            ever changed.
        gates: thresholds and limits.
        new_id: makes ids of new facts.
    """
    work = _Work(batch, facts, gates, new_id)
    removals = _paired(extraction, work)
    for index, candidate in enumerate(removals.candidates):
        work.consider(candidate, near[index] if index < len(near) else ())
    for removal in removals.left:
        work.remove(removal)
    for name, summary in extraction.sections.items():
        work.changes.append(decide_section(name, summary, batch))
    work.make_room()
    return ChangeSet(changes=tuple(work.changes))


# --------------------------------------------------------------------------------------------------- what is known

_REPLACES: Final = 1 / 3
"""Share of words that a new statement has in common with the fact it replaces, for a removal to belong to it."""
_CORRECTS: Final = 0.1
"""How far below the duplicate threshold a correction still finds what it corrects."""


class _Work:
    """One run: the decisions so far, and the state of every fact they have touched."""

    def __init__(self, batch: Batch, facts: Sequence[Fact], gates: Gates, new_id: NewId) -> None:
        self.batch, self.gates, self._new_id = batch, gates, new_id
        self.changes: list[Change] = []
        here = {batch.scope, batch.scope.home}
        self.facts = {fact.id: fact for fact in facts if fact.scope in here and fact.status != "retired"}
        self.meanings = {fact.id: meaning_of(fact.content) for fact in self.facts.values()}
        self._order = {message.id: place for place, message in enumerate(batch.messages) if message.id}
        self._said = [m for m in batch.messages if m.role == "user"]
        self._quotable = {m: text.normal(m.content) for m in batch.messages}
        self._gone: dict[str, str] = {}
        """Existing facts that this run retires, each with what replaces it."""

    # ------------------------------------------------------------------------------------------ one candidate

    def consider(self, candidate: Candidate, near: Sequence[tuple[Fact, float]]) -> None:
        candidate = replace(candidate, content=text.clean(candidate.content).strip())
        problem = junk(candidate.content) or _bad_confidence(candidate.confidence)
        if problem:
            return self._reject(candidate, problem)
        candidate, doubt = self._grounded(self._categorised(candidate))
        meaning = meaning_of(candidate.content)
        doubt = doubt or self._unsure(candidate)
        twins = self._twins(meaning, near)
        same = next((twin for twin in twins if self._known(twin, candidate)), None)
        if same is not None:
            return self._again(candidate, same, doubt)
        waiting = next((twin for twin in twins if twin.status == "held"), None)
        if waiting is not None and doubt:
            return self._reject(candidate, f"{waiting.id} says the same and waits for review; still, {doubt}")
        unknown = [i for i in candidate.removes if i not in self.facts]
        if unknown:
            self._reject(candidate, f"facts it should replace are not known here: {', '.join(unknown)}")
            self.changes[-1] = replace(self.changes[-1], candidate=None)
        return self._new(candidate, meaning, near, twins, doubt)

    def _categorised(self, candidate: Candidate) -> Candidate:
        category = candidate.category.strip().lower()
        if category in self.gates.categories:
            return replace(candidate, category=category)
        metadata = {**candidate.metadata, "proposed_category": candidate.category}
        return replace(candidate, category="context", metadata=metadata)

    def _unsure(self, candidate: Candidate) -> str:
        if candidate.confidence >= self.gates.confidence_threshold:
            always = candidate.category in self.gates.review_categories
            return f"facts of category {candidate.category} always need a person" if always else ""
        return f"confidence {candidate.confidence:.2f} is below {self.gates.confidence_threshold:.2f}"

    def _grounded(self, candidate: Candidate) -> tuple[Candidate, str]:
        """The candidate with the evidence that really stands in the batch, and why it cannot be believed yet."""
        if candidate.origin not in {"user", "assistant"}:
            return candidate, ""
        found = [
            (message, quote) for e in candidate.evidence if (quote := e.quote.strip()) for message in self._where(e)
        ]
        if not candidate.evidence:
            found = [
                (m, m.content[:500])
                for m in self._said
                if meaning_of(candidate.content).overlap(meaning_of(m.content)) >= 1 / 2
            ]
        by_user = [(m, quote) for m, quote in found if m.role == "user"]
        evidence = tuple(
            dict.fromkeys(Evidence(message_id=m.id, quote=q, session=m.session) for m, q in by_user or found)
        )
        origins: list[Origin] = [candidate.origin, *(m.origin for m, _ in by_user)]
        candidate = replace(candidate, evidence=evidence, origin=min(origins, key=lambda origin: TRUST[origin]))
        if by_user:
            return candidate, ""
        candidate = replace(candidate, origin="assistant")
        return candidate, "only the assistant said so" if found else "no user message of the conversation supports it"

    def _where(self, evidence: Evidence) -> list[Message]:
        """The message in which a quote stands: the one it names, else the first of the user's."""
        quote = text.normal(evidence.quote)
        standing = [m for m, content in self._quotable.items() if quote and quote in content]
        standing.sort(key=lambda m: (m.role != "user", m.id != evidence.message_id))
        return standing[:1]

    # ------------------------------------------------------------------------------------------- known already

    def _twins(self, meaning: Meaning, near: Sequence[tuple[Fact, float]]) -> list[Fact]:
        """What says the same: first in the same words, then by vector without any difference that counts."""
        found = [fact_id for fact_id, known in self.meanings.items() if known.plain == meaning.plain]
        found += [
            fact.id
            for fact, cosine in near
            if cosine >= self.gates.duplicate and fact.id in self.facts and fact.id not in self._gone
            if not self.meanings[fact.id].differs(meaning) and not self.meanings[fact.id].changes_value(meaning)
        ]
        return sorted((self.facts[i] for i in dict.fromkeys(found)), key=lambda fact: fact.id in self._gone)

    def _known(self, twin: Fact, candidate: Candidate) -> bool:
        """Whether a twin is believed already wherever the candidate would be; what waits for review is not."""
        return twin.status == "active" and (candidate.session_only or twin.scope == self.batch.scope.home)

    def _again(self, candidate: Candidate, fact: Fact, doubt: str) -> None:
        place = self._place(fact)
        if doubt:
            return self._reject(candidate, f"known as {fact.id}, and {doubt}")
        if fact.id in self._gone:
            return self._reject(candidate, f"{fact.id} says the same and was replaced by {self._gone[fact.id]}")
        if TRUST[candidate.origin] < fact.trust:
            return self._reject(candidate, f"{fact.id} says the same from a source that is trusted more")
        fresh = tuple(e for e in candidate.evidence if not e.message_id or e.message_id not in _sources(fact))
        if candidate.evidence and not fresh:
            return self._reject(candidate, f"{fact.id} was learned from the same words")
        if place is not None and self.changes[place].expected is None:
            return self._reject(candidate, f"says the same as {fact.id} in this update")
        merged = self._confirmed(fact, candidate, fresh)
        change = Change(kind="confirm", reason=f"says the same as {fact.id}", fact=merged, candidate=candidate)
        if place is None:
            self.changes.append(replace(change, expected=fact.version))
        elif self.changes[place].kind == "confirm":
            self.changes[place] = replace(self.changes[place], fact=merged)
            self._reject(candidate, f"merged into the confirmation of {fact.id}")
        else:
            return self._reject(candidate, f"says the same as {fact.id} in this update")
        self.facts[fact.id] = merged
        return None

    def _confirmed(self, fact: Fact, candidate: Candidate, fresh: tuple[Evidence, ...]) -> Fact:
        said = bool(fresh) and candidate.origin in {"user", "operator"}
        return replace(
            fact,
            confirmations=fact.confirmations + 1,
            evidence=(*fact.evidence, *fresh),
            confidence=max(fact.confidence, candidate.confidence) if said else fact.confidence,
            last_used_at=self.batch.now,
            updated_at=self.batch.now,
        )

    # ----------------------------------------------------------------------------------------------------- new

    def _new(
        self,
        candidate: Candidate,
        meaning: Meaning,
        near: Sequence[tuple[Fact, float]],
        twins: Sequence[Fact],
        doubt: str,
    ) -> None:
        fact = self._fact(candidate)
        if doubt:
            return self._doubted(candidate, fact, doubt)
        replaced = self._replaced(candidate, meaning, near)
        lifted = [twin for twin in twins if twin.id not in self._gone and twin not in replaced]
        stronger = [old for old in replaced if old.trust > fact.trust]
        newer = [old for old in replaced if self._said_later(old, candidate)]
        if newer:
            return self._reject(candidate, f"{newer[0].id}, said later, says otherwise")
        if stronger and lifted:
            return self._reject(candidate, f"{lifted[0].id} says the same and waits for review")
        if stronger:
            return self._hold(candidate, fact, f"it contradicts {stronger[0].id}, which is trusted more")
        return self._add(candidate, fact, [*replaced, *lifted])

    def _doubted(self, candidate: Candidate, fact: Fact, doubt: str) -> None:
        if self.gates.below == "hold" or candidate.confidence >= self.gates.confidence_threshold:
            return self._hold(candidate, fact, doubt)
        if self.gates.below == "drop" or fact.origin == "assistant":
            return self._reject(candidate, doubt)
        weight = candidate.confidence / self.gates.confidence_threshold
        fact = replace(fact, importance=fact.importance * weight, reason=doubt)
        return self._keep(
            Change(kind="add", reason=f"{doubt}; stored with less weight", fact=fact, candidate=candidate)
        )

    def _fact(self, candidate: Candidate) -> Fact:
        scope = self.batch.scope if candidate.session_only else self.batch.scope.home
        importance = candidate.importance
        return Fact(
            id=self._new_id("fact"),
            scope=scope,
            content=candidate.content,
            created_at=self.batch.now,
            updated_at=self.batch.now,
            category=candidate.category,
            confidence=float(candidate.confidence),
            importance=min(max(importance, 0.0), 1.0) if math.isfinite(importance) else 0.5,
            origin=candidate.origin,
            trust=TRUST[candidate.origin],
            evidence=candidate.evidence,
            session=self.batch.scope.session,
            valid_from=candidate.valid_from,
            valid_until=candidate.valid_until,
            reason=candidate.reason,
            metadata=candidate.metadata,
        )

    def _replaced(self, candidate: Candidate, meaning: Meaning, near: Sequence[tuple[Fact, float]]) -> list[Fact]:
        """The facts that stop being true with this candidate; the named ones first."""
        if candidate.session_only:
            return []
        found = [i for i in candidate.removes if i in self.facts]
        found += [i for i, known in self.meanings.items() if known.opposes(meaning) or known.changes_value(meaning)]
        if candidate.category == "correction":
            found += [f.id for f, cosine in near[:1] if self._corrects(f, cosine, meaning)]
        return [self.facts[i] for i in dict.fromkeys(found) if i not in self._gone and self.facts[i].status == "active"]

    def _corrects(self, fact: Fact, cosine: float, meaning: Meaning) -> bool:
        known = self.meanings.get(fact.id)
        if known is None or known.about_another(meaning):
            return False
        return cosine >= self.gates.duplicate - _CORRECTS and known.overlap(meaning) >= 1 / 2

    def _said_later(self, old: Fact, candidate: Candidate) -> bool:
        """Whether ``old`` was learned from this very batch, from no earlier message than the candidate's."""
        if self._place(old) is not None and self.changes[self._place(old) or 0].expected is None:
            return False
        known = [self._order[i] for i in _sources(old) if i in self._order]
        mine = [self._order[e.message_id] for e in candidate.evidence if e.message_id in self._order]
        return bool(known and mine) and max(mine) <= max(known)

    def _add(self, candidate: Candidate, fact: Fact, replaced: list[Fact]) -> None:
        if not replaced:
            return self._keep(Change(kind="add", reason=fact.reason or "new", fact=fact, candidate=candidate))
        olds = [old for r in replaced if (old := self._released(r, fact)) is not None]
        olds.sort(key=lambda old: (old.status != "active", old.scope != fact.scope))
        fact = replace(fact, pinned=any(r.pinned for r in replaced), supersedes=olds[0].id if olds else "")
        if not olds:
            return self._keep(Change(kind="add", reason="said last in this update", fact=fact, candidate=candidate))
        retired = [self._retired(old, f"replaced by {fact.id}", fact.id) for old in olds]
        first = retired[0]
        reason = f"replaces {first.id}: {candidate.reason or 'it says otherwise'}"
        self._keep(
            Change(kind="supersede", reason=reason, fact=fact, old=first, expected=olds[0].version, candidate=candidate)
        )
        for old in retired[1:]:
            self.changes.append(Change(kind="retire", reason=f"replaced by {fact.id}", fact=old, expected=old.version))
        return None

    def _released(self, fact: Fact, successor: Fact) -> Fact | None:
        """The existing fact to retire for ``successor``: ``fact`` itself, or what it was to replace when it is new."""
        place = self._place(fact)
        if place is None:
            return fact
        change = self.changes[place]
        reason = f"taken back later in the same update by {successor.id}"
        self.changes[place] = Change(kind="reject", reason=reason, candidate=change.candidate)
        if change.expected is not None and change.kind == "confirm":
            return self.facts[fact.id]
        del self.facts[fact.id], self.meanings[fact.id]
        return self.facts[change.old.id] if change.old is not None else None

    def _retired(self, fact: Fact, reason: str, successor: str = "") -> Fact:
        self._gone[fact.id] = successor or "nothing"
        now = self.batch.now
        return replace(fact, status="retired", retired_at=now, updated_at=now, reason=reason, superseded_by=successor)

    # ------------------------------------------------------------------------------------------------ removals

    def corrects_alone(self, extraction: Extraction) -> bool:
        """Whether one removal and one statement can only belong together, whatever their words: the user corrected
        something, and the statement stands in those very words. With more of either, the pairs would be guessed."""
        removed = {removal.fact_id for removal in extraction.removals}
        if len(removed) != 1 or len(extraction.candidates) != 1:
            return False
        quotes = [m for e in extraction.candidates[0].evidence for m in self._where(e) if m.role == "user"]
        corrected = any("correction" in m.signals for m in quotes)
        return corrected or (bool(quotes) and extraction.candidates[0].category == "correction")

    def remove(self, removal: Removal) -> None:
        fact = self.facts.get(removal.fact_id)
        if fact is None:
            reason = f"cannot remove {removal.fact_id!r}: no such fact is kept here"
            self.changes.append(Change(kind="reject", reason=reason))
        elif fact.id in self._gone:
            reason = f"{fact.id} is retired already by this update"
            self.changes.append(Change(kind="reject", reason=reason))
        elif self._place(fact) is None and self.asked_to_forget(fact):
            retired = self._retired(fact, f"the user asked to forget it: {removal.reason}".rstrip(": "))
            self.changes.append(Change(kind="retire", reason=retired.reason, fact=retired, expected=fact.version))
        else:
            flagged = Candidate(content=fact.content, category=fact.category, reason=removal.reason)
            reason = f"removal of {fact.id} without a replacement needs a person: {removal.reason or 'no reason given'}"
            touched = self._place(fact) is not None or fact.status == "held"
            self.changes.append(
                Change(kind="reject", reason=reason, candidate=flagged)
                if touched
                else Change(kind="hold", reason=reason, candidate=flagged, old=fact)
            )

    def asked_to_forget(self, fact: Fact) -> bool:
        """Whether a user message of the batch asks to forget something, and this fact has to do with it."""
        return any(Wish(m.content).touches(fact.content) for m in self._said if "forget" in m.signals)

    # ------------------------------------------------------------------------------------------------ the limit

    def make_room(self) -> None:
        """Retires what is beyond the limit; what is new and finds no room is held."""
        for scope in dict.fromkeys((self.batch.scope.home, self.batch.scope)):
            alive = [f for f in self.facts.values() if f.id not in self._gone and f.status == "active"]
            gone = crowded_out(
                [f for f in alive if f.scope == scope and not self._is_successor(f)],
                new=frozenset(f.id for f in alive if self._is_new(f)),
                limit=self.gates.max_facts - sum(f.scope == scope and self._is_successor(f) for f in alive),
                by=self.gates.eviction,
                protected=self.gates.protected,
                now=self.batch.now,
            )
            for fact, reason in gone:
                self._evict(fact, reason)

    def _evict(self, fact: Fact, reason: str) -> None:
        place = self._place(fact)
        if place is not None and self._is_new(fact):
            self.changes[place] = turned_away(self.changes[place], f"no room: {reason}")
            return
        expected = fact.version if place is None else self.changes[place].expected
        retired = Change(kind="retire", reason=reason, fact=self._retired(fact, reason), expected=expected)
        if place is None:
            self.changes.append(retired)
        else:
            self.changes[place] = replace(retired, candidate=self.changes[place].candidate)

    def _is_new(self, fact: Fact) -> bool:
        place = self._place(fact)
        return place is not None and self.changes[place].kind in {"add", "supersede"}

    def _is_successor(self, fact: Fact) -> bool:
        """Whether it takes the place of an active fact, so that it needs no room of its own."""
        place = self._place(fact)
        change = self.changes[place] if place is not None else None
        return change is not None and change.old is not None and self.facts[change.old.id].status == "active"

    # ------------------------------------------------------------------------------------------------- bookkeeping

    def _place(self, fact: Fact) -> int | None:
        """Where among the changes one touches this fact."""
        return next((n for n, c in enumerate(self.changes) if c.fact is not None and c.fact.id == fact.id), None)

    def _keep(self, change: Change) -> None:
        self.changes.append(change)
        if change.fact is not None:
            self.facts[change.fact.id] = change.fact
            self.meanings[change.fact.id] = meaning_of(change.fact.content)

    def _hold(self, candidate: Candidate, fact: Fact, reason: str) -> None:
        self._keep(
            Change(kind="hold", reason=reason, fact=replace(fact, status="held", reason=reason), candidate=candidate)
        )

    def _reject(self, candidate: Candidate, reason: str) -> None:
        self.changes.append(Change(kind="reject", reason=reason, candidate=candidate))


def _sources(fact: Fact) -> set[str]:
    return {e.message_id for e in fact.evidence if e.message_id}


def _bad_confidence(confidence: float) -> str:
    fine = math.isfinite(confidence) and 0 <= confidence <= 1
    return "" if fine else f"confidence {confidence!r} is not between 0 and 1"


# ------------------------------------------------------------------------------------------- removals and sections


@dataclass(frozen=True, slots=True)
class _Paired:
    candidates: list[Candidate]
    left: list[Removal]


def _paired(extraction: Extraction, work: _Work) -> _Paired:
    """Each removal given to the candidate that speaks of the same, so that nothing goes without its successor."""
    candidates, left = list(extraction.candidates), []
    spoken = [meaning_of(candidate.content) for candidate in candidates]
    for removal in {r.fact_id: r for r in extraction.removals}.values():
        known = work.meanings.get(removal.fact_id)
        likeness = [known.overlap(other) if known else 0.0 for other in spoken]
        best = max(range(len(spoken)), key=likeness.__getitem__, default=-1)
        if best >= 0 and work.corrects_alone(extraction):
            best, likeness = 0, [1.0]
        if best >= 0 and likeness[best] >= _REPLACES and spoken[best].plain != (known.plain if known else ""):
            candidates[best] = replace(candidates[best], removes=(*candidates[best].removes, removal.fact_id))
        else:
            left.append(removal)
    return _Paired(candidates, left)
