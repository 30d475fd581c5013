"""Facts and their earlier versions as rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from everlong.records import Evidence, Fact
from everlong.store import schema
from everlong.store.rows.values import (
    encode,
    from_json,
    maybe_micros,
    maybe_time,
    to_json,
    to_micros,
    to_scope,
    to_time,
)

if TYPE_CHECKING:
    from sqlalchemy import Column

    from everlong.store.sql import Row


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
        "evidence": encode([[e.message_id, e.quote, e.session] for e in fact.evidence]) if fact.evidence else "[]",
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
    return encode(from_fact(fact))


def fact_of_body(body: str) -> Fact:
    found = json.loads(body)
    return to_fact(tuple(found[name] for name in _FACT))


def without_quotes(evidence: str, session: str) -> str:
    """The column ``evidence`` less what was said in ``session``."""
    return encode([one for one in json.loads(evidence) if one[2] != session])


def body_without_quotes(body: str, session: str) -> str:
    """An earlier version of a fact less the evidence said in ``session``."""
    found = json.loads(body)
    return encode(found | {"evidence": without_quotes(found["evidence"], session)})
