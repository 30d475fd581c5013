"""What can go wrong, as ``application/problem+json`` (RFC 9457): one shape for every error, none with a stack trace."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final

from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from everlong import errors
from everlong.errors import AccessDenied, ApprovalRequired, Conflict, EverlongError, Overloaded
from everlong.records.plain import plain
from everlong.server.auth import Unauthenticated

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.requests import Request

__all__ = ["Json", "Problem", "install", "name_of", "problem_of", "unforeseen"]

_log = logging.getLogger("everlong.server")
_KINDS: Final = "urn:everlong:problem:"
_SERVER_ERROR: Final = 500
_WRONG_METHOD: Final = 405
_BY_STATUS: Final = {400: "InvalidInput", 404: "NotFound", 413: "TooLarge", 422: "InvalidInput"}


class Problem(BaseModel):
    """An error. ``type`` ends in the name of the error class; ``instance`` is the request's id."""

    type: str
    title: str
    status: int
    detail: str
    instance: str
    errors: list[dict[str, Any]] | None = None
    expected: int | str | None = None
    actual: int | str | None = None
    action: str | None = None
    reason: str | None = None
    proposal_id: str | None = None


class Json(Response):
    """A record as JSON. Text stands as it is; what UTF-8 cannot hold is escaped."""

    media_type = "application/json"

    def render(self, content: Any) -> bytes:
        """The body. A lone surrogate as ``backslashreplace`` writes it is just how JSON escapes one."""
        text = json.dumps(plain(content), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        return text.encode("utf-8", "backslashreplace")


class _ProblemJson(Json):
    media_type = "application/problem+json"


def name_of(error: EverlongError) -> str:
    """The name of the public class of an error."""
    return next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in errors.__all__)


def problem_of(error: EverlongError) -> dict[str, Any]:
    """An error of ours as a problem, without the request's id. One of the server's own keeps its words to the log."""
    hidden = error.status == _SERVER_ERROR
    told: dict[str, Any] = {
        "type": _KINDS + name_of(error),
        "title": (type(error).__doc__ or "").strip().partition(":")[0].partition(".")[0].partition(";")[0],
        "status": error.status,
        "detail": "the server is not set up for this; its log says more" if hidden else str(error),
    }
    if isinstance(error, Conflict):
        told |= {"expected": _short(error.expected), "actual": _short(error.actual)}
    if isinstance(error, AccessDenied):
        told |= {"action": error.action, "reason": error.reason}
    if isinstance(error, ApprovalRequired):
        told["proposal_id"] = error.proposal_id
    return told


def _short(value: object) -> int | str:
    return value if isinstance(value, int) and not isinstance(value, bool) else str(value)


def install(app: FastAPI) -> None:
    """Makes every error of ``app`` a problem."""
    app.add_exception_handler(EverlongError, _ours)
    app.add_exception_handler(Unauthenticated, _unauthenticated)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)


def _answer(request: Request, told: dict[str, Any], headers: dict[str, str] | None = None) -> Response:
    instance = f"urn:request:{getattr(request.state, 'request_id', '')}"
    return _ProblemJson({**told, "instance": instance}, status_code=told["status"], headers=headers)


def _ours(request: Request, error: Exception) -> Response:
    if not isinstance(error, EverlongError):
        return unforeseen(request, error)
    if error.status >= _SERVER_ERROR:
        _log.error("%s: %s", type(error).__name__, error, extra={"request_id": request.state.request_id})
    headers = {"Retry-After": str(error.seconds or 1)} if isinstance(error, Overloaded) else None
    return _answer(request, problem_of(error), headers)


def _unauthenticated(request: Request, error: Exception) -> Response:
    _log.info("unauthenticated: %s", error, extra={"request_id": request.state.request_id})
    told = {
        "type": _KINDS + "Unauthenticated",
        "title": "There is no credential, or it opens nothing",
        "status": 401,
        "detail": "send a valid key or token as Authorization: Bearer …",
    }
    return _answer(request, told, {"WWW-Authenticate": 'Bearer realm="everlong"'})


def _invalid(request: Request, error: Exception) -> Response:
    """A request of the wrong shape; what was wrong and where, never the value, which may be private."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    places = [{"at": ".".join(map(str, each["loc"])), "problem": each["msg"]} for each in found]
    told = {
        "type": _KINDS + "InvalidInput",
        "title": "The request has the wrong shape",
        "status": 422,
        "detail": "; ".join(f"{place['at']}: {place['problem']}" for place in places),
        "errors": places,
    }
    return _answer(request, told)


def _http(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else _SERVER_ERROR
    detail = str(error.detail) if isinstance(error, HTTPException) else ""
    kind = _KINDS + _BY_STATUS[status] if status in _BY_STATUS else "about:blank"
    told = {"type": kind, "title": detail, "status": status, "detail": detail}
    headers = dict(getattr(error, "headers", None) or {})
    if status == _WRONG_METHOD:
        headers["Allow"] = ", ".join(sorted(_methods(request)))
    return _answer(request, told, headers)


def _methods(request: Request) -> set[str]:
    """What the path takes: every method has a route of its own, and the one that refused knows of itself only."""
    asked = {method: {**request.scope, "method": method} for method in ("GET", "PUT", "POST", "PATCH", "DELETE")}
    routes = request.app.routes
    return {m for m, scope in asked.items() if any(route.matches(scope)[0] is Match.FULL for route in routes)}


def unforeseen(request: Request, error: Exception) -> Response:
    """The answer to what nobody thought of: it says nothing, the log says all."""
    _log.error("unforeseen error", exc_info=error, extra={"request_id": getattr(request.state, "request_id", "")})
    told = {
        "type": "about:blank",
        "title": "Internal error",
        "status": _SERVER_ERROR,
        "detail": "the server's log says more under the id of this request",
    }
    return _answer(request, told)
