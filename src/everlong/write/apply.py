"""From decisions to records: what a change needs of search, and how it is stored with its reason."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from everlong import text
from everlong.errors import Conflict, ModelError
from everlong.protocols import Indexed
from everlong.records import (
    Batch,
    Change,
    ChangeSet,
    Entry,
    Extraction,
    Fact,
    FactStatus,
    Job,
    Message,
    Principal,
    Profile,
    Proposal,
    Scope,
    Section,
)
from everlong.wording import lexical_text, vector_text
from everlong.write.reconcile import Gates, reconcile

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from everlong.protocols import Clock, Embedder, Index, NewId, Store, Transaction

__all__ = [
    "UPKEEP",
    "Applier",
    "index_fact",
    "index_message",
    "job_key",
    "kept_at",
    "name_of",
    "revision_of",
    "words_for_vector",
]

_NEIGHBOURS: Final = 10
"""Existing facts looked at for each candidate."""
UPKEEP: Final = "upkeep"
"""The kind of job, and the name in the journal, under which memory is looked after; what it changes is no touch."""
_EVER: Final = timedelta(days=36_500)
_HELD: Final = 32
"""Facts held for review, the newest, that are compared by vector; all of them are compared by their words."""


class Applier:
    """Reconciles extractions with what is known and stores the outcome; shared by everything that writes facts."""

    def __init__(
        self,
        *,
        store: Store,
        index: Index,
        embedder: Embedder | None,
        gates: Gates,
        clock: Clock,
        new_id: NewId,
        upkeep_at: Callable[[datetime], datetime | None] | None = None,
    ) -> None:
        self._upkeep_at = upkeep_at
        self._store, self._index, self._embedder = store, index, embedder
        self._gates, self._clock, self._new_id = gates, clock, new_id

    def with_vectors(self, rows: Sequence[Indexed], texts: Sequence[str]) -> list[Indexed]:
        """``rows`` with a vector for each piece of the text of the same place."""
        if self._embedder is None or not rows:
            return list(rows)
        pieces = [text.pieces(each) or [each] for each in texts]
        vectors = self._embedder.embed([piece for group in pieces for piece in group])
        ends = np.cumsum([len(group) for group in pieces])
        parts = np.split(vectors, ends[:-1])
        return [replace(row, model=self._embedder.model, vectors=part) for row, part in zip(rows, parts, strict=True)]

    def decide(self, extraction: Extraction, batch: Batch) -> tuple[ChangeSet, dict[str, Indexed]]:
        """The changes to make, and what search needs of each new fact by its id."""
        contents = [candidate.content for candidate in extraction.candidates]
        rows = [Indexed(terms=text.terms(content)) for content in contents]
        beside = self._beside(batch.scope) if contents or extraction.removals else ()
        held = [fact for fact in beside if fact.status == "held"][:_HELD] if rows else []
        try:
            vectors = self.with_vectors([*rows, *map(index_fact, held)], [*contents, *(f.content for f in held)])
            rows, waiting = vectors[: len(rows)], list(zip(held, vectors[len(rows) :], strict=True))
        except ModelError:
            # The words are found already; the vectors follow through an embed job.
            waiting = []
        facts = (*batch.facts, *(fact for fact in beside if fact.id not in {f.id for f in batch.facts}))
        near = self._neighbours(batch.scope, rows, {fact.id: fact for fact in facts}, waiting)
        changes = reconcile(extraction, batch, near=near, facts=facts, gates=self._gates, new_id=self._new_id)
        by_content = dict(zip(contents, rows, strict=True))
        indexed = {
            change.fact.id: by_content.get(change.fact.content) or index_fact(change.fact)
            for change in changes.changes
            if change.fact is not None
        }
        return changes, indexed

    def _beside(self, scope: Scope) -> tuple[Fact, ...]:
        """What a batch's facts leave out: those held for review, and those of the conversation alone."""
        with self._store.read() as tx:
            held = _pages(tx, scope, "held")
            own = _pages(tx, scope, "active") if scope.session else ()
        return (*(f for f in held if f.scope in {scope, scope.home}), *(f for f in own if f.scope == scope))

    def _neighbours(
        self,
        scope: Scope,
        rows: Sequence[Indexed],
        facts: Mapping[str, Fact],
        waiting: Sequence[tuple[Fact, Indexed]],
    ) -> list[list[tuple[Fact, float]]]:
        """For each candidate the existing facts most like it, with their cosine; of what waits for review too."""
        if not rows or not facts or self._embedder is None:
            return [[] for _ in rows]
        with self._store.read() as tx:
            corpus = self._index.corpus(tx, scope, "fact")
        return [
            _nearest(corpus.cosine(r.vectors[0]), corpus.ids, facts) + _alike(r.vectors[0], waiting)
            if r.vectors is not None
            else []
            for r in rows
        ]

    def apply(
        self,
        tx: Transaction,
        changes: ChangeSet,
        indexed: Mapping[str, Indexed],
        profile: Profile,
        *,
        by: str,
        talk: Scope | None = None,
        revision: int | None = None,
    ) -> dict[str, Fact]:
        """Stores every change, journals every decision; returns stored facts by id.

        ``talk`` is the conversation that was read: what came to no fact is journalled there, and so erased with it.
        ``revision`` is that of the facts which the decisions were made over.

        Raises:
            Conflict: a fact that shall change has changed, or there are others than the decisions were made over.
        """
        _check_unchanged(tx, changes, profile.scope, revision)
        stored: dict[str, Fact] = {}
        sections: dict[str, str] = {}
        pending = False
        for change in changes.changes:
            if change.kind == "section":
                sections[change.section] = change.summary
            for fact in self._store_change(tx, change, indexed):
                stored[fact.id] = fact
            if change.kind in {"add", "supersede", "hold"} and change.fact is not None:
                pending = pending or indexed[change.fact.id].vectors is None
            if change.kind == "hold":
                tx.proposals.put(self._proposal(change, profile.scope, by))
            elif change.old is not None and change.old.status == "retired":
                self._withdraw(tx, change.old)
            elif change.kind == "retire" and change.fact is not None:
                self._withdraw(tx, change.fact)
        scope = profile.scope
        if sections:
            self._put_sections(tx, profile, sections)
        tx.journal.append(*(self._entry_of(change, scope, talk or scope, by, stored) for change in changes.changes))
        if pending and self._embedder is not None:
            self.enqueue_embedding(tx, scope)
        self._enqueue_upkeep(tx, scope, by)
        return stored

    def _store_change(self, tx: Transaction, change: Change, indexed: Mapping[str, Indexed]) -> list[Fact]:
        stored = []
        if change.old is not None and change.expected is not None:
            stored.append(tx.facts.revise(change.old, expected=change.expected))
        if change.fact is None:
            return stored
        if change.kind in {"add", "supersede", "hold"}:
            stored.append(tx.facts.add(change.fact, indexed[change.fact.id]))
        elif change.expected is not None:
            row = indexed[change.fact.id] if change.kind == "revise" else None
            stored.append(tx.facts.revise(change.fact, expected=change.expected, indexed=row))
        return stored

    def _proposal(self, change: Change, home: Scope, by: str) -> Proposal:
        """What waits for a person: a held fact, the removal of ``old``, or a section's new summary."""
        made = Proposal(
            id=self._new_id("prop"),
            scope=home,
            kind="section",
            target=change.section,
            reason=change.reason,
            by=by,
            created_at=self._clock(),
        )
        if change.fact is not None:
            return replace(made, kind="fact", target=change.fact.id, scope=change.fact.scope)
        if change.old is not None:
            return replace(made, kind="removal", target=change.old.id, scope=change.old.scope)
        return replace(made, payload={"summary": change.summary})

    @staticmethod
    def _withdraw(tx: Transaction, fact: Fact) -> None:
        """Takes what still waits about a retired fact out of the inbox: there is nothing left to decide."""
        cursor = ""
        while True:
            page = tx.proposals.list(fact.scope, cursor=cursor)
            for proposal in page.items:
                if proposal.target == fact.id and proposal.kind in {"fact", "removal"}:
                    tx.proposals.delete(proposal)
            cursor = page.next
            if not cursor:
                return

    def _put_sections(self, tx: Transaction, profile: Profile, summaries: Mapping[str, str]) -> Profile:
        now = self._clock()
        sections = dict(profile.sections)
        sections.update({name: Section(summary=summary, updated_at=now) for name, summary in summaries.items()})
        return tx.profiles.put(replace(profile, sections=sections, updated_at=now), expected=profile.version)

    def _entry_of(self, change: Change, home: Scope, talk: Scope, by: str, stored: Mapping[str, Fact]) -> Entry:
        fact = change.fact
        payload: dict[str, Any] = {}
        if fact is None and change.candidate is not None:
            payload["content"] = change.candidate.content
        if change.old is not None and fact is not None:
            payload["replaces"] = change.old.id
        after = stored[fact.id].version if fact is not None and fact.id in stored else None
        return Entry(
            id=self._new_id("log"),
            at=self._clock(),
            scope=talk if fact is None and change.candidate is not None else home,
            by=by,
            action=change.kind,
            kind="profile" if change.section else "fact",
            target=fact.id if fact else change.old.id if change.old else change.section,
            reason=change.reason,
            before=change.expected,
            after=after,
            payload=payload,
        )

    def journal(self, tx: Transaction, scope: Scope, by: Principal | str, action: str, **fields: Any) -> None:
        who = by if isinstance(by, str) else name_of(by)
        tx.journal.append(Entry(id=self._new_id("log"), at=self._clock(), scope=scope, by=who, action=action, **fields))

    def enqueue_embedding(self, tx: Transaction, home: Scope) -> None:
        now = self._clock()
        job = Job(id=self._new_id("job"), kind="embed", key=job_key(home), scope=home, run_after=now, first_at=now)
        tx.jobs.put(job, latest=now)

    def _enqueue_upkeep(self, tx: Transaction, home: Scope, by: str) -> None:
        """Puts upkeep off until what was touched just now has had its pause; at the latest it is due at the fixed time."""
        now = self._clock()
        due = self._upkeep_at(now) if self._upkeep_at and by != UPKEEP else None
        if due is not None:
            job = Job(id=self._new_id("job"), kind=UPKEEP, key=job_key(home), scope=home, run_after=due, first_at=now)
            tx.jobs.put(job, latest=now + _EVER)

    def index_quietly(self, fact: Fact) -> Indexed:
        row = index_fact(fact)
        try:
            return self.with_vectors([row], [fact.content])[0]
        except ModelError:
            return row


def job_key(scope: Scope) -> str:
    """The key under which work on one scope is merged."""
    return json.dumps(scope.parts, ensure_ascii=False, separators=(",", ":"))


def name_of(by: Principal) -> str:
    """How the journal names a principal."""
    return f"{by.role}:{by.id}"


def index_message(message: Message) -> Indexed:
    """What search needs of a message, less its vector."""
    words = lexical_text(
        message.content,
        speaker=message.speaker,
        created_at=message.created_at,
        caption=str(message.metadata.get("caption", "")),
    )
    return Indexed(terms=text.terms(words))


def words_for_vector(message: Message) -> str:
    """The text of a message that its vector stands for."""
    caption = str(message.metadata.get("caption", ""))
    return vector_text(message.content, speaker=message.speaker, caption=caption)


def index_fact(fact: Fact) -> Indexed:
    """What search needs of a fact, less its vector."""
    return Indexed(terms=text.terms(fact.content))


def _check_unchanged(tx: Transaction, changes: ChangeSet, home: Scope, revision: int | None) -> None:
    if revision is None or not any(change.kind in {"add", "supersede", "hold"} for change in changes.changes):
        return
    actual = tx.facts.lock(home)
    if actual != revision:
        raise Conflict(f"what is known at {home}", expected=revision, actual=actual)


def revision_of(tx: Transaction, home: Scope) -> int:
    """The revision of the facts kept exactly at ``home``; read in the transaction that reads them."""
    state = tx.index.revisions(home, ["fact"]).get((home, "fact"))
    return state.number if state else 0


def kept_at(tx: Transaction, home: Scope) -> tuple[Fact, ...]:
    """Every active fact kept exactly at ``home``."""
    return tuple(fact for fact in _pages(tx, home, "active") if fact.scope == home)


def _pages(tx: Transaction, scope: Scope, status: FactStatus) -> tuple[Fact, ...]:
    facts: list[Fact] = []
    cursor = ""
    while True:
        page = tx.facts.list(scope, status=status, cursor=cursor, limit=500)
        facts += page.items
        cursor = page.next
        if not cursor:
            return tuple(facts)


def _alike(vector: Any, waiting: Sequence[tuple[Fact, Indexed]]) -> list[tuple[Fact, float]]:
    rows = [(fact, row.vectors) for fact, row in waiting if row.vectors is not None]
    return [(fact, float(np.max(vectors @ vector))) for fact, vectors in rows]


def _nearest(cosines: Any, ids: Sequence[str], facts: Mapping[str, Fact]) -> list[tuple[Fact, float]]:
    order = np.argsort(-np.nan_to_num(cosines, nan=-1.0), kind="stable")[:_NEIGHBOURS]
    return [(facts[ids[i]], float(cosines[i])) for i in order if ids[i] in facts and not np.isnan(cosines[i])]
