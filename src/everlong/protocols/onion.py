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


class Policy(Protocol):
    def decide(self, by: Principal, action: str, scope: Scope) -> Decision: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One operation on its way through the onion."""

    action: str
    scope: Scope
    by: Principal
    arguments: Mapping[str, Any] = field(default_factory=dict)


class Middleware(Protocol):
    """One skin of the onion: may refuse, change the call, look at the result; calls ``handler`` at most once."""

    def __call__(self, call: Call, handler: Callable[[Call], Any]) -> Any: ...
