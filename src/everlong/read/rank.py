"""How rows of a corpus are ranked for a question: pure functions from arrays to arrays. No model is called.

Two scales live here. *Strength* orders: a sum of z-scores and boosts, meaningful only inside one question. *Score* is
what callers see and thresholds use: 0 to 1, calibrated for the embedding model, equal on every store.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from everlong.read import features

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from everlong.protocols import Calibration, Corpus
    from everlong.read.weights import Weights

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

__all__ = ["Question", "Ranking", "associated", "rank_facts", "rank_messages"]

_FULL_LENDING: Final = 8
"""Facts of a conversation up to which all that was learned in it has to do with each other."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A question as ranking sees it.

    ``own_terms`` are those of a person's words where an assistant's stand beside them: they count twice. ``people``
    are the terms of the name of each who speaks in it. ``vector`` ``None`` is a search by words. ``text`` is looked through for names. ``days`` are those it names, in POSIX seconds, end
    excluded; ``conversation`` is "first" or "last" if it names one, which the ``present`` one is not. ``today`` is when
    its day begins, ``by_characters`` whether it is Chinese, ``depth`` how many rows are put in order.
    """

    terms: Sequence[str]
    vector: NDArray[np.float32] | None
    own_terms: Sequence[str] = ()
    people: Sequence[Sequence[str]] = ()
    text: str = ""
    days: Sequence[tuple[float, float]] = ()
    conversation: str = ""
    present: str = ""
    asks_time: bool = False
    by_characters: bool = False
    today: float = 0.0
    depth: int = 1000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """Rows in order, best first, with the absolute ``score`` and the parts: arrays over all rows, right for those in
    order."""

    order: NDArray[np.int64]
    strength: Floats
    score: Floats
    parts: dict[str, Floats]


def rank_messages(
    corpus: Corpus, question: Question, allowed: Bools, calibration: Calibration | None, weights: Weights
) -> Ranking:
    """Turns of conversations, best first. Rows that are not ``allowed`` lend to nothing and are not ranked."""
    words, cosine, coverage = _matched(corpus, question)
    fusion = features.fused(words, cosine, allowed, lexical=weights.lexical, pool=weights.pool)
    base = fusion if allowed.all() else np.where(allowed, fusion, 0.0)
    beside = features.neighbours(base, corpus, weights)
    boosts = {
        "neighbours": beside,
        "conversation": features.conversation(corpus, base + beside, question.terms, allowed, weights),
        "speaker": features.speaker_boost(corpus, question.text, weights),
        "about": features.about_boost(corpus, () if features.spoken_names(corpus) else question.people, weights),
        "turn": features.turn_prior(corpus, weights),
        "time": features.time_told(corpus, asked=question.asks_time, weights=weights),
        "date": features.date_boost(corpus.created, question.days, weights.on_date),
        "named": _named(corpus, question, allowed, weights),
    }
    strength = base.copy()
    for boost in boosts.values():
        if boost.strides[0]:
            strength += boost
    order = _ordered(strength, corpus.created, allowed, question.depth)
    lost = np.zeros(corpus.size)
    lost[order] = features.spread(order, corpus.session, weights)
    strength[order] += lost[order]
    # Only what is ranked is scored: to score all of a large store costs as much as to search it.
    rows = features.with_beside(order, corpus)
    score, meaning = np.zeros(corpus.size), np.zeros(corpus.size)
    score[rows], meaning[rows] = features.absolute(
        cosine[rows], coverage[rows], np.zeros(len(rows)), calibration, weights
    )
    best = features.lent_beside(score, order, corpus, allowed, weights)
    then = _told_then(corpus.created[order], question) | (boosts["named"][order] > 0)
    score[order] = np.maximum(best, np.where(then, weights.told_then, 0.0))
    order = order[np.argsort(-strength[order], kind="stable")]
    parts = {"bm25": words, "cosine": cosine, "words": coverage, "meaning": meaning}
    parts |= {"fused": base, **boosts, "spread": lost, "strength": strength}
    return Ranking(order=order, strength=strength, score=score, parts=parts)


def _told_then(created: Floats, question: Question) -> Bools:
    """Rows of a day that the question names and that is over: "today" is in many questions about anything else."""
    told = np.zeros(len(created), bool)
    for start, end in question.days:
        if end <= question.today:
            told |= (created >= start) & (created < end)
    return told


def _named(corpus: Corpus, question: Question, allowed: Bools, weights: Weights) -> Floats:
    if question.present and question.present in corpus.sessions:
        allowed = allowed & (corpus.session != list(corpus.sessions).index(question.present))
    return features.conversation_named(corpus, question.conversation, allowed, weights.on_date)


def rank_facts(
    corpus: Corpus, question: Question, allowed: Bools, calibration: Calibration | None, weights: Weights
) -> Ranking:
    """Separate notes, best first: they have no neighbours, so only words, meaning and dates count."""
    words, cosine, coverage = _matched(corpus, question)
    lost = np.zeros(corpus.size)
    if question.by_characters and question.vector is not None:
        lost = features.unworded(corpus, coverage, weights)
    score, meaning = features.absolute(cosine, coverage, lost, calibration, weights)
    fusion = features.fused(words, cosine, allowed, lexical=weights.noted_lexical, pool=weights.pool)
    parts = {"bm25": words, "cosine": cosine, "words": coverage, "meaning": meaning}
    date = features.date_boost(corpus.created, question.days, weights.noted_date)
    about = features.about_boost(corpus, question.people, weights)
    strength = fusion + date + about
    parts |= {"fused": fusion, "date": date, "about": about, "strength": strength}
    return Ranking(
        order=_ordered(strength, corpus.created, allowed, question.depth), strength=strength, score=score, parts=parts
    )


def _matched(corpus: Corpus, question: Question) -> tuple[Floats, Floats, Floats]:
    """BM25, cosine and word coverage of every row."""
    words = corpus.bm25(question.terms).astype(float)
    if question.own_terms:
        words += corpus.bm25(question.own_terms)
    if question.vector is None:
        return words, np.full(corpus.size, np.nan), corpus.coverage(question.terms).astype(float)
    cosine = corpus.cosine(question.vector).astype(float)
    return words, cosine, corpus.coverage(question.terms).astype(float)


def _ordered(strength: Floats, created: Floats, allowed: Bools, depth: int) -> NDArray[np.int64]:
    """The best rows by strength, then newest first, then in the corpus' own order."""
    if len(allowed) > depth:  # to sort all of a large store costs as much as to search it
        worth = np.where(allowed, strength, -np.inf)
        least = np.partition(worth, -depth)[-depth]
        allowed = allowed & (worth >= least)
    rows = np.flatnonzero(allowed)
    return rows[np.lexsort((-created[rows], -strength[rows]))][:depth]


def associated(corpus: Corpus, score: Floats, meaning: Floats, allowed: Bools, weights: Weights) -> Floats:
    """What facts are lent by a strongly matching fact of the same conversation; 0 for most.

    Having been learned together is no tie by itself: a person tells many things in one sitting. Only facts that have
    something to do with the question themselves (a word, or more meaning than unrelated texts have) are lent to, no
    more than just passes by itself. A conversation of many facts lends less, and at most ``weights.associates`` facts are lent anything: those nearest
    in meaning, then in time.
    """
    lent = np.zeros(corpus.size)
    eligible = np.where(allowed, score, 0.0)
    tied = np.maximum(score, meaning) >= weights.tie
    anchors = np.flatnonzero(eligible >= weights.anchor)
    room = weights.associates
    for row in anchors[np.argsort(-eligible[anchors], kind="stable")]:
        if not corpus.sessions[corpus.session[row]]:
            continue
        group = np.flatnonzero(allowed & (corpus.session == corpus.session[row]))
        share = weights.association * min(1.0, _FULL_LENDING / len(group))
        others = group[tied[group] & (eligible[group] < share) & (lent[group] == 0)]
        nearest = np.lexsort((np.abs(corpus.created[others] - corpus.created[row]), -eligible[others]))
        chosen = others[nearest][:room]
        lent[chosen] = share
        room -= len(chosen)
        if not room:
            break
    return lent
