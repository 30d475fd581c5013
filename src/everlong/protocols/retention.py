"""The shelf of what is kept for a time only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from datetime import datetime

    from everlong.records import Scope

__all__ = ["RetentionShelf"]


class RetentionShelf(Protocol):
    """Deletes for good the oldest of what is kept for a time only, at one home scope (its conversations included, wider
    and narrower scopes not): ``limit`` of them at most. Each returns how many went, or with ``dry`` would go."""

    def messages(self, home: Scope, *, before: datetime | None, keep: int | None, limit: int, dry: bool = False) -> int:
        """Messages made ``before`` a time, and those beyond the newest ``keep``, as far as they were extracted; with
        their vectors. Conversations that hold none and have been silent since ``before`` go too."""
        ...

    def oldest(self, home: Scope) -> dict[str, datetime]:
        """When the oldest of ``messages``, ``extractions`` and ``journal`` was made; without those that are empty."""
        ...

    def facts(self, home: Scope, *, before: datetime, limit: int, dry: bool = False) -> int:
        """Facts retired ``before`` a time, with their history and what waits about them."""
        ...

    def versions(self, home: Scope, *, before: datetime, limit: int, dry: bool = False) -> int:
        """Versions of facts and profiles that were replaced ``before`` a time."""
        ...

    def extractions(self, home: Scope, *, before: datetime, limit: int, dry: bool = False) -> int:
        """Extraction records made ``before`` a time."""
        ...

    def journal(self, home: Scope, *, before: datetime, limit: int, traces: bool = False, dry: bool = False) -> int:
        """Entries written ``before`` a time; with ``traces`` only those that hold the trace of a question."""
        ...
