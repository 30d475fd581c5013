"""The connection: one address, one key, and what goes over it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import quote

from everlong import errors
from everlong.client.scoped import RemoteMemory
from everlong.errors import (
    AccessDenied,
    ApprovalRequired,
    Conflict,
    EverlongError,
    InvalidInput,
    InvalidScope,
    MissingExtra,
    StoreUnavailable,
)
from everlong.records import Scope

if TYPE_CHECKING:
    from types import TracebackType

    import httpx

    from everlong.records import Principal

__all__ = ["Client"]

_KINDS: Final = "urn:everlong:problem:"
_ERROR: Final = 400
_NO_CONTENT: Final = 204
_PARTS: Final = {"org": "X-Everlong-Org", "agent": "X-Everlong-Agent", "user": "X-Everlong-User"}


class Client:
    """Memory behind a server. :meth:`at` gives what :meth:`everlong.memory.Memory.at` gives: the same operations, the
    same records, the same errors. Safe for many threads.

    Args:
        url: the server's address, such as ``https://memory.example``.
        key: an API key or a token; empty only for a server without credentials.
        timeout: seconds that a request may take.
        transport: another transport of httpx, for tests and proxies.

    Raises:
        MissingExtra: httpx is not installed.
        InvalidInput: the key cannot be one.
    """

    def __init__(
        self, url: str, key: str = "", *, timeout: float = 30.0, transport: httpx.BaseTransport | None = None
    ) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingExtra("client", "the client of the server") from None
        if not (key.isascii() and key.isprintable()):
            raise InvalidInput("the key holds characters that no key or token has")
        self._httpx = httpx
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._http = httpx.Client(base_url=url, headers=headers, timeout=timeout, transport=transport)

    def at(self, scope: Scope, *, by: Principal | None = None) -> RemoteMemory:
        """The memory as seen from ``scope`` by whom the key speaks for.

        Raises:
            InvalidScope: it is no scope.
            InvalidInput: ``by`` is given: who acts is said by the key alone.
        """
        if not isinstance(scope, Scope):
            raise InvalidScope(f"a scope is needed, such as Scope(user='ann'), not {type(scope).__name__}")
        if by is not None:
            raise InvalidInput("who acts is said by the key; make one for that role instead of passing by=…")
        return RemoteMemory(self, scope)

    def whoami(self) -> dict[str, Any]:
        """Whom the key speaks for, and which parts of a scope it binds."""
        told: dict[str, Any] = self.call("GET", "/whoami")
        return told

    def call(
        self,
        method: str,
        path: str,
        *,
        scope: Scope | None = None,
        query: dict[str, Any] | None = None,
        body: Any = None,
        headers: dict[str, str] | None = None,
    ) -> Any:
        """One request below ``/v1``; the JSON of its answer, ``None`` if there is none.

        Raises:
            StoreUnavailable: the server cannot be reached, or does not answer in time.
            EverlongError: what the server answered.
        """
        sent = dict(headers or {})
        params = {name: value for name, value in (query or {}).items() if value is not None}
        if scope is not None:
            sent |= {header: quote(getattr(scope, part), safe="") for part, header in _PARTS.items()}
            params["session"] = scope.session
        if body is not None:
            sent["Content-Type"] = "application/json"
        try:
            answer = self._http.request(method, f"/v1{path}", params=params, content=_json(body), headers=sent)
        except self._httpx.TransportError as error:
            raise StoreUnavailable(f"the server does not answer: {type(error).__name__}") from error
        if answer.status_code >= _ERROR:
            raise _error(answer, scope or Scope())
        return None if answer.status_code == _NO_CONTENT else answer.json()

    def close(self) -> None:
        """Ends the connections."""
        self._http.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _json(body: Any) -> bytes | None:
    """A body, in ASCII: what UTF-8 cannot hold (a lone surrogate) gets through, and the server decides."""
    if body is None:
        return None
    try:
        return json.dumps(body, allow_nan=False).encode("ascii")
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"what was given cannot be sent as JSON: {error}") from None


def _error(answer: httpx.Response, scope: Scope) -> EverlongError:
    """The error that the server raised, made again."""
    try:
        told: dict[str, Any] = answer.json()
        name, detail = str(told.get("type", "")), str(told.get("detail", ""))
    except (ValueError, AttributeError):
        told, name, detail = {}, "", ""
    detail = detail or f"the server answered {answer.status_code}"
    found = getattr(errors, name.removeprefix(_KINDS), None) if name.startswith(_KINDS) else None
    if answer.status_code == 401:  # noqa: PLR2004 - the status says it
        return AccessDenied("request", scope, detail)
    if not (isinstance(found, type) and issubclass(found, EverlongError)):
        return StoreUnavailable(detail) if answer.status_code >= 500 else InvalidInput(detail)  # noqa: PLR2004
    made = found.__new__(found)
    Exception.__init__(made, detail)
    if isinstance(made, Conflict):
        made.expected, made.actual = told.get("expected"), told.get("actual")
    if isinstance(made, AccessDenied):
        made.action, made.scope, made.reason = str(told.get("action", "")), scope, str(told.get("reason", detail))
    if isinstance(made, ApprovalRequired):
        made.proposal_id = str(told.get("proposal_id") or "")
    return made
