"""Who may do what: rules that give a decision with its reason, and the skin that enforces it."""

from __future__ import annotations

from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal

from everlong.errors import AccessDenied, ApprovalRequired, NotFound
from everlong.protocols import Decision, Narrowing, Request, Rights, reading_with
from everlong.records import Role

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from everlong.protocols import Call, Middleware, Policy, Store
    from everlong.records import Fact, Principal, Scope

__all__ = ["DEFAULTS", "READS", "Rule", "Rules", "guard"]

READS: Final = frozenset(
    {"export", "import_preview"}
    | {"recall", "context", "explain", "facts", "fact", "history", "profile", "messages", "sessions", "journal"}
    | {"files", "file", "jobs", "usage", "proposals", "extractions", "extraction", "skills", "forget_preview"}
    | {"upkeep_preview", "upkeep_report"}
)
"""Actions that change nothing."""

_SHOWN: Final = frozenset(
    {"recall", "context", "facts", "fact", "history", "profile", "messages", "sessions", "files", "file", "skills"}
)
"""Reads that show records themselves, of which what is hidden can be left out."""

_MIXED: Final = frozenset(
    {"proposals", "extractions", "extraction", "export", "import_preview"}
    | {"forget_preview", "forget_topic", "erase_topic", "upkeep_preview", "upkeep_report"}
)
_MIXED_WIDELY: Final = frozenset({"explain", "journal"})
"""Reads that quote records within the scope; traces, which the journal holds too, quote all that the scope sees."""

_READ_AS: Final[Mapping[str, str]] = {"forget": "recall", "import": "facts"}
"""Changes that show records beside what they change, and the read whose rights hold for those."""

_GROUPS: Final[Mapping[str, frozenset[str]]] = {
    "read": READS,
    "approve": frozenset({"approve", "reject"}),
    "erase": frozenset({"import_replace", "erase", "erase_topic"}),
}
"""Names for several actions; ``write`` is every action in none of these."""

_KINDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("facts", "fact", "history", "remember", "revise", "forget", "restore"), "fact"),
    **dict.fromkeys(("messages", "sessions", "add"), "message"),
    **dict.fromkeys(("profile", "update_profile"), "profile"),
    **dict.fromkeys(("files", "file", "skills", "write_file", "edit_file", "delete_file", "restore_file"), "file"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule. Everything that is given must match; what is left out matches anything.

    ``actions`` are names of operations, or ``read``, ``write``, ``approve``, ``erase``. ``org``, ``agent`` and
    ``user`` match a part of the scope exactly; ``""`` means that the part is empty (wider memory), ``"*"`` that it is
    not, ``"{id}"`` the principal's own id. ``categories`` and ``paths`` are patterns with ``*`` and ``?``.
    """

    effect: Literal["allow", "deny", "ask"]
    reason: str
    roles: tuple[Role, ...] = ()
    ids: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()
    org: str | None = None
    agent: str | None = None
    user: str | None = None
    kinds: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()

    def matches(self, request: Request) -> bool:
        """Whether this rule has something to say about ``request``."""
        return self.is_about(request.by) and self._is_at(request) and self._is_of(request)

    def is_about(self, by: Principal) -> bool:
        """Whether this rule is one on ``by``."""
        return (
            (not self.roles or by.role in self.roles)
            and (not self.ids or by.id in self.ids)
            and (not self.groups or not set(self.groups).isdisjoint(by.groups))
        )

    def is_on(self, action: str) -> bool:
        """Whether this rule is one on ``action``."""
        return not self.actions or action in self.actions or _group(action) in self.actions

    def is_final(self, actions: Collection[str]) -> bool:
        """Whether no rule after this one has a say on any of ``actions``."""
        narrow = self.kinds or self.categories or self.paths
        wide = not narrow and (self.org, self.agent, self.user) == (None, None, None)
        return wide and all(map(self.is_on, actions))

    def may_reach(self, by: Principal, scope: Scope, *, wider: bool) -> bool:
        """Whether some place within ``scope`` (with ``wider``, or one that it sees) is one of this rule's."""
        pairs = ((self.org, scope.org), (self.agent, scope.agent), (self.user, scope.user))
        return all(not part or (wider and not wanted) or _part(wanted, part, by) for wanted, part in pairs)

    def _is_at(self, request: Request) -> bool:
        scope = request.scope
        pairs = ((self.org, scope.org), (self.agent, scope.agent), (self.user, scope.user))
        return all(_part(wanted, part, request.by) for wanted, part in pairs)

    def _is_of(self, request: Request) -> bool:
        return (
            self.is_on(request.action)
            and (not self.kinds or request.kind in self.kinds)
            and (not self.categories or any(fnmatchcase(request.category, p) for p in self.categories))
            and (not self.paths or any(fnmatchcase(request.path, p) for p in self.paths))
        )


def _part(wanted: str | None, part: str, by: Principal) -> bool:
    if wanted is None:
        return True
    if wanted == "*":
        return bool(part)
    if wanted == "{id}":
        return bool(part) and part == by.id  # who has no id owns nothing, least of all what is everybody's
    return part == wanted


def _group(action: str) -> str:
    return next((name for name, actions in _GROUPS.items() if action in actions), "write")


DEFAULTS: Final = (
    Rule(effect="allow", reason="operators and the system may do everything", roles=("operator", "system")),
    Rule(
        effect="allow",
        reason="an agent keeps its own files",
        roles=("agent",),
        actions=("write",),
        agent="{id}",
        user="",
        kinds=("file",),
    ),
    Rule(effect="deny", reason="memory of more than one user is an operator's to touch directly", user=""),
    Rule(effect="allow", reason="own memory", roles=("user",), user="{id}"),
    Rule(effect="deny", reason="this memory belongs to another user", roles=("user",)),
    Rule(effect="deny", reason="what waits for review is a person's to decide", roles=("agent",), actions=("approve",)),
    Rule(effect="allow", reason="an agent reads for the user it serves", roles=("agent",), actions=("read",)),
    Rule(effect="allow", reason="an agent acts for the user it serves", roles=("agent",), agent="{id}"),
    Rule(effect="allow", reason="an agent acts for the user it serves", roles=("agent",), agent=""),
    Rule(effect="deny", reason="this memory belongs to another agent", roles=("agent",)),
)
"""Users own their own memory; agents act for the user they serve, in their own part or the user's, and decide nothing
that waits for a person; memory wider than one user is read through the scopes that it covers and written by operators.
The first rule that matches decides."""


class Rules:
    """A policy made of rules: your own first, then the defaults; the first that matches decides.

    Args:
        own: asked before the defaults.
    """

    def __init__(self, own: Sequence[Rule] = ()) -> None:
        self._own = tuple(own)
        self.all = (*self._own, *DEFAULTS)

    def match(self, request: Request) -> Rule:
        """The rule that decides; without one, a refusal."""
        closed = Rule(effect="deny", reason="no rule allows it")
        return next((rule for rule in self.all if rule.matches(request)), closed)

    def rights(self, by: Principal, action: str) -> Rights | None:
        """What your own rules hide from ``by`` of all that a scope sees: what a rule denies, or asks a person for, is not
        read at all. The defaults hide nothing."""
        rules = self._own_about(by, {action})
        if all(rule.effect == "allow" for rule in rules):
            return None

        @cache
        def judge(kind: str, scope: Scope, name: str) -> bool:
            names = {"category": name if kind == "fact" else "", "path": name if kind == "file" else ""}
            request = Request(by=by, action=action, scope=scope, kind=kind, **names)
            return next((rule.effect == "allow" for rule in rules if rule.matches(request)), True)

        named = {"fact": any(rule.categories for rule in rules), "file": any(rule.paths for rule in rules)}
        return Rights(key=(by, action), named=frozenset(kind for kind, told in named.items() if told), judge=judge)

    def hides_within(self, by: Principal, scope: Scope, *, wider: bool) -> bool:
        """Whether a rule of your own may hide a record within ``scope`` (with ``wider``, or seen from it)."""
        rules = self._own_about(by, _SHOWN)
        return any(rule.effect != "allow" and rule.may_reach(by, scope, wider=wider) for rule in rules)

    def _own_about(self, by: Principal, actions: Collection[str]) -> list[Rule]:
        """Your own rules on one of ``actions`` of ``by``, up to the first that leaves nothing to those after it."""
        found: list[Rule] = []
        for rule in self._own:
            if rule.is_about(by) and any(rule.is_on(action) for action in actions):
                found.append(rule)
                if rule.is_final(actions):
                    break
        return found

    def decide(self, request: Request) -> Decision:
        """Allows, denies, or asks for a person; every answer says why."""
        rule = self.match(request)
        return Decision(effect=rule.effect, reason=rule.reason)


def request_of(call: Call, category: str = "") -> Request:
    """What a policy is asked about a call."""
    arguments = call.arguments
    changes = arguments.get("changes")
    named = category or arguments.get("category") or (changes.get("category") if isinstance(changes, dict) else "")
    return Request(
        by=call.by,
        action=call.action,
        scope=call.scope,
        kind=_KINDS.get(call.action, ""),
        category=str(named or ""),
        path=str(arguments.get("path") or ""),
    )


def _check_mixed(call: Call, narrowing: Narrowing) -> None:
    """Refuses to show records that may quote what is hidden from who asks: nobody could take it out of them."""
    wider = call.action in _MIXED_WIDELY
    if (wider or call.action in _MIXED) and narrowing.hides_within(call.by, call.scope, wider=wider):
        raise AccessDenied(call.action, call.scope, "part of the memory that this may show is hidden from who asks")


def _check_changed(call: Call, narrowing: Narrowing, fact: Fact | None) -> None:
    """Refuses to change what may not be read: the answer would show it."""
    kind = _KINDS.get(call.action, "")
    rights = narrowing.rights(call.by, kind) if kind in {"fact", "profile", "file"} else None
    if rights is None:
        return
    if fact and not rights.sees("fact", fact.scope, fact.category):
        raise NotFound(f"no fact {fact.id} is visible from {call.scope}")
    path = str(call.arguments.get("path") or "")
    if kind != "fact" and not rights.sees(kind, call.scope, path):
        raise AccessDenied(call.action, call.scope, "what may not be read cannot be changed")


def guard(policy: Policy, store: Store, hold: Callable[[Call, str], str]) -> Middleware:
    """A middleware that lets a call through only if ``policy`` allows it, and lets it read only what it may.

    A change of a fact is judged by the category that the fact has, and by the one that it gets. What needs a person
    is put into the review inbox by ``hold``, which returns the proposal's id, or nothing when such a call cannot wait.

    Raises:
        AccessDenied: the policy says no.
        ApprovalRequired: the policy wants a person to look first.
    """
    narrowing = policy if isinstance(policy, Narrowing) else None

    def skin(call: Call, handler: Callable[[Call], Any]) -> Any:
        decisions = [policy.decide(request_of(call))]
        fact = _fact_of(call, store)
        if fact and not (narrowing and call.action in READS):  # there, what is hidden is not found
            decisions.append(policy.decide(request_of(call, fact.category)))
        strictest = min(decisions, key=lambda decision: ("deny", "ask", "allow").index(decision.effect))
        if strictest.effect == "deny":
            raise AccessDenied(call.action, call.scope, strictest.reason)
        if strictest.effect == "ask" and not call.approved_by:
            raise ApprovalRequired(call.action, call.scope, strictest.reason, hold(call, strictest.reason))
        read_as = call.action if call.action in READS else _READ_AS.get(call.action)
        rights = narrowing.rights(call.by, read_as) if narrowing and read_as else None
        if narrowing:
            _check_mixed(call, narrowing)
            if call.action not in READS:
                _check_changed(call, narrowing, fact)
        with reading_with(rights):
            return handler(call)

    return skin


def _fact_of(call: Call, store: Store) -> Fact | None:
    fact_id = call.arguments.get("fact_id")
    if not isinstance(fact_id, str):
        return None
    with store.read() as tx:
        try:
            return tx.facts.get(call.scope, fact_id)
        except NotFound:
            return None
