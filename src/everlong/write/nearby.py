"""Which of the facts known bear on what was just said, so that a prompt need not hold all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from everlong import text
from everlong.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everlong.protocols import Corpus, Embedder, Index, Store
    from everlong.records import Batch, Fact

__all__ = ["MOST", "nearby"]

MOST: Final = 30
"""Facts that an extractor sees of all that are known."""
_ALWAYS: Final = MOST // 3
"""Of these, pinned facts and corrections, the latest first."""
_PARTS: Final = 4
"""Pieces of one message that are searched with; a pasted log has thousands."""


def nearby(batch: Batch, *, store: Store, index: Index, embedder: Embedder | None) -> tuple[Fact, ...]:
    """Of ``batch.facts``: pinned ones and corrections, then those nearest to the user's new words by meaning or by
    words; ``MOST`` of them, in the order in which they were learned. No model is asked when all of them fit."""
    if len(batch.facts) <= MOST:
        return tuple(sorted(batch.facts, key=_learned))
    latest = sorted(batch.facts, key=_learned, reverse=True)
    chosen = {fact.id: fact for fact in [f for f in latest if f.pinned or f.category == "correction"][:_ALWAYS]}
    known = {fact.id: fact for fact in batch.facts}
    said = [message.content for message in batch.messages if message.role == "user"]
    with store.read() as tx:
        corpus = index.corpus(tx, batch.scope.home, "fact")
    for fact_id in _ranked(corpus, said, embedder):
        if len(chosen) >= MOST:
            break
        if fact_id in known:
            chosen[fact_id] = known[fact_id]
    return tuple(sorted(chosen.values(), key=_learned))


def _learned(fact: Fact) -> tuple[float, str]:
    return fact.created_at.timestamp(), fact.id


def _ranked(corpus: Corpus, said: Sequence[str], embedder: Embedder | None) -> list[str]:
    """Ids, nearest first: by the best cosine to any message, and by the share of words found."""
    parts = [part for content in said for part in text.pieces(content)[:_PARTS]]
    score = np.zeros(corpus.size, dtype=np.float32)
    for part in parts:
        score = np.maximum(score, corpus.coverage(text.terms(part)))
    if embedder is not None and parts:
        try:
            for vector in embedder.embed(parts):
                score = np.maximum(score, np.nan_to_num(corpus.cosine(vector)))
        except ModelError:
            # The words alone still find most of it, and extraction need not wait for the embedder.
            pass
    return [corpus.ids[place] for place in np.argsort(-score, kind="stable")]
