"""What every operation on a scope shares: whose it is, and the onion it passes."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any, Self, TypeVar

from everlong.errors import InvalidInput
from everlong.middleware import compose
from everlong.protocols import Call

if TYPE_CHECKING:
    from collections.abc import Callable

    from everlong.memory.memory import Memory
    from everlong.protocols import Store
    from everlong.records import Principal, Scope
    from everlong.write.writer import Writer

__all__ = ["View", "zoned"]

T = TypeVar("T")


class View:
    """Memory as one principal sees it from one scope. Every operation passes the same onion: audit, policy, measure.

    Any operation may raise :class:`~everlong.errors.AccessDenied` and :class:`~everlong.errors.StoreError`.
    """

    def __init__(self, memory: Memory, scope: Scope, by: Principal, *, approved_by: str = "") -> None:
        self._memory, self.scope, self.by, self._approved_by = memory, scope, by, approved_by

    def _run(self, action: str, operation: Callable[..., T], /, *, at: Scope | None = None, **arguments: Any) -> T:
        """Runs one operation through the onion; ``at`` is the scope it touches (default: this one)."""
        where = self.scope if at is None else at
        call = Call(action=action, scope=where, by=self.by, arguments=arguments, approved_by=self._approved_by)
        result: T = compose(self._memory.parts.middleware, lambda inner: operation(**inner.arguments))(call)
        return result

    @property
    def _writer(self) -> Writer:
        return self._memory.parts.writer

    @property
    def _store(self) -> Store:
        return self._memory.parts.store

    def as_seen_by(self, by: Principal) -> Self:
        """The same memory, touched by another principal."""
        return type(self)(self._memory, self.scope, by)

    def approved_at(self, scope: Scope, asker: Principal, *, by: Principal) -> Self:
        """Memory at ``scope`` for one call of ``asker`` that ``by`` has approved: a policy that asks lets it pass, one
        that denies does not."""
        return type(self)(self._memory, scope, asker, approved_by=f"{by.role}:{by.id}")


def zoned(name: str, at: datetime | None) -> datetime | None:
    """The time as it is given; refuses one without a zone."""
    if at is not None and (not isinstance(at, datetime) or at.tzinfo is None):
        msg = f"{name} is {at!r}; it must be a time with its zone"
        raise InvalidInput(msg)
    return at
