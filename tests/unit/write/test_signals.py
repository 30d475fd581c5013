"""Signals in both languages, the traps of the field among them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from everlong.errors import ConfigError
from everlong.write import signals

if TYPE_CHECKING:
    from pathlib import Path

CORRECTIONS = [
    "不对，应该用 pnpm，不是 npm",
    "違います、pnpmです",
    "你理解错了，我要的是周报",
    "不是 npm，是 pnpm",
    "重试",
    "That's wrong, the port is 5433",
    "No, use pnpm instead",
    "You misunderstood me.",
    "Actually, my name is Anna",
    "It should be tabs, not spaces",
    "Non, c'est faux",
    "Nein, das stimmt nicht",
]
REINFORCEMENTS = [
    "对，就是这样",
    "完全正确！",
    "Yes, exactly!",
    "That's what I wanted",
    "keep doing that",
    "以后都保持这样",
]
WISHES = [
    "Remember this: I like tea",
    "please remember that I am vegan",
    "remember the validation marker is MARKER-7734",
    "Don't forget my birthday is in May",
    "Can you remember that I like tea?",
    "记住，我对花生过敏",
    "帮我记一下：车停在 B2",
    "別忘れないで",
    "覚えておいて、私は菜食です",
]
TRIVIAL = [
    "好的",
    "谢谢",
    "ok 👍",
    "👍",
    "Thank you!",
    "好的，谢谢！",
    "Got it, thanks a lot.",
    "你好",
    "...",
    "OK",
    "收到",
]
NOTHING = [
    "No problem, 次に進もう",
    "Never mind、別の方法で",
    "No, that's right, keep it",
    "好的方案是使用Redis做缓存层",
    "谢谢分享，以后都用中文回复我",
    "对不起，我来晚了",
    "对方没有回复",
    "这样写对不对？",
    "两边不对称",
    "重试机制怎么实现？",
    "Do you remember my name?",
    "I remember that day",
    "I can't remember my password",
    "你还记得我吗？",
    "密码我记不住",
    "What is 2+2?",
    "42",
    "",
]


@pytest.mark.parametrize(
    ("text", "signal"),
    [
        *((text, "correction") for text in CORRECTIONS),
        *((text, "reinforcement") for text in REINFORCEMENTS),
        *((text, "remember") for text in WISHES),
    ],
)
def test_a_signal_is_seen(text: str, signal: str) -> None:
    assert signal in signals.detect(text)


@pytest.mark.parametrize("text", TRIVIAL)
def test_a_turn_of_small_talk_is_trivial(text: str) -> None:
    assert signals.detect(text) == ("trivial",)


@pytest.mark.parametrize("text", [text for text in NOTHING if text])
def test_look_alikes_are_no_signal(text: str) -> None:
    assert signals.detect(text) == ()


def test_a_file_adds_patterns_to_the_built_in_ones(tmp_path: Path) -> None:
    file = tmp_path / "pt.toml"
    file.write_text("[remember.found]\npt = ['lembre-se']\n[trivial.found]\npt = ['obrigado']\n", "utf-8")
    rules = signals.load(file)
    assert signals.detect("Lembre-se: sou alérgico", rules=rules) == ("remember",)
    assert signals.detect("Obrigado, ok!", rules=rules) == ("trivial",)
    assert signals.detect("记住，我对花生过敏", rules=rules) == ("remember",)
    assert signals.detect("Lembre-se: sou alérgico") == ()


@pytest.mark.parametrize(
    "source", ["[mood.found]\nen = ['x']", "[remember.found]\nen = ['(']", "not toml", "remember = 3"]
)
def test_a_broken_file_is_named(tmp_path: Path, source: str) -> None:
    file = tmp_path / "broken.toml"
    file.write_text(source, "utf-8")
    with pytest.raises(ConfigError, match=r"broken\.toml"):
        signals.load(file)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.toml"):
        signals.load(tmp_path / "absent.toml")


@pytest.mark.parametrize("unit", ["ok ", "no ", "不是", "好的", "remember ", "haha", "hmm", "the "])
def test_long_input_takes_no_time(unit: str) -> None:
    signals.detect(unit * 100_000)
    signals.detect(unit * (1_900 // len(unit)) + "\x01z")
