"""The door of the server: who asks, how often, where they act."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import Depends, Header, Query
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.requests import Request

from everlong.errors import ConfigError, InvalidInput, Overloaded
from everlong.memory import Memory, ScopedMemory
from everlong.policy import Rules
from everlong.records import Principal
from everlong.server.auth import HEADERS, Credentials, Identity, Unauthenticated, identify, scope_of
from everlong.server.problems import Json

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["LOCAL", "Caller", "Door", "Expected", "Here", "Limit", "Rate", "answer", "door_of", "expected"]

LOCAL: Final = Identity(by=Principal(id="local", role="operator"), source="local")
"""Who everyone is on a server without credentials, which only its own machine can reach."""
_bearer: Final = HTTPBearer(auto_error=False, description="An API key (everlong keys add), or a JSON Web Token.")
_MOST: Final = 2**53

Limit = Annotated[int, Query(ge=1, le=1000, description="how many at most")]
_Part = Annotated[str | None, Query(max_length=512)]
_Tag = Annotated[
    str, Header(alias="If-Match", pattern=r'^(\*|(W/)?"[0-9]{1,15}")$', description="the ETag that was read")
]


class Rate:
    """So many requests by each caller, counted in this process. ``limit`` is like ``600/minute``; empty: no bound.

    Raises:
        ConfigError: it is no rate.
    """

    def __init__(self, limit: str) -> None:
        from limits import parse
        from limits.storage import MemoryStorage
        from limits.strategies import FixedWindowRateLimiter

        try:
            self._item = parse(limit) if limit else None
        except ValueError:
            raise ConfigError(f"rate_limit is {limit!r}; say 600/minute, 20/second … or nothing") from None
        self._limiter = FixedWindowRateLimiter(MemoryStorage()) if limit else None

    def check(self, caller: str) -> None:
        """Counts one request of ``caller``. Raises :class:`~everlong.errors.Overloaded`."""
        if self._limiter is None or self._item is None:
            return
        if not self._limiter.hit(self._item, caller):
            reset = self._limiter.get_window_stats(self._item, caller).reset_time
            seconds = max(1, round(reset - time.time()))
            msg = f"too many requests with this credential (setting rate_limit); try again in {seconds} s"
            raise Overloaded(msg, seconds=seconds)


@dataclass(frozen=True, kw_only=True)
class Door:
    """What the routes of one server share. Without ``credentials`` everyone is :data:`LOCAL`."""

    memory: Memory
    credentials: Sequence[Credentials]
    rate: Rate
    rules: Rules = field(default_factory=Rules)

    def identity(self, bearer: str | None, address: str) -> Identity:
        """Who asks. Failed attempts count for the address that they come from, and for nobody else there.

        Raises:
            Unauthenticated: there is no valid credential.
            Overloaded: too many requests.
        """
        if not self.credentials:
            self.rate.check(LOCAL.source)
            return LOCAL
        try:
            found = identify(bearer or "", self.credentials)
        except Unauthenticated:
            self.rate.check(f"failed:{address}")
            raise
        self.rate.check(found.source)
        return found


def door_of(request: Request) -> Door:
    """The door of the server that got this request."""
    door: Door = request.app.state.door
    return door


def _caller(request: Request, bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)]) -> Identity:
    address = request.client.host if request.client else ""
    found = door_of(request).identity(bearer.credentials if bearer else None, address)
    request.state.caller = found.source
    return found


Caller = Annotated[Identity, Depends(_caller)]


def _here(
    request: Request,
    caller: Caller,
    session: Annotated[str, Query(max_length=512, description="the conversation")] = "",
    org: Annotated[str | None, Header(alias=HEADERS["org"], max_length=6144)] = None,
    agent: Annotated[str | None, Header(alias=HEADERS["agent"], max_length=6144)] = None,
    user: Annotated[str | None, Header(alias=HEADERS["user"], max_length=6144)] = None,
) -> ScopedMemory:
    named = {"org": org, "agent": agent, "user": user}
    headers = {HEADERS[part]: value for part, value in named.items() if value is not None}
    return door_of(request).memory.at(scope_of(caller, headers, session), by=caller.by)


Here = Annotated[ScopedMemory, Depends(_here)]


def _expected(if_match: _Tag = "*") -> int | None:
    tag = if_match.removeprefix("W/").strip('"')
    return None if tag == "*" else int(tag)


Expected = Annotated[int | None, Depends(_expected)]
"""The version in ``If-Match``, if it names one."""


def expected(tag: int | None, version: int | None) -> int | None:
    """The version that a change is about, from ``If-Match`` or the body.

    Raises:
        InvalidInput: they differ.
    """
    if tag is not None and version is not None and tag != version:
        raise InvalidInput(f"If-Match names version {tag} and expected_version {version}")
    return version if tag is None else tag


def answer(record: Any, *, request: Request | None = None, status: int = 200) -> Json:
    """A record as the answer, with its version as its tag; nothing, if ``request`` says that the caller has that."""
    version = getattr(record, "version", None)
    headers = {} if version is None else {"ETag": f'"{version}"'}
    if request is not None and headers and _has(request, headers["ETag"]):
        return _Unchanged(status_code=304, headers=headers)
    return Json(record, status_code=status, headers=headers)


class _Unchanged(Json):
    def render(self, content: Any) -> bytes:
        del content
        return b""


def _has(request: Request, tag: str) -> bool:
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    return tag in known
