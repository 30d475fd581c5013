"""The system of record: shelves, transactions, the store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from datetime import datetime

    from everlong.protocols.copies import CopyShelf
    from everlong.protocols.index import Indexed, IndexShelf
    from everlong.protocols.retention import RetentionShelf
    from everlong.protocols.work import ExtractionShelf, JobShelf, JournalShelf, ProposalShelf
    from everlong.records import (
        Fact,
        FactStatus,
        FileInfo,
        MemoryFile,
        Message,
        Page,
        Passage,
        Profile,
        Scope,
        Session,
    )


class ProfileShelf(Protocol):
    def get(self, scope: Scope) -> Profile:
        """The profile kept exactly at ``scope``; one of version 0 if there is none."""
        ...

    def as_of(self, scope: Scope, at: datetime) -> Profile:
        """The profile kept exactly at ``scope`` as it stood ``at`` that time; one of version 0 if there was none."""
        ...

    def visible(self, scope: Scope) -> tuple[Profile, ...]:
        """Profiles of every scope that covers ``scope``, widest first."""
        ...

    def put(self, profile: Profile, *, expected: int) -> Profile:
        """Stores ``profile`` as version ``expected + 1`` and keeps the old version in its history.

        Raises:
            Conflict: the stored version is not ``expected``.
        """
        ...


class FactShelf(Protocol):
    def add(self, fact: Fact, indexed: Indexed) -> Fact: ...

    def lock(self, scope: Scope) -> int:
        """Lets no other transaction change facts kept exactly at ``scope`` until this one ends; returns the revision of
        their bucket, as :meth:`IndexShelf.revisions` tells it (0: there are none yet)."""
        ...

    def get(self, scope: Scope, fact_id: str) -> Fact:
        """The fact if it is visible from ``scope`` (any status).

        Raises:
            NotFound: no such fact, or not visible from here.
        """
        ...

    def many(self, scope: Scope, ids: Sequence[str]) -> dict[str, Fact]:
        """Those of ``ids`` that are visible from ``scope``, by id."""
        ...

    def revise(self, fact: Fact, *, expected: int, indexed: Indexed | None = None) -> Fact:
        """Stores the new state as version ``expected + 1``, the old one into history. ``indexed`` when content
        changed. A fact never moves: its stored scope must equal ``fact.scope``.

        Raises:
            NotFound: no such fact at ``fact.scope``.
            Conflict: the stored version is not ``expected``.
        """
        ...

    def list(
        self,
        scope: Scope,
        *,
        status: FactStatus | None = "active",
        categories: Sequence[str] = (),
        cursor: str = "",
        limit: int = 100,
        pinned: bool = False,
        valid_at: datetime | None = None,
        as_of: datetime | None = None,
    ) -> Page[Fact]:
        """Facts visible from ``scope``, newest first; stable under concurrent writes (keyset cursor). ``pinned`` leaves
        only the pinned ones, ``valid_at`` those that hold at that time of the world. ``as_of`` lists them as they were
        known then; all else is asked of that state."""
        ...

    def as_of(self, scope: Scope, at: datetime) -> tuple[Fact, ...]:
        """Every fact visible from ``scope`` as it was known ``at`` that time, of any status, newest first; what was
        learned later or erased since is not there. Uses are counted as now."""
        ...

    def history(self, scope: Scope, fact_id: str) -> tuple[Fact, ...]:
        """Every stored version, oldest first, the present one last."""
        ...

    def touch(self, scope: Scope, ids: Sequence[str], at: datetime) -> int:
        """Counts a use of each visible fact without a new version; returns how many."""
        ...

    def set_vectors(self, scope: Scope, fact_id: str, indexed: Indexed) -> bool:
        """Attaches vectors made later; false if the fact is gone or its text changed since (terms differ)."""
        ...

    def unembedded(self, scope: Scope, model: str, *, limit: int) -> tuple[Fact, ...]:
        """Active facts kept exactly at ``scope`` that have no vector of ``model`` yet."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Backlog:
    """What still has to be extracted: ``messages`` and their ``characters`` in one conversation, and the messages
    ``at_home``: of all conversations at the same home scope."""

    messages: int
    characters: int
    at_home: int


class MessageShelf(Protocol):
    def append(self, session: Scope, messages: Sequence[Message], indexed: Sequence[Indexed]) -> tuple[Message, ...]:
        """Appends to the conversation ``session`` (a scope with a session), makes the session if it is new, and
        returns the messages as stored, with positions. An id that the session already holds is left out of the
        result and changes nothing."""
        ...

    def tail(self, session: Scope, *, limit: int, before: int | None = None) -> tuple[Message, ...]:
        """The last ``limit`` messages of one conversation (below position ``before``), oldest first."""
        ...

    def after(self, session: Scope, position: int, *, limit: int = 1000) -> tuple[Message, ...]:
        """Messages of one conversation above ``position``, in order."""
        ...

    def backlog(self, session: Scope) -> Backlog:
        """How much lies above the watermark, here and in the other conversations at ``session.home``."""
        ...

    def recent(self, scope: Scope, *, limit: int, since: datetime | None = None) -> tuple[Message, ...]:
        """The latest messages visible from ``scope`` over all conversations, oldest first."""
        ...

    def many(self, scope: Scope, ids: Sequence[str]) -> dict[str, Message]: ...

    def windows(
        self, messages: Sequence[Message], *, before: int, after: int, until: datetime | None = None
    ) -> list[tuple[Message, ...]]:
        """Each of ``messages`` with its neighbours in the same conversation, in order: ``before`` and ``after`` of them
        at most, none made later than ``until``. One statement for all."""
        ...

    def around(self, scope: Scope, message_id: str, *, before: int, after: int) -> tuple[Message, ...]:
        """A message with its neighbours in the same conversation, in order."""
        ...

    def set_vectors(self, session: Scope, message_id: str, indexed: Indexed) -> bool: ...

    def unembedded(self, scope: Scope, model: str, *, limit: int) -> tuple[Message, ...]:
        """Messages kept at ``scope.home`` (of every session) that have no vector of ``model`` yet."""
        ...


class SessionShelf(Protocol):
    def get(self, session: Scope) -> Session | None: ...

    def list(self, scope: Scope, *, cursor: str = "", limit: int = 100) -> Page[Session]:
        """Conversations visible from ``scope.home``, latest first."""
        ...

    def advance(self, session: Session, *, extracted: int) -> Session:
        """Moves the watermark from ``session.extracted``.

        Raises:
            Conflict: the watermark moved meanwhile, or the session was cleared or erased (another epoch).
        """
        ...

    def fence(self, scope: Scope) -> int:
        """Gives every session within ``scope`` a new epoch and counts all its messages as extracted; returns how
        many sessions. Work in flight for them can no longer land."""
        ...


class FileShelf(Protocol):
    def lock(self, scope: Scope) -> None:
        """Keeps everyone else from changing files kept at ``scope`` until this transaction ends: they wait here. Taken
        before the first read, so that what is read is what is written over, or an erasure came between: then the
        version differs."""
        ...

    def get(self, scope: Scope, path: str) -> MemoryFile:
        """The file at ``path`` kept at the narrowest scope visible from ``scope``.

        Raises:
            NotFound: there is none.
        """
        ...

    def put(self, file: MemoryFile, *, expected: int) -> MemoryFile:
        """Writes a new version over version ``expected`` (0: must not exist), keeping the old in history. Numbers
        go on from the highest that the path ever had at this scope, so that none means two contents.

        Raises:
            Conflict: the stored version is not ``expected``.
        """
        ...

    def list(self, scope: Scope, *, prefix: str = "/") -> tuple[FileInfo, ...]:
        """Files visible from ``scope`` below ``prefix``, by path; a narrower scope's file hides a wider one's."""
        ...

    def count(self, scope: Scope) -> int:
        """How many files are kept exactly at ``scope``."""
        ...

    def delete(self, scope: Scope, path: str, *, expected: int) -> None:
        """Removes the file kept exactly at ``scope``; its last version goes into history.

        Raises:
            NotFound: there is none.
            Conflict: its version is not ``expected``.
        """
        ...

    def history(self, scope: Scope, path: str, *, limit: int = 20) -> tuple[MemoryFile, ...]:
        """The latest ``limit`` versions kept exactly at ``scope``, newest first: the present one, if there is one,
        and those before it, also of a file that was deleted."""
        ...

    def version(self, scope: Scope, path: str, number: int) -> MemoryFile:
        """One version kept exactly at ``scope``.

        Raises:
            NotFound: it never was, or is kept no more.
        """
        ...

    def trim(self, scope: Scope, path: str, *, keep: int) -> int:
        """Drops earlier versions but the latest ``keep``; returns how many."""
        ...


class PassageShelf(Protocol):
    """The text of memory files in pieces; :class:`FileShelf` writes them, in the same transaction as the file. A file
    that is no text has one passage without text."""

    def many(self, scope: Scope, ids: Sequence[str]) -> dict[str, Passage]:
        """Those of ``ids`` that are visible from ``scope``, by id; of one path, those of the narrowest scope."""
        ...

    def set_vectors(self, passage: Passage, indexed: Indexed) -> bool:
        """Attaches vectors made later; false if the passage is gone or its text changed since."""
        ...

    def unembedded(self, scope: Scope, model: str, *, limit: int) -> tuple[Passage, ...]:
        """Passages kept exactly at ``scope`` that have no vector of ``model`` yet."""
        ...


class Transaction(Protocol):
    """One unit of work on every shelf. Reads inside it see one state."""

    profiles: ProfileShelf
    facts: FactShelf
    messages: MessageShelf
    sessions: SessionShelf
    files: FileShelf
    passages: PassageShelf
    jobs: JobShelf
    journal: JournalShelf
    proposals: ProposalShelf
    extractions: ExtractionShelf
    copies: CopyShelf
    retention: RetentionShelf
    index: IndexShelf

    def erase(self, scope: Scope) -> dict[str, int]:
        """Deletes for good everything kept at ``scope`` or within it, of every kind, journal and jobs included;
        rows deleted by kind. A scope with a session removes that conversation, the facts learned in it with their
        journal and proposals, and its quotes from the evidence of facts learned elsewhere (which get a new version)."""
        ...

    def forget(
        self,
        scope: Scope,
        *,
        facts: Sequence[Fact] = (),
        messages: Sequence[Message] = (),
        about: Callable[[str], bool] = lambda _: False,
    ) -> dict[str, int]:
        """Takes single records out for good; how many by kind.

        Of ``facts`` no version, vector or proposal is left. ``messages`` lose their words; the turn stays, with the text
        ``[forgotten]`` and the signal ``forgotten``, so that a conversation that is sent again is known again. Whatever
        else within ``scope.home`` holds a text that is ``about`` it goes too: quotes in the evidence of other facts (which
        get a new version), earlier versions of facts and profiles, proposals; journal entries and extraction records
        stay without their words. Present profiles and memory files are not touched. Work in flight cannot land."""
        ...


class Store(Protocol):
    """The system of record. Safe for many threads and many processes.

    Raises (from any operation): ``StoreUnavailable`` when the database does not answer in time.
    """

    @property
    def url(self) -> str:
        """Where it is, without credentials."""
        ...

    def read(self) -> AbstractContextManager[Transaction]:
        """Sees one state, and of it only what the call that runs may read: :func:`~everlong.protocols.present_rights`."""

    def write(self) -> AbstractContextManager[Transaction]:
        """Commits at the end of the block, durably, or rolls back when the block raises."""
        ...

    def wait(self, timeout: float) -> bool:
        """Blocks until some write of this process may have brought new jobs, or ``timeout`` seconds passed."""
        ...

    def notify(self) -> None:
        """Wakes everyone in :meth:`wait`."""
        ...

    def close(self) -> None: ...
