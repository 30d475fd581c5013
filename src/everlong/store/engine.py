"""The store: units of work over a driver, one set of shelves for every dialect."""

from __future__ import annotations

import os
from contextlib import contextmanager
from threading import Condition, get_ident, local
from time import monotonic
from typing import TYPE_CHECKING, Any, Protocol

from everlong.errors import StoreError
from everlong.protocols import present_rights
from everlong.store.chain import seal
from everlong.store.copies import Copies
from everlong.store.erase import erase
from everlong.store.extractions import Extractions
from everlong.store.facts import Facts
from everlong.store.files import Files
from everlong.store.forget import forget
from everlong.store.index import Index
from everlong.store.jobs import Jobs
from everlong.store.journal import Journal
from everlong.store.messages import Messages
from everlong.store.passages import Passages
from everlong.store.profiles import Profiles
from everlong.store.proposals import Proposals
from everlong.store.retention import Retention
from everlong.store.sessions import Sessions
from everlong.store.sql import Compiler, Work

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from everlong.protocols import (
        Clock,
        CopyShelf,
        ExtractionShelf,
        FactShelf,
        FileShelf,
        IndexShelf,
        JobShelf,
        JournalShelf,
        MessageShelf,
        NewId,
        PassageShelf,
        ProfileShelf,
        ProposalShelf,
        RetentionShelf,
        Rights,
        SessionShelf,
    )
    from everlong.records import Fact, Message, Scope


class Driver(Protocol):
    """What truly differs between databases: connections, locks, and how a transaction begins."""

    url: str
    compiler: Compiler

    def reading(self) -> AbstractContextManager[Any]:
        """A cursor in a transaction that sees one state and cannot write."""
        ...

    def writing(self) -> AbstractContextManager[Any]:
        """A cursor in a transaction that commits durably at the end of the block, or rolls back."""
        ...

    def scrub(self) -> None:
        """Asks that, once the present transaction has committed, what it deleted leaves the files too."""
        ...

    def close(self) -> None:
        """Lets go of every connection."""
        ...


class Unit:
    """One transaction with its shelves."""

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

    def __init__(
        self, work: Work, clock: Clock, new_id: NewId, scrub: Callable[[], None], rights: Rights | None = None
    ) -> None:
        self._work = work
        self._new_id = new_id
        self._scrub = scrub
        self.brought_work = False
        self.profiles = Profiles(work, clock, rights)
        self.facts = Facts(work, new_id, rights)
        self.messages = Messages(work, new_id, rights)
        self.sessions = Sessions(work, new_id, rights)
        self.files = Files(work, clock, new_id, rights)
        self.passages = Passages(work, new_id, rights)
        self.jobs = Jobs(work, self._note)
        self.journal = self._journal = Journal(work)
        self.proposals = Proposals(work)
        self.extractions = Extractions(work)
        self.retention = Retention(work, new_id)
        self.copies = Copies(work, new_id)
        self.index = Index(work, rights)

    def erase(self, scope: Scope) -> dict[str, int]:
        self._scrub()
        return erase(self._work, scope, self._new_id)

    def forget(
        self,
        scope: Scope,
        *,
        facts: Sequence[Fact] = (),
        messages: Sequence[Message] = (),
        about: Callable[[str], bool] = lambda _: False,
    ) -> dict[str, int]:
        self._scrub()
        return forget(self._work, scope, self._new_id, facts=facts, messages=messages, about=about)

    def seal(self) -> None:
        """Adds what this transaction journalled to the chain; its last step."""
        if self._journal.appended:
            seal(self._work, self._journal.appended)

    def _note(self) -> None:
        self.brought_work = True


class SqlStore:
    """A store on one driver. Safe for many threads; each thread holds one unit of work at a time."""

    def __init__(self, driver: Driver, *, clock: Clock, new_id: NewId, chain: bool = False) -> None:
        self._driver = driver
        self._chain = chain
        self._clock = clock
        self._new_id = new_id
        self._process = os.getpid()
        self._writers: set[int] = set()
        self._changed = Condition()
        self._news = 0
        self._seen = local()

    @property
    def url(self) -> str:
        """Where it is, without credentials."""
        return self._driver.url

    @contextmanager
    def read(self) -> Iterator[Unit]:
        self._check("read")
        with self._driver.reading() as cursor:
            yield self._unit(cursor, present_rights())

    @contextmanager
    def write(self) -> Iterator[Unit]:
        self._check("write")
        thread = get_ident()
        self._writers.add(thread)
        try:
            with self._driver.writing() as cursor:
                unit = self._unit(cursor)
                yield unit
                if self._chain:
                    unit.seal()
        finally:
            self._writers.discard(thread)
        if unit.brought_work:
            self.notify()

    def wait(self, timeout: float) -> bool:
        """True when jobs may have come since this thread waited last, so that none comes unseen in between."""
        until = monotonic() + timeout
        seen = getattr(self._seen, "news", 0)
        with self._changed:
            while self._news == seen and (left := until - monotonic()) > 0:
                self._changed.wait(left)
            self._seen.news = self._news
            return self._news != seen

    def notify(self) -> None:
        with self._changed:
            self._news += 1
            self._changed.notify_all()

    def close(self) -> None:
        if self._process == os.getpid():
            self._driver.close()

    def _unit(self, cursor: Any, rights: Rights | None = None) -> Unit:
        return Unit(Work(cursor, self._driver.compiler), self._clock, self._new_id, self._driver.scrub, rights)

    def _check(self, what: str) -> None:
        if self._process != os.getpid():
            raise StoreError("this store was opened before a fork and belongs to the parent: open it anew in the child")
        if get_ident() in self._writers:
            raise StoreError(f"this thread is inside write() already: use that transaction instead of a new {what}()")
