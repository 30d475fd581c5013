"""What happens to every request before and after its route: its id, its size, its line in the log."""

from __future__ import annotations

import logging
import re
from time import perf_counter
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request

from everlong.server.problems import unforeseen

if TYPE_CHECKING:
    from collections.abc import Callable

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["Wire"]

_log = logging.getLogger("everlong.server")
_ID: Final = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_SAFE: Final = {
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-cache",
    "Referrer-Policy": "no-referrer",
}
"""On every answer: memory is private, so a cache may keep it for its owner only and has to ask whether it still holds."""


class Wire:
    """ASGI middleware. A request id of the caller is kept if it is plain, else one is made; it comes back in
    ``X-Request-ID`` and stands in the log. A body over ``max_bytes`` is refused, before it is read if it says its size.
    """

    def __init__(self, app: ASGIApp, *, new_id: Callable[[str], str], max_bytes: int) -> None:
        self._app, self._new_id, self._max = app, new_id, max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        asked = headers.get("x-request-id", "")
        name = asked if _ID.fullmatch(asked) else self._new_id("req")
        scope.setdefault("state", {})["request_id"] = name
        started, status = perf_counter(), 0

        async def reply(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                out = MutableHeaders(scope=message)
                out["X-Request-ID"] = name
                for header, value in _SAFE.items():
                    out.setdefault(header, value)
            await send(message)

        try:
            await self._app(scope, self._bounded(headers, receive), reply)
        except Exception as error:
            if status:  # too late for another answer: the connection is cut
                raise
            await unforeseen(Request(scope), error)(scope, receive, reply)
        finally:
            _note(scope, status, (perf_counter() - started) * 1000)

    def _bounded(self, headers: Headers, receive: Receive) -> Receive:
        said = headers.get("content-length", "")
        too_large = HTTPException(413, f"the body is over {self._max} bytes (setting max_body_bytes)")
        taken = 0

        async def bounded() -> Message:
            nonlocal taken
            if said.isdigit() and int(said) > self._max:
                raise too_large
            message = await receive()
            taken += len(message.get("body", b""))
            if taken > self._max:
                raise too_large
            return message

        return bounded


def _note(scope: Scope, status: int, milliseconds: float) -> None:
    """One line for a request: the route as it is written, so that no id, no question and no credential is logged."""
    route = scope.get("route")
    _log.info(
        "request",
        extra={
            "request_id": scope["state"]["request_id"],
            "method": scope["method"],
            "route": getattr(route, "path", ""),
            "status": status,
            "milliseconds": round(milliseconds, 2),
            "caller": scope["state"].get("caller", ""),
        },
    )
