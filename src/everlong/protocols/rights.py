"""What one call may read: places, categories and paths that a policy hides, held for as long as the call runs.

It is held beside the call instead of in every signature, so that no way of reading, present or future, can leave it out:
whoever opens a read transaction or a corpus inside the call gets what the call may see and nothing else.
"""

from __future__ import annotations

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Iterator

    from everlong.records import Fact, Scope

__all__ = ["Rights", "present_rights", "reading_with"]

_PRESENT: Final[ContextVar[Rights | None]] = ContextVar("everlong_rights", default=None)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Rights:
    """``judge`` says of a kind (fact, message, profile, file), a scope without session and a name (a fact's category, a
    file's path) whether it may be read. ``named`` are the kinds of which the name decides too. ``key`` is equal for
    equal rights, so that answers of one are not given to another."""

    key: Hashable
    named: frozenset[str]
    judge: Callable[[str, Scope, str], bool]

    def sees(self, kind: str, scope: Scope, name: str = "") -> bool:
        """Whether a record kept at ``scope`` may be read."""
        return self.judge(kind, scope.home, name)

    def opens(self, kind: str, scope: Scope) -> bool:
        """Whether some records of ``kind`` kept at ``scope`` may be readable: else the place is not read at all."""
        return kind in self.named or self.sees(kind, scope)

    def facts(self, found: Iterable[Fact]) -> list[Fact]:
        """Those that may be read."""
        return [fact for fact in found if self.sees("fact", fact.scope, fact.category)]

    def closed(self, kind: str, scope: Scope) -> tuple[tuple[bool, bool, bool], ...]:
        """Which of the homes that cover ``scope`` hold nothing of ``kind`` to read, told by which of organisation, agent
        and user they name."""
        homes = scope.home.covering()
        return tuple(
            (bool(home.org), bool(home.agent), bool(home.user)) for home in homes if not self.opens(kind, home)
        )


def present_rights() -> Rights | None:
    """Of the call that runs in this thread; ``None`` when it may read everything that its scope sees."""
    return _PRESENT.get()


@contextmanager
def reading_with(rights: Rights | None) -> Iterator[None]:
    """What is read inside the block is read with ``rights``."""
    token = _PRESENT.set(rights)
    try:
        yield
    finally:
        _PRESENT.reset(token)
