"""Questions, and why they found what they found."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from everlong.server.door import Here, Limit, answer
from everlong.server.shapes import ContextQuestion, Question, Replaying

__all__ = ["router"]

router = APIRouter(tags=["questions"])


@router.post("/recall")
def recall(memory: Here, asked: Question) -> Response:
    """What memory holds on a question, best first, with the trace that explains it."""
    given = asked.given
    return answer(memory.recall(given.pop("question"), **given))


@router.post("/context")
def context(memory: Here, asked: ContextQuestion) -> Response:
    """A block for the agent's prompt, within its budget."""
    given = asked.given
    return answer(memory.context(given.pop("question", None), **given))


@router.get("/traces")
def traces(memory: Here, limit: Limit = 20) -> Response:
    """The latest questions that can be explained, newest first."""
    return answer({"items": memory.traces(limit=limit)})


@router.get("/traces/{trace_id}")
def explain(memory: Here, trace_id: str) -> Response:
    """Why a question found what it found."""
    return answer(memory.explain(trace_id))


@router.get("/traces/{trace_id}/explanation")
def explanation(memory: Here, trace_id: str) -> Response:
    """The same as a person reads it: with the texts of the candidates."""
    return answer(memory.explanation(trace_id))


@router.post("/traces/{trace_id}/replay")
def replay(memory: Here, trace_id: str, changes: Replaying) -> Response:
    """Asks the question again with other settings, and compares."""
    return answer(memory.replay(trace_id, **changes.given))
