"""``ScopedMemory``: every operation on memory, as one principal sees it from one scope."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from everlong.errors import InvalidScope
from everlong.memory.conversation import Conversation
from everlong.memory.facts import Facts
from everlong.memory.files import Files
from everlong.memory.forgetting import Forgetting
from everlong.memory.inbox import Inbox
from everlong.memory.reading import Reading
from everlong.memory.skills import SkillShelf
from everlong.memory.transfer import Transfer
from everlong.memory.upkeep import Upkeep
from everlong.memory.view import zoned
from everlong.records import TIMED, Scope
from everlong.telemetry.audit_chain import lines, verify

if TYPE_CHECKING:
    from collections.abc import Mapping

    from everlong.records import (
        AuditReport,
        Entry,
        ExtractionRecord,
        Job,
        Page,
        Profile,
        Usage,
    )

__all__ = ["ScopedMemory"]


class ScopedMemory(Conversation, Reading, Facts, Forgetting):
    """Memory as one principal sees it from one scope: what agents, routes, tools and commands touch.

    Any operation may raise :class:`~everlong.errors.AccessDenied` and :class:`~everlong.errors.StoreError`.
    """

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

    @property
    def upkeep(self) -> Upkeep:
        """What keeps this memory small and true."""
        return Upkeep(self)

    @property
    def transfer(self) -> Transfer:
        """This memory as a file, and a file into it."""
        return Transfer(self)

    def profile(self, *, as_of: datetime | None = None) -> Profile:
        """The profile kept at this scope less its session, as it is or as it stood ``as_of`` a time; version 0 when
        there is none. Raises :class:`~everlong.errors.InvalidInput` for a time without a zone."""
        return self._run("profile", self._profile, as_of=zoned("as_of", as_of))

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
        """Work that waits, runs or was parked within this scope, soonest first; not the upkeep that waits for its
        time."""
        return self._run("jobs", self._jobs)

    def _jobs(self) -> tuple[Job, ...]:
        with self._store.read() as tx:
            jobs = tx.jobs.list(self.scope)
        return tuple(job for job in jobs if job.kind not in TIMED or job.state != "waiting")

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

    def journal_lines(self) -> str:
        """The whole journal of this scope as lines of JSON, oldest first."""
        return self._run("journal", self._journal_lines)

    def _journal_lines(self) -> str:
        with self._store.read() as tx:
            return lines(tx, self.scope)

    def verify_journal(self) -> AuditReport:
        """Whether the chain of this scope's organisation is whole (setting ``audit_chain``): no entry changed, removed or
        moved but by an erasure that is in the chain itself. Looks at all of it.

        Raises:
            InvalidScope: the scope is not a whole organisation.
        """
        if self.scope != Scope(org=self.scope.org):
            raise InvalidScope(f"the chain is one of a whole organisation, and {self.scope} is a part of it")
        return self._run("journal", self._verify_journal)

    def _verify_journal(self) -> AuditReport:
        with self._store.read() as tx:
            return verify(tx, self.scope.org)

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

    def usage(self, *, since: datetime | None = None) -> Usage:
        """What extraction cost within this scope, ``since`` a time or as far as its records go, failed attempts
        included. Raises :class:`~everlong.errors.InvalidInput` for a time without a zone."""
        return self._run("usage", self._usage, since=zoned("since", since))

    def _usage(self, *, since: datetime | None) -> Usage:
        with self._store.read() as tx:
            return tx.extractions.usage(self.scope, since=since or datetime(1970, 1, 1, tzinfo=UTC))
