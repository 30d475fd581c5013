"""What a user wants forgotten, and which known facts that is about. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from everlong import text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everlong.records import Fact

__all__ = ["Wish"]

_ASKING: Final = re.compile(
    r"\b(?:please|just|kindly|can|could|would|will|you|may|should|now|forget|delete|remove|erase|wipe|clear|drop|purge|"
    r"stop|remembering|from|in|your|memory|memories|records?|notes|everything|anything|all|whatever|what|about|the|fact|"
    r"that|this|it|i|have|had|ever|told|said|mentioned|know|remember|stored)\b"
    r"|请|麻烦|帮我|你|可以|忘掉|忘记|忘却|忘了|删除|删掉|清除|清空|抹去|抹掉|移除|从|记忆|记录|里|中|关于|有关|所有|全部|一切"
    r"|我(?:刚才|之前|上次|以前)?(?:说|讲|提|告诉)(?:过|到|你)?的?|这[个件条些]?事?(?:情)?|那[个件条些]?事?(?:情)?|它|吧|的|把|都|掉",
    re.IGNORECASE,
)
_ALL: Final = re.compile(r"\b(?:everything|anything|all|whatever)\b|所有|全部|一切|都", re.IGNORECASE)
_ABOUT: Final = 0.6
"""Share of a wish's words that a fact must have to be what is meant; one word of two or three may be said otherwise."""
_TOUCHES: Final = 1 / 3
"""Share that makes a fact have to do with the wish, when a model has already chosen it."""
_AHEAD: Final = 0.2
"""How far the best fact must be ahead of the next to be the one that is meant."""


class Wish:
    """One message that asks for something to be forgotten."""

    def __init__(self, content: str) -> None:
        said = content.strip()
        self._words = frozenset(text.terms(_ASKING.sub(" ", said)))
        self._all = bool(_ALL.search(said))

    def touches(self, content: str) -> bool:
        """Whether a fact has to do with the wish. A wish without words of its own ("forget that") touches any."""
        return not self._words or self._share(content) >= _TOUCHES

    def chosen(self, facts: Sequence[Fact]) -> tuple[tuple[Fact, ...], bool]:
        """The facts that are meant, and whether it stayed unclear which: then nothing is chosen."""
        shares = sorted(((self._share(f.content), f) for f in facts), key=lambda pair: (-pair[0], pair[1].id))
        meant = [(share, fact) for share, fact in shares if share >= _ABOUT]
        if not meant:
            return (), False
        if self._all:
            return tuple(fact for _, fact in meant), False
        clear = len(meant) == 1 or meant[0][0] - meant[1][0] >= _AHEAD
        return ((meant[0][1],), False) if clear else ((), True)

    def _share(self, content: str) -> float:
        known = frozenset(text.terms(content))
        return len(self._words & known) / len(self._words) if self._words else 0.0
