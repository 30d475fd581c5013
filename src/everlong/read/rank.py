"""How rows of a corpus are ranked for a question: pure functions from arrays to arrays.

Two scales live here. *Strength* orders: a sum of z-scores and boosts, meaningful only inside one question. *Score* is
what callers see and thresholds use: 0 to 1, calibrated for the embedding model, equal on every store.

The weights were set on long two-person chats and held on user-assistant chats and on separate notes, in English and
Chinese (``bench/recall.py`` measures them). No model is called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from everlong.protocols import Calibration, Corpus

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

__all__ = ["Question", "Ranking", "Weights", "rank_facts", "rank_messages", "spoken_names", "without_names"]

DAY: Final = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """Every number of the formula, each with its reason. Boosts are in standard deviations of the fused score."""

    lexical: float = 0.3
    """Share of BM25; the rest is cosine. Meaning carries more, words settle names and numbers."""
    pool: int = 150
    """Rows of each list that count as retrieved; the others have the list's minimum, so that a long tail of rows
    without any match does not squeeze the deviations of those that match. Recall at 150 is 97 %."""
    before: float = 0.3
    """What a turn takes from the turn before it: an answer is found by its question."""
    after: float = 0.2
    """… and from the turn after it, which often names what was meant."""
    session: float = 0.4
    """What a turn takes from the mean of the three best of its conversation: a topic comes in clusters."""
    session_words: float = 0.3
    """BM25 of whole conversations, for words spread over several turns."""
    short_session: float = 60.0
    """Mean turns a conversation up to which the whole of it is about few things."""
    named_speaker: float = 1.5
    """Boost when the turn's speaker is the only person the question names: people ask for what someone said."""
    user_turn: float = 1.0
    """In chats with an assistant what is asked for was mostly said by the user."""
    length: float = 0.3
    """Among people, longer turns tell more: times the clipped z-score of the log length."""
    asks: float = 0.6
    """Among people, a turn that ends in a question tells little: taken off."""
    on_date: float = 1.5
    """Boost for a turn of a day that the question names; half of it a day off, as people round."""
    owner: float = 0.2
    """Share of rows from which a speaker owns the store: the name then pulls turns that address the person, not
    those that tell of them, so the vector question loses it."""
    meaning: float = 0.85
    """Most that meaning alone gives to the absolute score: a paraphrase can be a near miss."""
    words: float = 0.6
    """Most that words alone give to the absolute score: shared words can mean something else."""
    anchor: float = 0.45
    """Absolute score from which a fact may lend to those learned with it."""
    association: float = 0.6
    """What a lent fact gets of its anchor's score: less than the anchor, above the threshold only when that is
    strong."""
    associates: int = 4
    """Most facts that one question may recall by association."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question as ranking sees it: terms, vector (``None``: words only), names in it, days it names."""

    terms: Sequence[str]
    vector: NDArray[np.float32] | None
    text: str = ""
    days: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Rows in order, best first, with the absolute ``score`` and the parts (arrays over all rows)."""

    order: NDArray[np.int64]
    strength: Floats
    score: Floats
    parts: dict[str, Floats]


# ------------------------------------------------------------------------------------------------------- pieces


def fused(bm25: Floats, cosine: Floats, allowed: Bools, weights: Weights) -> Floats:
    """Weighted sum of z-scores over the union of the best of both lists; elsewhere each list's minimum."""
    listed_words = _best(bm25, allowed & (bm25 > 0), weights.pool)
    listed_meaning = _best(cosine, allowed & ~np.isnan(cosine), weights.pool)
    union = listed_words | listed_meaning
    words = _z(bm25, listed_words, union)
    meaning = _z(cosine, listed_meaning, union)
    if not listed_meaning.any():
        return words
    if not listed_words.any():
        return meaning
    return weights.lexical * words + (1 - weights.lexical) * meaning


def _best(values: Floats, allowed: Bools, count: int) -> Bools:
    rows = np.flatnonzero(allowed)
    if len(rows) > count:
        rows = rows[np.argpartition(-values[rows], count - 1)[:count]]
    chosen = np.zeros(len(values), bool)
    chosen[rows] = True
    return chosen


def _z(values: Floats, listed: Bools, union: Bools) -> Floats:
    if not listed.any():
        return np.zeros(len(values))
    filled = np.where(listed, values, values[listed].min())
    deviation = float(filled[union].std())
    return (filled - filled[union].mean()) / deviation if deviation > 1e-9 else np.zeros(len(values))
