"""What search needs of texts, and how it reads it back: rows of buckets in columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    import numpy as np
    from numpy.typing import NDArray

    from everlong.records import Kind, Scope

    Vectors = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Indexed:
    """What search needs to know of one text: its lexical terms, and vectors of its pieces (one row a piece).

    ``vectors`` is ``None`` while embedding is pending. ``model`` is the vectors' space.
    """

    terms: Sequence[str]
    model: str = ""
    vectors: Vectors | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """State of one bucket (one stored scope × one kind). ``number`` grows with each change; ``epoch`` is new when
    rows were removed for good, which makes every cache load anew."""

    epoch: str
    number: int


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexRows:
    """Rows of a bucket in columns, for the search cache; all lists have one length, in order of ``revision``.

    ``live`` is false for rows that are no longer searchable (retired, held). ``terms`` are packed by
    :func:`everlong.text.pack_terms`: one little-endian uint64 hash per occurrence. ``vectors`` holds the raw
    little-endian float32 bytes of all pieces of the asked model in order, or ``None``. For facts ``speaker`` is empty and
    ``role`` is the origin. Rows of files are passages: ``speaker`` is the path, ``position`` the place in the file, and
    a file without text has one of length 0. ``created_at``, ``valid_from`` and ``valid_until`` are POSIX seconds, infinite where open.
    """

    ids: list[str]
    revision: list[int]
    live: list[bool]
    terms: list[bytes]
    vectors: list[bytes | None]
    session: list[str]
    speaker: list[str]
    role: list[str]
    category: list[str]
    created_at: list[float]
    position: list[int]
    length: list[int]
    question: list[bool]
    confidence: list[float]
    origin: list[str]
    trust: list[float]
    valid_from: list[float]
    valid_until: list[float]


class IndexShelf(Protocol):
    def revisions(self, scope: Scope, kinds: Sequence[Kind]) -> dict[tuple[Scope, Kind], Revision]:
        """State of every bucket visible from ``scope``: one cheap statement, asked before each search."""
        ...

    def rows(self, bucket: Scope, kind: Kind, *, model: str, after: int = 0) -> IndexRows:
        """Rows kept exactly at ``bucket`` that changed after revision ``after``, with vectors of ``model``."""
        ...

    def past(self, bucket: Scope, *, model: str, at: datetime) -> IndexRows:
        """Facts kept exactly at ``bucket`` as they were known ``at`` that time. A text that was revised since has no
        vectors."""
        ...

    def metadata(self, bucket: Scope, kind: Kind) -> dict[tuple[str, str], Mapping[str, Any]]:
        """Metadata of the rows kept exactly at ``bucket``, by ``session`` and id of the row, less those without any."""
        ...

    def unembedded(self, model: str) -> tuple[Scope, ...]:
        """Every place in the store that keeps an active fact or a message without a vector of ``model``; looks at all
        of them."""
        ...
