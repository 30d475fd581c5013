"""The server itself: whether it lives, is ready, and what it counts."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.requests import Request
from starlette.responses import Response

from everlong import __version__
from everlong.errors import AccessDenied
from everlong.records import Scope
from everlong.server.door import Caller, answer, door_of
from everlong.server.metrics import exposition

__all__ = ["router"]

router = APIRouter(tags=["server"])


@router.get("/health")
def health() -> Response:
    """That the process answers. Needs no credential, and looks at nothing."""
    return answer({"status": "ok", "version": __version__})


@router.get("/ready")
def ready(request: Request) -> Response:
    """That the store answers, too; else 503. Needs no credential."""
    door_of(request).memory.status()
    return answer({"status": "ready"})


@router.get("/whoami")
def whoami(caller: Caller) -> Response:
    """Whom the credential speaks for, and which parts of a scope it binds."""
    return answer(
        {
            "id": caller.by.id,
            "role": caller.by.role,
            "groups": caller.by.groups,
            "org": caller.org,
            "user": caller.user,
            "agent": caller.agent,
        }
    )


@router.get("/status")
def status(caller: Caller, request: Request) -> Response:
    """Which parts are active and how much work waits, of the whole installation."""
    _check_operator(caller)
    return answer(door_of(request).memory.status())


@router.get("/metrics")
def metrics(caller: Caller, request: Request) -> Response:
    """Counters for Prometheus, of the whole installation: no names, no texts."""
    _check_operator(caller)
    return Response(exposition(door_of(request).memory), media_type="text/plain; version=0.0.4; charset=utf-8")


def _check_operator(caller: Caller) -> None:
    if caller.by.role != "operator" or caller.org:
        raise AccessDenied("status", Scope(org=caller.org), "the whole installation is its operator's to look at")
