"""Where something is told: what a text has to hold to mention a topic or a fact."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from everlong import text
from everlong.errors import EmptyText

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["about", "cut", "telling"]

_COMMON: Final = frozenset(
    text.terms("the user is a person they work live like have want use 用户 喜欢 工作 公司 他们 使用")
)
"""Words that most facts share and that tell nothing of what one is about."""
_NAME: Final = re.compile(r"(?<![.!?。！？]\s)(?<!^)\b[A-Z][\w+#-]*|\b\w*\d\w*")
_ENOUGH: Final = 0.5
"""Share of a fact's own words from which a clause counts as telling the same thing."""
_JOIN: Final = re.compile(r"^[\s,，;；、]+|[\s,，;；、]+$")


def about(topic: str) -> Callable[[str], bool]:
    """Whether a text names ``topic``: as it is written, whatever its case and width, or with all its words (in any form:
    ``cat`` is found in ``cats``) in one clause. In scripts with spaces only whole words count.

    Raises:
        EmptyText: nothing is left of the topic.
    """
    plain = text.normal(topic)
    if not any(letter.isalnum() for letter in plain):
        raise EmptyText("a topic to forget needs some text")
    words = frozenset(text.terms(topic))
    # An edge between two letters of a spaced script is no edge of a word; scripts without spaces have none.
    edges = "" if not plain.isascii() else r"(?<![^\W_])", "" if not plain.isascii() else r"(?![^\W_])"
    literal = re.compile(edges[0] + re.escape(plain) + edges[1], re.ASCII)

    def named(told: str) -> bool:
        if literal.search(text.normal(told)):
            return True
        return bool(words) and any(words <= set(text.terms(told[start:end])) for start, end in text.clauses(told))

    return named


def telling(content: str) -> Callable[[str], bool]:
    """Whether a text may tell what a fact of this ``content`` does: it has one of its names or numbers, or half of its
    words, in one clause. Made to report rather too much than too little; nothing is changed by it."""
    own = set(text.terms(content)) - _COMMON
    names = {term for name in _NAME.findall(content) for term in text.terms(name)} - _COMMON

    def told(other: str) -> bool:
        for start, end in text.clauses(other):
            there = set(text.terms(other[start:end]))
            if names & there or (own and len(own & there) >= _ENOUGH * len(own)):
                return True
        return False

    return told


def cut(summary: str, gone: Callable[[str], bool]) -> str:
    """A summary less the clauses for which ``gone`` says so; all else as it stands."""
    kept, last = "", 0
    for start, end in text.clauses(summary):
        between, clause = summary[last:start], summary[start:end]
        last = end
        if not gone(clause):
            kept += between + clause
    kept += summary[last:]
    return _tidy(kept)


def _tidy(kept: str) -> str:
    """Without the commas and blanks that stood before or after what was cut."""
    kept = re.sub(r"[,，;；、]+(?=\s*[.。!！?？])", "", kept)
    return _JOIN.sub("", re.sub(r"([.。!！?？\n])\s*[,，;；、]+", r"\1", kept)).strip()


def lines(content: str, gone: Callable[[str], bool]) -> Iterable[tuple[int, str]]:
    """Number, from 1, and text of every line that ``gone`` names."""
    return [(number, line) for number, line in enumerate(content.splitlines(), 1) if gone(line)]
