"""The journal, jobs, proposals and extractions as rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from everlong.records import Entry, ExtractionRecord, Job, Outcome, Proposal, Skipped, Usage
from everlong.store import schema
from everlong.store.rows.values import (
    encode,
    from_json,
    maybe_micros,
    maybe_time,
    ordered,
    to_json,
    to_micros,
    to_scope,
    to_time,
)

if TYPE_CHECKING:
    from sqlalchemy import Column

    from everlong.store.sql import Row


def entry_columns() -> list[Column[Any]]:
    return ordered(schema.journal, "id at by action kind target reason before after payload")


def from_entry(entry: Entry) -> dict[str, Any]:
    named = "id by action kind target reason before after".split()
    return {
        **dict(zip(schema.PLACE, entry.scope.parts, strict=True)),
        **{name: getattr(entry, name) for name in named},
        "at": to_micros(entry.at),
        "payload": to_json(dict(entry.payload)),
    }


def to_entry(row: Row) -> Entry:
    org, agent, user, session, id_, at, by, action, kind, target, reason, before, after, payload = row
    return Entry(
        id=id_,
        at=to_time(at),
        scope=to_scope(org, agent, user, session),
        by=by,
        action=action,
        kind=kind,
        target=target,
        reason=reason,
        before=before,
        after=after,
        payload=from_json(payload),
    )


def job_columns() -> list[Column[Any]]:
    return ordered(schema.jobs, "id kind key run_after first_at state attempts lease_until worker error payload")


def from_job(job: Job) -> dict[str, Any]:
    named = "id kind key state attempts worker error".split()
    return {
        **dict(zip(schema.PLACE, job.scope.parts, strict=True)),
        **{name: getattr(job, name) for name in named},
        "run_after": to_micros(job.run_after),
        "first_at": to_micros(job.first_at),
        "lease_until": maybe_micros(job.lease_until),
        "payload": to_json(dict(job.payload)),
    }


def to_job(row: Row) -> Job:
    org, agent, user, session, id_, kind, key, run_after, first_at, state, attempts, lease, worker, error, payload = row
    return Job(
        id=id_,
        kind=kind,
        key=key,
        scope=to_scope(org, agent, user, session),
        run_after=to_time(run_after),
        first_at=to_time(first_at),
        state=state,
        attempts=attempts,
        lease_until=maybe_time(lease),
        worker=worker,
        error=error,
        payload=from_json(payload),
    )


def proposal_columns() -> list[Column[Any]]:
    return ordered(schema.proposals, "id kind target reason by created_at payload")


def from_proposal(proposal: Proposal) -> dict[str, Any]:
    return {
        **dict(zip(schema.PLACE, proposal.scope.parts, strict=True)),
        **{name: getattr(proposal, name) for name in "id kind target reason by".split()},
        "created_at": to_micros(proposal.created_at),
        "payload": to_json(dict(proposal.payload)),
    }


def to_proposal(row: Row) -> Proposal:
    org, agent, user, session, id_, kind, target, reason, by, created, payload = row
    return Proposal(
        id=id_,
        scope=to_scope(org, agent, user, session),
        kind=kind,
        target=target,
        reason=reason,
        by=by,
        created_at=to_time(created),
        payload=from_json(payload),
    )


COSTS: Final = ("calls", "input_tokens", "output_tokens")
"""What a model call costs: columns of an extraction and fields of :class:`Usage`."""


def extraction_columns() -> list[Column[Any]]:
    named = "id at extractor prompt messages decisions skipped raw calls input_tokens output_tokens milliseconds error"
    return ordered(schema.extractions, named)


def from_extraction(record: ExtractionRecord) -> dict[str, Any]:
    return {
        **dict(zip(schema.PLACE, record.scope.parts, strict=True)),
        **{name: getattr(record, name) for name in "id extractor prompt raw milliseconds error".split()},
        **{name: getattr(record.usage, name) for name in COSTS},
        "at": to_micros(record.at),
        "messages": encode(record.messages),
        "decisions": encode([[d.kind, d.reason, d.content, d.fact_id] for d in record.decisions]),
        "skipped": encode([[s.reason, s.raw] for s in record.skipped]),
    }


def to_extraction(row: Row) -> ExtractionRecord:
    org, agent, user, session, id_, at, extractor, prompt, messages, decisions, skipped, raw = row[:12]
    calls, taken, given, milliseconds, error = row[12:]
    return ExtractionRecord(
        id=id_,
        scope=to_scope(org, agent, user, session),
        at=to_time(at),
        extractor=extractor,
        prompt=prompt,
        messages=tuple(json.loads(messages)),
        decisions=tuple(Outcome(kind=k, reason=r, content=c, fact_id=f) for k, r, c, f in json.loads(decisions)),
        skipped=tuple(Skipped(reason=reason, raw=piece) for reason, piece in json.loads(skipped)),
        raw=raw,
        usage=Usage(calls=calls, input_tokens=taken, output_tokens=given),
        milliseconds=milliseconds,
        error=error,
    )
