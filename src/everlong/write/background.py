"""What workers do with a conversation: give it vectors, and turn it into facts. No model call inside a transaction."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from everlong.errors import Conflict
from everlong.records import Batch, ChangeSet, Extraction, Job, Scope, Session
from everlong.write.apply import index_fact, index_message, job_key, kept_at, words_for_vector

if TYPE_CHECKING:
    from everlong.protocols import Clock, Embedder, Extractor, NewId, Store, Transaction
    from everlong.write.apply import Applier

__all__ = ["Background"]

_BATCH: Final = 20
"""Messages in one extraction, few enough for a model's window; what is left over makes another job."""
_CONTEXT: Final = 4
"""Messages before the batch that an extractor sees for understanding."""
_EMBED_BATCH: Final = 64
_ATTEMPTS: Final = 3


class Background:
    """The tasks ``embed`` and ``extract``."""

    def __init__(
        self,
        *,
        store: Store,
        applier: Applier,
        embedder: Embedder | None,
        extractor: Extractor,
        clock: Clock,
        new_id: NewId,
        zone: str = "UTC",
    ) -> None:
        self._store, self._applier, self._embedder, self._extractor = store, applier, embedder, extractor
        self._clock, self._new_id, self._zone = clock, new_id, zone

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
                self._applier.enqueue_embedding(tx, job.scope)

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
        indexed = self._applier.with_vectors(
            [index_message(m) for m in messages], [words_for_vector(m) for m in messages]
        )
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
        indexed = self._applier.with_vectors([index_fact(f) for f in facts], [f.content for f in facts])
        with self._store.write() as tx:
            return sum(tx.facts.set_vectors(f.scope, f.id, row) for f, row in zip(facts, indexed, strict=True))

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
        changes, indexed = self._applier.decide(extraction, batch)
        with self._store.write() as tx:
            last = batch.messages[-1].position
            tx.sessions.advance(state, extracted=last)
            self._applier.apply(tx, changes, indexed, batch.profile, by=f"extractor:{extraction.extractor}")
            self._record_extraction(tx, job, batch, extraction, changes)
            if not tx.jobs.done(job):
                raise Conflict(f"job {job.id}", expected=job.worker, actual="another worker")
            if tx.messages.after(job.scope, last, limit=1):
                self._enqueue_rest(tx, job.scope)
        self._store.notify()

    def _enqueue_rest(self, tx: Transaction, session: Scope) -> None:
        now = self._clock()
        rest = Job(
            id=self._new_id("job"), kind="extract", key=job_key(session), scope=session, run_after=now, first_at=now
        )
        tx.jobs.put(rest, latest=now)

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
                facts=kept_at(tx, session.home),
                now=self._clock(),
                zone=self._zone,
            )
        return state, batch

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
        self._applier.journal(tx, batch.scope, by, "extract", kind="session", target=job.id, payload=payload)
