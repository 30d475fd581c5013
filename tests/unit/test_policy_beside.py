"""Changes that show records beside what they change: what is hidden from who asks is not told, and not taken away."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from everlong import Principal, Scope, open_memory
from everlong.integrations.deerflow.document import apply_document, document, revision
from everlong.memory import Memory
from everlong.policy import Rule

HIDDEN = Rule(effect="deny", reason="not theirs", roles=("user",), categories=("goal",), actions=("read",))
ANN, OPERATOR = Scope(user="ann"), Principal(id="root", role="operator")
TOLD = {
    "en": ("Ann wants a Kumquat salary", "Ann likes Kumquat jam"),
    "zh": ("小安想要金橘加薪", "小安喜欢金橘果酱"),
}


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", embedder="none", worker="none", rules=(HIDDEN,)) as opened:
        yield opened


@pytest.mark.parametrize("lang", TOLD)
def test_forgetting_mentions_nothing_that_is_hidden(memory: Memory, lang: str) -> None:
    secret, own = TOLD[lang]
    hidden = memory.at(ANN, by=OPERATOR).remember(secret, category="goal").fact
    seen = memory.at(ANN).remember(own, category="preference").fact
    assert hidden
    assert seen
    forgotten = memory.at(ANN).forget(seen.id)
    assert hidden.id not in str(forgotten)
    assert secret not in str(forgotten)


@pytest.mark.parametrize("lang", TOLD)
def test_a_document_that_is_written_back_takes_nothing_hidden_away(memory: Memory, lang: str) -> None:
    secret, own = TOLD[lang]
    hidden = memory.at(ANN, by=OPERATOR).remember(secret, category="goal").fact
    seen = memory.at(ANN).remember(own, category="preference").fact
    assert hidden
    assert seen
    shown = document(memory.at(ANN))
    assert secret not in str(shown)
    back = apply_document(memory.at(ANN), {**shown, "facts": []}, expected=revision(shown))
    assert secret not in str(back)
    operator = memory.at(ANN, by=OPERATOR)
    assert operator.fact(hidden.id).status == "active"
    assert operator.fact(seen.id).status == "retired"
