"""The skins round every operation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from everlong.records import Principal, Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What a policy says about one call, and why."""

    effect: Literal["allow", "deny", "ask"]
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What a policy is asked: may ``by`` do ``action`` at ``scope``? ``kind`` is fact, message, profile or file where
    the action is about one; ``category`` and ``path`` say which, where it is known."""

    by: Principal
    action: str
    scope: Scope
    kind: str = ""
    category: str = ""
    path: str = ""


class Policy(Protocol):
    def decide(self, request: Request) -> Decision: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One operation on its way through the onion. ``approved_by`` names the person who approved it after the policy
    had asked for one."""

    action: str
    scope: Scope
    by: Principal
    arguments: Mapping[str, Any] = field(default_factory=dict)
    approved_by: str = ""


class Middleware(Protocol):
    """One skin of the onion: may refuse, change the call, look at the result; calls ``handler`` at most once."""

    def __call__(self, call: Call, handler: Callable[[Call], Any]) -> Any: ...
