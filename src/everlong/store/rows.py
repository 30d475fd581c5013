"""Records as rows and back: times in microseconds, mappings as JSON text, scopes as four columns."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import func

from everlong.errors import InvalidInput
from everlong.records import (
    Entry,
    Evidence,
    ExtractionRecord,
    Fact,
    FileInfo,
    Job,
    MemoryFile,
    Message,
    Outcome,
    Profile,
    Proposal,
    Scope,
    Section,
    Session,
    Skipped,
    Usage,
)
from everlong.store import schema
from everlong.text import pack_terms

if TYPE_CHECKING:
    from sqlalchemy import Column, ColumnElement, Table

    from everlong.protocols import Indexed
    from everlong.store.sql import Row

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_TICK: Final = timedelta(microseconds=1)
_QUESTION: Final = ("?", "？", "؟")

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


@lru_cache(maxsize=4096)
def to_scope(org: str, agent: str, user: str, session: str) -> Scope:
    """A scope from its columns, remembered: checking one costs more than reading its row."""
    return Scope(org=org, agent=agent, user=user, session=session)


def to_micros(at: datetime) -> int:
    """Microseconds since 1970, exactly."""
    return (at - _EPOCH) // _TICK


def to_time(micros: int) -> datetime:
    """The time of :func:`to_micros`."""
    return _EPOCH + timedelta(microseconds=micros)


def maybe_micros(at: datetime | None) -> int | None:
    return None if at is None else to_micros(at)


def maybe_time(micros: int | None) -> datetime | None:
    return None if micros is None else to_time(micros)


def to_json(value: Any) -> str:
    """Compact JSON.

    Raises:
        InvalidInput: the value is not JSON.
    """
    if not value and isinstance(value, dict):
        return "{}"
    try:
        return _encode(value)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"metadata must be JSON (text, numbers, lists, mappings): {error}") from error


def from_json(text: str) -> Any:
    return {} if text == "{}" else json.loads(text)


def searchable(content: str, indexed: Indexed) -> dict[str, Any]:
    """What search reads of a text besides its vectors."""
    question = content.rstrip().endswith(_QUESTION)
    return {"terms": pack_terms(indexed.terms), "length": len(content), "question": int(question)}


# ---------------------------------------------------------------------------------------------------------- facts


_FACT: Final = (
    "org agent user session id learned_in content category origin status reason supersedes superseded_by evidence "
    "metadata confidence importance trust pinned version confirmations uses created_at updated_at last_used_at "
    "valid_from valid_until retired_at"
).split()
_FACT_TIMES: Final = ("last_used_at", "valid_from", "valid_until", "retired_at")


def fact_columns() -> list[Column[Any]]:
    """The columns that :func:`to_fact` reads, in its order."""
    return [schema.facts.c[name] for name in _FACT]


def from_fact(fact: Fact) -> dict[str, Any]:
    """A fact as columns, scope included."""
    return {
        **dict(zip(schema.PLACE, fact.scope.parts, strict=True)),
        "id": fact.id,
        "learned_in": fact.session,
        "content": fact.content,
        "category": fact.category,
        "origin": fact.origin,
        "status": fact.status,
        "reason": fact.reason,
        "supersedes": fact.supersedes,
        "superseded_by": fact.superseded_by,
        "evidence": _encode([[e.message_id, e.quote, e.session] for e in fact.evidence]) if fact.evidence else "[]",
        "metadata": to_json(dict(fact.metadata)),
        "confidence": fact.confidence,
        "importance": fact.importance,
        "trust": fact.trust,
        "pinned": int(fact.pinned),
        "version": fact.version,
        "confirmations": fact.confirmations,
        "uses": fact.uses,
        "created_at": to_micros(fact.created_at),
        "updated_at": to_micros(fact.updated_at),
        **{name: maybe_micros(getattr(fact, name)) for name in _FACT_TIMES},
    }


def to_fact(row: Row) -> Fact:
    """A fact from a row of :func:`fact_columns`."""
    org, agent, user, session, id_, learned_in, content, category, origin, status, reason, old, new = row[:13]
    evidence, metadata, confidence, importance, trust, pinned, version, confirmations, uses = row[13:22]
    created, updated, used, since, until, retired = row[22:]
    return Fact(
        id=id_,
        scope=to_scope(org, agent, user, session),
        content=content,
        created_at=to_time(created),
        updated_at=to_time(updated),
        category=category,
        confidence=confidence,
        importance=importance,
        pinned=bool(pinned),
        origin=origin,
        trust=trust,
        evidence=() if evidence == "[]" else _evidence(evidence),
        session=learned_in,
        status=status,
        version=version,
        confirmations=confirmations,
        uses=uses,
        last_used_at=maybe_time(used),
        valid_from=maybe_time(since),
        valid_until=maybe_time(until),
        retired_at=maybe_time(retired),
        reason=reason,
        supersedes=old,
        superseded_by=new,
        metadata=from_json(metadata),
    )


def _evidence(text: str) -> tuple[Evidence, ...]:
    return tuple(Evidence(message_id=m, quote=q, session=s) for m, q, s in json.loads(text))


def fact_body(fact: Fact) -> str:
    """An earlier version of a fact as text."""
    return _encode(from_fact(fact))


def fact_of_body(body: str) -> Fact:
    found = json.loads(body)
    return to_fact(tuple(found[name] for name in _FACT))


def without_quotes(evidence: str, session: str) -> str:
    """The column ``evidence`` less what was said in ``session``."""
    return _encode([one for one in json.loads(evidence) if one[2] != session])


def body_without_quotes(body: str, session: str) -> str:
    """An earlier version of a fact less the evidence said in ``session``."""
    found = json.loads(body)
    return _encode(found | {"evidence": without_quotes(found["evidence"], session)})


# ------------------------------------------------------------------------------------------------------- messages


def message_columns() -> list[Column[Any]]:
    """The columns that :func:`to_message` reads, in its order."""
    names = "org agent user session id role content speaker origin signals metadata position created_at"
    return [schema.messages.c[name] for name in names.split()]


def from_message(message: Message) -> dict[str, Any]:
    """A message as columns, less position and scope."""
    return {
        "id": message.id,
        "role": message.role,
        "content": message.content,
        "speaker": message.speaker,
        "origin": message.origin,
        "signals": _encode(message.signals) if message.signals else "[]",
        "metadata": to_json(dict(message.metadata)),
        "created_at": to_micros(message.created_at),
    }


def to_message(row: Row) -> Message:
    """A message from a row of :func:`message_columns`."""
    org, agent, user, session, id_, role, content, speaker, origin, signals, metadata, position, created = row
    return Message(
        id=id_,
        scope=to_scope(org, agent, user, ""),
        session=session,
        role=role,
        content=content,
        created_at=to_time(created),
        speaker=speaker,
        origin=origin,
        position=position,
        signals=() if signals == "[]" else tuple(json.loads(signals)),
        metadata=from_json(metadata),
    )


def session_columns() -> list[Column[Any]]:
    names = "org agent user session epoch created_at updated_at extracted"
    return [schema.sessions.c[name] for name in names.split()]


def to_session(row: Row) -> Session:
    org, agent, user, session, epoch, created, updated, extracted = row
    return Session(
        scope=to_scope(org, agent, user, session),
        created_at=to_time(created),
        updated_at=to_time(updated),
        extracted=extracted,
        epoch=epoch,
    )


# ---------------------------------------------------------------------------------------- profiles, files, journal


def _ordered(table: Table, first: str) -> list[Column[Any]]:
    return [table.c[name] for name in (*schema.PLACE, *first.split())]


def profile_columns() -> list[Column[Any]]:
    return _ordered(schema.profiles, "sections attributes version updated_at")


def from_profile(profile: Profile) -> dict[str, Any]:
    sections = {name: [s.summary, to_micros(s.updated_at)] for name, s in profile.sections.items()}
    return {
        "sections": to_json(sections),
        "attributes": to_json(dict(profile.attributes)),
        "updated_at": maybe_micros(profile.updated_at),
    }


def to_profile(row: Row) -> Profile:
    org, agent, user, session, sections, attributes, version, updated = row
    return Profile(
        scope=to_scope(org, agent, user, session),
        sections={n: Section(summary=s, updated_at=to_time(at)) for n, (s, at) in from_json(sections).items()},
        attributes=from_json(attributes),
        version=version,
        updated_at=maybe_time(updated),
    )


def profile_body(profile: Profile) -> str:
    return _encode(from_profile(profile))


def file_columns() -> list[Column[Any]]:
    return _ordered(schema.files, "path content created_at updated_at version read_only metadata")


def from_file(file: MemoryFile) -> dict[str, Any]:
    return {
        "path": file.path,
        "content": file.content,
        "created_at": to_micros(file.created_at),
        "updated_at": to_micros(file.updated_at),
        "read_only": int(file.read_only),
        "metadata": to_json(dict(file.metadata)),
    }


def to_file(row: Row) -> MemoryFile:
    org, agent, user, session, path, content, created, updated, version, read_only, metadata = row
    return MemoryFile(
        scope=to_scope(org, agent, user, session),
        path=path,
        content=bytes(content),
        created_at=to_time(created),
        updated_at=to_time(updated),
        version=version,
        read_only=bool(read_only),
        metadata=from_json(metadata),
    )


def file_body(file: MemoryFile) -> str:
    return _encode({**from_file(file), "content": base64.b64encode(file.content).decode()})


def file_of_body(scope: Scope, version: int, body: str) -> MemoryFile:
    """An earlier version of a file from its text."""
    found = json.loads(body)
    return MemoryFile(
        scope=scope,
        path=found["path"],
        content=base64.b64decode(found["content"]),
        created_at=to_time(found["created_at"]),
        updated_at=to_time(found["updated_at"]),
        version=version,
        read_only=bool(found["read_only"]),
        metadata=from_json(found["metadata"]),
    )


def file_info_columns() -> list[ColumnElement[Any]]:
    """A file's columns less its content, of which only the size in bytes is read."""
    return [*_ordered(schema.files, "path version updated_at read_only"), func.length(schema.files.c.content)]


def to_file_info(row: Row) -> FileInfo:
    org, agent, user, session, path, version, updated, read_only, size = row
    return FileInfo(
        scope=to_scope(org, agent, user, session),
        path=path,
        size=size,
        version=version,
        updated_at=to_time(updated),
        read_only=bool(read_only),
    )


def entry_columns() -> list[Column[Any]]:
    return _ordered(schema.journal, "id at by action kind target reason before after payload")


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


# ----------------------------------------------------------------------------------------------------------- jobs


def job_columns() -> list[Column[Any]]:
    return _ordered(schema.jobs, "id kind key run_after first_at state attempts lease_until worker error payload")


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


# ------------------------------------------------------------------------------------------ proposals, extractions


def proposal_columns() -> list[Column[Any]]:
    return _ordered(schema.proposals, "id kind target reason by created_at payload")


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
    return _ordered(schema.extractions, named)


def from_extraction(record: ExtractionRecord) -> dict[str, Any]:
    return {
        **dict(zip(schema.PLACE, record.scope.parts, strict=True)),
        **{name: getattr(record, name) for name in "id extractor prompt raw milliseconds error".split()},
        **{name: getattr(record.usage, name) for name in COSTS},
        "at": to_micros(record.at),
        "messages": _encode(record.messages),
        "decisions": _encode([[d.kind, d.reason, d.content, d.fact_id] for d in record.decisions]),
        "skipped": _encode([[s.reason, s.raw] for s in record.skipped]),
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
