"""Who may do what by default, and that every refusal leaves a line in the journal."""

from __future__ import annotations

import pytest

from everlong import Principal, Scope, open_memory
from everlong.config import Settings, build
from everlong.errors import AccessDenied, ApprovalRequired, ConfigError, InvalidScope, NotFound
from everlong.policy import Rule, Rules
from everlong.protocols import Decision, Request

ANN, BOB = Principal(id="ann"), Principal(id="bob")
CODER, WRITER = Principal(id="coder", role="agent"), Principal(id="writer", role="agent")
OPERATOR = Principal(id="ops", role="operator")


@pytest.mark.parametrize(
    ("by", "action", "scope", "effect"),
    [
        (ANN, "recall", Scope(user="ann"), "allow"),
        (ANN, "add", Scope(user="ann", agent="coder"), "allow"),
        (BOB, "recall", Scope(user="ann"), "deny"),
        (BOB, "erase", Scope(user="ann"), "deny"),
        (ANN, "recall", Scope(agent="coder"), "deny"),
        (ANN, "write_file", Scope(org="acme"), "deny"),
        (CODER, "add", Scope(user="ann", agent="coder"), "allow"),
        (CODER, "add", Scope(user="ann"), "allow"),
        (CODER, "recall", Scope(user="ann", agent="writer"), "allow"),
        (WRITER, "remember", Scope(user="ann", agent="coder"), "deny"),
        (CODER, "write_file", Scope(org="acme"), "deny"),
        (OPERATOR, "write_file", Scope(org="acme"), "allow"),
        (OPERATOR, "erase", Scope(user="ann"), "allow"),
    ],
)
def test_the_default_rules(by: Principal, action: str, scope: Scope, effect: str) -> None:
    decision = Rules().decide(Request(by=by, action=action, scope=scope))
    assert decision.effect == effect
    assert decision.reason


def test_a_refusal_reads_and_writes_nothing_and_is_journalled() -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        memory.at(Scope(user="ann")).remember("Ann keeps bees")
        with pytest.raises(AccessDenied) as refusal:
            memory.at(Scope(user="ann"), by=BOB).recall("bees")
        assert refusal.value.action == "recall"
        with pytest.raises(AccessDenied):
            memory.at(Scope(user="ann"), by=BOB).remember("Ann hates bees")
        ann = memory.at(Scope(user="ann"))
        assert [f.content for f in ann.facts().items] == ["Ann keeps bees"]
        denied = [e for e in ann.journal().items if e.action.startswith("denied:")]
        assert [(e.by, e.action) for e in denied] == [
            ("user:bob", "denied:remember"),
            ("user:bob", "denied:recall"),
        ]


def test_without_a_user_nothing_happens() -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        for scope in (Scope(), Scope(agent="coder"), Scope(session="s")):
            with pytest.raises(InvalidScope):
                memory.at(scope)


HEALTH = Rule(
    effect="ask", reason="health is a person's matter", roles=("agent",), actions=("write",), categories=("health*",)
)


@pytest.mark.parametrize(
    ("rule", "request_", "effect"),
    [
        (HEALTH, Request(by=CODER, action="remember", scope=Scope(user="ann"), category="health-allergy"), "ask"),
        (HEALTH, Request(by=CODER, action="remember", scope=Scope(user="ann"), category="goal"), "allow"),
        (HEALTH, Request(by=CODER, action="recall", scope=Scope(user="ann"), category="health"), "allow"),
        (HEALTH, Request(by=ANN, action="remember", scope=Scope(user="ann"), category="health"), "allow"),
        (
            Rule(effect="allow", reason="the team lead", groups=("leads",), user="*"),
            Request(by=Principal(id="bob", groups=("leads",)), action="recall", scope=Scope(user="ann")),
            "allow",
        ),
        (
            Rule(effect="deny", reason="closed", org="acme", actions=("erase",)),
            Request(by=OPERATOR, action="erase", scope=Scope(org="acme", user="ann")),
            "deny",
        ),
        (
            Rule(effect="deny", reason="closed", org="acme", actions=("erase",)),
            Request(by=OPERATOR, action="erase", scope=Scope(org="acmeshop", user="ann")),
            "allow",
        ),
        (
            Rule(effect="deny", reason="policies are read-only", paths=("/policies/*",), actions=("write",)),
            Request(by=OPERATOR, action="write_file", scope=Scope(org="a"), kind="file", path="/policies/x.md"),
            "deny",
        ),
    ],
)
def test_own_rules_are_asked_first(rule: Rule, request_: Request, effect: str) -> None:
    assert Rules([rule]).decide(request_).effect == effect


def asking(*rules: Rule):
    return open_memory("sqlite://", embedder="none", worker="none", rules=rules, categories=("health",))


@pytest.mark.parametrize("content", ["Ann has asthma, her key is sk-proj-aaaabbbbccccddddeeeeffff1234", "安有哮喘"])
def test_what_needs_a_person_waits_and_is_done_once_approved(content: str) -> None:
    with asking(HEALTH) as memory:
        agent = memory.at(Scope(user="ann"), by=CODER)
        for _ in range(2):
            with pytest.raises(ApprovalRequired) as refusal:
                agent.remember(content, category="health")
        ann = memory.at(Scope(user="ann"))
        (waiting,) = ann.inbox.list(kind="call").items
        assert waiting.id == refusal.value.proposal_id
        assert (waiting.by, waiting.target, waiting.reason) == ("agent:coder", "remember", HEALTH.reason)
        assert "sk-proj" not in str(waiting.payload)
        assert not ann.facts().items
        with pytest.raises(AccessDenied):
            agent.inbox.approve(waiting.id)
        fact = ann.inbox.approve(waiting.id).fact
        assert (fact.status, fact.origin, fact.category) == ("active", "assistant", "health")
        assert [e.by for e in ann.journal(action="approve").items] == ["user:ann"]
        with pytest.raises(NotFound):
            ann.inbox.approve(waiting.id)


def test_a_rejected_call_is_never_made() -> None:
    with asking(HEALTH) as memory:
        with pytest.raises(ApprovalRequired) as refusal:
            memory.at(Scope(user="ann"), by=CODER).remember("Ann has asthma", category="health")
        ann = memory.at(Scope(user="ann"))
        ann.inbox.reject(refusal.value.proposal_id, reason="private")
        assert not ann.facts(status=None).items
        assert not ann.inbox.list().items


def test_the_category_a_fact_has_counts_as_much_as_the_one_it_gets() -> None:
    with asking(HEALTH) as memory:
        ann = memory.at(Scope(user="ann"))
        fact = ann.remember("Ann has asthma", category="health").fact
        agent = memory.at(Scope(user="ann"), by=CODER)
        for change in (lambda: agent.forget(fact.id), lambda: agent.revise(fact.id, category="goal")):
            with pytest.raises(ApprovalRequired):
                change()
        harmless = ann.remember("Ann keeps bees").fact
        with pytest.raises(ApprovalRequired):
            agent.revise(harmless.id, category="health")
        assert agent.forget(harmless.id).fact.status == "retired"


def test_a_call_that_fails_after_approval_waits_on() -> None:
    ask = Rule(effect="ask", reason="look first", roles=("agent",), actions=("forget",))
    with asking(ask) as memory:
        ann = memory.at(Scope(user="ann"))
        with pytest.raises(ApprovalRequired) as refusal:
            memory.at(Scope(user="ann"), by=CODER).forget("fact_of_nobody")
        with pytest.raises(NotFound, match="fact_of_nobody"):
            ann.inbox.approve(refusal.value.proposal_id)
        assert [p.id for p in ann.inbox.list().items] == [refusal.value.proposal_id]


def test_a_wrong_rule_is_told_when_memory_opens() -> None:
    with pytest.raises(ConfigError, match="effect"):
        open_memory("sqlite://", embedder="none", rules=[{"effect": "perhaps", "reason": "?"}])


class Open:
    """A policy of one's own that judges calls and hides nothing."""

    def decide(self, request: Request) -> Decision:
        effect = "deny" if request.action == "erase" else "allow"
        return Decision(effect=effect, reason=f"{request.by.id} asks for {request.action}")


def test_a_policy_of_ones_own_judges_calls_and_needs_no_rights() -> None:
    settings = Settings(url="sqlite://", embedder="none", worker="none")
    with build(settings, policy=Open()) as memory:
        here = memory.at(Scope(org="acme"), by=BOB)
        fact = here.remember("Tea is at four").fact
        assert [hit.id for hit in here.recall("tea", min_score=0.0).hits] == [fact.id]
        assert here.traces() and here.journal().items
        with pytest.raises(AccessDenied):
            here.erase()


@pytest.mark.parametrize("action", ["write_file", "remember", "recall", "erase"])
@pytest.mark.parametrize("role", ["user", "agent"])
def test_who_has_no_id_owns_nothing(role: str, action: str) -> None:
    nobody = Principal(id="", role=role)
    for scope in (Scope(), Scope(org="acme"), Scope(agent="coder")):
        for kind in ("", "file"):
            request = Request(by=nobody, action=action, scope=scope, kind=kind)
            assert Rules().decide(request).effect == "deny"
