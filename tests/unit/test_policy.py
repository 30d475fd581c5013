"""Who may do what by default, and that every refusal leaves a line in the journal."""

from __future__ import annotations

import pytest

from everlong import Principal, Scope, open_memory
from everlong.errors import AccessDenied, InvalidScope
from everlong.policy import OwnScope

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
    decision = OwnScope().decide(by, action, scope)
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
