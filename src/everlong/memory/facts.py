"""Single facts: stated, looked at, changed, forgotten, brought back."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from everlong.errors import InvalidInput
from everlong.memory.view import View, zoned

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everlong.records import (
        Fact,
        FactStatus,
        Page,
        Remembered,
    )

__all__ = ["Facts"]

_REVISABLE: Final = frozenset(
    {"content", "category", "confidence", "importance", "pinned", "valid_from", "valid_until", "metadata"}
)


class Facts(View):
    """Operations on facts."""

    def remember(
        self, content: str, *, category: str = "context", confidence: float = 1.0, pinned: bool = False
    ) -> Remembered:
        """Stores one fact at once: added, or merged into what was known; the result says which and why.

        Raises:
            EmptyText: there is no text. TooLarge: over 2,000 characters. UnknownCategory: not a known category.
            InvalidInput: ``confidence`` is not from 0 to 1.
        """
        _check_share("confidence", confidence)
        return self._run(
            "remember", self._remember, content=content, category=category, confidence=confidence, pinned=pinned
        )

    def _remember(self, **fields: Any) -> Remembered:
        remembered = self._writer.remember(self.scope, by=self.by, **fields)
        self._memory.wake()
        return remembered

    def facts(
        self,
        *,
        status: FactStatus | None = "active",
        categories: Sequence[str] = (),
        cursor: str = "",
        limit: int = 100,
        as_of: datetime | None = None,
        valid_at: datetime | None = None,
    ) -> Page[Fact]:
        """Facts visible from here, newest first, a page at a time; ``status=None`` lists retired and held ones too.

        ``as_of`` lists what was known then, as it was known; ``valid_at`` only what holds at that time of the world.

        Raises:
            InvalidInput: ``cursor`` is of another list, or a time has no zone.
        """
        return self._run(
            "facts",
            self._facts,
            status=status,
            categories=categories,
            cursor=cursor,
            limit=limit,
            as_of=zoned("as_of", as_of),
            valid_at=zoned("valid_at", valid_at),
        )

    def _facts(self, **options: Any) -> Page[Fact]:
        with self._store.read() as tx:
            return tx.facts.list(self.scope, **options)

    def fact(self, fact_id: str) -> Fact:
        """One fact by id. Raises :class:`~everlong.errors.NotFound`."""
        return self._run("fact", self._fact, fact_id=fact_id)

    def _fact(self, *, fact_id: str) -> Fact:
        with self._store.read() as tx:
            return tx.facts.get(self.scope, fact_id)

    def history(self, fact_id: str) -> tuple[Fact, ...]:
        """Every version of a fact, oldest first. Raises :class:`~everlong.errors.NotFound`."""
        return self._run("history", self._history, fact_id=fact_id)

    def _history(self, *, fact_id: str) -> tuple[Fact, ...]:
        with self._store.read() as tx:
            return tx.facts.history(self.scope, fact_id)

    def revise(self, fact_id: str, *, expected: int | None = None, **changes: Any) -> Fact:
        """Changes a fact's ``content``, ``category``, ``confidence``, ``importance``, ``pinned``, ``valid_from``,
        ``valid_until`` or ``metadata``; everything else stays, the old version goes into history.

        Raises:
            NotFound: no such fact. Conflict: its version is not ``expected``. InvalidInput: another field is named.
        """
        unknown = sorted(set(changes) - _REVISABLE)
        if unknown or not changes:
            msg = f"cannot change {unknown[0] if unknown else 'nothing'}; a fact's {', '.join(sorted(_REVISABLE))} can"
            raise InvalidInput(msg)
        for name in ("confidence", "importance"):
            if name in changes:
                _check_share(name, changes[name])
        return self._run("revise", self._revise, fact_id=fact_id, expected=expected, changes=changes)

    def _revise(self, **fields: Any) -> Fact:
        return self._writer.revise(self.scope, by=self.by, **fields)

    def restore(self, fact_id: str, *, reason: str = "asked to restore") -> Fact:
        """Makes a retired or superseded fact active again. What replaced it stays, and no longer in its place.

        Raises:
            NotFound: no such fact. InvalidInput: it is not retired, or was turned away in review.
        """
        return self._run("restore", self._restore, fact_id=fact_id, reason=reason)

    def _restore(self, **fields: Any) -> Fact:
        restored = self._writer.restore(self.scope, by=self.by, **fields)
        self._memory.wake()
        return restored


def _check_share(name: str, value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        msg = f"{name} is {value!r}; it must be a number from 0 to 1"
        raise InvalidInput(msg)
