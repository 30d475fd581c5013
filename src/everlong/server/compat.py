"""DeerFlow's ``/api/memory*`` as an application of its own, to be mounted or served beside ``/v1``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from fastapi import APIRouter, Body
from starlette.responses import Response

from everlong.integrations.deerflow.calls import DocumentCalls
from everlong.integrations.deerflow.config import MemoryConfig
from everlong.integrations.deerflow.rest import ROUTES, respond
from everlong.server.door import Here, answer

if TYPE_CHECKING:
    from everlong.memory import ScopedMemory

__all__ = ["router"]

_NAME: Final = str.maketrans({"/": "_", "{": "", "}": ""})


class _Calls(DocumentCalls):
    """DeerFlow's calls for whoever has the credential, with no more rights than that gives."""

    def __init__(self, seen: ScopedMemory) -> None:
        super().__init__(seen._memory, MemoryConfig(org=seen.scope.org, strict_user_scope=True))
        self._by = seen.by

    def at(
        self, user_id: str | None = None, agent_name: str | None = None, thread_id: str | None = None
    ) -> ScopedMemory:
        """See :meth:`everlong.integrations.deerflow.DocumentCalls.at`."""
        return super().at(user_id, agent_name, thread_id).as_seen_by(self._by)


def router() -> APIRouter:
    """The routes, below ``/api``."""
    made = APIRouter(tags=["deerflow"])
    for method, path in ROUTES:
        made.add_api_route(
            path, _route(method, path), methods=[method], name=f"{method.lower()}{path}".translate(_NAME)
        )
    return made


def _route(method: str, path: str) -> Any:
    def plain(memory: Here) -> Response:
        return _respond(memory, method, path)

    def with_body(memory: Here, body: Annotated[dict[str, Any], Body()]) -> Response:
        return _respond(memory, method, path, body=body)

    def of_fact(memory: Here, fact_id: str) -> Response:
        return _respond(memory, method, path, fact_id=fact_id)

    def of_fact_with_body(memory: Here, fact_id: str, body: Annotated[dict[str, Any], Body()]) -> Response:
        return _respond(memory, method, path, fact_id=fact_id, body=body)

    shapes = {(False, False): plain, (True, False): with_body, (False, True): of_fact, (True, True): of_fact_with_body}
    takes_body = method in {"PATCH", "PUT"} or path.endswith(("/import", "/facts"))
    return shapes[takes_body, "{fact_id}" in path]


def _respond(memory: ScopedMemory, method: str, path: str, **given: Any) -> Response:
    scope = memory.scope
    return answer(
        respond(_Calls(memory), method, path, user_id=scope.user or None, agent_name=scope.agent or None, **given)
    )
