"""The MCP server over streamable HTTP: each request brings its credential, and sees the memory that it opens."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import JSONResponse

from everlong.errors import EverlongError, InvalidScope
from everlong.server.auth import Unauthenticated, scope_of
from everlong.server.mcp import MemoryServer, as_agent
from everlong.server.problems import problem_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from mcp.server.context import ServerRequestContext
    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Receive, Scope, Send

    from everlong.memory import Memory, ScopedMemory
    from everlong.server.auth import Identity

__all__ = ["Entrance", "http_app"]


@dataclass(frozen=True, kw_only=True)
class Entrance:
    """Finds out whose memory a request opens.

    Args:
        memory: what is served.
        identify: the identity of a bearer credential (``None``: there is none) from an address; it may count requests.
    """

    memory: Memory
    identify: Callable[[str | None, str], Identity]

    def open(self, headers: Headers, address: str) -> ScopedMemory:
        """The memory of one request: with the rights of its credential, an operator's less what an agent may not do.

        Raises:
            Unauthenticated: there is no valid credential.
            InvalidScope: no user is named.
            EverlongError: the credential does not open what the headers name, or asks too often.
        """
        kind, _, text = headers.get("authorization", "").partition(" ")
        caller = self.identify(text.strip() or None if kind.lower() == "bearer" else None, address)
        scope = scope_of(caller, headers, "")
        if not scope.user:
            raise InvalidScope("name the user whose memory it is in the header X-Everlong-User, or use a user's key")
        scoped = self.memory.at(scope, by=caller.by)
        return as_agent(scoped) if caller.by.role == "operator" else scoped


class _Gate:
    """ASGI middleware: no message reaches the server without the memory that its request opens."""

    def __init__(self, app: ASGIApp, *, opened: Callable[[Headers, str], ScopedMemory]) -> None:
        self._app, self._opened = app, opened

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        address = (scope.get("client") or ("",))[0]
        try:
            memory = await to_thread.run_sync(self._opened, Headers(scope=scope), address)
        except Unauthenticated:
            refused = JSONResponse(
                {"error": "invalid_token", "error_description": "send a valid key or token as Authorization: Bearer …"},
                401,
                {"WWW-Authenticate": 'Bearer realm="everlong", error="invalid_token"'},
            )
            await refused(scope, receive, send)
        except EverlongError as error:
            wait = {"Retry-After": str(error.seconds)} if hasattr(error, "seconds") else None
            refused = JSONResponse(problem_of(error), error.status, wait, "application/problem+json")
            await refused(scope, receive, send)
        else:
            scope.setdefault("state", {})["memory"] = memory
            await self._app(scope, receive, send)


def http_app(
    opened: Callable[[Headers, str], ScopedMemory],
    *,
    host: str = "127.0.0.1",
    path: str = "/mcp",
    zone: str = "UTC",
    person: bool = False,
) -> Starlette:
    """The application to serve, at ``path``. It keeps no sessions, so any number of processes may share the load.

    Args:
        opened: the memory of a request, by its headers and address, such as :meth:`Entrance.open`.
        host: where it will listen; on this machine's own addresses, requests that a browser was tricked into
            (DNS rebinding) are refused.
        path: of the endpoint.
        zone: the users' time zone, for days that name none.
        person: whether a user's credential is the person's own hand, which may decide what waits for review.
    """

    def find(ctx: ServerRequestContext[Any, Any]) -> ScopedMemory:
        request = ctx.request
        if not isinstance(request, Request):
            raise Unauthenticated("a message came by no request")
        found: ScopedMemory = request.state.memory
        return found

    server = MemoryServer(find, zone=zone, person=person)
    app = server.streamable_http_app(streamable_http_path=path, json_response=True, stateless_http=True, host=host)
    app.add_middleware(_Gate, opened=opened)
    return app
