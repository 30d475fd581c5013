"""What DeerFlow's gateway answers under ``/api/memory``, as plain functions for any server: dicts in, dicts out.

The user always comes from the server's login, never from the body. Errors are those of :mod:`everlong.errors`, each with
its HTTP ``status``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from everlong.errors import InvalidInput

if TYPE_CHECKING:
    from everlong.integrations.deerflow.calls import DocumentCalls

__all__ = ["ROUTES", "respond"]


@dataclass(frozen=True, slots=True)
class _Asked:
    who: dict[str, Any]
    body: dict[str, Any]
    fact_id: str

    @property
    def fields(self) -> dict[str, Any]:
        """What a body says of a fact; nothing else in it is looked at, an identity least of all."""
        known = ("content", "category", "confidence")
        return {name: self.body[name] for name in known if self.body.get(name) is not None}


def _create(calls: DocumentCalls, asked: _Asked) -> dict[str, Any]:
    if not isinstance(asked.body.get("content"), str):
        raise InvalidInput("a fact needs its content as text")
    return calls.create_memory_fact(**asked.fields, **asked.who)[0]


ROUTES: Final[Mapping[tuple[str, str], Callable[[DocumentCalls, _Asked], dict[str, Any]]]] = MappingProxyType(
    {
        ("GET", "/memory"): lambda calls, asked: calls.get_memory(**asked.who),
        ("DELETE", "/memory"): lambda calls, asked: calls.clear_memory(**asked.who),
        ("POST", "/memory/reload"): lambda calls, asked: calls.reload_memory(**asked.who),
        ("GET", "/memory/export"): lambda calls, asked: calls.export_memory(**asked.who),
        ("POST", "/memory/import"): lambda calls, asked: calls.import_memory(asked.body, **asked.who),
        ("POST", "/memory/facts"): _create,
        ("PATCH", "/memory/facts/{fact_id}"): lambda calls, asked: calls.update_memory_fact(
            asked.fact_id, **asked.fields, **asked.who
        ),
        ("DELETE", "/memory/facts/{fact_id}"): lambda calls, asked: calls.delete_memory_fact(
            asked.fact_id, **asked.who
        ),
        ("GET", "/memory/config"): lambda calls, _: calls.get_memory_config(),
        ("GET", "/memory/status"): lambda calls, asked: calls.get_memory_status(**asked.who),
    }
)
"""Every route below ``/api``, with what answers it."""


def respond(
    calls: DocumentCalls,
    method: str,
    route: str,
    *,
    user_id: str | None,
    body: dict[str, Any] | None = None,
    fact_id: str = "",
    agent_name: str | None = None,
) -> dict[str, Any]:
    """The JSON of one request.

    Raises:
        InvalidInput: there is no such route, or the body is no object that it can take.
        EverlongError: what the call raises.
    """
    answer = ROUTES.get((method, route))
    if answer is None:
        raise InvalidInput(f"there is no {method} {route}")
    if body is not None and not isinstance(body, dict):
        raise InvalidInput("the body must be a JSON object")
    return answer(calls, _Asked({"user_id": user_id, "agent_name": agent_name}, body or {}, fact_id))
