"""Facts and the profile."""

from __future__ import annotations

from typing import Annotated, Any, Final, Literal

from fastapi import APIRouter, Query
from starlette.requests import Request
from starlette.responses import Response

from everlong.errors import EverlongError
from everlong.server.door import Expected, Here, Limit, answer, expected
from everlong.server.problems import problem_of
from everlong.server.shapes import FactChange, FactStatement, FactStatements, Moment, ProfileChange, Question, Reason

__all__ = ["router"]

router = APIRouter(tags=["facts"])
Status = Annotated[Literal["active", "held", "retired", "any"], Query(description="any lists all")]
Categories = Annotated[list[str], Query(alias="category", max_length=100, default_factory=list)]
At = Annotated[Moment | None, Query()]


@router.get("/facts")
def facts(
    memory: Here,
    categories: Categories,
    status: Status = "active",
    cursor: str = "",
    limit: Limit = 100,
    as_of: At = None,
    valid_at: At = None,
) -> Response:
    """Facts visible from here, newest first."""
    return answer(
        memory.facts(
            status=None if status == "any" else status,
            categories=categories,
            cursor=cursor,
            limit=limit,
            as_of=as_of,
            valid_at=valid_at,
        )
    )


_FACT: Final = {"parameters": {"fact_id": "$response.body#/fact/id"}}
_LINKS: Final = {name: {"operationId": f"facts_{name}", **_FACT} for name in ("fact", "history", "revise", "forget")}


@router.post("/facts", status_code=201, responses={201: {"links": _LINKS}})
def remember(memory: Here, fact: FactStatement) -> Response:
    """Stores one fact: added, or merged into what was known; the answer says which and why."""
    return answer(memory.remember(**fact.given), status=201)


@router.post("/batch/facts")
def remember_all(memory: Here, batch: FactStatements) -> Response:
    """Stores several facts. Each has a result or a problem of its own."""
    results: list[dict[str, Any]] = []
    for fact in batch.facts:
        try:
            results.append({"result": memory.remember(**fact.given)})
        except EverlongError as error:
            results.append({"problem": problem_of(error)})
    return answer({"results": results})


@router.post("/search/facts")
def search(memory: Here, asked: Question) -> Response:
    """Facts that bear on a question, best first."""
    filters = {**asked.given, "kinds": ("fact",)}
    return answer(memory.recall(filters.pop("question"), **filters))


@router.get("/facts/{fact_id}")
def fact(memory: Here, fact_id: str, request: Request) -> Response:
    """One fact."""
    return answer(memory.fact(fact_id), request=request)


@router.get("/facts/{fact_id}/history")
def history(memory: Here, fact_id: str) -> Response:
    """Every version of a fact, oldest first."""
    return answer({"items": memory.history(fact_id)})


@router.patch("/facts/{fact_id}")
def revise(memory: Here, fact_id: str, change: FactChange, tag: Expected) -> Response:
    """Changes a fact; everything else stays, the old version goes into history."""
    changes = change.given
    version = expected(tag, changes.pop("expected_version", None))
    return answer(memory.revise(fact_id, expected=version, **changes))


@router.delete("/facts/{fact_id}")
def forget(memory: Here, fact_id: str, reason: str = "asked to forget") -> Response:
    """Retires a fact: it is never recalled again; its history stays until it is erased."""
    return answer(memory.forget(fact_id, reason=reason))


@router.post("/facts/{fact_id}/restore")
def restore(memory: Here, fact_id: str, why: Reason) -> Response:
    """Makes a retired or replaced fact active again."""
    return answer(memory.restore(fact_id, **({"reason": why.reason} if why.reason else {})))


@router.get("/profile")
def profile(memory: Here, request: Request, as_of: At = None) -> Response:
    """The profile, as it is or as it stood at a time."""
    return answer(memory.profile(as_of=as_of), request=request)


@router.patch("/profile")
def update_profile(memory: Here, change: ProfileChange, tag: Expected) -> Response:
    """Sets sections and attributes."""
    version = expected(tag, change.expected_version)
    return answer(memory.update_profile(sections=change.sections, attributes=change.attributes, expected=version))
