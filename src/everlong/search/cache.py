"""The search index: buckets kept in memory, checked against the store at each question."""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from threading import Lock
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from everlong.protocols import present_rights
from everlong.search.bucket import Bucket
from everlong.search.corpus import BucketCorpus

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from numpy.typing import NDArray

    from everlong.protocols import Revision, Rights, Transaction
    from everlong.records import Kind, Scope

    Key = tuple[Scope, Kind]

_log: Final = logging.getLogger("everlong.search")
_MEBIBYTE: Final = 1024 * 1024
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_TOLD: Final = 200
"""Bytes that a key of metadata takes with its value, about: short texts and numbers, as they mostly are."""


@dataclass(frozen=True, slots=True)
class _Cached:
    bucket: Bucket
    revision: Revision
    nbytes: int
    metadata: Sequence[Mapping[str, Any]] | None = None


class BucketIndex:
    """Exact search over buckets in this process; implements :class:`everlong.protocols.Index`.

    Each question asks the store for the revisions of the buckets it may see: unchanged ones are used as they are,
    changed ones take the rows that changed, those of a new epoch (something was erased) load anew. So a committed
    write of any process is seen by the next question. Least recently used buckets leave when all together pass
    ``budget_bytes`` (default 256 MiB), but never those that the latest question looked at: to load them for every
    question would cost more than the memory. The log then says once what to set.

    ``model`` names the vector space and ``dimensions`` its width: vectors of other models are not loaded; 0 means no
    vectors at all, for search by words alone. One index
    serves one store, from any number of threads. Ask it inside read transactions, never inside a write that may
    still roll back, for what it loads there would stay.
    """

    def __init__(self, *, model: str, dimensions: int, budget_bytes: int = 256 * _MEBIBYTE) -> None:
        self.model = model
        self.dimensions = dimensions
        self.budget_bytes = budget_bytes
        self._cached: OrderedDict[Key, _Cached] = OrderedDict()
        self._nbytes = 0
        self._warned = False
        self._lock = Lock()

    def corpus(
        self, tx: Transaction, scope: Scope, kind: Kind, *, metadata: bool = False, as_of: datetime | None = None
    ) -> BucketCorpus:
        """All rows of ``kind`` that ``scope`` may see now, widest scope first.

        ``metadata`` is read for a bucket when it is first asked for, and kept with it. ``as_of`` makes buckets of facts
        as they were known then, which are not kept; turns and files have no other state than the present one.

        Raises:
            SchemaMismatch: stored vectors of this model have another width.
        """
        revisions = tx.index.revisions(scope, (kind,))
        rights = present_rights()
        found: list[_Cached] = []
        shown: list[NDArray[np.bool_]] = []
        for where in sorted(scope.covering(), key=_width):
            if rights and not rights.opens(kind, where):
                continue  # kept for those who may read it
            revision = revisions.get((where, kind))
            if revision is None:
                self._drop((where, kind))
                continue
            if as_of is not None and kind == "fact":
                rows = tx.index.past(where, model=self.model, at=as_of)
                found.append(_Cached(Bucket.build(rows, self.dimensions), revision, 0))
            else:
                found.append(self._bucket(tx, (where, kind), revision, scope, metadata=metadata))
            if rights and kind in rights.named:
                shown.append(_readable(found[-1].bucket, rights, kind, where))
        told = [each.metadata for each in found if each.metadata is not None]
        readable = np.concatenate(shown) if shown else None
        return BucketCorpus([each.bucket for each in found], told if metadata and as_of is None else None, readable)

    def forget(self, scope: Scope) -> None:
        """Drops every bucket that an erasure of ``scope`` may have touched: those kept at it or within it, and with a
        session those of its home, where messages and facts of the conversation are kept."""
        for key in [key for key in tuple(self._cached) if scope.home.contains(key[0])]:
            self._drop(key)

    @property
    def nbytes(self) -> int:
        """Memory the kept buckets take, about."""
        return self._nbytes

    def _bucket(self, tx: Transaction, key: Key, revision: Revision, asked: Scope, *, metadata: bool) -> _Cached:
        with self._lock:
            cached = self._cached.get(key)
            if cached is not None:
                self._cached.move_to_end(key)
        if cached is not None and cached.revision == revision and (cached.metadata is not None or not metadata):
            return cached
        bucket = cached.bucket if cached is not None and cached.revision == revision else None
        bucket = bucket or self._load(tx, key, revision, cached)
        made = _Cached(bucket, revision, bucket.nbytes)
        if metadata:
            told, nbytes = _metadata(tx, key, bucket)
            made = replace(made, metadata=told, nbytes=made.nbytes + nbytes)
        self._keep(key, made, frozenset(asked.covering()))
        return made

    def _load(self, tx: Transaction, key: Key, revision: Revision, cached: _Cached | None) -> Bucket:
        where, kind = key
        if cached is None or cached.revision.epoch != revision.epoch or cached.revision.number > revision.number:
            return Bucket.build(tx.index.rows(where, kind, model=self.model), self.dimensions)
        rows = tx.index.rows(where, kind, model=self.model, after=cached.revision.number)
        return cached.bucket.updated(rows, self.dimensions, within_session=kind == "message")

    def _keep(self, key: Key, new: _Cached, in_use: frozenset[Scope]) -> None:
        """Keeps a bucket, and lets the least recently used go, but those ``in_use``: kept where the question looks."""
        with self._lock:
            old = self._cached.pop(key, None)
            self._nbytes += new.nbytes - (old.nbytes if old else 0)
            self._cached[key] = new
            if self._nbytes > self.budget_bytes:
                for old_key in [each for each in self._cached if each[0] not in in_use]:
                    self._nbytes -= self._cached.pop(old_key).nbytes
                    if self._nbytes <= self.budget_bytes:
                        return
                self._warn()

    def _warn(self) -> None:
        if not self._warned:
            self._warned = True
            needed = -(-self._nbytes // _MEBIBYTE)
            _log.warning(
                "what one question looks through takes %d MiB of memory, more than index_bytes allows (%d MiB), and is "
                "kept all the same; set index_bytes to %d or more, or nobody else's is kept beside it",
                needed,
                self.budget_bytes // _MEBIBYTE,
                2 * needed * _MEBIBYTE,
            )

    def _drop(self, key: Key) -> None:
        with self._lock:
            old = self._cached.pop(key, None)
            self._nbytes -= old.nbytes if old else 0


def _metadata(tx: Transaction, key: Key, bucket: Bucket) -> tuple[list[Mapping[str, Any]], int]:
    """Metadata of every row of a bucket, and the memory it takes, about."""
    told = tx.index.metadata(*key)
    sessions = bucket.names["session"]
    rows = zip(bucket.columns["session"].tolist(), bucket.ids, strict=True)
    found = [told.get((sessions[session], identifier), _NOTHING) for session, identifier in rows]
    return found, 8 * len(found) + _TOLD * sum(map(len, told.values()))


def _readable(bucket: Bucket, rights: Rights, kind: Kind, where: Scope) -> NDArray[np.bool_]:
    """Rows of a bucket that may be read: of facts the category decides, of files the path."""
    column = "category" if kind == "fact" else "speaker"
    seen = [ordinal for ordinal, name in enumerate(bucket.names[column]) if rights.sees(kind, where, name)]
    return np.isin(bucket.columns[column], seen)


def _width(scope: Scope) -> int:
    return sum(map(bool, scope.parts))
