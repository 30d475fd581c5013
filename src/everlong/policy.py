"""Who may do what: rules that give a decision with its reason, and the skin that enforces it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from everlong.errors import AccessDenied, ApprovalRequired
from everlong.protocols import Decision

if TYPE_CHECKING:
    from collections.abc import Callable

    from everlong.protocols import Call, Middleware, Policy
    from everlong.records import Principal, Scope

__all__ = ["READS", "OwnScope", "guard"]

READS: Final = frozenset(
    {"recall", "context", "explain", "facts", "fact", "history", "profile", "messages", "sessions", "journal"}
    | {"files", "file", "jobs", "proposals", "extractions", "extraction", "skills"}
)
"""Actions that change nothing; all others write."""

DECISIONS: Final = frozenset({"approve", "reject"})
"""Actions that decide over what an agent proposed, and so are never an agent's own."""


FILE_CHANGES: Final = frozenset({"write_file", "edit_file", "delete_file", "restore_file"})
"""Changes of memory files, which an agent may make to its own, shared by all whom it serves."""


class OwnScope:
    """The default: users own their own scope, agents act for the user they serve, operators and the system may all.

    Memory that is wider than one user (an agent's, an organisation's) is read by everyone it covers, through the
    scopes a question looks at, and written by operators only; an agent keeps its own files, though.
    """

    def decide(self, by: Principal, action: str, scope: Scope) -> Decision:
        """Allows or denies ``action`` at ``scope`` to ``by``; every answer says why."""
        if by.role in {"operator", "system"}:
            return Decision(effect="allow", reason=f"{by.role}s may do everything")
        if by.role == "agent" and action in FILE_CHANGES and not scope.user and scope.agent == by.id:
            return Decision(effect="allow", reason="an agent keeps its own files")
        if not scope.user:
            return Decision(effect="deny", reason="memory of more than one user is an operator's to touch directly")
        if by.role == "user" and by.id != scope.user:
            return Decision(effect="deny", reason="this memory belongs to another user")
        if by.role == "agent" and action in DECISIONS:
            return Decision(effect="deny", reason="what waits for review is a person's to decide")
        if by.role == "agent" and action not in READS and scope.agent and by.id != scope.agent:
            return Decision(effect="deny", reason="this memory belongs to another agent")
        return Decision(effect="allow", reason="own memory")


def guard(policy: Policy) -> Middleware:
    """A middleware that lets a call through only if ``policy`` allows it.

    Raises:
        AccessDenied: the policy says no.
        ApprovalRequired: the policy wants a person to look first.
    """

    def skin(call: Call, handler: Callable[[Call], Any]) -> Any:
        decision = policy.decide(call.by, call.action, call.scope)
        if decision.effect == "allow":
            return handler(call)
        refusal = ApprovalRequired if decision.effect == "ask" else AccessDenied
        raise refusal(call.action, call.scope, decision.reason)

    return skin
