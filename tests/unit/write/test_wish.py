"""A wish to forget reaches the fact it is about, and no other, in both languages and without a model."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from everlong import Scope, open_memory
from everlong.write.wish import Wish

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.memory import Memory


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", worker="none") as opened:
        yield opened


FACTS = {
    "en": ["I keep bees", "I like red", "My address is 5 Mill Lane", "I work at Acme", "My boss at Acme is Tom"],
    "zh": ["我养蜂", "我喜欢红色", "我的地址是磨坊路5号", "我在蓝屏咖啡上班", "我在蓝屏咖啡的老板叫王小波"],
}


@pytest.mark.parametrize(
    ("language", "said", "gone"),
    [
        ("en", "Please forget that I keep bees.", {"I keep bees"}),
        ("en", "Forget my address.", {"My address is 5 Mill Lane"}),
        ("en", "Forget everything about Acme.", {"I work at Acme", "My boss at Acme is Tom"}),
        ("en", "Forget what I said about Acme.", set()),
        ("en", "Forget that I play chess.", set()),
        ("en", "I always forget my keys.", set()),
        ("zh", "请忘掉我养蜂这件事。", {"我养蜂"}),
        ("zh", "把我的地址忘了吧。", {"我的地址是磨坊路5号"}),
        ("zh", "忘掉所有关于蓝屏咖啡的事。", {"我在蓝屏咖啡上班", "我在蓝屏咖啡的老板叫王小波"}),
        ("zh", "忘掉我说的蓝屏咖啡。", set()),
        ("zh", "我总是忘了带钥匙。", set()),
    ],
)
def test_what_the_user_wants_forgotten_goes_and_nothing_else(
    memory: Memory, language: str, said: str, gone: set
) -> None:
    ann = memory.at(Scope(user="ann", session="s"))
    for fact in FACTS[language]:
        ann.remember(fact)
    memory.drain()
    ann.add([("user", said)])
    memory.drain()
    left = {fact.content for fact in ann.facts().items}
    assert set(FACTS[language]) - left == gone
    assert not gone or left <= set(FACTS[language])
    for fact in ann.facts(status="retired").items:
        assert fact.reason.startswith(f"the user asked to forget it: {said}")


def test_what_was_forgotten_can_be_learned_anew(memory: Memory) -> None:
    ann = memory.at(Scope(user="ann", session="s"))
    for said in ("I live in Lisbon.", "Please forget that I live in Lisbon.", "I live in Lisbon."):
        ann.add([("user", said)])
        memory.drain()
    assert [fact.content for fact in ann.facts().items] == ["I live in Lisbon"]
    assert [fact.status for fact in ann.facts(status=None).items] == ["active", "retired"]


def test_a_wish_without_words_touches_whatever_a_model_chose() -> None:
    assert Wish("Forget that.").touches("I keep bees")
    assert Wish("忘了它吧").touches("我养蜂")
    assert not Wish("忘掉我养蜂").touches("我喜欢红色")
