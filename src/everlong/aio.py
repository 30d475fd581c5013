"""The async face: the same operations, each run in a bounded pool of threads, for any event loop.

There is no second implementation: every method here is one line. Values go in and values come out, so a call belongs
to no loop and may be made from any.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

from anyio import CapacityLimiter, to_thread
from anyio.lowlevel import RunVar

from everlong.write.forget import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from datetime import datetime, timedelta
    from pathlib import Path
    from types import TracebackType

    from everlong.memory import Files, Inbox, Memory, ScopedMemory, SkillShelf, Status, Upkeep
    from everlong.memory.transfer import Mode, Place, Transfer
    from everlong.read.explain import Explanation, Replay
    from everlong.read.formats import Format
    from everlong.read.presets import Preset
    from everlong.records import (
        Added,
        AuditReport,
        Context,
        Entry,
        Exported,
        ExtractionRecord,
        Fact,
        FactStatus,
        FileInfo,
        FileLines,
        FileMatches,
        Forgotten,
        Job,
        MemoryFile,
        Message,
        Page,
        Principal,
        Profile,
        Proposal,
        ProposalKind,
        Query,
        Recall,
        Receipt,
        Remembered,
        Scope,
        Session,
        Skill,
        Skills,
        Topic,
        TopicForgotten,
        Trace,
        Transferred,
        Upkept,
        Usage,
        ValueReport,
    )

__all__ = [
    "AsyncFiles",
    "AsyncInbox",
    "AsyncMemory",
    "AsyncScopedMemory",
    "AsyncSkillShelf",
    "AsyncTransfer",
    "AsyncUpkeep",
]

T = TypeVar("T")
_THREADS: Final = 16


class _Pool:
    """Runs calls in threads, so many at once in each event loop (a limiter belongs to one loop, a memory to none)."""

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._limiter: RunVar[CapacityLimiter] = RunVar("everlong-threads")

    async def run(self, call: Callable[..., T], *args: Any, **kwargs: Any) -> T:
        limiter = self._limiter.get(None)
        if limiter is None:
            limiter = CapacityLimiter(self._threads)
            self._limiter.set(limiter)
        return await to_thread.run_sync(partial(call, *args, **kwargs), limiter=limiter)


class AsyncMemory:
    """:class:`~everlong.memory.Memory` for async code: ``AsyncMemory(open_memory(…))``."""

    def __init__(self, memory: Memory, *, threads: int = _THREADS) -> None:
        self.memory, self._pool = memory, _Pool(threads)

    def at(self, scope: Scope, *, by: Principal | None = None) -> AsyncScopedMemory:
        """See :meth:`everlong.memory.Memory.at`."""
        return AsyncScopedMemory(self.memory.at(scope, by=by), self._pool)

    async def drain(self, timeout: float = 60.0) -> int:  # noqa: ASYNC109 - the same signature as the core
        """See :meth:`everlong.memory.Memory.drain`."""
        return await self._pool.run(self.memory.drain, timeout)

    async def reembed(self) -> int:
        """See :meth:`everlong.memory.Memory.reembed`."""
        return await self._pool.run(self.memory.reembed)

    async def status(self) -> Status:
        """See :meth:`everlong.memory.Memory.status`."""
        return await self._pool.run(self.memory.status)

    async def close(self, *, timeout: float = 30.0) -> None:  # noqa: ASYNC109 - the same signature as the core
        """See :meth:`everlong.memory.Memory.close`."""
        await self._pool.run(self.memory.close, timeout=timeout)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class AsyncScopedMemory:
    """:class:`~everlong.memory.ScopedMemory` for async code; each method means what its namesake there means."""

    def __init__(self, scoped: ScopedMemory, pool: _Pool) -> None:
        self.scope, self.by, self._scoped, self._run = scoped.scope, scoped.by, scoped, pool.run
        self.inbox = AsyncInbox(scoped.inbox, pool)
        self.files = AsyncFiles(scoped.files, pool)
        self.skills = AsyncSkillShelf(scoped.skills, pool)
        self.transfer = AsyncTransfer(scoped.transfer, pool)
        self.upkeep = AsyncUpkeep(scoped.upkeep, pool)

    async def add(self, messages: Iterable[Any], *, idempotency_key: str = "") -> Added:
        """Keeps what was said."""
        return await self._run(self._scoped.add, messages, idempotency_key=idempotency_key)

    async def messages(self, *, limit: int = 50) -> tuple[Message, ...]:
        """The latest messages."""
        return await self._run(self._scoped.messages, limit=limit)

    async def sessions(self, *, cursor: str = "", limit: int = 100) -> Page[Session]:
        """The user's conversations."""
        return await self._run(self._scoped.sessions, cursor=cursor, limit=limit)

    async def flush(self) -> int:
        """Makes the work that waits here due now."""
        return await self._run(self._scoped.flush)

    async def clear(self) -> int:
        """Drops the work that waits here."""
        return await self._run(self._scoped.clear)

    async def recall(self, question: str | Query, *, trace: bool = False, **filters: Any) -> Recall:
        """What memory holds on a question."""
        return await self._run(self._scoped.recall, question, trace=trace, **filters)

    async def context(
        self,
        question: str | Query | None = None,
        *,
        budget: int | None = None,
        preset: str | Preset | None = None,
        format: str | Format | None = None,  # noqa: A002 - as in the twin
        max_messages: int | None = None,
        max_tokens: int | None = None,
        time_window: str | timedelta | None = None,
        files: Sequence[str] | None = None,
        trace: bool = False,
        **filters: Any,
    ) -> Context:
        """A block for the agent's prompt."""
        context = partial(self._scoped.context, preset=preset, format=format, files=files, trace=trace, **filters)
        limits: dict[str, Any] = {"max_messages": max_messages, "max_tokens": max_tokens, "time_window": time_window}
        return await self._run(context, question, budget=budget, **limits)

    async def explain(self, trace_id: str) -> Trace:
        """Why a recall found what it found."""
        return await self._run(self._scoped.explain, trace_id)

    async def traces(self, *, limit: int = 20) -> tuple[Trace, ...]:
        """The latest traces that can be explained here."""
        return await self._run(self._scoped.traces, limit=limit)

    async def explanation(self, trace_id: str) -> Explanation:
        """A trace as a person reads it."""
        return await self._run(self._scoped.explanation, trace_id)

    async def replay(self, trace_id: str, **changes: Any) -> Replay:
        """The same question with other settings, side by side."""
        return await self._run(self._scoped.replay, trace_id, **changes)

    async def remember(
        self, content: str, *, category: str = "context", confidence: float = 1.0, pinned: bool = False
    ) -> Remembered:
        """Stores one fact at once."""
        return await self._run(self._scoped.remember, content, category=category, confidence=confidence, pinned=pinned)

    async def facts(
        self,
        *,
        status: FactStatus | None = "active",
        categories: Sequence[str] = (),
        cursor: str = "",
        limit: int = 100,
        as_of: datetime | None = None,
        valid_at: datetime | None = None,
    ) -> Page[Fact]:
        """Facts visible from here."""
        options = {"status": status, "categories": categories, "cursor": cursor, "limit": limit}
        return await self._run(self._scoped.facts, **options, as_of=as_of, valid_at=valid_at)

    async def fact(self, fact_id: str) -> Fact:
        """One fact by id."""
        return await self._run(self._scoped.fact, fact_id)

    async def history(self, fact_id: str) -> tuple[Fact, ...]:
        """Every version of a fact."""
        return await self._run(self._scoped.history, fact_id)

    async def revise(self, fact_id: str, *, expected: int | None = None, **changes: Any) -> Fact:
        """Changes fields of a fact."""
        return await self._run(self._scoped.revise, fact_id, expected=expected, **changes)

    async def forget(self, fact_id: str, *, reason: str = "asked to forget") -> Forgotten:
        """Retires one fact, and says where else it is told."""
        return await self._run(self._scoped.forget, fact_id, reason=reason)

    async def restore(self, fact_id: str, *, reason: str = "asked to restore") -> Fact:
        """Makes a retired fact active again."""
        return await self._run(self._scoped.restore, fact_id, reason=reason)

    async def profile(self, *, as_of: datetime | None = None) -> Profile:
        """The profile kept here, or as it stood."""
        return await self._run(self._scoped.profile, as_of=as_of)

    async def update_profile(
        self,
        *,
        sections: Mapping[str, str] | None = None,
        attributes: Mapping[str, Any] | None = None,
        expected: int | None = None,
    ) -> Profile:
        """Sets sections and attributes of the profile."""
        return await self._run(self._scoped.update_profile, sections=sections, attributes=attributes, expected=expected)

    async def jobs(self) -> tuple[Job, ...]:
        """Work that waits, runs or was parked."""
        return await self._run(self._scoped.jobs)

    async def retry(self, job_id: str) -> Job:
        """Lets a parked job run again."""
        return await self._run(self._scoped.retry, job_id)

    async def journal(self, *, target: str = "", action: str = "", cursor: str = "", limit: int = 100) -> Page[Entry]:
        """Who changed what here and why."""
        return await self._run(self._scoped.journal, target=target, action=action, cursor=cursor, limit=limit)

    async def journal_lines(self) -> str:
        """The whole journal as lines of JSON."""
        return await self._run(self._scoped.journal_lines)

    async def verify_journal(self) -> AuditReport:
        """Whether the chain over the journal is whole."""
        return await self._run(self._scoped.verify_journal)

    async def extractions(self, *, cursor: str = "", limit: int = 100) -> Page[ExtractionRecord]:
        """What every extraction here read, answered, decided and cost."""
        return await self._run(self._scoped.extractions, cursor=cursor, limit=limit)

    async def extraction(self, record_id: str) -> ExtractionRecord:
        """One extraction by id."""
        return await self._run(self._scoped.extraction, record_id)

    async def usage(self, *, since: datetime | None = None) -> Usage:
        """What extraction cost."""
        return await self._run(self._scoped.usage, since=since)

    async def forget_preview(self, topic: str, *, threshold: float = THRESHOLD) -> Topic:
        """Everything that tells of a topic."""
        return await self._run(self._scoped.forget_preview, topic, threshold=threshold)

    async def forget_topic(
        self,
        topic: str,
        refs: Sequence[str],
        *,
        threshold: float = THRESHOLD,
        erase: bool = False,
        reason: str = "asked to forget a topic",
    ) -> TopicForgotten:
        """Takes out what was confirmed."""
        given: dict[str, Any] = {"threshold": threshold, "erase": erase, "reason": reason}
        return await self._run(self._scoped.forget_topic, topic, refs, **given)

    async def erase(self) -> Receipt:
        """Removes everything kept here for good."""
        return await self._run(self._scoped.erase)


class AsyncInbox:
    """:class:`~everlong.memory.Inbox` for async code."""

    def __init__(self, inbox: Inbox, pool: _Pool) -> None:
        self._inbox, self._run = inbox, pool.run

    async def list(self, *, kind: ProposalKind | None = None, cursor: str = "", limit: int = 100) -> Page[Proposal]:
        """What waits for review."""
        return await self._run(self._inbox.list, kind=kind, cursor=cursor, limit=limit)

    async def approve(self, proposal_id: str, *, content: str | None = None) -> Any:
        """Lets a proposal take effect."""
        return await self._run(self._inbox.approve, proposal_id, content=content)

    async def reject(self, proposal_id: str, *, reason: str = "rejected in review") -> None:
        """Takes a proposal out."""
        await self._run(self._inbox.reject, proposal_id, reason=reason)


class AsyncUpkeep:
    """:class:`~everlong.memory.Upkeep` for async code; each method means what its namesake there means."""

    def __init__(self, upkeep: Upkeep, pool: _Pool) -> None:
        self._upkeep, self._run = upkeep, pool.run

    async def preview(self) -> Upkept:
        """What a run would do now."""
        return await self._run(self._upkeep.preview)

    async def run(self) -> Upkept:
        """Does what is due now."""
        return await self._run(self._upkeep.run)

    async def report(self) -> ValueReport:
        """What the facts are worth, and suggestions."""
        return await self._run(self._upkeep.report)

    async def apply(self, suggestion_id: str) -> tuple[Fact, ...]:
        """Follows one suggestion of the report."""
        return await self._run(self._upkeep.apply, suggestion_id)


class AsyncFiles:
    """:class:`~everlong.memory.Files` for async code; each method means what its namesake there means."""

    def __init__(self, files: Files, pool: _Pool) -> None:
        self._files, self._run = files, pool.run

    async def read(self, path: str, *, version: int | None = None) -> MemoryFile:
        """A file, or one of its earlier versions."""
        return await self._run(self._files.read, path, version=version)

    async def lines(self, path: str, *, offset: int = 0, limit: int = 2000) -> FileLines:
        """Some lines of a text file."""
        return await self._run(self._files.lines, path, offset=offset, limit=limit)

    async def list(self, prefix: str = "/") -> tuple[FileInfo, ...]:
        """Files below a folder."""
        return await self._run(self._files.list, prefix)

    async def glob(self, glob: str, *, prefix: str = "/") -> tuple[FileInfo, ...]:
        """Files that a glob names."""
        return await self._run(self._files.glob, glob, prefix=prefix)

    async def grep(
        self, pattern: str, *, glob: str | None = None, prefix: str = "/", regex: bool = False, limit: int = 100
    ) -> FileMatches:
        """Lines that hold a text or match a pattern."""
        return await self._run(self._files.grep, pattern, glob=glob, prefix=prefix, regex=regex, limit=limit)

    async def write(
        self,
        path: str,
        content: str | bytes | Mapping[str, Any],
        *,
        expected: int = 0,
        read_only: bool | None = None,
    ) -> MemoryFile:
        """Writes a file over a version."""
        return await self._run(self._files.write, path, content, expected=expected, read_only=read_only)

    async def edit(
        self, path: str, old: str, new: str, *, replace_all: bool = False, expected: int | None = None
    ) -> MemoryFile:
        """Replaces text in a file."""
        return await self._run(self._files.edit, path, old, new, replace_all=replace_all, expected=expected)

    async def delete(self, path: str, *, expected: int | None = None) -> None:
        """Removes a file."""
        await self._run(self._files.delete, path, expected=expected)

    async def history(self, path: str, *, limit: int = 20) -> tuple[MemoryFile, ...]:
        """The latest versions of a file."""
        return await self._run(self._files.history, path, limit=limit)

    async def diff(self, path: str, before: int, after: int | None = None) -> str:
        """What changed between two versions."""
        return await self._run(self._files.diff, path, before, after)

    async def restore(self, path: str, version: int) -> MemoryFile:
        """Writes an earlier version again."""
        return await self._run(self._files.restore, path, version)


class AsyncTransfer:
    """:class:`~everlong.memory.Transfer` for async code; each method means what its namesake there means."""

    def __init__(self, transfer: Transfer, pool: _Pool) -> None:
        self._transfer, self._run = transfer, pool.run

    async def export(self, file: Place, *, audit: bool = False) -> Exported:
        """Writes every record to a file."""
        return await self._run(self._transfer.export, file, audit=audit)

    async def preview(self, file: Place) -> Transferred:
        """What a merge would do."""
        return await self._run(self._transfer.preview, file)

    async def import_(self, file: Place, *, mode: Mode = "merge", backup: str | Path | None = None) -> Transferred:
        """Takes a file in."""
        return await self._run(self._transfer.import_, file, mode=mode, backup=backup)


class AsyncSkillShelf:
    """:class:`~everlong.memory.SkillShelf` for async code; each method means what its namesake there means."""

    def __init__(self, shelf: SkillShelf, pool: _Pool) -> None:
        self._shelf, self._run = shelf, pool.run

    async def list(self) -> Skills:
        """Name and description of every skill, and which are broken."""
        return await self._run(self._shelf.list)

    async def load(self, name: str) -> Skill:
        """One skill in full."""
        return await self._run(self._shelf.load, name)

    async def write(
        self, name: str, *, description: str, body: str, expected: int = 0, folder: str = "/skills/"
    ) -> Skill:
        """Writes a skill over a version."""
        write = self._shelf.write
        return await self._run(write, name, description=description, body=body, expected=expected, folder=folder)

    async def block(self, *, budget: int = 1000) -> str:
        """The list of skills as a block for a prompt."""
        return await self._run(self._shelf.block, budget=budget)
