"""Upkeep of one scope: a bounded number of changes, each kind planned from a short read and stored in a transaction of
its own, no model asked inside one."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

import numpy as np

from everlong.errors import Conflict, ModelError, NotFound
from everlong.records import ChangeSet, ExtractionRecord, Job, Step, Suggestion, Upkept, Usage, ValueReport
from everlong.write import consolidate, review_stale
from everlong.write.apply import UPKEEP, index_fact, kept_at, name_of
from everlong.write.consolidate import Consolidation
from everlong.write.retention import Retention, ended, last_sign, next_purge, purge, retired
from everlong.write.review_stale import Review
from everlong.write.rolling import Rolling, rolled
from everlong.write.sweep import contradictions, groups, merged

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from everlong.protocols import ChatModel, ChatTurn, Clock, Embedder, NewId, Store, Transaction
    from everlong.records import Change, Entry, Fact, Principal, Profile, Scope, StepKind
    from everlong.write.apply import Applier

__all__ = ["Rules", "Upkeep"]

_ATTEMPTS: Final = 3
_MERGES: Final = 50
"""Groups of equal facts merged in one run."""
_ENTRIES: Final = 1000
"""Journal entries of one action that are read back to know what a person decided."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What upkeep does. ``duplicate`` is the cosine from which two statements say the same; ``daily_tokens`` bounds what
    models may use for one user in a day, upkeep and extraction together (0: no bound)."""

    retention: Retention = field(default_factory=Retention)
    review: Review = field(default_factory=Review)
    consolidation: Consolidation = field(default_factory=Consolidation)
    rolling: Rolling = field(default_factory=Rolling)
    duplicate: float = 1.0
    daily_tokens: int = 0


@dataclass(frozen=True, slots=True)
class _Known:
    """What is kept at one scope, as one read saw it."""

    home: Scope
    now: datetime
    profile: Profile
    facts: tuple[Fact, ...]
    vectors: Mapping[str, NDArray[np.float32]]
    decided: frozenset[str]
    """Facts that a person restored, or whose removal a person turned down: their word stands."""
    waiting: frozenset[str]
    """Facts whose removal waits for a person."""


class Upkeep:
    """Plans and does upkeep. Without a ``model``, stale facts are put before a person and nothing is consolidated."""

    def __init__(
        self,
        *,
        store: Store,
        applier: Applier,
        clock: Clock,
        new_id: NewId,
        rules: Rules,
        embedder: Embedder | None = None,
        model: ChatModel | None = None,
    ) -> None:
        self._store, self._applier, self._clock, self._new_id = store, applier, clock, new_id
        self._rules, self._embedder, self._model = rules, embedder, model

    # --------------------------------------------------------------------------------------------------------- run

    def run(self, scope: Scope, *, by: str = UPKEEP, preview: bool = False) -> Upkept:
        """Does what is due at ``scope.home``, or only tells what it would do: a preview changes nothing, and asks no
        model."""
        home = scope.home
        steps = [*self._purge(home, by, preview=preview)]
        for plan in (self._expire, self._merge, self._roll, self._review, self._consolidate):
            steps += self._planned(home, plan, by, preview=preview)
        limit = self._rules.retention.limit
        more = any(step.kind == "purge" and step.count >= limit for step in steps)
        return Upkept(scope=home, at=self._clock(), preview=preview, steps=tuple(steps), more=more)

    def task(self, job: Job) -> None:
        """Task ``upkeep``: one run; another soon if a bound was reached, else when the next record will be too old.
        Doing it twice changes nothing more."""
        done, now = self.run(job.scope), self._clock()
        with self._store.write() as tx:
            if not tx.jobs.done(job):
                return
            soon = now + timedelta(minutes=1) if done.more else None
            due = soon or next_purge(tx, job.scope, self._rules.retention, now)
            if due is not None:
                again = Job(
                    id=self._new_id("job"), kind=UPKEEP, key=job.key, scope=job.scope, run_after=due, first_at=now
                )
                tx.jobs.put(again, latest=due)

    def _purge(self, home: Scope, by: str, *, preview: bool) -> list[Step]:
        rules, now = self._rules.retention, self._clock()
        if preview:
            with self._store.read() as tx:
                return purge(tx, home, rules, now, dry=True)
        with self._store.read() as tx:
            due = purge(tx, home, rules, now, dry=True)
        if not due:
            return []
        with self._store.write() as tx:
            steps = purge(tx, home, rules, now, dry=False)
            for step in steps:
                self._applier.journal(
                    tx, home, by, "purge", kind=step.targets[0], reason=step.reason, payload={"count": step.count}
                )
        return steps

    def _planned(
        self, home: Scope, plan: Callable[..., tuple[list[Change], list[Step]]], by: str, *, preview: bool
    ) -> list[Step]:
        """Plans over what is known and stores the outcome; over what is known by then if others wrote meanwhile."""
        for _ in range(_ATTEMPTS):
            known = self._known(home)
            try:
                changes, steps = plan(known, ask=not preview)
            except ModelError as error:
                return [Step(kind="skip", reason=f"left for the next run: {error}", count=0)]
            if preview or not changes:
                return steps
            try:
                self._apply(known, changes, by)
            except Conflict:
                continue
            return steps
        return [Step(kind="skip", reason="others kept changing the same memory; left for the next run", count=0)]

    def _apply(self, known: _Known, changes: Sequence[Change], by: str) -> None:
        made = [change.fact for change in changes if change.fact is not None and change.kind == "supersede"]
        rows = [index_fact(fact) for fact in made]
        try:
            rows = self._applier.with_vectors(rows, [fact.content for fact in made])
        except ModelError:
            pass  # found by their words until an embed job has given them vectors
        indexed = {fact.id: row for fact, row in zip(made, rows, strict=True)}
        with self._store.write() as tx:
            self._applier.apply(tx, ChangeSet(changes=tuple(changes)), indexed, known.profile, by=by)
        self._store.notify()

    def _known(self, home: Scope) -> _Known:
        now = self._clock()
        with self._store.read() as tx:
            facts = kept_at(tx, home)
            proposals = tx.proposals.list(home, kind="removal", limit=_ENTRIES).items
            return _Known(
                home=home,
                now=now,
                profile=tx.profiles.get(home),
                facts=facts,
                vectors=self._vectors(tx, home),
                decided=_decided(tx, home, now - timedelta(days=self._rules.review.days)),
                waiting=frozenset(p.target for p in proposals if p.scope == home),
            )

    def _vectors(self, tx: Transaction, home: Scope) -> dict[str, NDArray[np.float32]]:
        """The vector of each fact's first piece in the present space; there are none to compare without an embedder."""
        if self._embedder is None:
            return {}
        rows, size = tx.index.rows(home, "fact", model=self._embedder.model), self._embedder.dimensions
        found = zip(rows.ids, rows.vectors, strict=True)
        return {fact_id: np.frombuffer(data, dtype="<f4", count=size) for fact_id, data in found if data}

    # ------------------------------------------------------------------------------------------------------- plans

    def _expire(self, known: _Known, *, ask: bool) -> tuple[list[Change], list[Step]]:
        del ask
        changes = [
            change
            for change in ended(known.facts, known.now, self._rules.retention)
            if change.fact is not None and change.fact.id not in known.decided
        ]
        return changes, [_step("expire", change) for change in changes]

    def _merge(self, known: _Known, *, ask: bool) -> tuple[list[Change], list[Step]]:
        del ask
        found = self._same(known)[:_MERGES]
        changes = [change for group in found for change in merged(group, known.now)]
        return changes, [
            Step(kind="merge", targets=_ids(group), count=len(group) - 1, reason=f"the same as {group[0].id}")
            for group in found
        ]

    def _same(self, known: _Known) -> list[tuple[Fact, ...]]:
        free = [fact for fact in known.facts if fact.id not in known.decided]
        return groups(free, known.vectors, self._rules.duplicate)

    def _roll(self, known: _Known, *, ask: bool) -> tuple[list[Change], list[Step]]:
        del ask
        changes = rolled(known.profile, known.now, self._rules.rolling)
        return changes, [Step(kind="roll", targets=(change.section,), reason=change.reason) for change in changes]

    def _review(self, known: _Known, *, ask: bool) -> tuple[list[Change], list[Step]]:
        rules = self._rules.review
        found = review_stale.stale(known.facts, known.now, rules, but=known.decided | known.waiting)
        if not found:
            return [], []
        if self._model is None:
            shown = found[: max(rules.most - len(known.waiting), 0)]
            changes = review_stale.proposed(shown, known.now)
            return changes, [_step("review", change) for change in changes]
        shown = found[: 3 * rules.most]
        if not ask:
            return [], [Step(kind="review", targets=_ids(shown), count=len(shown), reason="a model would be asked")]
        turns = review_stale.question(shown, known.now)
        answer = self._ask(known, "review", turns, review_stale.SCHEMA)
        changes = review_stale.judged(answer, shown, known.now, rules)
        return changes, [_step("review" if c.kind == "retire" else "extend", c) for c in changes]

    def _consolidate(self, known: _Known, *, ask: bool) -> tuple[list[Change], list[Step]]:
        rules = self._rules.consolidation
        many = consolidate.crowded(known.facts, rules, but=known.decided | known.waiting)
        if not many or self._model is None:
            return [], []
        facts = many[0]
        if not ask:
            return [], [
                Step(kind="consolidate", targets=_ids(facts), count=len(facts), reason="a model would be asked")
            ]
        if not self._changed_since_asked(known, facts):
            return [], []
        answer = self._ask(known, "consolidate", consolidate.question(facts, rules), consolidate.SCHEMA)
        changes = consolidate.consolidated(answer, facts, known.now, rules, self._new_id)
        steps = [_step("consolidate", change) for change in changes if change.kind == "supersede"]
        steps += [_step("skip", change) for change in changes if change.kind == "reject"]
        return changes, steps

    def _changed_since_asked(self, known: _Known, facts: Sequence[Fact]) -> bool:
        """Whether a fact was learned since a model last looked for groups: of the same facts it would say the same."""
        newest = max(fact.created_at for fact in facts)
        with self._store.read() as tx:
            entries = tx.journal.list(known.home, action="consolidate", limit=1).items
        return not entries or entries[0].at <= newest

    # ------------------------------------------------------------------------------------------------------- models

    def _ask(self, known: _Known, what: str, turns: Sequence[ChatTurn], schema: Mapping[str, object]) -> str:
        """A model's answer; what it cost is recorded with the extractions.

        Raises:
            ModelError: it gave none, or the day's tokens are used up.
        """
        if self._model is None:
            raise AssertionError("there is no model to ask")
        self._check_the_day(known)
        begun = time.perf_counter()
        usage, raw, failed = Usage(), "", ""
        try:
            reply = self._model.complete(turns, schema=schema)
            usage, raw = reply.usage, reply.text
        except ModelError as error:
            usage, failed = error.usage or usage, f"{type(error).__name__}: {error}"
            raise
        finally:
            record = ExtractionRecord(
                id=self._new_id("ext"),
                scope=known.home,
                at=self._clock(),
                extractor=f"{UPKEEP}-{what}:{self._model.name}",
                raw=raw,
                usage=usage,
                milliseconds=(time.perf_counter() - begun) * 1000,
                error=failed,
            )
            with self._store.write() as tx:
                tx.extractions.append(record)
                self._applier.journal(tx, known.home, UPKEEP, what, kind="extraction", target=record.id)
        return raw

    def _check_the_day(self, known: _Known) -> None:
        if not self._rules.daily_tokens:
            return
        today = known.now.replace(hour=0, minute=0, second=0, microsecond=0)
        user = replace(known.home, agent="") if known.home.user else known.home
        with self._store.read() as tx:
            usage = tx.extractions.usage(user, since=today)
        if usage.input_tokens + usage.output_tokens >= self._rules.daily_tokens:
            raise ModelError(f"the day's tokens are used up (daily_tokens is {self._rules.daily_tokens})")

    # ------------------------------------------------------------------------------------------------------- report

    def report(self, scope: Scope, *, questions: int = 0, answered: int = 0) -> ValueReport:
        """What the facts at ``scope.home`` are worth, and what could be done about them."""
        known = self._known(scope.home)
        rules = self._rules
        outdated = [change.fact for change in ended(known.facts, known.now, replace(rules.retention, ended=1))]
        old = review_stale.stale(known.facts, known.now, replace(rules.review, least=1), but=known.decided)
        never = [fact for fact in old if not fact.uses]
        against = contradictions(known.facts)
        same = self._same(known)
        return ValueReport(
            scope=known.home,
            at=known.now,
            facts=len(known.facts),
            used=_ids(sorted((f for f in known.facts if f.uses), key=lambda f: (-f.uses, f.id))),
            never_recalled=_ids(f for f in known.facts if not f.uses),
            outdated=tuple(fact.id for fact in outdated if fact is not None),
            contradicted=tuple((older.id, newer.id) for older, newer in against),
            same=tuple(_ids(group) for group in same),
            questions=questions,
            answered=answered,
            suggestions=(
                *(_suggest("merge", _ids(group), "they say the same") for group in same),
                *(
                    _suggest("retire", (older.id,), f"{newer.id}, learned later, says otherwise")
                    for older, newer in against
                    if not older.pinned
                ),
                *(_suggest("retire", (fact.id,), "what it says is over") for fact in outdated if fact is not None),
                *(
                    _suggest("retire", (f.id,), f"never recalled, silent for {(known.now - last_sign(f)).days} days")
                    for f in never
                ),
            ),
        )

    def follow(self, scope: Scope, suggestion_id: str, *, by: Principal) -> tuple[Fact, ...]:
        """Does what a suggestion of the present report says; returns the facts it touched, as they are now.

        Raises:
            NotFound: the present report has no such suggestion.
        """
        for attempt in range(1, _ATTEMPTS + 1):
            known = self._known(scope.home)
            found = next((s for s in self.report(scope).suggestions if s.id == suggestion_id), None)
            if found is None:
                raise NotFound(f"no suggestion {suggestion_id!r} at {scope.home}; look at the present report")
            facts = {fact.id: fact for fact in known.facts}
            targets = [facts[i] for i in found.targets if i in facts]
            if found.kind == "merge":
                changes = merged(targets, known.now)
            else:
                changes = [retired(fact, known.now, f"suggestion followed: {found.reason}") for fact in targets]
            try:
                self._apply(known, changes, name_of(by))
            except Conflict:
                if attempt == _ATTEMPTS:
                    raise
                continue
            with self._store.read() as tx:
                return tuple(tx.facts.many(known.home, found.targets).values())
        raise AssertionError("the last attempt returns or raises")


def _step(kind: StepKind, change: Change) -> Step:
    touched = [fact.id for fact in (change.old, change.fact) if fact is not None]
    return Step(kind=kind, targets=tuple(touched), reason=change.reason)


def _ids(facts: Iterable[Fact]) -> tuple[str, ...]:
    return tuple(fact.id for fact in facts)


def _suggest(kind: str, targets: tuple[str, ...], reason: str) -> Suggestion:
    name = hashlib.blake2s("\0".join((kind, *targets)).encode(), digest_size=5).hexdigest()
    return Suggestion(id=f"tip_{name}", kind="merge" if kind == "merge" else "retire", targets=targets, reason=reason)


def _decided(tx: Transaction, home: Scope, since: datetime) -> frozenset[str]:
    def entries(action: str) -> tuple[Entry, ...]:
        return tx.journal.list(home, action=action, limit=_ENTRIES).items

    restored = {entry.target for entry in entries("restore") if entry.kind == "fact"}
    refused = {entry.target for entry in entries("reject") if entry.kind == "removal" and entry.at >= since}
    return frozenset(restored | refused)
