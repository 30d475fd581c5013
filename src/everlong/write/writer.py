"""The write path: what was said becomes stored messages at once, and facts in the background.

Model calls never stand inside a transaction. Each operation is one write transaction: records, watermark, journal and
job change together or not at all.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from everlong import text
from everlong.errors import (
    Conflict,
    EmptyText,
    InvalidInput,
    InvalidScope,
    ModelError,
    TooLarge,
    UnknownCategory,
)
from everlong.protocols import Indexed
from everlong.records import (
    SECTIONS,
    Added,
    Batch,
    Candidate,
    Change,
    ChangeSet,
    Entry,
    Evidence,
    Extraction,
    Fact,
    Job,
    Message,
    Principal,
    Profile,
    Remembered,
    Scope,
    Section,
    Session,
)
from everlong.wording import lexical_text, vector_text
from everlong.write.capture import capture
from everlong.write.reconcile import Gates, reconcile

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everlong.protocols import Clock, Embedder, Extractor, Index, NewId, Store, Transaction, Vectors
    from everlong.records import Origin

__all__ = ["Debounce", "Writer"]

_NEIGHBOURS: Final = 10
"""Existing facts looked at for each candidate."""
_BATCH: Final = 200
"""Messages in one extraction; what is left over makes another job."""
_CONTEXT: Final = 4
"""Messages before the batch that an extractor sees for understanding."""
_EMBED_BATCH: Final = 64
_ATTEMPTS: Final = 3
_MAX_FACT: Final = 2000
_BY_ROLE: Final[Mapping[str, Origin]] = {
    "user": "user",
    "agent": "assistant",
    "operator": "operator",
    "system": "operator",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Debounce:
    """How long extraction waits for a conversation to pause, and how long at most (DeerFlow: 30 s, 1 to 300)."""

    pause: timedelta = timedelta(seconds=30)
    longest: timedelta = timedelta(minutes=5)
    messages: int = 20
    """So many new messages make extraction due at once."""


class Writer:
    """Stores messages, facts, profiles; turns messages into facts when a worker asks."""

    def __init__(
        self,
        *,
        store: Store,
        index: Index,
        embedder: Embedder | None,
        extractor: Extractor,
        clock: Clock,
        new_id: NewId,
        gates: Gates,
        debounce: Debounce,
        zone: str = "UTC",
        max_chars: int = 1_000_000,
    ) -> None:
        self._store, self._index, self._embedder, self._extractor = store, index, embedder, extractor
        self._clock, self._new_id, self._gates, self._debounce = clock, new_id, gates, debounce
        self._zone, self._max_chars = zone, max_chars

    # ------------------------------------------------------------------------------------------------ messages

    def add(self, session: Scope, messages: Iterable[Any], *, by: Principal) -> Added:
        """Stores what was said and lets extraction wait for it. See :meth:`everlong.memory.ScopedMemory.add`."""
        if not session.session:
            msg = "a conversation needs a session: memory.at(Scope(user=…, session=…)).add(…)"
            raise InvalidScope(msg)
        if isinstance(messages, (str, bytes)) or not isinstance(messages, Iterable):
            msg = 'messages must be a list such as [("user", "hello")], not a single text'
            raise InvalidInput(msg)
        incoming, now = list(messages), self._clock()
        with self._store.write() as tx:
            tail = tx.messages.tail(session, limit=max(len(incoming), 1))
            captured = capture(
                incoming, session=session, tail=tail, now=now, new_id=self._new_id, max_chars=self._max_chars
            )
            stored: tuple[Message, ...] = ()
            if captured.messages:
                stored = tx.messages.append(session, captured.messages, [_indexed(m) for m in captured.messages])
            fresh = {message.id for message in stored}
            again = tuple(m.id for m in captured.messages if m.id not in fresh)
            duplicates = (*captured.duplicates, *again)
            if not stored:
                return Added(
                    status="duplicate" if duplicates else "nothing", duplicates=duplicates, ignored=captured.ignored
                )
            job = self._enqueue(tx, session, stored, urgent=captured.urgent)
            self._journal(tx, session, by, "add", kind="message", target=stored[-1].id, after=stored[-1].position)
        self._store.notify()
        return Added(
            status="queued",
            message_ids=tuple(m.id for m in stored),
            duplicates=duplicates,
            ignored=captured.ignored,
            job_id=job.id,
        )

    def _enqueue(self, tx: Transaction, session: Scope, stored: Sequence[Message], *, urgent: bool) -> Job:
        now = self._clock()
        if self._embedder is not None:
            self._enqueue_embedding(tx, session.home)
        state = tx.sessions.get(session)
        waiting = stored[-1].position - (state.extracted if state else 0)
        due = urgent or waiting >= self._debounce.messages
        return tx.jobs.put(
            Job(
                id=self._new_id("job"),
                kind="extract",
                key=_key(session),
                scope=session,
                run_after=now if due else now + self._debounce.pause,
                first_at=now,
            ),
            latest=now + self._debounce.longest,
        )

    def _enqueue_embedding(self, tx: Transaction, home: Scope) -> None:
        now = self._clock()
        job = Job(id=self._new_id("job"), kind="embed", key=_key(home), scope=home, run_after=now, first_at=now)
        tx.jobs.put(job, latest=now)

    # ------------------------------------------------------------------------------------------ background: vectors

    def embed(self, job: Job) -> None:
        """Task ``embed``: gives every message and fact kept at the job's scope that lacks a vector its vector."""
        if self._embedder is None:
            with self._store.write() as tx:
                tx.jobs.done(job)
            return
        while self._embed_messages(job.scope) or self._embed_facts(job.scope):
            pass
        with self._store.write() as tx:
            tx.jobs.done(job)
            if self._pending(tx, job.scope):
                self._enqueue_embedding(tx, job.scope)

    def _pending(self, tx: Transaction, home: Scope) -> bool:
        model = self._model
        return bool(tx.messages.unembedded(home, model, limit=1)) or bool(self._facts_without_vector(tx, home))

    @property
    def _model(self) -> str:
        return self._embedder.model if self._embedder else ""

    def _embed_messages(self, home: Scope) -> int:
        with self._store.read() as tx:
            messages = tx.messages.unembedded(home, self._model, limit=_EMBED_BATCH)
        if not messages:
            return 0
        indexed = self._with_vectors([_indexed(m) for m in messages], [_vector_text(m) for m in messages])
        with self._store.write() as tx:
            return sum(
                tx.messages.set_vectors(replace(m.scope, session=m.session), m.id, row)
                for m, row in zip(messages, indexed, strict=True)
            )

    def _facts_without_vector(self, tx: Transaction, home: Scope) -> list[str]:
        rows = tx.index.rows(home, "fact", model=self._model)
        return [i for i, live, v in zip(rows.ids, rows.live, rows.vectors, strict=True) if live and v is None]

    def _embed_facts(self, home: Scope) -> int:
        with self._store.read() as tx:
            missing = self._facts_without_vector(tx, home)[:_EMBED_BATCH]
            facts = list(tx.facts.many(home, missing).values())
        if not facts:
            return 0
        indexed = self._with_vectors([_indexed_fact(f) for f in facts], [f.content for f in facts])
        with self._store.write() as tx:
            return sum(tx.facts.set_vectors(f.scope, f.id, row) for f, row in zip(facts, indexed, strict=True))

    def _with_vectors(self, rows: Sequence[Indexed], texts: Sequence[str]) -> list[Indexed]:
        """``rows`` with a vector for each piece of the text of the same place."""
        if self._embedder is None or not rows:
            return list(rows)
        pieces = [text.pieces(each) or [each] for each in texts]
        vectors = self._embedder.embed([piece for group in pieces for piece in group])
        ends = np.cumsum([len(group) for group in pieces])
        parts = np.split(vectors, ends[:-1])
        return [replace(row, model=self._model, vectors=part) for row, part in zip(rows, parts, strict=True)]

    # --------------------------------------------------------------------------------------- background: extraction

    def extract(self, job: Job) -> None:
        """Task ``extract``: turns a conversation's new messages into facts, exactly once in effect.

        Raises:
            ModelError: the extractor's model failed; the job should be tried again.
            Conflict: others kept changing the same memory; the job should be tried again.
        """
        for attempt in range(_ATTEMPTS):
            try:
                return self._extract(job)
            except Conflict:
                if attempt == _ATTEMPTS - 1:
                    raise
        return None

    def _extract(self, job: Job) -> None:
        state, batch = self._read_batch(job.scope)
        if state is None or not batch.messages:
            with self._store.write() as tx:
                tx.jobs.done(job)
            return
        worthwhile = any(m.role == "user" and "trivial" not in m.signals for m in batch.messages)
        extraction = self._extractor.extract(batch) if worthwhile else Extraction(extractor="skipped: trivial turns")
        changes, indexed = self._decide(extraction, batch)
        with self._store.write() as tx:
            last = batch.messages[-1].position
            tx.sessions.advance(state, extracted=last)
            self._apply(tx, changes, indexed, batch.profile, by=f"extractor:{extraction.extractor}")
            self._record_extraction(tx, job, batch, extraction, changes)
            if not tx.jobs.done(job):
                raise Conflict(f"job {job.id}", expected=job.worker, actual="another worker")
            if tx.messages.after(job.scope, last, limit=1):
                self._enqueue(tx, job.scope, batch.messages[-1:], urgent=len(batch.messages) == _BATCH)
        self._store.notify()

    def _read_batch(self, session: Scope) -> tuple[Session | None, Batch]:
        with self._store.read() as tx:
            state = tx.sessions.get(session)
            done = state.extracted if state else 0
            messages = tx.messages.after(session, done, limit=_BATCH)
            context = tx.messages.tail(session, limit=_CONTEXT, before=messages[0].position) if messages else ()
            batch = Batch(
                scope=session,
                messages=messages,
                context=context,
                profile=tx.profiles.get(session.home),
                facts=_kept_at(tx, session.home),
                now=self._clock(),
                zone=self._zone,
            )
        return state, batch

    def _decide(self, extraction: Extraction, batch: Batch) -> tuple[ChangeSet, dict[str, Indexed]]:
        """The changes to make, and what search needs of each new fact by its id."""
        contents = [candidate.content for candidate in extraction.candidates]
        rows = [Indexed(terms=text.terms(content)) for content in contents]
        try:
            rows = self._with_vectors(rows, contents)
        except ModelError:
            # The words are found already; the vectors follow through an embed job.
            pass
        near = self._neighbours(batch.scope.home, rows, {fact.id: fact for fact in batch.facts})
        changes = reconcile(
            extraction, batch, near=near, facts=batch.facts, gates=self._gates, new_id=self._new_id
        )
        by_content = dict(zip(contents, rows, strict=True))
        indexed = {
            change.fact.id: by_content.get(change.fact.content) or _indexed_fact(change.fact)
            for change in changes.changes
            if change.fact is not None
        }
        return changes, indexed

    def _neighbours(
        self, home: Scope, rows: Sequence[Indexed], facts: Mapping[str, Fact]
    ) -> list[list[tuple[Fact, float]]]:
        """For each candidate the existing facts most like it, with their cosine."""
        if not rows or not facts or self._embedder is None:
            return [[] for _ in rows]
        with self._store.read() as tx:
            corpus = self._index.corpus(tx, home, "fact")
        return [_nearest(corpus.cosine(r.vectors[0]), corpus.ids, facts) if r.vectors is not None else [] for r in rows]

    def _apply(
        self, tx: Transaction, changes: ChangeSet, indexed: Mapping[str, Indexed], profile: Profile, *, by: str
    ) -> dict[str, Fact]:
        """Stores every change, journals every decision; returns stored facts by id."""
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
        scope = profile.scope
        if sections:
            self._put_sections(tx, profile, sections)
        tx.journal.append(*(self._entry_of(change, scope, by, stored) for change in changes.changes))
        if pending and self._embedder is not None:
            self._enqueue_embedding(tx, scope)
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

    def _put_sections(self, tx: Transaction, profile: Profile, summaries: Mapping[str, str]) -> Profile:
        now = self._clock()
        sections = dict(profile.sections)
        sections.update({name: Section(summary=summary, updated_at=now) for name, summary in summaries.items()})
        return tx.profiles.put(replace(profile, sections=sections, updated_at=now), expected=profile.version)

    def _entry_of(self, change: Change, scope: Scope, by: str, stored: Mapping[str, Fact]) -> Entry:
        fact = change.fact
        payload: dict[str, Any] = {}
        if fact is None and change.candidate is not None:
            payload["content"] = change.candidate.content
        if change.old is not None:
            payload["replaces"] = change.old.id
        after = stored[fact.id].version if fact is not None and fact.id in stored else None
        return Entry(
            id=self._new_id("log"),
            at=self._clock(),
            scope=scope,
            by=by,
            action=change.kind,
            kind="profile" if change.kind == "section" else "fact",
            target=fact.id if fact else change.section,
            reason=change.reason,
            before=change.expected,
            after=after,
            payload=payload,
        )

    def _record_extraction(
        self, tx: Transaction, job: Job, batch: Batch, extraction: Extraction, changes: ChangeSet
    ) -> None:
        """One journal entry per batch: what was read, what the extractor answered, what it cost."""
        counts: dict[str, int] = {}
        for change in changes.changes:
            counts[change.kind] = counts.get(change.kind, 0) + 1
        payload = {
            "messages": [message.id for message in batch.messages],
            "decisions": counts,
            "skipped": [{"reason": s.reason, "text": s.raw} for s in extraction.skipped],
            "calls": extraction.usage.calls,
            "input_tokens": extraction.usage.input_tokens,
            "output_tokens": extraction.usage.output_tokens,
            "raw": extraction.raw,
        }
        by = f"extractor:{extraction.extractor}"
        self._journal(tx, batch.scope, by, "extract", kind="session", target=job.id, payload=payload)

    # ---------------------------------------------------------------------------------------------- facts by hand

    def remember(
        self, scope: Scope, content: str, *, by: Principal, category: str, confidence: float, pinned: bool
    ) -> Remembered:
        """Stores one fact at once. See :meth:`everlong.memory.ScopedMemory.remember`."""
        content = self._fact_text(content)
        category = self._category(category)
        origin = _BY_ROLE[by.role]
        now = self._clock()
        said = Message(id="", scope=scope.home, session=scope.session, role="user", content=content, created_at=now)
        candidate = Candidate(
            content=content,
            category=category,
            confidence=confidence,
            origin=origin,
            evidence=(Evidence(message_id="", quote=content, session=scope.session),),
            reason=f"remembered by {by.role}",
        )
        with self._store.read() as tx:
            profile, facts = tx.profiles.get(scope.home), _kept_at(tx, scope.home)
        batch = Batch(scope=scope, messages=(said,), profile=profile, facts=facts, now=now, zone=self._zone)
        changes, indexed = self._decide(Extraction(candidates=(candidate,), extractor="by hand"), batch)
        if pinned:
            changes = _pin(changes)
        with self._store.write() as tx:
            stored = self._apply(tx, changes, indexed, profile, by=_name(by))
        self._store.notify()
        change = next(c for c in changes.changes if c.kind != "retire" or c.candidate is not None)
        fact = stored.get(change.fact.id) if change.fact else None
        return Remembered(outcome=change.kind, reason=change.reason, fact=fact)

    def _fact_text(self, content: object) -> str:
        if not isinstance(content, str):
            msg = f"a fact's content must be text, not {type(content).__name__}"
            raise InvalidInput(msg)
        cleaned = text.clean(content).strip()
        if not cleaned:
            msg = "a fact needs some text"
            raise EmptyText(msg)
        if len(cleaned) > _MAX_FACT:
            msg = f"a fact has {len(cleaned)} characters; {_MAX_FACT} at most, it should be one sentence"
            raise TooLarge(msg)
        return cleaned

    def _category(self, category: str) -> str:
        if category not in self._gates.categories:
            msg = f"unknown category {category!r}; known are {', '.join(self._gates.categories)}"
            raise UnknownCategory(msg)
        return category

    def revise(
        self, scope: Scope, fact_id: str, *, by: Principal, expected: int | None, changes: Mapping[str, Any]
    ) -> Fact:
        """Changes named fields of one fact. See :meth:`everlong.memory.ScopedMemory.revise`."""
        changes = dict(changes)
        if "content" in changes:
            changes["content"] = self._fact_text(changes["content"])
        if "category" in changes:
            changes["category"] = self._category(changes["category"])
        with self._store.read() as tx:
            fact = tx.facts.get(scope, fact_id)
        revised = replace(fact, updated_at=self._clock(), **changes)
        row = None
        if revised.content != fact.content:
            row = self._index_quietly(revised)
        with self._store.write() as tx:
            before = fact.version if expected is None else expected
            stored = tx.facts.revise(revised, expected=before, indexed=row)
            self._journal(
                tx, fact.scope, by, "revise", kind="fact", target=fact_id, before=before, after=stored.version
            )
            if row is not None and row.vectors is None and self._embedder is not None:
                self._enqueue_embedding(tx, fact.scope)
        self._store.notify()
        return stored

    def _index_quietly(self, fact: Fact) -> Indexed:
        row = _indexed_fact(fact)
        try:
            return self._with_vectors([row], [fact.content])[0]
        except ModelError:
            return row

    def forget(self, scope: Scope, fact_id: str, *, by: Principal, reason: str) -> Fact:
        """Retires one fact: it is never recalled again; its history stays until erased."""
        now = self._clock()
        with self._store.write() as tx:
            fact = tx.facts.get(scope, fact_id)
            retired = replace(fact, status="retired", retired_at=now, updated_at=now, reason=reason)
            stored = tx.facts.revise(retired, expected=fact.version)
            self._journal(
                tx,
                fact.scope,
                by,
                "forget",
                kind="fact",
                target=fact_id,
                reason=reason,
                before=fact.version,
                after=stored.version,
            )
        return stored

    # ---------------------------------------------------------------------------------------- profile and erasure

    def update_profile(
        self,
        scope: Scope,
        *,
        by: Principal,
        sections: Mapping[str, str],
        attributes: Mapping[str, Any],
        expected: int | None,
    ) -> Profile:
        """Sets sections and attributes. See :meth:`everlong.memory.ScopedMemory.update_profile`."""
        unknown = sorted(set(sections) - set(SECTIONS))
        if unknown:
            msg = f"unknown profile section {unknown[0]!r}; known are {', '.join(SECTIONS)}"
            raise InvalidInput(msg)
        _check_json(attributes)
        now = self._clock()
        with self._store.write() as tx:
            profile = tx.profiles.get(scope.home)
            merged = {name: value for name, value in {**profile.attributes, **attributes}.items() if value is not None}
            kept = dict(profile.sections)
            for name, summary in sections.items():
                kept[name] = Section(summary=text.clean(summary).strip(), updated_at=now)
            before = profile.version if expected is None else expected
            stored = tx.profiles.put(
                replace(profile, sections=kept, attributes=merged, updated_at=now), expected=before
            )
            self._journal(
                tx, scope.home, by, "update_profile", kind="profile", before=before, after=stored.version
            )
        return stored

    def erase(self, scope: Scope, *, by: Principal) -> dict[str, int]:
        """Removes everything kept at or within ``scope`` for good. Only the fact that it was done is journalled."""
        with self._store.write() as tx:
            counts = tx.erase(scope)
            self._journal(tx, scope, by, "erase", payload={"counts": counts})
        return counts

    def _journal(self, tx: Transaction, scope: Scope, by: Principal | str, action: str, **fields: Any) -> None:
        who = by if isinstance(by, str) else _name(by)
        tx.journal.append(
            Entry(id=self._new_id("log"), at=self._clock(), scope=scope, by=who, action=action, **fields)
        )


def _key(scope: Scope) -> str:
    return json.dumps(scope.parts, ensure_ascii=False, separators=(",", ":"))


def _name(by: Principal) -> str:
    return f"{by.role}:{by.id}"


def _indexed(message: Message) -> Indexed:
    words = lexical_text(
        message.content,
        speaker=message.speaker,
        created_at=message.created_at,
        caption=str(message.metadata.get("caption", "")),
    )
    return Indexed(terms=text.terms(words))


def _vector_text(message: Message) -> str:
    caption = str(message.metadata.get("caption", ""))
    return vector_text(message.content, speaker=message.speaker, caption=caption)


def _indexed_fact(fact: Fact) -> Indexed:
    return Indexed(terms=text.terms(fact.content))


def _kept_at(tx: Transaction, home: Scope) -> tuple[Fact, ...]:
    """Every active fact kept exactly at ``home``."""
    facts: list[Fact] = []
    cursor = ""
    while True:
        page = tx.facts.list(home, cursor=cursor, limit=500)
        facts += [fact for fact in page.items if fact.scope == home]
        cursor = page.next
        if not cursor:
            return tuple(facts)


def _nearest(cosines: Any, ids: Sequence[str], facts: Mapping[str, Fact]) -> list[tuple[Fact, float]]:
    order = np.argsort(-np.nan_to_num(cosines, nan=-1.0), kind="stable")[:_NEIGHBOURS]
    return [(facts[ids[i]], float(cosines[i])) for i in order if ids[i] in facts and not np.isnan(cosines[i])]


def _pin(changes: ChangeSet) -> ChangeSet:
    return ChangeSet(
        changes=tuple(replace(c, fact=replace(c.fact, pinned=True)) if c.fact else c for c in changes.changes)
    )


def _check_json(attributes: Mapping[str, Any]) -> None:
    try:
        json.dumps(dict(attributes), allow_nan=False)
    except (TypeError, ValueError) as error:
        msg = f"profile attributes must be JSON values: {error}"
        raise InvalidInput(msg) from None
