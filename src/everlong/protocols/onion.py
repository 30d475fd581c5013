"""The skins round every operation."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, Protocol, runtime_checkable

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from everlong.protocols.rights import Rights
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
    """Judges each call. One that also has :meth:`Narrowing.rights` decides what a call that may run gets to read."""

    def decide(self, request: Request) -> Decision: ...


@runtime_checkable
class Narrowing(Protocol):
    """What a policy may offer beside decisions."""

    def rights(self, by: Principal, action: str) -> Rights | None:
        """What ``by`` may read with ``action`` of all that a scope sees; ``None`` when nothing is hidden."""
        ...

    def hides_within(self, by: Principal, scope: Scope, *, wider: bool) -> bool:
        """Whether some record within ``scope`` (with ``wider``, or seen from it) may be hidden from ``by``."""
        ...


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
