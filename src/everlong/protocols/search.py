"""What one question may see, as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    import numpy as np
    from numpy.typing import NDArray

    from everlong.protocols.store import Transaction
    from everlong.records import Kind, Scope


class Corpus(Protocol):
    """All that one question may see of one kind: aligned arrays of ``size`` live rows, in one fixed order
    (bucket by bucket widest first, by position or creation inside it), equal on every store."""

    size: int
    readable: NDArray[np.bool_] | None
    """Rows that the call may read; ``None``: all."""
    ids: Sequence[str]
    session: NDArray[np.int32]
    """Ordinal of the conversation each row belongs to; names in ``sessions``."""
    sessions: Sequence[str]
    speaker: NDArray[np.int32]
    speakers: Sequence[str]
    role: NDArray[np.int32]
    roles: Sequence[str]
    category: NDArray[np.int32]
    categories: Sequence[str]
    created: NDArray[np.float64]
    """POSIX seconds."""
    length: NDArray[np.int32]
    question: NDArray[np.bool_]
    confidence: NDArray[np.float32]
    origin: NDArray[np.int32]
    origins: Sequence[str]
    trust: NDArray[np.float32]
    valid_from: NDArray[np.float64]
    valid_until: NDArray[np.float64]
    """POSIX seconds; infinite where open."""
    place: NDArray[np.int32]
    """Ordinal of the bucket of each row; a narrower scope has a higher one."""
    by_session: NDArray[np.int32]
    """Rows conversation by conversation, those of each in their order."""
    in_session: NDArray[np.int32]
    """Where each row stands in ``by_session``."""
    metadata: Sequence[Mapping[str, Any]]
    """Of each row; only there when it was asked for."""

    def cosine(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Best cosine over a row's pieces; NaN for rows without a vector of the question's model."""
        ...

    def bm25(self, terms: Sequence[str]) -> NDArray[np.float32]:
        """Exact BM25 (k1 1.2, b 0.75) with document frequencies of this corpus; 0 where no term occurs."""
        ...

    def coverage(self, terms: Sequence[str]) -> NDArray[np.float32]:
        """Share, 0 to 1, of the question's distinct terms found in each row, weighted by their idf here."""
        ...

    def counts(self, name: str) -> NDArray[np.int64]:
        """How many rows there are of each conversation, speaker or role: ``name`` is the column."""
        ...

    def rows(self, terms: Sequence[str]) -> list[NDArray[np.int64]]:
        """For each distinct term that any row holds, the rows that do, in order."""
        ...


class Index(Protocol):
    """Exact search in this process over a cache of buckets, checked against the store at each question."""

    def corpus(
        self, tx: Transaction, scope: Scope, kind: Kind, *, metadata: bool = False, as_of: datetime | None = None
    ) -> Corpus:
        """All rows of ``kind`` that ``scope`` may see now, widest scope first; with ``metadata`` if asked for. ``as_of``
        gives facts as they were known then; it is read from history, which takes longer."""
        ...

    def forget(self, scope: Scope) -> None:
        """Drops from memory what was read of every bucket at or within ``scope``, after an erasure."""
        ...
