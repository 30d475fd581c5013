"""What workers do with a conversation: give it vectors, and turn it into facts. No model call inside a transaction."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from everlong.errors import Conflict, ModelError, UnusableExtraction
from everlong.protocols import Indexed
from everlong.records import (
    Batch,
    Change,
    ChangeSet,
    Extraction,
    ExtractionRecord,
    Job,
    Message,
    Outcome,
    Scope,
    Session,
    Usage,
)
from everlong.write.apply import index_fact, index_message, job_key, kept_at, revision_of, words_for_vector
from everlong.write.nearby import nearby

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from everlong.protocols import Clock, Embedder, Extractor, Index, NewId, Store, Transaction
    from everlong.write.apply import Applier

__all__ = ["Background"]

_BATCH: Final = 20
"""Messages in one extraction at most; an extractor may take fewer. What is left over makes another job."""
_CONTEXT: Final = 4
"""Messages before the batch that an extractor sees for understanding."""
_EMBED_BATCH: Final = 64
_GIVE_UP: Final = 3
"""A model that fails with so many single texts in a row, and none before, is down: the others are not tried."""
_ATTEMPTS: Final = 3


@dataclass(frozen=True, slots=True)
class _Asked:
    """What an extractor answered to a batch, and how long it took."""

    batch: Batch
    extraction: Extraction
    milliseconds: float
    epoch: str

    def answers(self, batch: Batch, state: Session) -> bool:
        """Whether it is an answer to the same messages, and nothing was taken out of memory since it was given: then it
        may tell what is to be forgotten."""
        same = [m.id for m in self.batch.messages] == [m.id for m in batch.messages]
        return same and self.epoch == state.epoch


class Background:
    """The tasks ``embed`` and ``extract``.

    ``daily_tokens`` bounds what extraction may use for one user in one day (UTC), input and output together; 0 means
    no bound. Work over it waits for the next day. It is looked at before a call, so one call may exceed it.
    """

    def __init__(
        self,
        *,
        store: Store,
        applier: Applier,
        index: Index,
        embedder: Embedder | None,
        extractor: Extractor,
        clock: Clock,
        new_id: NewId,
        zone: str = "UTC",
        daily_tokens: int = 0,
        on_record: Callable[[ExtractionRecord], None] = lambda _: None,
    ) -> None:
        self._store, self._applier, self._index = store, applier, index
        self._embedder, self._extractor = embedder, extractor
        self._clock, self._new_id, self._zone, self._daily_tokens = clock, new_id, zone, daily_tokens
        self._on_record = on_record

    # ---------------------------------------------------------------------------------------------------- embed

    def embed(self, job: Job) -> None:
        """Task ``embed``: gives every message and fact kept at the job's scope that lacks a vector of the present model
        its vector. Each batch is stored as soon as it is done; vectors of other models stay beside it.

        Raises:
            ModelError: some texts could not be embedded; all others were, and the job should be tried again.
        """
        if self._embedder is None:
            with self._store.write() as tx:
                tx.jobs.done(job)
            return
        while self._embed_messages(job.scope) or self._embed_facts(job.scope) or self._embed_passages(job.scope):
            pass
        with self._store.write() as tx:
            tx.jobs.done(job)
            if self._pending(tx, job.scope):
                self._applier.enqueue_embedding(tx, job.scope)

    def _pending(self, tx: Transaction, home: Scope) -> bool:
        model = self._model
        shelves = (tx.messages, tx.facts, tx.passages)
        return any(shelf.unembedded(home, model, limit=1) for shelf in shelves)

    @property
    def _model(self) -> str:
        return self._embedder.model if self._embedder else ""

    def _embed_messages(self, home: Scope) -> int:
        with self._store.read() as tx:
            messages = tx.messages.unembedded(home, self._model, limit=_EMBED_BATCH)
        if not messages:
            return 0
        indexed, failed = self._vectors([index_message(m) for m in messages], [words_for_vector(m) for m in messages])
        with self._store.write() as tx:
            done = sum(
                tx.messages.set_vectors(replace(m.scope, session=m.session), m.id, row)
                for m, row in zip(messages, indexed, strict=True)
                if row is not None
            )
        return _progress(done, failed)

    def _embed_facts(self, home: Scope) -> int:
        with self._store.read() as tx:
            facts = tx.facts.unembedded(home, self._model, limit=_EMBED_BATCH)
        if not facts:
            return 0
        indexed, failed = self._vectors([index_fact(f) for f in facts], [f.content for f in facts])
        with self._store.write() as tx:
            done = sum(
                tx.facts.set_vectors(f.scope, f.id, row)
                for f, row in zip(facts, indexed, strict=True)
                if row is not None
            )
        return _progress(done, failed)

    def _embed_passages(self, place: Scope) -> int:
        with self._store.read() as tx:
            passages = tx.passages.unembedded(place, self._model, limit=_EMBED_BATCH)
        if not passages:
            return 0
        indexed, failed = self._vectors([Indexed(terms=()) for _ in passages], [p.content for p in passages])
        with self._store.write() as tx:
            made = [(p, row) for p, row in zip(passages, indexed, strict=True) if row is not None]
            done = sum(tx.passages.set_vectors(passage, row) for passage, row in made)
        return _progress(done, failed)

    def _vectors(self, rows: Sequence[Indexed], texts: Sequence[str]) -> tuple[list[Indexed | None], ModelError | None]:
        """``rows`` with vectors, in one call, or each alone when that fails: one bad text holds up no other."""
        try:
            return [*self._applier.with_vectors(rows, texts)], None
        except ModelError as error:
            failed = error
        found: list[Indexed | None] = []
        for row, text in zip(rows, texts, strict=True):
            try:
                found += self._applier.with_vectors([row], [text])
            except ModelError as error:
                failed = error
                found.append(None)
                if len(found) == _GIVE_UP and not any(found):
                    break
        return found + [None] * (len(rows) - len(found)), failed if None in found else None

    # -------------------------------------------------------------------------------------------------- extract

    def extract(self, job: Job) -> None:
        """Task ``extract``: turns a conversation's new messages into facts, exactly once in effect.

        An answer is kept over a conflict: the model is asked again only when the messages themselves are others.

        Raises:
            ModelError: the extractor's model failed; the job should be tried again.
            Conflict: others kept changing the same memory; the job should be tried again.
        """
        asked: _Asked | None = None
        for attempt in range(1, _ATTEMPTS + 1):
            state, batch = self._read_batch(job)
            if state is None or not batch.messages:
                with self._store.write() as tx:
                    tx.jobs.done(job)
                return
            if asked is None or not asked.answers(batch, state):
                if _worthwhile(batch) and self._over_the_day(job):
                    return
                asked = self._ask(state, batch)
            try:
                self._land(job, state, batch, asked)
            except Conflict as conflict:
                lost = not self._holds(job)
                if lost or attempt == _ATTEMPTS:
                    self._record(state, self._recorded(asked, error=f"Conflict: {conflict}"))
                if lost:
                    return
                if attempt == _ATTEMPTS:
                    raise
            else:
                return

    def _holds(self, job: Job) -> bool:
        """Whether the job is still ours: it is not once its scope was erased, or another worker took it over."""
        with self._store.read() as tx:
            running = tx.jobs.list(job.scope, state="running")
        return any((j.id, j.worker, j.attempts) == (job.id, job.worker, job.attempts) for j in running)

    def _over_the_day(self, job: Job) -> bool:
        """Whether the day's tokens are used up; the job then waits for the next day, at no attempt."""
        if not self._daily_tokens:
            return False
        today = self._clock().replace(hour=0, minute=0, second=0, microsecond=0)
        user = replace(job.scope.home, agent="") if job.scope.user else job.scope.home
        with self._store.read() as tx:
            usage = tx.extractions.usage(user, since=today)
        used = usage.input_tokens + usage.output_tokens
        if used < self._daily_tokens:
            return False
        reason = f"{used} tokens were used for {user} today; daily_tokens is {self._daily_tokens}"
        with self._store.write() as tx:
            tx.jobs.postpone(job, run_after=today + timedelta(days=1), reason=reason)
        return True

    def _ask(self, state: Session, batch: Batch) -> _Asked:
        if not _worthwhile(batch):
            return _Asked(batch, Extraction(extractor="skipped: trivial turns"), 0.0, state.epoch)
        begun = time.perf_counter()
        facts = nearby(batch, store=self._store, index=self._index, embedder=self._embedder)
        shown = replace(batch, facts=facts, messages=_told(batch.messages), context=_told(batch.context))
        try:
            extraction = self._extractor.extract(shown)
        except ModelError as error:
            raw = error.raw if isinstance(error, UnusableExtraction) else ""
            failed = Extraction(extractor=self._extractor.name, raw=raw, usage=error.usage or Usage())
            asked = _Asked(batch, failed, _since(begun), state.epoch)
            self._record(state, self._recorded(asked, error=f"{type(error).__name__}: {error}"))
            raise
        if extraction.taken is not None and 0 < extraction.taken <= len(shown.messages):
            last = shown.messages[extraction.taken - 1]
            extraction = replace(extraction, taken=batch.messages.index(last) + 1)
        return _Asked(batch, extraction, _since(begun), state.epoch)

    def _land(self, job: Job, state: Session, batch: Batch, asked: _Asked) -> None:
        """Stores what came of an answer, moves the watermark over what was read, and ends the job: all or nothing."""
        extraction = asked.extraction
        batch = replace(batch, messages=_taken(batch, extraction))
        changes, indexed = self._applier.decide(extraction, batch)
        record = self._recorded(asked, changes=changes)
        by = f"extractor:{extraction.extractor}"
        with self._store.write() as tx:
            last = batch.messages[-1].position
            # Facts before the session, as an erasure takes them: so the two never wait for each other in a circle.
            self._applier.apply(tx, changes, indexed, batch.profile, by=by, talk=batch.scope, revision=batch.revision)
            tx.sessions.advance(state, extracted=last)
            tx.extractions.append(record)
            self._applier.journal(tx, batch.scope, by, "extract", kind="extraction", target=record.id)
            if not tx.jobs.done(job):
                raise Conflict(f"job {job.id}", expected=job.worker, actual="another worker")
            if tx.messages.after(job.scope, last, limit=1):
                self._enqueue_rest(tx, job.scope)
        self._on_record(record)
        self._store.notify()

    def _enqueue_rest(self, tx: Transaction, session: Scope) -> None:
        now = self._clock()
        rest = Job(
            id=self._new_id("job"), kind="extract", key=job_key(session), scope=session, run_after=now, first_at=now
        )
        tx.jobs.put(rest, latest=now)

    def _read_batch(self, job: Job) -> tuple[Session | None, Batch]:
        """What is new in a conversation. Each further attempt reads half as much: an answer that was cut off, or that a
        single message spoils, would else fail for ever and hold up what was said after it."""
        session, most = job.scope, max(_BATCH >> max(job.attempts - 1, 0), 1)
        with self._store.read() as tx:
            state = tx.sessions.get(session)
            done = state.extracted if state else 0
            messages = tx.messages.after(session, done, limit=most)
            context = tx.messages.tail(session, limit=_CONTEXT, before=messages[0].position) if messages else ()
            batch = Batch(
                scope=session,
                messages=messages,
                context=context,
                profile=tx.profiles.get(session.home),
                facts=kept_at(tx, session.home),
                now=self._clock(),
                zone=self._zone,
                revision=revision_of(tx, session.home),
            )
        return state, batch

    # --------------------------------------------------------------------------------------------------- record

    def _recorded(self, asked: _Asked, *, changes: ChangeSet | None = None, error: str = "") -> ExtractionRecord:
        extraction = asked.extraction
        return ExtractionRecord(
            id=self._new_id("ext"),
            scope=asked.batch.scope,
            at=self._clock(),
            extractor=extraction.extractor,
            prompt=extraction.prompt,
            messages=tuple(m.id for m in _taken(asked.batch, extraction)),
            decisions=_outcomes(changes) if changes else (),
            skipped=extraction.skipped,
            raw=extraction.raw,
            usage=extraction.usage,
            milliseconds=asked.milliseconds,
            error=error,
        )

    def _record(self, state: Session, record: ExtractionRecord) -> None:
        """Keeps the record of what failed, unless the conversation was cleared or erased meanwhile."""
        with self._store.write() as tx:
            present = tx.sessions.get(record.scope)
            if present is not None and present.epoch == state.epoch:
                tx.extractions.append(record)
        self._on_record(record)


def _progress(done: int, failed: ModelError | None) -> int:
    """How many got a vector. Raises when none did: what is left is what fails."""
    if failed is not None and not done:
        raise failed
    return done


def _worthwhile(batch: Batch) -> bool:
    """Whether the user said anything that may hold a fact."""
    return any(m.role == "user" and "trivial" not in m.signals for m in batch.messages)


def _told(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Those that still have their words."""
    return tuple(message for message in messages if "forgotten" not in message.signals)


def _taken(batch: Batch, extraction: Extraction) -> tuple[Message, ...]:
    """What an extractor read: at least one message, or the work would never end."""
    return batch.messages if extraction.taken is None else batch.messages[: max(extraction.taken, 1)]


def _outcomes(changes: ChangeSet) -> tuple[Outcome, ...]:
    """A line for each decision: what it was about, and the fact that came of it or was touched."""
    return tuple(
        Outcome(
            kind=change.kind,
            reason=change.reason,
            content=_about(change),
            fact_id=change.fact.id if change.fact else "",
        )
        for change in changes.changes
    )


def _about(change: Change) -> str:
    if change.fact is not None:
        return change.fact.content
    return change.candidate.content if change.candidate is not None else change.summary


def _since(begun: float) -> float:
    return (time.perf_counter() - begun) * 1000
