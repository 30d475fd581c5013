"""D6: signal words only in English: hermes-agent#35489, claude-reflect#24, memory-lancedb-pro#48, deer-flow#4023."""

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.testing.fakes import FakeClock, ScriptedChatModel
from everlong.write.signals import detect


@pytest.mark.parametrize(
    ("said", "corrects"),
    [
        ("不对，应该用 pnpm，不是 npm", True),
        ("違います、pnpmです", True),
        ("그게 아니라 pnpm이에요", True),
        ("No, use pnpm, not npm", True),
        ("No problem, 次に進もう", False),
        ("Never mind、別の方法で", False),
        ("No, that's right, keep it", False),
        ("no, thanks", False),
        ("不是吗？", False),
        ("I actually like it", False),
    ],
)
def test_corrections_in_every_language_and_politeness_in_none(said: str, corrects: bool) -> None:
    assert ("correction" in detect(said)) is corrects


@pytest.mark.parametrize(
    ("said", "calls"),
    [
        ("好的", 0),
        ("谢谢", 0),
        ("ok 👍", 0),
        ("감사합니다", 0),
        ("好的方案是使用Redis做缓存层", 1),
        ("谢谢分享，以后都用中文回复我", 1),
    ],
)
def test_a_trivial_turn_asks_no_model(said: str, calls: int) -> None:
    model = ScriptedChatModel(['{"user": {}, "history": {}, "newFacts": [], "factsToRemove": []}'])
    chosen = Settings(url="sqlite://", embedder="none", worker="none", extractor="llm")
    with build(chosen, chat_model=model, clock=FakeClock()) as memory:
        ann = memory.at(Scope(user="ann", session="t1"))
        ann.add([("user", said), ("assistant", "好的。")])
        memory.drain()
        assert len(model.prompts) == calls
        assert ann.facts().items == ()
