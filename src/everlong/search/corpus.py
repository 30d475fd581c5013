"""What one question may see: the union of buckets, scored by meaning and by words."""

from __future__ import annotations

from math import log1p
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from everlong.search.segment import DTYPES, NAMED, by_session, joined_column, joined_names
from everlong.text import hash_term

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from everlong.search.bucket import Bucket
    from everlong.search.segment import Array

K1: Final = 1.2
B: Final = 0.75
"""How fast a term's repetition saturates, and how much length counts: the customary values, measured best here too."""

_PLURALS: Final = {
    "session": "sessions", "speaker": "speakers", "role": "roles", "category": "categories", "origin": "origins",
}  # fmt: skip
_NAMES: Final = {plural: name for name, plural in _PLURALS.items()}
_PRIOR: Final = 50
"""Rows without any term that coverage imagines beside the real ones: of a handful of rows none can show which words are
rare, and the words that none holds would weigh ten times those that one does."""


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
    by_session: NDArray[np.int32]
    in_session: NDArray[np.int32]
    metadata: Sequence[Mapping[str, Any]]

    def __init__(
        self,
        buckets: Sequence[Bucket],
        metadata: Sequence[Sequence[Mapping[str, Any]]] | None = None,
        readable: NDArray[np.bool_] | None = None,
    ) -> None:
        self.readable = readable
        self._buckets = [bucket for bucket in buckets if len(bucket)]
        self._segments = [segment for bucket in self._buckets for segment in bucket.segments]
        self.size = sum(map(len, self._buckets))
        if metadata is not None:
            self.metadata = [each for rows in metadata for each in rows]

    def __getattr__(self, name: str) -> Any:
        if name == "ids":
            self.ids = _joined_ids(self._buckets)
        elif name == "place":
            self.place = np.repeat(np.arange(len(self._buckets), dtype=np.int32), [len(each) for each in self._buckets])
        elif name in {"by_session", "in_session"}:
            alone = len(self._buckets) == 1
            self.by_session, self.in_session = self._buckets[0].by_session if alone else by_session(self.session)
        elif name in _NAMES or name in NAMED:
            column = _NAMES.get(name, name)
            parts = [(bucket.columns[column], bucket.names[column]) for bucket in self._buckets]
            self.__dict__[column], self.__dict__[_PLURALS[column]] = joined_names(parts)
        elif name in DTYPES:
            self.__dict__[name] = joined_column([bucket.columns[name] for bucket in self._buckets], name)
        else:
            raise AttributeError(name)
        return self.__dict__[name]

    def cosine(self, vector: NDArray[np.float32]) -> NDArray[np.float32]:
        """Best cosine over a row's pieces; NaN for rows without a vector of the question's model."""
        vector = np.asarray(vector, np.float32)
        parts = [segment.cosine(vector) for segment in self._segments]
        return parts[0] if len(parts) == 1 else np.concatenate([*parts, np.empty(0, np.float32)])

    def bm25(self, terms: Sequence[str]) -> NDArray[np.float32]:
        """Exact BM25 with document frequencies of this corpus; 0 where no term occurs. A term said twice in the
        question counts once."""
        total = sum(segment.postings.total for segment in self._segments)
        typical = total / max(self.size, 1) or 1.0

        def saturated(counts: Array, lengths: Array) -> Array:
            return (K1 + 1) * counts / (counts + (K1 * (1 - B) + K1 * B / typical * lengths))

        return self._summed(terms, saturated)

    def coverage(self, terms: Sequence[str]) -> NDArray[np.float32]:
        """Share, 0 to 1, of the question's distinct terms found in each row, weighted by their idf here."""
        scores = self._summed(terms, None, prior=_PRIOR)
        return np.minimum(scores, 1, out=scores)

    def counts(self, name: str) -> NDArray[np.int64]:
        """How many rows there are of each conversation, speaker or role: ``name`` is the column."""
        if len(self._buckets) == 1:
            return self._buckets[0].counts[name]
        return np.bincount(getattr(self, name), minlength=len(getattr(self, _PLURALS[name])))

    def rows(self, terms: Sequence[str]) -> list[NDArray[np.int64]]:
        """For each distinct term that any row holds, the rows that do, in order: what a count needs, without a pass
        over all rows."""
        hashes = np.array([hash_term(term) for term in dict.fromkeys(terms)], np.uint64)
        held: list[list[NDArray[np.int64]]] = [[] for _ in hashes]
        start = 0
        for segment in self._segments:
            for parts, place in zip(held, segment.postings.find(hashes), strict=True):
                if place.start < place.stop:
                    parts.append(segment.postings.rows[place] + np.int64(start))
            start += len(segment.ids)
        return [parts[0] if len(parts) == 1 else np.concatenate(parts) for parts in held if parts]

    def _summed(
        self, terms: Sequence[str], worth: Callable[[Array, Array], Array] | None, *, prior: int = 0
    ) -> NDArray[np.float32]:
        """For each row the sum over the terms that it holds: their idf times what ``worth`` gives for their counts and
        the row's length, or their share of all idf without it."""
        hashes = np.array([hash_term(term) for term in dict.fromkeys(terms)], np.uint64)
        found = [segment.postings.find(hashes) for segment in self._segments]
        held = [sum(places[term].stop - places[term].start for places in found) for term in range(len(hashes))]
        weights = np.array([log1p((self.size + prior - rows + 0.5) / (rows + 0.5)) for rows in held], np.float32)
        if worth is None:
            weights /= weights.sum() or 1
        scores = np.zeros(self.size, np.float32)
        start = 0
        for segment, places in zip(self._segments, found, strict=True):
            postings, part = segment.postings, scores[start : start + len(segment.ids)]
            for weight, place in zip(weights, places, strict=True):
                if place.start < place.stop:
                    rows = postings.rows[place]
                    part[rows] += (
                        weight if worth is None else weight * worth(postings.counts[place], postings.lengths[rows])
                    )
            start += len(segment.ids)
        return scores


def _joined_ids(buckets: Sequence[Bucket]) -> Sequence[str]:
    if len(buckets) == 1:
        return buckets[0].ids
    return [identifier for bucket in buckets for identifier in bucket.ids]
