"""The write path's front: what was said, or is remembered by hand, is stored in one transaction each."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

from everlong import text
from everlong.errors import (
    Conflict,
    EmptyText,
    InvalidInput,
    InvalidScope,
    Overloaded,
    TooLarge,
    UnknownCategory,
)
from everlong.records import (
    SECTIONS,
    TRUST,
    Added,
    Batch,
    Candidate,
    ChangeSet,
    Evidence,
    Extraction,
    Fact,
    Job,
    Message,
    Principal,
    Profile,
    Receipt,
    Remembered,
    Scope,
    Section,
)
from everlong.write.apply import index_message, job_key, kept_at, name_of, revision_of
from everlong.write.capture import capture
from everlong.write.receipts import sign

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everlong.protocols import Backlog, Clock, Embedder, Indexed, NewId, Store, TokenCounter, Transaction
    from everlong.records import Origin
    from everlong.write.apply import Applier
    from everlong.write.signals import Rules

__all__ = ["Debounce", "Limits", "Writer"]

_PATIENCE: Final = 30.0
"""Seconds in which a fact given by hand finds its place among others: as long as a writer waits for its turn. Each time
that others were first one of them got through, so a crowd comes to its end."""
_EXTRACT: Final = "extract"
_MAX_FACT: Final = 2000
_LATEST: Final = 10_000
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
    """So many messages since the last extraction make the next one due at once."""
    tokens: int = 4000
    """So many tokens in them, too: the messages that fit into one extraction with a small model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How much may wait before more is refused with :class:`~everlong.errors.Overloaded`."""

    messages: int = 10_000
    """Messages of one home scope (one user with one agent) that still have to be extracted."""
    jobs: int = 10_000
    """Waiting jobs of one organisation; conversations whose work waits already may go on."""


class Writer:
    """Stores messages, and facts, profiles and files that are given by hand."""

    def __init__(
        self,
        *,
        store: Store,
        applier: Applier,
        embedder: Embedder | None,
        categories: Sequence[str],
        clock: Clock,
        new_id: NewId,
        debounce: Debounce,
        limits: Limits | None = None,
        count_tokens: TokenCounter = text.estimate_tokens,
        zone: str = "UTC",
        max_chars: int = 1_000_000,
        signals: Rules | None = None,
        signing_key: str = "",
    ) -> None:
        self._store, self._applier, self._embedder, self._categories = store, applier, embedder, tuple(categories)
        self._clock, self._new_id, self._debounce, self._limits = clock, new_id, debounce, limits or Limits()
        self._count_tokens = count_tokens
        self._zone, self._max_chars, self._signals = zone, max_chars, signals
        self._signing_key = signing_key
        self._accepted: deque[Scope] = deque(maxlen=_LATEST)

    @property
    def accepted(self) -> tuple[Scope, ...]:
        """Where this writer made work: its latest conversations, at most 10,000, and their homes, each once."""
        conversations = tuple(dict.fromkeys(self._accepted.copy()))
        return (*conversations, *dict.fromkeys(conversation.home for conversation in conversations))

    def add(self, session: Scope, messages: Iterable[Any], *, by: Principal, idempotency_key: str = "") -> Added:
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
                incoming,
                session=session,
                tail=tail,
                now=now,
                new_id=self._new_id,
                max_chars=self._max_chars,
                key=idempotency_key,
                rules=self._signals,
            )
            stored: tuple[Message, ...] = ()
            if captured.messages:
                stored = tx.messages.append(session, captured.messages, [index_message(m) for m in captured.messages])
            fresh = {message.id for message in stored}
            again = tuple(m.id for m in captured.messages if m.id not in fresh)
            if idempotency_key and again:
                _check_same(tx, session, captured.messages, idempotency_key)
            duplicates = (*captured.duplicates, *again)
            if not stored:
                return Added(
                    status="duplicate" if duplicates else "nothing", duplicates=duplicates, ignored=captured.ignored
                )
            job = self._enqueue(tx, session, stored, urgent=captured.urgent)
            self._applier.journal(
                tx, session, by, "add", kind="message", target=stored[-1].id, after=stored[-1].position
            )
        if not self._accepted or self._accepted[-1] != session:
            self._accepted.append(session)
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
        backlog = tx.messages.backlog(session)
        self._check_room(
            backlog.at_home - len(stored), self._limits.messages, f"messages of {session.home}", "messages"
        )
        due = urgent or self._enough(tx, session, backlog)
        asked = Job(
            id=self._new_id("job"),
            kind=_EXTRACT,
            key=job_key(session),
            scope=session,
            run_after=now if due else now + self._debounce.pause,
            first_at=now,
        )
        job = tx.jobs.put(asked, latest=now + self._debounce.longest)
        if job.id == asked.id:
            waiting = tx.jobs.count(state="waiting", org=session.org) - 1
            whose = f"jobs of organisation {session.org!r}" if session.org else "jobs"
            self._check_room(waiting, self._limits.jobs, whose, "jobs")
        if self._embedder is not None:
            self._applier.enqueue_embedding(tx, session.home)
        return job

    def _enough(self, tx: Transaction, session: Scope, backlog: Backlog) -> bool:
        """Whether so much was said since the last extraction that it should not wait for a pause."""
        if backlog.messages >= self._debounce.messages:
            return True
        if 2 * backlog.characters < self._debounce.tokens:  # cheaper than counting, and few scripts take more
            return False
        state = tx.sessions.get(session)
        unread = tx.messages.after(session, state.extracted if state else 0, limit=backlog.messages)
        return sum(self._count_tokens(message.content) for message in unread) >= self._debounce.tokens

    @staticmethod
    def _check_room(waiting: int, limit: int, whose: str, setting: str) -> None:
        """Raises :class:`Overloaded` when ``waiting`` has reached ``limit``; what the transaction did is undone."""
        if waiting >= limit:
            msg = (
                f"{waiting} {whose} wait already and nothing was stored: try again later, start more workers "
                f"(everlong worker), or raise max_waiting_{setting} (now {limit})"
            )
            raise Overloaded(msg)

    def flush(self, scope: Scope) -> int:
        """Makes the work that waits within ``scope`` due now. See :meth:`everlong.memory.ScopedMemory.flush`."""
        with self._store.write() as tx:
            return tx.jobs.hurry(scope, now=self._clock())

    def reembed(self) -> int:
        """Makes work for every place where a text lacks a vector of the present model; returns how many there are."""
        if self._embedder is None:
            return 0
        with self._store.write() as tx:
            places = tx.index.unembedded(self._embedder.model)
            for place in places:
                self._applier.enqueue_embedding(tx, place)
        self._store.notify()
        return len(places)

    def clear(self, scope: Scope, *, by: Principal) -> int:
        """Leaves what was said within ``scope`` so far unextracted for good, also what a worker is reading just now.
        See :meth:`everlong.memory.ScopedMemory.clear`."""
        with self._store.write() as tx:
            sessions = tx.sessions.fence(scope)
            jobs = tx.jobs.cancel(scope, (_EXTRACT,))
            self._applier.journal(tx, scope, by, "clear", payload={"sessions": sessions, "jobs": jobs})
        return sessions

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
        until = monotonic() + _PATIENCE
        while True:
            with self._store.read() as tx:
                batch = Batch(
                    scope=scope,
                    messages=(said,),
                    profile=tx.profiles.get(scope.home),
                    facts=kept_at(tx, scope.home),
                    now=now,
                    zone=self._zone,
                    revision=revision_of(tx, scope.home),
                )
            changes, indexed = self._applier.decide(Extraction(candidates=(candidate,), extractor="by hand"), batch)
            try:
                return self._land(_pin(changes) if pinned else changes, indexed, batch, by)
            except Conflict:  # others changed the same facts meanwhile: decide anew over what is known now
                if monotonic() > until:
                    raise

    def _land(self, changes: ChangeSet, indexed: Mapping[str, Indexed], batch: Batch, by: Principal) -> Remembered:
        with self._store.write() as tx:
            stored = self._applier.apply(
                tx, changes, indexed, batch.profile, by=name_of(by), talk=batch.scope, revision=batch.revision
            )
        self._store.notify()
        change = next(c for c in changes.changes if c.kind != "retire" or c.candidate is not None)
        fact = stored.get(change.fact.id) if change.fact else None
        return Remembered(outcome=change.kind, reason=change.reason, fact=fact)

    def _fact_text(self, content: object) -> str:
        if not isinstance(content, str):
            msg = f"a fact's content must be text, not {type(content).__name__}"
            raise InvalidInput(msg)
        cleaned = text.clean(content).strip()
        if not text.normal(cleaned):
            msg = "a fact needs some text"
            raise EmptyText(msg)
        if len(cleaned) > _MAX_FACT:
            msg = f"a fact has {len(cleaned)} characters; {_MAX_FACT} at most, it should be one sentence"
            raise TooLarge(msg)
        return cleaned

    def _category(self, category: str) -> str:
        if category not in self._categories:
            msg = f"unknown category {category!r}; known are {', '.join(self._categories)}"
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
            revised = _believed(revised, _BY_ROLE[by.role])
            row = self._applier.index_quietly(revised)
        with self._store.write() as tx:
            before = fact.version if expected is None else expected
            stored = tx.facts.revise(revised, expected=before, indexed=row)
            self._applier.journal(
                tx, fact.scope, by, "revise", kind="fact", target=fact_id, before=before, after=stored.version
            )
            if row is not None and row.vectors is None and self._embedder is not None:
                self._applier.enqueue_embedding(tx, fact.scope)
        self._store.notify()
        return stored

    def forget(self, scope: Scope, fact_id: str, *, by: Principal, reason: str) -> Fact:
        """Retires one fact: it is never recalled again; its history stays until erased."""
        now = self._clock()
        with self._store.write() as tx:
            fact = tx.facts.get(scope, fact_id)
            retired = replace(fact, status="retired", retired_at=now, updated_at=now, reason=reason)
            stored = tx.facts.revise(retired, expected=fact.version)
            self._applier.journal(
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

    def restore(self, scope: Scope, fact_id: str, *, by: Principal, reason: str) -> Fact:
        """Makes a retired fact active again. See :meth:`everlong.memory.ScopedMemory.restore`."""
        now = self._clock()
        with self._store.write() as tx:
            fact = tx.facts.get(scope, fact_id)
            if fact.status != "retired":
                raise InvalidInput(f"fact {fact_id} is {fact.status}; only a retired one can be restored")
            if not any(earlier.status == "active" for earlier in tx.facts.history(scope, fact_id)):
                raise InvalidInput(f"fact {fact_id} was turned away in review and never held; remember it instead")
            restored = replace(fact, status="active", retired_at=None, updated_at=now, reason=reason, superseded_by="")
            stored = tx.facts.revise(restored, expected=fact.version)
            told = {
                "kind": "fact",
                "target": fact_id,
                "reason": reason,
                "before": fact.version,
                "after": stored.version,
            }
            self._applier.journal(tx, fact.scope, by, "restore", **told)
            if fact.superseded_by:
                self._unlink(tx, stored, fact.superseded_by, by=by)
            if self._embedder is not None:
                self._applier.enqueue_embedding(tx, fact.scope)
        self._store.notify()
        return stored

    def _unlink(self, tx: Transaction, fact: Fact, successor_id: str, *, by: Principal) -> None:
        """Lets the fact that replaced ``fact`` stand beside it, no longer in its place."""
        successor = tx.facts.many(fact.scope, [successor_id]).get(successor_id)
        if successor is None or successor.supersedes != fact.id:
            return
        free = replace(successor, supersedes="", updated_at=fact.updated_at)
        stored = tx.facts.revise(free, expected=successor.version)
        told = {"before": successor.version, "after": stored.version, "reason": f"{fact.id} was restored"}
        self._applier.journal(tx, successor.scope, by, "revise", kind="fact", target=successor_id, **told)

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
            self._applier.journal(
                tx, scope.home, by, "update_profile", kind="profile", before=before, after=stored.version
            )
        return stored

    def erase(self, scope: Scope, *, by: Principal) -> Receipt:
        """Removes everything kept at or within ``scope`` for good. Only the fact that it was done is journalled, under
        the receipt's id."""
        with self._store.write() as tx:
            counts = tx.erase(scope)
            blank = Receipt(id=self._new_id("receipt"), scope=scope, at=self._clock(), by=name_of(by), counts=counts)
            receipt = sign(blank, self._signing_key)
            told = {"counts": counts, "digest": receipt.digest, "signature": receipt.signature}
            self._applier.journal(tx, scope, by, "erase", kind="receipt", target=receipt.id, payload=told)
        return receipt


def _check_same(tx: Transaction, session: Scope, given: Sequence[Message], key: str) -> None:
    """A key used before must come with the same words: else what is new would be lost as if it were known."""
    known = tx.messages.many(session, [message.id for message in given])
    for message in given:
        if message.id in known and known[message.id].content != message.content:
            raise Conflict(f"the message sent with key {key!r}", expected="the same words", actual="other words")


def _believed(fact: Fact, origin: Origin) -> Fact:
    """A fact whose words are another's now: believed no more than whoever wrote them."""
    return replace(fact, origin=origin, trust=TRUST[origin]) if TRUST[origin] < fact.trust else fact


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
