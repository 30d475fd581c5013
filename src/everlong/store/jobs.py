"""Background work as rows: merged while it waits, claimed in two steps, held by a lease."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, bindparam, case, exists, func, literal_column, null, or_, select, text, update

from everlong.errors import NotFound
from everlong.records import TIMED
from everlong.store import rows, sql
from everlong.store.schema import jobs

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import datetime

    from sqlalchemy import ColumnElement
    from sqlalchemy.sql.base import Executable

    from everlong.records import Job, JobState, Scope
    from everlong.store.sql import Work

_COLUMNS: Final = rows.job_columns()
_CLAIMS: Final = 16
"""Candidates that one claim tries: each failure means that another worker took one."""

_WAITING: Final = jobs.c.state == "waiting"
_RUNNING: Final = jobs.c.state == "running"
_TIMED: Final = and_(jobs.c.state == "waiting", jobs.c.kind.in_([literal_column(f"'{kind}'") for kind in TIMED]))
_KEY: Final = and_(
    jobs.c.org == bindparam("w_org"), jobs.c.kind == bindparam("w_kind"), jobs.c.key == bindparam("w_key")
)
_ID: Final = and_(jobs.c.org == bindparam("w_org"), jobs.c.id == bindparam("w_id"))
_HELD: Final = and_(_ID, _RUNNING, jobs.c.worker == bindparam("w_worker"), jobs.c.attempts == bindparam("w_attempts"))

_other: Final = jobs.alias("other")
_BLOCKED: Final = exists().where(
    *(_other.c[name] == jobs.c[name] for name in ("org", "kind", "key")),
    _other.c.state == "running",
    _other.c.id != jobs.c.id,
)


def _put() -> Executable:
    made = sql.Insert(jobs).values({c.name: bindparam(c.name) for c in jobs.c})
    bound = jobs.c.first_at + bindparam("patience")
    # What is due already stays due, and what failed waits out its pause: neither is put off or hurried by more work.
    settled = or_(jobs.c.run_after <= made.excluded.first_at, jobs.c.error != literal_column("''"))
    due = case((settled, jobs.c.run_after), (made.excluded.run_after < bound, made.excluded.run_after), else_=bound)
    return made.on_conflict_do_update(
        index_elements=["org", "kind", "key"],
        index_where=text("state = 'waiting'"),
        set_={"run_after": due, "payload": made.excluded.payload},
    ).returning(*_COLUMNS)


_PUT: Final = _put()
_TAKE: Final = (
    update(jobs)
    .where(
        _ID,
        jobs.c.state == bindparam("w_state"),
        jobs.c.attempts == bindparam("w_attempts"),
        jobs.c.run_after <= bindparam("now"),
        ~_BLOCKED,
    )
    .values(
        state="running",
        attempts=jobs.c.attempts + 1,
        worker=bindparam("taker"),
        lease_until=bindparam("lease"),
    )
    .returning(*_COLUMNS)
)
_STILL: Final = select(jobs.c.id).where(_HELD)
_DONE: Final = jobs.delete().where(_HELD)
_FREE: Final[dict[str, Any]] = {"worker": "", "lease_until": null()}
_RETRY: Final = (
    update(jobs)
    .where(_HELD)
    .values(state="waiting", run_after=bindparam("due"), attempts=bindparam("tries"), error=bindparam("why"), **_FREE)
)
_PARK: Final = update(jobs).where(_HELD).values(state="parked", error=bindparam("why"), **_FREE)
_NEXT: Final = (
    update(jobs)
    .where(_KEY, _WAITING)
    .values(
        run_after=case((jobs.c.run_after > bindparam("due"), jobs.c.run_after), else_=bindparam("due")),
        first_at=case((jobs.c.first_at < bindparam("first"), jobs.c.first_at), else_=bindparam("first")),
        attempts=bindparam("tries"),
        error=bindparam("why"),
    )
)
_RENEW: Final = update(jobs).where(_HELD).values(lease_until=bindparam("lease"))
_FORGET_PARKED: Final = jobs.delete().where(_KEY, jobs.c.state == "parked", jobs.c.id != bindparam("w_id"))
_PULL: Final = (
    update(jobs)
    .where(_KEY, _WAITING)
    .values(run_after=case((jobs.c.run_after < bindparam("due"), jobs.c.run_after), else_=bindparam("due")))
    .returning(*_COLUMNS)
)
_DROP: Final = jobs.delete().where(_ID)
_RELEASE: Final = (
    update(jobs).where(_ID).values(state="waiting", attempts=0, run_after=bindparam("due")).returning(*_COLUMNS)
)


@cache
def _candidate(size: int, *, placed: bool) -> Executable:
    due = or_(
        and_(_WAITING, jobs.c.run_after <= bindparam("now")), and_(_RUNNING, jobs.c.lease_until <= bindparam("now"))
    )
    wanted = (sql.one_of(jobs.c.kind, size), due, ~_BLOCKED)
    columns = (jobs.c.org, jobs.c.id, jobs.c.state, jobs.c.attempts)
    place = (sql.exactly(jobs),) if placed else ()
    return select(*columns).where(*wanted, *place).order_by(jobs.c.run_after, jobs.c.id).limit(1)


@cache
def _due(size: int) -> Executable:
    at = case((_WAITING, jobs.c.run_after), else_=jobs.c.lease_until)
    return select(func.min(at)).where(sql.one_of(jobs.c.kind, size), or_(_RUNNING, and_(_WAITING, ~_BLOCKED)))


@cache
def _list(named: tuple[str, ...], *, state: bool) -> Executable:
    asked: list[ColumnElement[bool]] = [sql.within(jobs, named)]
    if state:
        asked.append(jobs.c.state == bindparam("w_state"))
    return select(*_COLUMNS).where(*asked).order_by(jobs.c.run_after, jobs.c.id).limit(bindparam("most"))


@cache
def _parked(named: tuple[str, ...]) -> Executable:
    return select(*_COLUMNS).where(sql.within(jobs, named), jobs.c.id == bindparam("w_id"), jobs.c.state == "parked")


@cache
def _hurry(named: tuple[str, ...]) -> Executable:
    now: ColumnElement[int] = bindparam("now")
    sooner = case((jobs.c.run_after < now, jobs.c.run_after), else_=now)
    return update(jobs).where(sql.within(jobs, named), _WAITING, ~_TIMED).values(run_after=sooner)


@cache
def _cancel(named: tuple[str, ...], size: int) -> Executable:
    return jobs.delete().where(sql.within(jobs, named), sql.one_of(jobs.c.kind, size), jobs.c.state != "running")


@cache
def _count(state: JobState | None, *, org: bool) -> Executable:
    counted = select(func.count()).select_from(jobs).where(~_TIMED)
    if state:
        # Spelled out, so that counting those that wait in one organisation needs only the index of those that wait.
        counted = counted.where(jobs.c.state == literal_column(f"'{state}'"))
    return counted.where(jobs.c.org == bindparam("w_org")) if org else counted


class Jobs:
    """The shelf of jobs in one transaction. ``notify`` is told when a worker may find more to do."""

    def __init__(self, work: Work, notify: Callable[[], None]) -> None:
        self._work = work
        self._notify = notify

    def put(self, job: Job, *, latest: datetime) -> Job:
        patience = rows.to_micros(latest) - rows.to_micros(job.first_at)
        (row,) = self._work.rows(_PUT, **rows.from_job(job), patience=patience)
        self._notify()
        return rows.to_job(row)

    def claim(
        self, kinds: Sequence[str], *, worker: str, now: datetime, lease_until: datetime, place: Scope | None = None
    ) -> Job | None:
        if not kinds:
            return None
        at, lease = rows.to_micros(now), rows.to_micros(lease_until)
        size, values = next(sql.chunks(kinds))
        for _ in range(_CLAIMS):
            where = sql.place(place) if place else {}
            found = self._work.row(_candidate(size, placed=place is not None), now=at, **values, **where)
            if found is None:
                return None
            where = dict(zip(("w_org", "w_id", "w_state", "w_attempts"), found, strict=True))
            taken = self._work.row(_TAKE, **where, taker=worker, lease=lease, now=at)
            if taken is not None:
                return rows.to_job(taken)
        return None

    def done(self, job: Job) -> bool:
        freed = bool(self._work.change(_DONE, **self._held(job)))
        if freed:
            self._forget_parked(job)
        self._notify()
        return freed

    def renew(self, job: Job, *, lease_until: datetime) -> bool:
        return bool(self._work.change(_RENEW, **self._held(job), lease=rows.to_micros(lease_until)))

    def retry(self, job: Job, *, run_after: datetime, error: str) -> bool:
        return self._give_back(job, run_after, error, job.attempts)

    def postpone(self, job: Job, *, run_after: datetime, reason: str) -> bool:
        return self._give_back(job, run_after, reason, job.attempts - 1)

    def park(self, job: Job, *, error: str) -> bool:
        parked = bool(self._work.change(_PARK, **self._held(job), why=error))
        if parked:
            self._forget_parked(job)
        self._notify()
        return parked

    def release(self, scope: Scope, job_id: str, *, now: datetime) -> Job:
        found = self._work.row(_parked(sql.named(scope)), **sql.place(scope), w_id=job_id)
        if found is None:
            raise NotFound(f"no parked job {job_id} within {scope}")
        job, due = rows.to_job(found), rows.to_micros(now)
        where = {"w_org": job.scope.org, "w_id": job.id}
        waiting = self._work.row(_PULL, w_org=job.scope.org, w_kind=job.kind, w_key=job.key, due=due)
        if waiting is None:
            (waiting,) = self._work.rows(_RELEASE, **where, due=due)
        else:
            self._work.change(_DROP, **where)
        self._notify()
        return rows.to_job(waiting)

    def list(self, scope: Scope, *, state: JobState | None = None, limit: int = 100) -> tuple[Job, ...]:
        asked = {"w_state": state} if state else {}
        statement = _list(sql.named(scope), state=state is not None)
        return tuple(map(rows.to_job, self._work.rows(statement, **sql.place(scope), **asked, most=limit)))

    def hurry(self, scope: Scope, *, now: datetime) -> int:
        hurried = self._work.change(_hurry(sql.named(scope)), **sql.place(scope), now=rows.to_micros(now))
        self._notify()
        return hurried

    def cancel(self, scope: Scope, kinds: Sequence[str]) -> int:
        if not kinds:
            return 0
        size, values = next(sql.chunks(kinds))
        return self._work.change(_cancel(sql.named(scope), size), **sql.place(scope), **values)

    def next_due(self, kinds: Sequence[str]) -> datetime | None:
        if not kinds:
            return None
        size, values = next(sql.chunks(kinds))
        return rows.maybe_time(self._work.rows(_due(size), **values)[0][0])

    def count(self, *, state: JobState | None = None, org: str | None = None) -> int:
        asked = {} if org is None else {"w_org": org}
        return int(self._work.rows(_count(state, org=org is not None), **asked)[0][0])

    def _give_back(self, job: Job, run_after: datetime, why: str, tries: int) -> bool:
        held = self._held(job)
        if not self._still_held(job):
            return False
        told = {"due": rows.to_micros(run_after), "why": why, "tries": tries}
        key = {"w_org": job.scope.org, "w_kind": job.kind, "w_key": job.key}
        if self._work.change(_NEXT, **key, **told, first=rows.to_micros(job.first_at)):
            self._work.change(_DONE, **held)
        else:
            self._work.change(_RETRY, **held, **told)
        self._notify()
        return True

    def _forget_parked(self, job: Job) -> None:
        where = {"w_org": job.scope.org, "w_kind": job.kind, "w_key": job.key}
        self._work.change(_FORGET_PARKED, **where, w_id=job.id)

    @staticmethod
    def _held(job: Job) -> dict[str, Any]:
        return {"w_org": job.scope.org, "w_id": job.id, "w_worker": job.worker, "w_attempts": job.attempts}

    def _still_held(self, job: Job) -> bool:
        return self._work.row(_STILL, **self._held(job)) is not None
