"""What is kept about memory itself: jobs, the journal, the review inbox, extractions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from everlong.records import (
        Entry,
        ExtractionRecord,
        Job,
        JobState,
        Link,
        Page,
        Proposal,
        ProposalKind,
        Scope,
        Usage,
    )


class JobShelf(Protocol):
    def put(self, job: Job, *, latest: datetime) -> Job:
        """Enqueues, or merges into the waiting job of the same ``(org, kind, key)``: its ``run_after`` becomes the
        new one, but never later than ``latest`` − counted from the older ``first_at``: the store computes
        ``min(job.run_after, older.first_at + (latest - job.first_at))``. One that is due already (at
        ``job.first_at``), or that failed and waits for its retry, keeps its time. Returns the job as stored."""
        ...

    def claim(
        self, kinds: Sequence[str], *, worker: str, now: datetime, lease_until: datetime, place: Scope | None = None
    ) -> Job | None:
        """Takes the most overdue job that may run now: waiting and due, or running with a lapsed lease, unless
        another job of the same key is running. Two steps (select a candidate, then a conditional update), which
        every SQL engine allows. ``attempts`` grows by one. With ``place``, only work kept exactly there."""
        ...

    def done(self, job: Job) -> bool:
        """Deletes a job this worker still holds, and what was parked of the same key, for that is done now too;
        false if the lease was lost to another."""
        ...

    def renew(self, job: Job, *, lease_until: datetime) -> bool:
        """Holds a job for longer; false if this worker holds it no more."""
        ...

    def retry(self, job: Job, *, run_after: datetime, error: str) -> bool:
        """Gives a held job back to wait until ``run_after``. Merges with one that waits already."""
        ...

    def postpone(self, job: Job, *, run_after: datetime, reason: str) -> bool:
        """Like :meth:`retry`, for work that did not fail but may not run yet: the attempt is not counted."""
        ...

    def park(self, job: Job, *, error: str) -> bool:
        """Sets a held job aside where people see it, in place of one of the same key; it is never claimed until
        released."""
        ...

    def release(self, scope: Scope, job_id: str, *, now: datetime) -> Job:
        """Lets a parked job run again, attempts reset.

        Raises:
            NotFound: no parked job of that id within ``scope``.
        """
        ...

    def list(self, scope: Scope, *, state: JobState | None = None, limit: int = 100) -> tuple[Job, ...]:
        """Jobs whose scope is within ``scope``, soonest first."""
        ...

    def hurry(self, scope: Scope, *, now: datetime) -> int:
        """Makes every waiting job within ``scope`` due now, but those of the :data:`~everlong.records.TIMED` kinds;
        returns how many there were."""
        ...

    def cancel(self, scope: Scope, kinds: Sequence[str]) -> int:
        """Deletes every job of ``kinds`` within ``scope`` that waits or is parked; returns how many. What runs is left
        to its worker."""
        ...

    def next_due(self, kinds: Sequence[str]) -> datetime | None:
        """When the next job could be claimed (over all scopes), or ``None`` if there is none."""
        ...

    def count(self, *, state: JobState | None = None, org: str | None = None) -> int:
        """How many jobs there are, less those of the :data:`~everlong.records.TIMED` kinds that wait."""
        ...


class JournalShelf(Protocol):
    def append(self, *entries: Entry) -> None: ...

    def get(self, scope: Scope, entry_id: str) -> Entry:
        """Raises :class:`NotFound` unless the entry's scope is within ``scope.home``."""
        ...

    def list(
        self, scope: Scope, *, target: str = "", action: str = "", cursor: str = "", limit: int = 100
    ) -> Page[Entry]:
        """Entries whose scope is within ``scope``, newest first."""
        ...

    def links(self, org: str, *, after: int = 0, limit: int = 1000) -> tuple[Link, ...]:
        """Links of an organisation's chain above the number ``after``, in order; none where no chain is kept."""
        ...


class ProposalShelf(Protocol):
    """The review inbox: changes that wait for a person."""

    def put(self, proposal: Proposal) -> Proposal:
        """Keeps it. One of the same scope, kind and target that waits already is returned instead, so that the same
        idea does not pile up; calls always wait each for itself."""
        ...

    def get(self, scope: Scope, proposal_id: str) -> Proposal:
        """Raises :class:`NotFound` unless the proposal's scope is within ``scope.home``."""
        ...

    def list(
        self, scope: Scope, *, kind: ProposalKind | None = None, cursor: str = "", limit: int = 100
    ) -> Page[Proposal]:
        """Proposals whose scope is within ``scope.home``, newest first."""
        ...

    def delete(self, proposal: Proposal) -> bool:
        """Takes it out once it is decided; false if someone else did."""
        ...


class ExtractionShelf(Protocol):
    """What every extraction read, answered, decided and cost."""

    def append(self, record: ExtractionRecord) -> None: ...

    def get(self, scope: Scope, record_id: str) -> ExtractionRecord:
        """Raises :class:`NotFound` unless the record's scope is within ``scope.home``."""
        ...

    def list(self, scope: Scope, *, cursor: str = "", limit: int = 100) -> Page[ExtractionRecord]:
        """Records whose scope is within ``scope``, newest first."""
        ...

    def usage(self, scope: Scope, *, since: datetime) -> Usage:
        """The sum of what was used within ``scope`` from ``since`` on, failed attempts included."""
        ...

    def purge(self, scope: Scope, *, before: datetime) -> int:
        """Deletes records within ``scope`` older than ``before``; returns how many."""
        ...
