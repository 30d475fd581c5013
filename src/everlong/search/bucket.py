"""What is searched: the live rows of one stored scope as arrays, and the union of those one question may see.

A bucket never changes: a delta makes a new one, so a search that runs keeps what it began with.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log1p
from typing import TYPE_CHECKING, Any, Final, Self

import numpy as np

from everlong.errors import SchemaMismatch
from everlong.text import hash_term

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from numpy.typing import NDArray

    from everlong.protocols import IndexRows

    Array = NDArray[Any]

K1: Final = 1.2
B: Final = 0.75
"""How fast a term's repetition saturates, and how much length counts: the customary values, measured best here too."""

_PLURALS: Final = {
    "session": "sessions", "speaker": "speakers", "role": "roles", "category": "categories", "origin": "origins",
}  # fmt: skip
_NAMED: Final = tuple(_PLURALS)
_NAMES: Final = {plural: name for name, plural in _PLURALS.items()}
_DTYPES: Final[dict[str, type]] = {
    "created": np.float64,
    "position": np.int64,
    "length": np.int32,
    "question": np.bool_,
    "confidence": np.float32,
    "trust": np.float32,
    "valid_from": np.float64,
    "valid_until": np.float64,
}
_PLAIN: Final = tuple(name for name in _DTYPES if name != "created")
_PRIOR: Final = 50
"""Rows without any term that coverage imagines beside the real ones: of a handful of rows none can show which words are
rare, and the words that none holds would weigh ten times those that one does."""
_UNIT_TOLERANCE: Final = 1e-3
_UNTHREADED: Final = 8192
"""Numbers in a matrix up to which OpenBLAS uses no threads for a matrix-vector product (its limit is 9216)."""


@dataclass(frozen=True, slots=True)
class Postings:
    """Which rows hold which term how often: three aligned arrays in order of the terms' hashes, and the number of
    terms of every row."""

    hashes: NDArray[np.uint64]
    rows: NDArray[np.int32]
    counts: NDArray[np.float32]
    lengths: NDArray[np.float32]

    @classmethod
    def build(cls, packed: Sequence[bytes]) -> Self:
        """Postings of rows whose packed terms these are."""
        lengths = np.fromiter(map(len, packed), np.int64, len(packed)) // 8
        hashes = np.frombuffer(b"".join(packed), dtype="<u8").astype(np.uint64, copy=False)
        order = np.argsort(hashes)
        hashes = hashes[order]
        terms = np.concatenate(([0], np.cumsum(hashes[1:] != hashes[:-1])))[: len(hashes)]
        bits = len(packed).bit_length()
        keys = (terms << bits) | np.repeat(np.arange(len(packed)), lengths)[order]
        keys.sort()  # by term, then row: twice as fast as one stable sort of the hashes
        first = np.ones(len(keys), np.bool_)
        first[1:] = keys[1:] != keys[:-1]
        starts = np.flatnonzero(first)
        rows = (keys[starts] & ((1 << bits) - 1)).astype(np.int32)
        counts = np.diff(starts, append=len(hashes)).astype(np.float32)
        return cls(hashes[starts], rows, counts, lengths.astype(np.float32))

    def find(self, hashes: NDArray[np.uint64]) -> list[slice]:
        """Where each term stands in the arrays; an empty slice if nowhere."""
        left = np.searchsorted(self.hashes, hashes, side="left")
        right = np.searchsorted(self.hashes, hashes, side="right")
        return [slice(first, last) for first, last in zip(left.tolist(), right.tolist(), strict=True)]

    def take(self, order: NDArray[np.int64]) -> Self:
        """The postings of these rows alone, numbered in this order."""
        place = np.full(len(self.lengths), -1, np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        rows = place[self.rows]
        kept = rows >= 0
        return type(self)(self.hashes[kept], rows[kept], self.counts[kept], self.lengths[order])

    def extend(self, other: Self) -> Self:
        """These rows, then those of ``other``."""
        at = np.searchsorted(self.hashes, other.hashes, side="right")
        return type(self)(
            np.insert(self.hashes, at, other.hashes),
            np.insert(self.rows, at, other.rows + np.int32(len(self.lengths))),
            np.insert(self.counts, at, other.counts),
            np.concatenate((self.lengths, other.lengths)),
        )


@dataclass(frozen=True, slots=True)
class Bucket:
    """The live rows of one stored scope and kind, by position, creation and id.

    ``columns`` are arrays of one length; those of conversations, speakers, roles and categories hold ordinals into
    ``names``. ``vectors`` holds the pieces of all rows one after another, ``pieces`` how many each row has.
    """

    ids: list[str]
    columns: dict[str, Array]
    names: dict[str, list[str]]
    vectors: NDArray[np.float32]
    pieces: NDArray[np.int64]
    postings: Postings

    @classmethod
    def build(cls, rows: IndexRows, dimensions: int) -> Self:
        """A bucket of those of ``rows`` that are live.

        Raises:
            SchemaMismatch: a vector does not have ``dimensions`` numbers a piece.
        """
        live = [index for index, lives in enumerate(rows.live) if lives]
        pick = _picker(live, len(rows.ids))
        columns: dict[str, Array] = {}
        names = {}
        for name in _NAMED:
            columns[name], names[name] = _ordinals(pick(getattr(rows, name)))
        for name in _PLAIN:
            columns[name] = np.array(pick(getattr(rows, name)), _DTYPES[name])
        columns["created"] = np.array([at.timestamp() for at in pick(rows.created_at)], np.float64)
        vectors, pieces = _unpack(pick(rows.vectors), dimensions)
        bucket = cls(list(pick(rows.ids)), columns, names, vectors, pieces, Postings.build(pick(rows.terms)))
        return bucket._in_order(np.arange(len(bucket.ids)))._frozen()

    def updated(self, rows: IndexRows, dimensions: int) -> Self:
        """This bucket after the changes in ``rows``: changed rows replaced, those no longer live dropped."""
        fresh = self.build(rows, dimensions)
        merged = self._extend(fresh) if fresh.ids else self
        kept = np.arange(len(merged.ids))
        changed = set(rows.ids)
        if not changed.isdisjoint(self.ids):
            stays = np.ones(len(merged.ids), np.bool_)
            stays[[row for row, identifier in enumerate(self.ids) if identifier in changed]] = False
            kept = kept[stays]
        return merged._in_order(kept)._frozen()

    @property
    def nbytes(self) -> int:
        """Memory the bucket takes, about."""
        posting = 16 * len(self.postings.hashes) + 12 * len(self.ids)
        return self.vectors.nbytes + posting + sum(a.nbytes for a in self.columns.values()) + 100 * len(self.ids)

    def cosine(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Best cosine over each row's pieces; NaN for rows without any."""
        if not len(self.vectors):
            return np.full(len(self.ids), np.nan, np.float32)
        found = _dots(self.vectors, vector)
        if len(found) == len(self.ids) and (self.pieces == 1).all():
            return found
        scores = np.full(len(self.ids), np.nan, np.float32)
        owners = np.flatnonzero(self.pieces)
        if len(owners):
            starts = np.cumsum(self.pieces) - self.pieces
            scores[owners] = np.maximum.reduceat(found, starts[owners])
        return scores

    def _in_order(self, rows: NDArray[np.int64]) -> Self:
        """These rows by position, creation and id; itself if that is how all of them stand."""
        position, created = self.columns["position"][rows], self.columns["created"][rows]
        order = np.lexsort((created, position))
        position, created = position[order], created[order]
        rows = rows[order]
        tied = np.flatnonzero((position[1:] == position[:-1]) & (created[1:] == created[:-1]))
        for run in np.split(tied, np.flatnonzero(np.diff(tied) > 1) + 1) if len(tied) else ():
            alike = slice(run[0], run[-1] + 2)
            rows[alike] = sorted(rows[alike].tolist(), key=self.ids.__getitem__)
        return self if np.array_equal(rows, np.arange(len(self.ids))) else self._take(rows)

    def _take(self, order: NDArray[np.int64]) -> Self:
        starts = (np.cumsum(self.pieces) - self.pieces)[order]
        pieces = self.pieces[order]
        vectors = self.vectors[np.repeat(starts - (np.cumsum(pieces) - pieces), pieces) + np.arange(pieces.sum())]
        return type(self)(
            [self.ids[row] for row in order.tolist()],
            {name: column[order] for name, column in self.columns.items()},
            self.names,
            vectors,
            pieces,
            self.postings.take(order),
        )

    def _extend(self, other: Self) -> Self:
        columns, names = _joined([self, other])
        return type(self)(
            self.ids + other.ids,
            columns,
            names,
            np.concatenate((self.vectors, other.vectors)),
            np.concatenate((self.pieces, other.pieces)),
            self.postings.extend(other.postings),
        )

    def _frozen(self) -> Self:
        for column in (*self.columns.values(), self.vectors):
            column.flags.writeable = False
        return self


def _dots(vectors: NDArray[np.float32], vector: NDArray[np.float32]) -> NDArray[np.float32]:
    """One product a row, computed in small blocks: BLAS then stays on the calling thread. Its threads win nothing
    in a scan bound by memory and, beside other load, cost milliseconds of waiting (measured: p95 2.3 ms against
    0.14 at 10,000 rows of 256)."""
    rows, dimensions = vectors.shape
    block = max(1, _UNTHREADED // dimensions)
    whole = rows // block * block
    found = np.empty(rows, np.float32)
    np.matmul(vectors[:whole].reshape(-1, block, dimensions), vector, out=found[:whole].reshape(-1, block))
    np.matmul(vectors[whole:], vector, out=found[whole:])
    return found


def _picker(live: list[int], total: int) -> Any:
    """Picks the live rows of a column; the column itself when all are."""
    return (lambda column: column) if len(live) == total else (lambda column: [column[row] for row in live])


def _ordinals(values: Sequence[str]) -> tuple[NDArray[np.int32], list[str]]:
    known = {name: ordinal for ordinal, name in enumerate(dict.fromkeys(values))}
    return np.fromiter(map(known.__getitem__, values), np.int32, len(values)), list(known)


def _unpack(packed: Sequence[bytes | None], dimensions: int) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    if not dimensions:
        return np.empty((0, 0), np.float32), np.zeros(len(packed), np.int64)
    sizes = np.array([len(data) if data else 0 for data in packed], np.int64)
    if (sizes % (4 * dimensions)).any():
        msg = f"stored vectors do not have the {dimensions} dimensions of this model; embed them anew"
        raise SchemaMismatch(msg)
    raw = np.frombuffer(b"".join(data for data in packed if data), "<f4").astype(np.float32, copy=False)
    vectors: NDArray[np.float32] = raw.reshape(-1, dimensions)
    norms = np.sqrt(np.einsum("ij,ij->i", vectors, vectors))
    if (np.abs(norms - 1) > _UNIT_TOLERANCE).any():
        vectors = (vectors / np.where(norms > 0, norms, 1)[:, None]).astype(np.float32)
    return vectors, sizes // (4 * dimensions)


def _joined(buckets: Sequence[Bucket]) -> tuple[dict[str, Array], dict[str, list[str]]]:
    columns = {name: _joined_column(name, buckets) for name in _DTYPES}
    names = {}
    for name in _NAMED:
        columns[name], names[name] = _joined_names(name, buckets)
    return columns, names


def _joined_column(name: str, buckets: Sequence[Bucket]) -> Array:
    if len(buckets) == 1:
        return buckets[0].columns[name]
    return np.concatenate([np.empty(0, _DTYPES[name]), *(bucket.columns[name] for bucket in buckets)])


def _joined_names(name: str, buckets: Sequence[Bucket]) -> tuple[NDArray[np.int32], list[str]]:
    if len(buckets) == 1:
        return buckets[0].columns[name], buckets[0].names[name]
    known: dict[str, int] = {}
    parts = [np.empty(0, np.int32)]
    for bucket in buckets:
        ordinals = [known.setdefault(value, len(known)) for value in bucket.names[name]]
        parts.append(np.array(ordinals, np.int32)[bucket.columns[name]])
    return np.concatenate(parts), list(known)


def _joined_ids(buckets: Sequence[Bucket]) -> Sequence[str]:
    if len(buckets) == 1:
        return buckets[0].ids
    return [identifier for bucket in buckets for identifier in bucket.ids]


class BucketCorpus:
    """All that one question may see of one kind: buckets one after another, in the order given.

    Of one bucket it is a view; columns of several are joined when first asked for. Read-only.
    """

    size: int
    ids: Sequence[str]
    session: NDArray[np.int32]
    sessions: Sequence[str]
    speaker: NDArray[np.int32]
    speakers: Sequence[str]
    role: NDArray[np.int32]
    roles: Sequence[str]
    category: NDArray[np.int32]
    categories: Sequence[str]
    created: NDArray[np.float64]
    length: NDArray[np.int32]
    question: NDArray[np.bool_]
    confidence: NDArray[np.float32]
    origin: NDArray[np.int32]
    origins: Sequence[str]
    trust: NDArray[np.float32]
    valid_from: NDArray[np.float64]
    valid_until: NDArray[np.float64]
    place: NDArray[np.int32]
    metadata: Sequence[Mapping[str, Any]]

    def __init__(
        self, buckets: Sequence[Bucket], metadata: Sequence[Sequence[Mapping[str, Any]]] | None = None
    ) -> None:
        self._buckets = [bucket for bucket in buckets if bucket.ids]
        self.size = sum(len(bucket.ids) for bucket in self._buckets)
        if metadata is not None:
            self.metadata = [each for rows in metadata for each in rows]

    def __getattr__(self, name: str) -> Any:
        if name == "ids":
            self.ids = _joined_ids(self._buckets)
        elif name == "place":
            sizes = [len(bucket.ids) for bucket in self._buckets]
            self.place = np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)
        elif name in _NAMES:
            column = _NAMES[name]
            ordinals, names = _joined_names(column, self._buckets)
            self.__dict__.update({column: ordinals, name: names})
        elif name in _NAMED:
            ordinals, names = _joined_names(name, self._buckets)
            self.__dict__.update({name: ordinals, _PLURALS[name]: names})
        elif name in _DTYPES:
            self.__dict__[name] = _joined_column(name, self._buckets)
        else:
            raise AttributeError(name)
        return self.__dict__[name]

    def cosine(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Best cosine over a row's pieces; NaN for rows without a vector of the question's model."""
        vector = np.asarray(vector, np.float32)
        parts = [bucket.cosine(vector) for bucket in self._buckets]
        return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty(0, np.float32)])

    def bm25(self, terms: Sequence[str]) -> NDArray[np.float32]:
        """Exact BM25 with document frequencies of this corpus; 0 where no term occurs. A term said twice in the
        question counts once."""
        scores = np.zeros(self.size, np.float32)
        hashes, found = self._find(terms)
        weights = self._idf(len(hashes), found)
        typical = sum(float(bucket.postings.lengths.sum()) for bucket in self._buckets) / max(self.size, 1)
        for part, postings, places in self._parts(scores, found):
            for weight, place in zip(weights, places, strict=True):
                rows, counts = postings.rows[place], postings.counts[place]
                norms = K1 * (1 - B + B / typical * postings.lengths[rows]) if len(rows) else counts
                part[rows] += np.float32(weight) * (K1 + 1) * counts / (counts + norms)
        return scores

    def coverage(self, terms: Sequence[str]) -> NDArray[np.float32]:
        """Share, 0 to 1, of the question's distinct terms found in each row, weighted by their idf here."""
        scores = np.zeros(self.size, np.float32)
        hashes, found = self._find(terms)
        weights = self._idf(len(hashes), found, prior=_PRIOR)
        total = sum(weights)
        for part, postings, places in self._parts(scores, found):
            for weight, place in zip(weights, places, strict=True):
                part[postings.rows[place]] += np.float32(weight / total)
        return np.minimum(scores, 1, out=scores)

    def _find(self, terms: Sequence[str]) -> tuple[NDArray[np.uint64], list[list[slice]]]:
        hashes = np.array([hash_term(term) for term in dict.fromkeys(terms)], np.uint64)
        return hashes, [bucket.postings.find(hashes) for bucket in self._buckets]

    def _idf(self, distinct: int, found: list[list[slice]], prior: int = 0) -> list[float]:
        held = (sum(places[term].stop - places[term].start for places in found) for term in range(distinct))
        return [log1p((self.size + prior - rows + 0.5) / (rows + 0.5)) for rows in held]

    def _parts(
        self, scores: NDArray[np.float32], found: list[list[slice]]
    ) -> Iterator[tuple[NDArray[np.float32], Postings, list[slice]]]:
        start = 0
        for bucket, places in zip(self._buckets, found, strict=True):
            yield scores[start : start + len(bucket.ids)], bucket.postings, places
            start += len(bucket.ids)
