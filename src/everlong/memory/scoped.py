"""``ScopedMemory``: every operation on memory, as one principal sees it from one scope."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from everlong.errors import InvalidInput
from everlong.memory.files import Files
from everlong.memory.inbox import Inbox
from everlong.memory.skills import SkillShelf
from everlong.middleware import compose
from everlong.protocols import Call
from everlong.read.explain import compared, explained, varied
from everlong.read.presets import adapted, preset_of
from everlong.records import Principal, Query, Recall, Scope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import timedelta

    from everlong.memory.memory import Memory
    from everlong.protocols import Store
    from everlong.read.explain import Explanation, Replay
    from everlong.read.formats import Format
    from everlong.read.presets import Preset
    from everlong.records import (
        Added,
        Context,
        Entry,
        ExtractionRecord,
        Fact,
        FactStatus,
        Job,
        Message,
        Page,
        Profile,
        Remembered,
        Session,
        Trace,
    )
    from everlong.write.writer import Writer

__all__ = ["ScopedMemory"]

T = TypeVar("T")
_REVISABLE: Final = frozenset(
    {"content", "category", "confidence", "importance", "pinned", "valid_from", "valid_until", "metadata"}
)


class ScopedMemory:
    """Memory as one principal sees it from one scope. Every operation passes the same onion: audit, policy, measure.

    Any operation may raise :class:`~everlong.errors.AccessDenied` and :class:`~everlong.errors.StoreError`.
    """

    def __init__(self, memory: Memory, scope: Scope, by: Principal, *, approved_by: str = "") -> None:
        self._memory, self.scope, self.by, self._approved_by = memory, scope, by, approved_by

    def _run(self, action: str, operation: Callable[..., T], /, *, at: Scope | None = None, **arguments: Any) -> T:
        """Runs one operation through the onion; ``at`` is the scope it touches (default: this one)."""
        where = self.scope if at is None else at
        call = Call(action=action, scope=where, by=self.by, arguments=arguments, approved_by=self._approved_by)
        result: T = compose(self._memory.parts.middleware, lambda inner: operation(**inner.arguments))(call)
        return result

    @property
    def _writer(self) -> Writer:
        return self._memory.parts.writer

    @property
    def _store(self) -> Store:
        return self._memory.parts.store

    def as_seen_by(self, by: Principal) -> ScopedMemory:
        """The same memory, touched by another principal."""
        return type(self)(self._memory, self.scope, by)

    def approved_at(self, scope: Scope, asker: Principal, *, by: Principal) -> ScopedMemory:
        """Memory at ``scope`` for one call of ``asker`` that ``by`` has approved: a policy that asks lets it pass, one
        that denies does not."""
        return type(self)(self._memory, scope, asker, approved_by=f"{by.role}:{by.id}")

    @property
    def inbox(self) -> Inbox:
        """What waits for review here."""
        return Inbox(self)

    @property
    def files(self) -> Files:
        """Memory files visible from here."""
        return Files(self)

    @property
    def skills(self) -> SkillShelf:
        """Procedures visible from here, loaded on demand."""
        return SkillShelf(self)

    # ---------------------------------------------------------------------------------------------- conversation

    def add(self, messages: Iterable[Any], *, idempotency_key: str = "") -> Added:
        """Keeps what was said, durably, and returns at once; facts are extracted in the background.

        ``messages`` are dicts (``role``, ``content``, optional ``id``, ``name``, ``created_at``), ``(role, text)``
        pairs, LangChain messages or :class:`~everlong.records.Message`. User input and final answers are kept; tool
        noise, system text and injected memory are not, and the result says so. Giving the same messages again adds
        nothing. ``idempotency_key`` names this call, so that it may be made again at any time and adds only what is
        missing, and so that the same words under another key count as said again.

        Raises:
            InvalidScope: the scope names no session.
            Overloaded: too much waits for extraction already; nothing was stored, try again later.
            InvalidInput: a message has no known role or shape; nothing was stored.
            TooLarge: a message is over the limit; nothing was stored.
        """
        return self._run("add", self._add, messages=messages, idempotency_key=idempotency_key)

    def _add(self, *, messages: Iterable[Any], idempotency_key: str) -> Added:
        added = self._writer.add(self.scope, messages, by=self.by, idempotency_key=idempotency_key)
        if added.status == "queued":
            self._memory.wake()
        return added

    def messages(self, *, limit: int = 50) -> tuple[Message, ...]:
        """The latest messages, oldest first: of this conversation if the scope names one, else of all."""
        return self._run("messages", self._messages, limit=limit)

    def _messages(self, *, limit: int) -> tuple[Message, ...]:
        with self._store.read() as tx:
            if self.scope.session:
                return tx.messages.tail(self.scope, limit=limit)
            return tx.messages.recent(self.scope, limit=limit)

    def sessions(self, *, cursor: str = "", limit: int = 100) -> Page[Session]:
        """The user's conversations, latest first."""
        return self._run("sessions", self._sessions, cursor=cursor, limit=limit)

    def _sessions(self, *, cursor: str, limit: int) -> Page[Session]:
        with self._store.read() as tx:
            return tx.sessions.list(self.scope, cursor=cursor, limit=limit)

    def flush(self) -> int:
        """Makes the work that waits within this scope due now, as when a task is finished; returns how many jobs.

        It is done in the background, right after the present job; :meth:`everlong.memory.Memory.drain` waits for it.
        """
        return self._run("flush", self._flush)

    def _flush(self) -> int:
        hurried = self._writer.flush(self.scope)
        self._memory.wake()
        return hurried

    def clear(self) -> int:
        """Drops the work that waits within this scope: what was said so far is never extracted, not even by a worker
        that is reading it just now. Messages and facts stay; what is said from now on is extracted as ever.

        Returns how many conversations were cleared.
        """
        return self._run("clear", self._clear)

    def _clear(self) -> int:
        return self._writer.clear(self.scope, by=self.by)

    # ---------------------------------------------------------------------------------------------------- reading

    def recall(self, question: str | Query, *, trace: bool = False, **filters: Any) -> Recall:
        """What memory holds on a question, best first, with a score from 0 to 1 and an explanation.

        ``filters`` are the fields of :class:`~everlong.records.Query`: ``kinds``, ``categories``, ``sessions``,
        ``origins``, ``metadata``, ``since``, ``until``, ``as_of``, ``valid_at``, ``min_trust``, ``limit`` and others.

        Raises:
            EmptyText: the question is empty.
            InvalidInput: a filter is unknown or malformed.
        """
        return self._run("recall", self._recall, query=self._query(question, filters), trace=trace)

    def _recall(self, *, query: Query, trace: bool) -> Recall:
        recall = self._memory.parts.reader.recall(self.scope, query)
        self._asked(recall, injected=bool(recall.hits), durable=trace)
        return recall

    def _asked(self, recall: Recall, *, injected: bool, durable: bool) -> None:
        """What follows from a question: its trace, its line in the log, a use of each fact it brought up."""
        parts = self._memory.parts
        parts.traces.keep(recall.trace, by=self.by, durable=durable)
        parts.on_recall(recall, injected=injected)
        left_out = {each.what for each in recall.trace.omitted}
        parts.uses.note([hit for hit in recall.hits if f"fact {hit.id}" not in left_out], parts.clock())
        if parts.uses.full:
            self._memory.wake()

    def context(
        self,
        question: str | Query | None = None,
        *,
        budget: int | None = None,
        preset: str | Preset | None = None,
        format: str | Format | None = None,  # noqa: A002 - the word for it
        max_messages: int | None = None,
        max_tokens: int | None = None,
        time_window: str | timedelta | None = None,
        files: Sequence[str] | None = None,
        trace: bool = False,
        **filters: Any,
    ) -> Context:
        """A block for the agent's prompt: static facts, facts that bear on the question, and conversation, as data.

        Without a question it holds what is known whatever is asked: profile, files, the surest facts, the latest turns.

        Args:
            question: text, or a :class:`~everlong.records.Query`.
            budget: tokens, 100 to 8000; default: the setting ``max_injection_tokens``, 2000. It is never exceeded.
            preset: ``default``, ``deerflow``, ``vector``, ``three-layer`` or a preset of your own; default: the setting.
            format: ``deerflow``, ``marked``, ``layers`` (the last two also with ``-zh``), ``json`` or one of your own.
            max_messages: so many of the latest turns at most (10); 0 shows none.
            max_tokens: tokens of them at most (2000).
            time_window: how old they are at most (``"7d"``).
            files: memory files that are always shown; a path that ends in ``/`` means all below it.
            trace: stores the trace, so that other processes can explain it too; a write.
            filters: fields of :class:`~everlong.records.Query`, as in :meth:`recall`.

        Raises:
            InvalidInput: an option or filter is unknown or malformed.
        """
        budget = self._memory.parts.budget if budget is None else budget
        if not isinstance(budget, int) or not 100 <= budget <= 8000:  # noqa: PLR2004 - the documented range
            msg = f"budget is {budget!r}; it must be 100 to 8000 tokens"
            raise InvalidInput(msg)
        usual = self._memory.parts.preset
        chosen = usual if preset is None else replace(preset_of(preset), shares=usual.shares)
        chosen = adapted(
            chosen,
            format=format,
            max_messages=max_messages,
            max_tokens=max_tokens,
            time_window=time_window,
            files=files,
        )
        query = self._query("" if question is None else question, {**chosen.filters, **filters})
        return self._run("context", self._context, query=query, budget=budget, preset=chosen, trace=trace)

    def _context(self, *, query: Query, budget: int, preset: Preset, trace: bool) -> Context:
        context = self._memory.parts.reader.context(self.scope, query, budget=budget, preset=preset)
        if context.trace is not None:
            recall = Recall(hits=context.hits, trace=context.trace)
            self._asked(recall, injected=bool(context.text), durable=trace)
        return context

    def _query(self, question: str | Query, filters: Mapping[str, Any]) -> Query:
        """The question in the users' zone, unless it names another."""
        return _query(question, {"zone": self._memory.parts.zone, **filters})

    def explain(self, trace_id: str) -> Trace:
        """Why a recall found what it found: every candidate, its score parts, and why it was kept or dropped.

        The latest 1,000 of this process are known, and those stored because the call said ``trace=True`` or by the
        setting ``trace_sample``.

        Raises:
            NotFound: no such trace of this scope.
        """
        return self._run("explain", self._memory.parts.traces.get, scope=self.scope, trace_id=trace_id)

    def traces(self, *, limit: int = 20) -> tuple[Trace, ...]:
        """The latest traces that can be explained here, newest first."""
        return self._run("explain", self._memory.parts.traces.latest, scope=self.scope, limit=limit)

    def explanation(self, trace_id: str) -> Explanation:
        """:meth:`explain` as a person reads it: with the candidates' texts as they stand now, what the block left out,
        and the stages in order. Raises :class:`~everlong.errors.NotFound`."""
        return self._run("explain", self._explanation, trace_id=trace_id)

    def _explanation(self, *, trace_id: str) -> Explanation:
        trace = self._memory.parts.traces.get(self.scope, trace_id)
        with self._store.read() as tx:
            return explained(tx, self.scope, trace)

    def replay(self, trace_id: str, **changes: Any) -> Replay:
        """Asks the question of a trace again with other settings, as at the time of the trace, and compares.

        ``changes`` are fields of :class:`~everlong.records.Query`, such as ``limit`` or ``min_score``. Memory is asked
        as it is now; ``as_of=trace.at`` asks it as it was then. Nothing is counted or stored.

        Raises:
            NotFound: no such trace of this scope. InvalidInput: a setting is unknown or malformed.
        """
        return self._run("explain", self._replay, trace_id=trace_id, changes=changes)

    def _replay(self, *, trace_id: str, changes: Mapping[str, Any]) -> Replay:
        before = self._memory.parts.traces.get(self.scope, trace_id)
        after = self._memory.parts.reader.recall(before.scope, varied(before, changes)).trace
        with self._store.read() as tx:
            return compared(tx, self.scope, before, after, changes)

    # ------------------------------------------------------------------------------------------------------ facts

    def remember(
        self, content: str, *, category: str = "context", confidence: float = 1.0, pinned: bool = False
    ) -> Remembered:
        """Stores one fact at once: added, or merged into what was known; the result says which and why.

        Raises:
            EmptyText: there is no text. TooLarge: over 2,000 characters. UnknownCategory: not a known category.
            InvalidInput: ``confidence`` is not from 0 to 1.
        """
        _check_share("confidence", confidence)
        return self._run(
            "remember", self._remember, content=content, category=category, confidence=confidence, pinned=pinned
        )

    def _remember(self, **fields: Any) -> Remembered:
        remembered = self._writer.remember(self.scope, by=self.by, **fields)
        self._memory.wake()
        return remembered

    def facts(
        self,
        *,
        status: FactStatus | None = "active",
        categories: Sequence[str] = (),
        cursor: str = "",
        limit: int = 100,
        as_of: datetime | None = None,
        valid_at: datetime | None = None,
    ) -> Page[Fact]:
        """Facts visible from here, newest first, a page at a time; ``status=None`` lists retired and held ones too.

        ``as_of`` lists what was known then, as it was known; ``valid_at`` only what holds at that time of the world.

        Raises:
            InvalidInput: ``cursor`` is of another list, or a time has no zone.
        """
        return self._run(
            "facts",
            self._facts,
            status=status,
            categories=categories,
            cursor=cursor,
            limit=limit,
            as_of=_time("as_of", as_of),
            valid_at=_time("valid_at", valid_at),
        )

    def _facts(self, **options: Any) -> Page[Fact]:
        with self._store.read() as tx:
            return tx.facts.list(self.scope, **options)

    def fact(self, fact_id: str) -> Fact:
        """One fact by id. Raises :class:`~everlong.errors.NotFound`."""
        return self._run("fact", self._fact, fact_id=fact_id)

    def _fact(self, *, fact_id: str) -> Fact:
        with self._store.read() as tx:
            return tx.facts.get(self.scope, fact_id)

    def history(self, fact_id: str) -> tuple[Fact, ...]:
        """Every version of a fact, oldest first. Raises :class:`~everlong.errors.NotFound`."""
        return self._run("history", self._history, fact_id=fact_id)

    def _history(self, *, fact_id: str) -> tuple[Fact, ...]:
        with self._store.read() as tx:
            return tx.facts.history(self.scope, fact_id)

    def revise(self, fact_id: str, *, expected: int | None = None, **changes: Any) -> Fact:
        """Changes a fact's ``content``, ``category``, ``confidence``, ``importance``, ``pinned``, ``valid_from``,
        ``valid_until`` or ``metadata``; everything else stays, the old version goes into history.

        Raises:
            NotFound: no such fact. Conflict: its version is not ``expected``. InvalidInput: another field is named.
        """
        unknown = sorted(set(changes) - _REVISABLE)
        if unknown or not changes:
            msg = f"cannot change {unknown[0] if unknown else 'nothing'}; a fact's {', '.join(sorted(_REVISABLE))} can"
            raise InvalidInput(msg)
        for name in ("confidence", "importance"):
            if name in changes:
                _check_share(name, changes[name])
        return self._run("revise", self._revise, fact_id=fact_id, expected=expected, changes=changes)

    def _revise(self, **fields: Any) -> Fact:
        return self._writer.revise(self.scope, by=self.by, **fields)

    def forget(self, fact_id: str, *, reason: str = "asked to forget") -> Fact:
        """Retires one fact: no recall and no prompt shows it again. Its history stays until erased.

        Raises:
            NotFound: no such fact.
        """
        return self._run("forget", self._forget, fact_id=fact_id, reason=reason)

    def _forget(self, **fields: Any) -> Fact:
        return self._writer.forget(self.scope, by=self.by, **fields)

    def restore(self, fact_id: str, *, reason: str = "asked to restore") -> Fact:
        """Makes a retired or superseded fact active again. What replaced it stays, and no longer in its place.

        Raises:
            NotFound: no such fact. InvalidInput: it is not retired, or was turned away in review.
        """
        return self._run("restore", self._restore, fact_id=fact_id, reason=reason)

    def _restore(self, **fields: Any) -> Fact:
        restored = self._writer.restore(self.scope, by=self.by, **fields)
        self._memory.wake()
        return restored

    # ---------------------------------------------------------------------------------------------------- profile

    def profile(self, *, as_of: datetime | None = None) -> Profile:
        """The profile kept at this scope less its session, as it is or as it stood ``as_of`` a time; version 0 when
        there is none. Raises :class:`~everlong.errors.InvalidInput` for a time without a zone."""
        return self._run("profile", self._profile, as_of=_time("as_of", as_of))

    def _profile(self, *, as_of: datetime | None) -> Profile:
        with self._store.read() as tx:
            return tx.profiles.get(self.scope.home) if as_of is None else tx.profiles.as_of(self.scope.home, as_of)

    def update_profile(
        self,
        *,
        sections: Mapping[str, str] | None = None,
        attributes: Mapping[str, Any] | None = None,
        expected: int | None = None,
    ) -> Profile:
        """Sets prose sections (DeerFlow's six) and attributes such as a birthday; ``None`` removes an attribute.

        Raises:
            InvalidInput: an unknown section, or an attribute that is not a JSON value.
            Conflict: the profile's version is not ``expected``.
        """
        return self._run(
            "update_profile",
            self._update_profile,
            sections=dict(sections or {}),
            attributes=dict(attributes or {}),
            expected=expected,
        )

    def _update_profile(self, **fields: Any) -> Profile:
        return self._writer.update_profile(self.scope, by=self.by, **fields)

    # -------------------------------------------------------------------------------------------- jobs, audit, end

    def jobs(self) -> tuple[Job, ...]:
        """Work that waits, runs or was parked within this scope, soonest first."""
        return self._run("jobs", self._jobs)

    def _jobs(self) -> tuple[Job, ...]:
        with self._store.read() as tx:
            return tx.jobs.list(self.scope)

    def retry(self, job_id: str) -> Job:
        """Lets a parked job run again. Raises :class:`~everlong.errors.NotFound`."""
        return self._run("retry", self._release, job_id=job_id)

    def _release(self, *, job_id: str) -> Job:
        with self._store.write() as tx:
            job = tx.jobs.release(self.scope, job_id, now=self._memory.parts.clock())
        self._memory.wake()
        return job

    def journal(self, *, target: str = "", action: str = "", cursor: str = "", limit: int = 100) -> Page[Entry]:
        """Who changed what here and why, newest first: additions, merges, refusals, extractions, erasures."""
        return self._run("journal", self._journal, target=target, action=action, cursor=cursor, limit=limit)

    def _journal(self, **options: Any) -> Page[Entry]:
        with self._store.read() as tx:
            return tx.journal.list(self.scope, **options)

    def extractions(self, *, cursor: str = "", limit: int = 100) -> Page[ExtractionRecord]:
        """What every extraction within this scope read, answered, decided and cost, newest first."""
        return self._run("extractions", self._extractions, cursor=cursor, limit=limit)

    def _extractions(self, **options: Any) -> Page[ExtractionRecord]:
        with self._store.read() as tx:
            return tx.extractions.list(self.scope, **options)

    def extraction(self, record_id: str) -> ExtractionRecord:
        """One extraction by id. Raises :class:`~everlong.errors.NotFound`."""
        return self._run("extraction", self._extraction, record_id=record_id)

    def _extraction(self, *, record_id: str) -> ExtractionRecord:
        with self._store.read() as tx:
            return tx.extractions.get(self.scope, record_id)

    def erase(self) -> dict[str, int]:
        """Removes everything kept at or within this scope for good; returns how many records of each kind.

        With a session in the scope: that conversation and what was learned in it.
        """
        return self._run("erase", self._erase)

    def _erase(self) -> dict[str, int]:
        counts = self._writer.erase(self.scope, by=self.by)
        self._memory.parts.traces.erase(self.scope)
        self._memory.parts.uses.forget(self.scope)
        self._memory.parts.reader.forget(self.scope)
        self._memory.parts.index.forget(self.scope.home)
        return counts


def _query(question: str | Query, filters: Mapping[str, Any]) -> Query:
    if isinstance(question, Query):
        return question
    if not isinstance(question, str):
        msg = f"a question must be text, not {type(question).__name__}"
        raise InvalidInput(msg)
    try:
        return Query(text=question, **filters)
    except TypeError as error:
        known = ", ".join(name for name in Query.__slots__ if name != "text")
        msg = f"{error}; filters are {known}"
        raise InvalidInput(msg) from None


def _time(name: str, at: datetime | None) -> datetime | None:
    if at is not None and (not isinstance(at, datetime) or at.tzinfo is None):
        msg = f"{name} is {at!r}; it must be a time with its zone"
        raise InvalidInput(msg)
    return at


def _check_share(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        msg = f"{name} is {value!r}; it must be a number from 0 to 1"
        raise InvalidInput(msg)
