"""For whoever answers for a memory: what waits, what was done and why, what it cost, what goes."""

from __future__ import annotations

import json
from io import BytesIO
from tempfile import SpooledTemporaryFile
from typing import Annotated, Any, Final

from fastapi import APIRouter, Body, Query
from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from everlong.protocols import Request as PolicyRequest
from everlong.records import ProposalKind
from everlong.records.plain import plain
from everlong.server.door import Here, Limit, answer, door_of
from everlong.server.shapes import Approval, Erasure, Moment, PolicyQuestion, Rejection, TopicErasure, TopicQuestion

__all__ = ["router"]

router = APIRouter(tags=["oversight"])
_LINES: Final = "application/x-ndjson"
_IN_MEMORY: Final = 1024 * 1024
"""Bytes of an export from which it is put on the disk while it is sent."""
_PIECE: Final = 64 * 1024


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
    """Removes everything kept here for good, or the conversation ``session``; the receipt counts by kind."""
    del sure
    return answer(memory.erase())


@router.post("/forget/preview")
def forget_preview(memory: Here, asked: TopicQuestion) -> Response:
    """Everything that tells of a topic: what a person looks at before it is forgotten. Changes nothing."""
    return answer(memory.forget_preview(asked.topic, threshold=asked.threshold))


@router.post("/forget")
def forget_topic(memory: Here, confirmed: TopicErasure) -> Response:
    """Takes out what was confirmed."""
    given: dict[str, Any] = {"threshold": confirmed.threshold, "erase": confirmed.erase, "reason": confirmed.reason}
    return answer(memory.forget_topic(confirmed.topic, confirmed.refs, **given))


@router.get("/upkeep/preview")
def upkeep_preview(memory: Here) -> Response:
    """What upkeep would do now. Changes nothing."""
    return answer(memory.upkeep.preview())


@router.post("/upkeep")
def upkeep(memory: Here) -> Response:
    """Does what is due now; the answer says what and why."""
    return answer(memory.upkeep.run())


@router.get("/upkeep/report")
def upkeep_report(memory: Here) -> Response:
    """What the facts are worth, and suggestions."""
    return answer(memory.upkeep.report())


@router.post("/upkeep/suggestions/{suggestion_id}")
def follow(memory: Here, suggestion_id: str) -> Response:
    """Follows one suggestion of the report."""
    return answer({"items": memory.upkeep.apply(suggestion_id)})


@router.get("/export", response_class=StreamingResponse)
def export(memory: Here, *, audit: bool = False) -> Response:
    """Everything kept here as JSON by lines; what was written is counted in ``X-Everlong-Export``."""
    file = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115 - closed when it was sent
    try:
        written = memory.transfer.export(file, audit=audit)
    except BaseException:
        file.close()
        raise
    file.seek(0)
    pieces = iter(lambda: file.read(_PIECE), b"")
    headers = {"X-Everlong-Export": json.dumps(plain(written))}
    return StreamingResponse(pieces, media_type=_LINES, headers=headers, background=BackgroundTask(file.close))


Lines = Annotated[bytes, Body(media_type=_LINES, description="an export")]


@router.post("/import/preview")
def import_preview(memory: Here, lines: Lines) -> Response:
    """What an import would do, by kind. Changes nothing."""
    return answer(memory.transfer.preview(BytesIO(lines)))


@router.post("/import")
def import_(memory: Here, lines: Lines) -> Response:
    """Takes an export in, beside what is here, in one transaction or not at all."""
    return answer(memory.transfer.import_(BytesIO(lines)))


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
