"""Whole records as they stand, out of a store and into one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.protocols.index import Indexed
    from everlong.records import CopyKind, Kept, Scope


class CopyShelf(Protocol):
    """What export and import need of a store: every row within a scope, and rows put back exactly as they were."""

    def each(self, kind: CopyKind, scope: Scope) -> Iterator[Kept]:
        """Every record of ``kind`` kept at ``scope`` or within it, in the order of its key, which is the same on every
        store; messages by conversation and position. Read in portions, so that any number takes little memory."""
        ...

    def find(self, kind: CopyKind, record: Kept) -> Kept | None:
        """The record kept under the key that ``record`` has, wherever in the organisation it is kept."""
        ...

    def put(self, kind: CopyKind, record: Kept, indexed: Indexed | None = None) -> bool:
        """Stores a record as it stands: id, times, version and position. ``indexed`` is needed of facts and messages.
        A session begins in a new epoch. False, and nothing changed, if its key is taken."""
        ...

    def last_position(self, home: Scope) -> int:
        """The position that the latest message at ``home`` got; 0 if there never was one."""
        ...
