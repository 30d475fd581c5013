"""Conversations."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query
from starlette.requests import Request
from starlette.responses import Response

from everlong.errors import EverlongError, Overloaded
from everlong.server.door import Here, Limit, answer, door_of
from everlong.server.problems import problem_of
from everlong.server.shapes import Conversations, Turns

__all__ = ["router"]

router = APIRouter(tags=["conversations"])
Key = Annotated[str, Header(alias="Idempotency-Key", max_length=256, description="names this call for a repetition")]


def _messages(turns: Turns) -> list[dict[str, Any]]:
    return [turn.given for turn in turns.messages]


@router.post("/messages", status_code=202)
def add(memory: Here, turns: Turns, key: Key = "") -> Response:
    """Keeps what was said in the conversation ``session``; facts are extracted in the background."""
    return answer(memory.add(_messages(turns), idempotency_key=key), status=202)


@router.post("/batch/messages")
def add_all(memory: Here, batch: Conversations, request: Request) -> Response:
    """Keeps what was said in several conversations. Each has a result or a problem of its own; from the first that is
    refused because too much waits, the rest are refused too."""
    results: list[dict[str, Any]] = []
    whole = door_of(request).memory
    for each in batch.conversations:
        try:
            there = whole.at(replace(memory.scope, session=each.session), by=memory.by)
            added = there.add(_messages(each), idempotency_key=each.idempotency_key)
            results.append({"session": each.session, "result": added})
        except EverlongError as error:
            results.append({"session": each.session, "problem": problem_of(error)})
            if isinstance(error, Overloaded):
                left = batch.conversations[len(results) :]
                results += [{"session": other.session, "problem": problem_of(error)} for other in left]
                break
    return answer({"results": results})


@router.get("/messages")
def messages(memory: Here, limit: Limit = 50) -> Response:
    """The latest messages, oldest first, of the conversation ``session`` or of all."""
    return answer({"items": memory.messages(limit=limit)})


@router.get("/sessions")
def sessions(memory: Here, cursor: Annotated[str, Query()] = "", limit: Limit = 100) -> Response:
    """The user's conversations, latest first."""
    return answer(memory.sessions(cursor=cursor, limit=limit))


@router.post("/flush")
def flush(memory: Here) -> Response:
    """Makes the work that waits here due now."""
    return answer({"jobs": memory.flush()})


@router.post("/clear")
def clear(memory: Here) -> Response:
    """Drops the work that waits here: what was said so far is never extracted."""
    return answer({"conversations": memory.clear()})
