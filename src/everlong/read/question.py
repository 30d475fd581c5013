"""What a question is made of: the texts its meaning is taken from, the names in it, whether it asks for a time."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from everlong.text import terms

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "HAN_TERMS",
    "TIME_TERMS",
    "asks_time",
    "by_characters",
    "conversation_asked",
    "last_turn",
    "own_words",
    "people",
    "unlabelled",
    "views",
    "without_names",
]

_TURNS: Final = 3
"""Lines from which a question counts as a piece of conversation."""

_ASKS_TIME: Final = re.compile(
    r"\b(?:when|how long|how many (?:days|weeks|months|years)|(?:what|which) (?:date|day|week|month|year|time))\b"
    r"|什么时候|什麼時候|何时|何時|哪天|哪一?[天年月]|几[月号年点天]|幾[月號年點天]|多久|多长时间",
    re.IGNORECASE,
)
_LABEL: Final = re.compile(r"\s*([^\W\d][^:：\n。，,.?!？！]{0,30}?)\s*[:：]\s*(?=\S)")
_ASSISTANTS: Final = frozenset({"assistant", "ai", "bot", "助手", "助理", "人工智能"})
_SIDES: Final = _ASSISTANTS | {"user", "human", "system", "me", "用户", "我"}
_TALK: Final = r"(?:conversations?|chats?|talks?|discussions?|sessions?)\b"
_SPOKE: Final = (
    r"(?:time|when|day) (?:that )?we (?:ever )?(?:talked|spoke|chatted|met|had a (?:chat|talk|conversation))\b"
)
_CONVERSATIONS: Final = {
    "first": re.compile(
        rf"\b(?:first|earliest|very first) (?:{_TALK}|{_SPOKE})|\bwhen we first (?:talked|spoke|chatted|met)\b"
        r"|(?:第一次|首次|最早|最初|刚开始)(?:的?时候)?(?:和你|跟你|我们)?(?:聊|对话|谈|交流|说话|见面|认识)",
        re.IGNORECASE,
    ),
    "last": re.compile(
        rf"\b(?:last|latest|previous|most recent) (?:{_TALK}|{_SPOKE})"
        r"|(?:上次|上一次|最近一次|最后一次|上回)(?:的?时候)?(?:和你|跟你|我们)?(?:聊|对话|谈|交流|说话)",
        re.IGNORECASE,
    ),
}
TIME_TERMS: Final = frozenset(
    terms(
        "yesterday today tonight tomorrow ago last next week weekend recently since "
        "monday tuesday wednesday thursday friday saturday sunday"
    )
) | {"昨天", "昨晚", "前天", "今天", "明天", "上周", "下周", "上个", "周末", "去年", "今年", "明年", "天前", "年前"}
"""Terms by which people place in time what they tell; absolute dates stand in every turn's index text anyway."""


HAN_TERMS: Final = frozenset(
    "有不人一大上中来会时家用年生天好到说去学出可以下小子多开心工作对喜欢里周月日点本新老无三两二四五十每"
)
"""Characters of which nearly every Chinese sentence holds one: a row with any is written in Chinese."""
_HAN: Final = re.compile("[\u3400-\u9fff]")


def by_characters(question: str) -> bool:
    """Whether at least half of it is Chinese, so that its terms are single characters and their pairs."""
    return 2 * len(_HAN.findall(question)) >= len("".join(question.split()))


def asks_time(question: str) -> bool:
    """Whether the answer is a time."""
    return _ASKS_TIME.search(question) is not None


def conversation_asked(question: str) -> str:
    """``first`` or ``last`` when the question is about the first or the last conversation there was, else empty."""
    return next((name for name, pattern in _CONVERSATIONS.items() if pattern.search(question)), "")


def views(question: str) -> list[str]:
    """The texts whose vectors, summed, are the question's: itself, and of a piece of conversation (three lines or
    more) also how it began, how it ends, and its last three lines. A long text's vector blurs what it came to.
    """
    lines = _lines(question)
    if len(lines) < _TURNS:
        return [question]
    return [question, lines[0], "\n".join(lines[-_TURNS:]), lines[-1]]


def unlabelled(question: str) -> str:
    """A piece of conversation without the labels that say whose each line is; anything else unchanged. A label says
    nothing of the matter, and a vector of few words takes much of its direction from it."""
    labels = _labels(question)
    return "\n".join(_told(line, labels) for line in _lines(question)) if labels else question


def people(question: str) -> list[str]:
    """Who speaks in a piece of conversation, without the assistant and the words that only name a side."""
    return [label for label in _labels(question) if label.casefold() not in _SIDES]


def own_words(question: str) -> str:
    """What people say in a piece of conversation with an assistant; empty when all of it, or none, is theirs."""
    labels, lines = _labels(question), _lines(question)
    own = [line for line in lines if _label(line).casefold() not in _ASSISTANTS]
    return "\n".join(_told(line, labels) for line in own) if labels and len(own) < len(lines) else ""


def last_turn(question: str) -> str:
    """The last line of a piece of conversation, else the whole question: what is really asked."""
    lines = _lines(question)
    return lines[-1] if len(lines) >= _TURNS else question


def _labels(question: str) -> list[str]:
    """The labels of a piece of conversation: what stands before a colon in two lines at least, or an assistant."""
    found = [label for label in map(_label, _lines(question)) if label]
    if len(_lines(question)) < _TURNS or len(set(found)) == len(found):
        return []
    return [label for label in dict.fromkeys(found) if found.count(label) > 1 or label.casefold() in _SIDES]


def _label(line: str) -> str:
    match = _LABEL.match(line)
    return match[1] if match else ""


def _told(line: str, labels: Sequence[str]) -> str:
    match = _LABEL.match(line)
    return line[match.end() :] if match and match[1] in labels else line


def _lines(question: str) -> list[str]:
    return [line for line in question.split("\n") if line.strip()]


def without_names(question: str, names: Sequence[str]) -> str:
    """The question without ``names`` (and their possessive); unchanged if no word would be left."""
    bare = question
    for name in sorted(names, key=len, reverse=True):
        edge = r"\b" if name.isascii() else ""
        bare = re.sub(rf"{edge}{re.escape(name)}{edge}(?:['’]s)?", " ", bare, flags=re.IGNORECASE)
    if bare == question:
        return question
    bare = "\n".join(" ".join(line.split()) for line in bare.split("\n"))
    return bare if terms(bare) else question
