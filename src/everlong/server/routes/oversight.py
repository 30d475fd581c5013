"""For whoever answers for a memory: what waits, what was done and why, what it cost, what goes."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from everlong.protocols import Request as PolicyRequest
from everlong.records import ProposalKind
from everlong.server.door import Here, Limit, answer, door_of
from everlong.server.shapes import Approval, Erasure, Moment, PolicyQuestion, Rejection

__all__ = ["router"]

router = APIRouter(tags=["oversight"])


@router.get("/inbox")
def waiting(memory: Here, kind: ProposalKind | None = None, cursor: str = "", limit: Limit = 100) -> Response:
    """What waits for review, newest first."""
    return answer(memory.inbox.list(kind=kind, cursor=cursor, limit=limit))


@router.post("/inbox/{proposal_id}/approve")
def approve(memory: Here, proposal_id: str, how: Approval) -> Response:
    """Lets it take effect, as it stands or in better words; ``record`` says what kind of result it is."""
    made = memory.inbox.approve(proposal_id, content=how.content)
    return answer({"record": type(made).__name__, "result": made})


@router.post("/inbox/{proposal_id}/reject", status_code=204)
def reject(memory: Here, proposal_id: str, why: Rejection) -> Response:
    """Turns it away."""
    memory.inbox.reject(proposal_id, reason=why.reason)
    return Response(status_code=204)


@router.post("/erase")
def erase(memory: Here, sure: Erasure) -> Response:
    """Removes everything kept here for good, or the conversation ``session``; counts by kind."""
    del sure
    return answer({"erased": memory.erase()})


@router.get("/jobs")
def jobs(memory: Here) -> Response:
    """Work that waits, runs or was parked, soonest first."""
    return answer({"items": memory.jobs()})


@router.post("/jobs/{job_id}/retry")
def retry(memory: Here, job_id: str) -> Response:
    """Lets a parked job run again."""
    return answer(memory.retry(job_id))


@router.get("/journal")
def journal(memory: Here, target: str = "", action: str = "", cursor: str = "", limit: Limit = 100) -> Response:
    """Who changed what and why, newest first."""
    return answer(memory.journal(target=target, action=action, cursor=cursor, limit=limit))


@router.get("/extractions")
def extractions(memory: Here, cursor: str = "", limit: Limit = 100) -> Response:
    """What every extraction read, answered, decided and cost, newest first."""
    return answer(memory.extractions(cursor=cursor, limit=limit))


@router.get("/extractions/{record_id}")
def extraction(memory: Here, record_id: str) -> Response:
    """One extraction."""
    return answer(memory.extraction(record_id))


@router.get("/usage")
def usage(memory: Here, since: Annotated[Moment | None, Query()] = None) -> Response:
    """What extraction cost within this scope, since a time or in all."""
    return answer(memory.usage(since=since))


@router.post("/policy/check")
def check(memory: Here, asked: PolicyQuestion, request: Request) -> Response:
    """What the rules say to the caller about an action here, and which of them says it (0: none matches)."""
    rules = door_of(request).rules
    rule = rules.match(
        PolicyRequest(
            by=memory.by,
            action=asked.action,
            scope=memory.scope,
            kind=asked.kind,
            category=asked.category,
            path=asked.path,
        )
    )
    number = rules.all.index(rule) + 1 if rule in rules.all else 0
    return answer({"effect": rule.effect, "reason": rule.reason, "rule": number})
