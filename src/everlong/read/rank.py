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

_FLAT = 1e-9
"""A spread below this is rounding: all values count as equal."""


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
    anchor: float = 0.4
    """Absolute score from which a fact may lend to those learned with it."""
    association: float = 0.8
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
    return (filled - filled[union].mean()) / deviation if deviation > _FLAT else np.zeros(len(values))


def spoken_names(corpus: Corpus) -> list[str]:
    """Names of speakers, without the blank one and the words that only name a side."""
    sides = {"", "user", "assistant", "ai", "system", "tool", "human"}
    return [name for name in corpus.speakers if name.strip().casefold() not in sides]


def owners(corpus: Corpus, weights: Weights) -> list[str]:
    """Speakers who own at least a fifth of the rows."""
    if not corpus.size:
        return []
    counts = np.bincount(corpus.speaker, minlength=len(corpus.speakers)) / corpus.size
    named = set(spoken_names(corpus))
    return [
        name for name, share in zip(corpus.speakers, counts, strict=True) if name in named and share >= weights.owner
    ]


def without_names(question: str, names: Sequence[str]) -> str:
    """The question without ``names`` (and their possessive); unchanged if nothing would be left."""
    import re

    bare = question
    for name in sorted(names, key=len, reverse=True):
        edge = r"\b" if name.isascii() else ""
        bare = re.sub(rf"{edge}{re.escape(name)}{edge}(?:['’]s)?", " ", bare, flags=re.IGNORECASE)
    bare = " ".join(bare.split()) if bare != question else question
    return bare if any(character.isalnum() for character in bare) else question


def neighbours(strength: Floats, session: NDArray[np.int32], weights: Weights) -> Floats:
    """What each turn takes from the turns beside it in its conversation."""
    order = np.argsort(session, kind="stable")
    ranked, named = strength[order], session[order]
    same = named[1:] == named[:-1]
    taken = np.zeros(len(strength))
    taken[1:] += weights.before * np.where(same, ranked[:-1], 0)
    taken[:-1] += weights.after * np.where(same, ranked[1:], 0)
    back = np.empty(len(strength))
    back[order] = taken
    return back


def session_feedback(strength: Floats, session: NDArray[np.int32], weights: Weights) -> Floats:
    """The mean of the three best turns of each conversation, for all its turns."""
    order = np.lexsort((-strength, session))
    named = session[order]
    starts = np.flatnonzero(np.r_[True, named[1:] != named[:-1]])
    place = np.arange(len(order)) - np.repeat(starts, np.diff(np.r_[starts, len(order)]))
    best = order[place < 3]  # noqa: PLR2004
    size = int(session.max()) + 1
    totals = np.bincount(session[best], weights=strength[best], minlength=size)
    counts = np.maximum(np.bincount(session[best], minlength=size), 1)
    mean: Floats = totals / counts
    return weights.session * mean[session]


def session_words(corpus: Corpus, terms: Sequence[str], weights: Weights) -> Floats:
    """z-score of the BM25 of whole conversations, if they are short; else nothing."""
    size = int(corpus.session.max()) + 1
    turns = np.bincount(corpus.session, minlength=size)
    present = turns > 0
    if present.sum() < 2 or corpus.size / present.sum() > weights.short_session:  # noqa: PLR2004
        return np.zeros(corpus.size)
    norms = 1.2 * (0.25 + 0.75 * turns / turns[present].mean())
    scores = np.zeros(size)
    for term in list(dict.fromkeys(terms))[:32]:
        counts = np.bincount(corpus.session[corpus.bm25([term]) > 0], minlength=size)
        found = int((counts > 0).sum())
        idf = np.log1p((present.sum() - found + 0.5) / (found + 0.5))
        scores += idf * 2.2 * counts / (counts + norms)
    deviation = float(scores[present].std())
    if deviation < 1e-9:  # noqa: PLR2004
        return np.zeros(corpus.size)
    levelled: Floats = (scores - scores[present].mean()) / deviation
    return weights.session_words * levelled[corpus.session]


def speaker_boost(corpus: Corpus, text: str, weights: Weights) -> Floats:
    """For turns of the only speaker that the question names."""
    folded = text.casefold()
    named = [name for name in spoken_names(corpus) if name.casefold() in folded]
    if len(named) != 1:
        return np.zeros(corpus.size)
    return np.where(corpus.speaker == list(corpus.speakers).index(named[0]), weights.named_speaker, 0.0)


def turn_prior(corpus: Corpus, weights: Weights) -> Floats:
    """In chats with an assistant, for the user's turns; among people, for long turns that do not ask."""
    roles = list(corpus.roles)
    shares = np.bincount(corpus.role, minlength=len(roles)) / corpus.size
    if "assistant" in roles and shares[roles.index("assistant")] >= 0.1:  # noqa: PLR2004
        return np.where(corpus.role == (roles.index("user") if "user" in roles else -1), weights.user_turn, 0.0)
    if len(spoken_names(corpus)) < 2:  # noqa: PLR2004
        return np.zeros(corpus.size)
    lengths = np.log1p(corpus.length.astype(float))
    deviation = max(float(lengths.std()), 1e-9)
    told: Floats = np.clip((lengths - lengths.mean()) / deviation, -2.5, 1.5)
    return weights.length * told - weights.asks * corpus.question


def date_boost(created: Floats, days: Sequence[tuple[float, float]], weights: Weights) -> Floats:
    """For rows of the days that the question names, half for a day before or after."""
    boost = np.zeros(len(created))
    for start, end in days:
        near = (created >= start - DAY) & (created < end + DAY)
        inside = (created >= start) & (created < end)
        boost = np.maximum(boost, np.where(inside, weights.on_date, np.where(near, weights.on_date / 2, 0)))
    return boost


def absolute(
    cosine: Floats, coverage: Floats, calibration: Calibration | None, weights: Weights
) -> tuple[Floats, Floats]:
    """``(score, meaning)``: a noisy-or of calibrated cosine and word coverage; neither alone reaches 1."""
    meaning = np.zeros(len(cosine))
    if calibration is not None:
        width = calibration.related - calibration.unrelated
        meaning = np.clip((np.nan_to_num(cosine, nan=-1.0) - calibration.unrelated) / width, 0, 1)
    return 1 - (1 - weights.meaning * meaning) * (1 - weights.words * coverage), meaning


# ------------------------------------------------------------------------------------------------------ rankings


def _measured(
    corpus: Corpus, question: Question, allowed: Bools, calibration: Calibration | None, weights: Weights
) -> tuple[Floats, Floats, dict[str, Floats]]:
    words = corpus.bm25(question.terms).astype(float)
    cosine = np.full(corpus.size, np.nan)
    if question.vector is not None:
        cosine = corpus.cosine(question.vector).astype(float)
    coverage = corpus.coverage(question.terms).astype(float)
    score, meaning = absolute(cosine, coverage, calibration, weights)
    parts = {"bm25": words, "cosine": cosine, "words": coverage, "meaning": meaning}
    return fused(words, cosine, allowed, weights), score, parts


def _ordered(strength: Floats, created: Floats, allowed: Bools) -> NDArray[np.int64]:
    """Rows by strength, then newest first, then in the corpus' own order."""
    rows = np.flatnonzero(allowed)
    return rows[np.lexsort((-created[rows], -strength[rows]))]


def rank_messages(
    corpus: Corpus, question: Question, allowed: Bools, calibration: Calibration | None, weights: Weights
) -> Ranking:
    """Turns of conversations, best first. Rows that are not ``allowed`` lend to nothing and are not ranked."""
    fusion, score, parts = _measured(corpus, question, allowed, calibration, weights)
    base = np.where(allowed, fusion, 0.0)
    near = base + neighbours(base, corpus.session, weights)
    boosts = {
        "neighbours": near - base,
        "session": session_feedback(near, corpus.session, weights),
        "session_words": session_words(corpus, question.terms, weights),
        "speaker": speaker_boost(corpus, question.text, weights),
        "turn": turn_prior(corpus, weights),
        "date": date_boost(corpus.created, question.days, weights),
    }
    strength = base + np.sum(list(boosts.values()), axis=0)
    parts |= {"fused": base, **boosts, "strength": strength}
    return Ranking(order=_ordered(strength, corpus.created, allowed), strength=strength, score=score, parts=parts)


def rank_facts(
    corpus: Corpus, question: Question, allowed: Bools, calibration: Calibration | None, weights: Weights
) -> Ranking:
    """Separate notes, best first: they have no neighbours, so only words, meaning and dates count."""
    fusion, score, parts = _measured(corpus, question, allowed, calibration, weights)
    date = date_boost(corpus.created, question.days, weights)
    strength = fusion + date
    parts |= {"fused": fusion, "date": date, "strength": strength}
    return Ranking(order=_ordered(strength, corpus.created, allowed), strength=strength, score=score, parts=parts)


def associated(corpus: Corpus, score: Floats, allowed: Bools, weights: Weights) -> Floats:
    """What facts are lent by a strongly matching fact of the same conversation; 0 for most.

    A conversation of many facts lends less (they have less to do with each other), and at most
    ``weights.associates`` facts are lent anything: those nearest in meaning, then in time.
    """
    lent = np.zeros(corpus.size)
    eligible = np.where(allowed, score, 0.0)
    anchors = np.flatnonzero(eligible >= weights.anchor)
    for row in anchors[np.argsort(-eligible[anchors], kind="stable")]:
        if not corpus.sessions[corpus.session[row]]:
            continue
        group = np.flatnonzero(allowed & (corpus.session == corpus.session[row]))
        share = weights.association * eligible[row] * min(1.0, 8 / len(group))
        others = group[(group != row) & (eligible[group] < share)]
        nearest = np.lexsort((np.abs(corpus.created[others] - corpus.created[row]), -eligible[others]))
        room = weights.associates - int((lent > 0).sum())
        lent[others[nearest][: max(room, 0)]] = share
        if room <= 0:
            break
    return lent
