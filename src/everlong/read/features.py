"""What speaks for a row: each feature one pure function from arrays to an array over all rows.

Rows that the question's filters leave out lend to nothing and count in no mean.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from everlong.read.question import HAN_TERMS, TIME_TERMS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from everlong.protocols import Calibration, Corpus
    from everlong.read.weights import Weights

    Floats = NDArray[np.float64]
    Bools = NDArray[np.bool_]

__all__ = [
    "about_boost",
    "absolute",
    "conversation",
    "conversation_named",
    "date_boost",
    "fused",
    "lent_beside",
    "neighbours",
    "owners",
    "speaker_boost",
    "spoken_names",
    "spread",
    "time_told",
    "turn_prior",
    "unworded",
]

_DAY: Final = 86_400.0
_FLAT: Final = 1e-9
"""A spread below this is rounding: all values count as equal."""
_WHOLE: Final = 0.99
"""Coverage of a name of which no term is missing, less rounding."""
_BEST_TURNS: Final = 3
_TERMS: Final = 32
"""Terms of a question that whole conversations are searched for; more add time and no evidence."""
_ASSISTANT_SHARE: Final = 0.1
"""Share of the assistant's turns from which a store is a chat with one."""
_SIDES: Final = frozenset({"", "user", "assistant", "ai", "system", "tool", "human"})


def fused(bm25: Floats, cosine: Floats, allowed: Bools, *, lexical: float, pool: int) -> Floats:
    """Weighted sum of z-scores over the union of the best of both lists; elsewhere each list's minimum."""
    listed_words = _best(bm25, allowed & (bm25 > 0), pool)
    listed_meaning = _best(cosine, allowed & ~np.isnan(cosine), pool)
    union = listed_words | listed_meaning
    words = _z(bm25, listed_words, union)
    meaning = _z(cosine, listed_meaning, union)
    if not listed_meaning.any():  # nothing else tells the weakest match from the rows without any
        return np.where(listed_words, words - words.min() + 1, 0.0)
    if not listed_words.any():
        return meaning
    return lexical * words + (1 - lexical) * meaning


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
    least = values[listed].min()
    if values[listed].max() - least <= _FLAT:  # a single match, or equal ones: they stand against the rows without any
        least = min(0.0, least)
    filled = np.where(listed, values, least)
    deviation = float(filled[union].std())
    return (filled - filled[union].mean()) / deviation if deviation > _FLAT else np.zeros(len(values))


def spoken_names(corpus: Corpus) -> list[str]:
    """Names of speakers, without the blank one and the words that only name a side."""
    return [name for name in corpus.speakers if name.strip().casefold() not in _SIDES]


def owners(corpus: Corpus, weights: Weights) -> list[str]:
    """Speakers who own at least a fifth of the rows."""
    if not corpus.size:
        return []
    counts = np.bincount(corpus.speaker, minlength=len(corpus.speakers)) / corpus.size
    shares = dict(zip(corpus.speakers, counts, strict=True))
    return [name for name in spoken_names(corpus) if shares[name] >= weights.owner]


def neighbours(strength: Floats, corpus: Corpus, weights: Weights) -> Floats:
    """What each turn takes from the two on either side of it in its conversation, more from one before that asks. One that matches
    less than most lends nothing: it would speak against turns only for standing between others. What lies a day apart answers nothing."""
    order = np.argsort(corpus.session, kind="stable")
    ranked, named = np.maximum(strength[order], 0), corpus.session[order]
    taken, told = np.zeros(len(strength)), corpus.created[order]
    before = (weights.before + weights.answers * corpus.question[order], weights.second_before)
    for step, (back, ahead) in enumerate(zip(before, (weights.after, weights.second_after), strict=True), 1):
        same = (named[step:] == named[:-step]) & (np.abs(told[step:] - told[:-step]) < _DAY)
        lent = back * ranked
        taken[step:] += np.where(same, lent[:-step], 0)
        taken[:-step] += ahead * np.where(same, ranked[step:], 0)
    given = np.empty(len(strength))
    given[order] = taken
    return given


def conversation(corpus: Corpus, strength: Floats, terms: Sequence[str], allowed: Bools, weights: Weights) -> Floats:
    """What each turn takes from the whole of its conversation: its words if it is short, its best turns if long."""
    turns = np.bincount(corpus.session[allowed], minlength=len(corpus.sessions))
    present = turns > 0
    if present.sum() < 2:  # noqa: PLR2004 - one conversation tells no turn of it from another
        return np.zeros(corpus.size)
    if turns[present].mean() > weights.short_session:
        told = weights.session * _best_turns(strength, corpus.session, allowed, turns)
    else:
        told = weights.session_words * _session_words(corpus, terms, allowed, turns)
    taken: Floats = told[corpus.session]
    return taken


def _best_turns(strength: Floats, session: NDArray[np.int32], allowed: Bools, turns: NDArray[np.int64]) -> Floats:
    """The mean of the three best turns of each conversation."""
    rows = np.flatnonzero(allowed)
    rows = rows[np.lexsort((-strength[rows], session[rows]))]
    starts = np.cumsum(turns) - turns
    best = rows[np.arange(len(rows)) - starts[session[rows]] < _BEST_TURNS]
    totals = np.bincount(session[best], weights=strength[best], minlength=len(turns))
    mean: Floats = totals / np.clip(turns, 1, _BEST_TURNS)
    return mean


def _session_words(corpus: Corpus, terms: Sequence[str], allowed: Bools, turns: NDArray[np.int64]) -> Floats:
    """z-scores of the BM25 of whole conversations."""
    present = turns > 0
    norms = 1.2 * (0.25 + 0.75 * turns / turns[present].mean())
    scores = np.zeros(len(turns))
    for rows in corpus.rows(list(dict.fromkeys(terms))[:_TERMS]):
        counts = np.bincount(corpus.session[rows[allowed[rows]]], minlength=len(turns))
        found = int((counts > 0).sum())
        idf = np.log1p((present.sum() - found + 0.5) / (found + 0.5))
        scores += idf * 2.2 * counts / (counts + norms)
    deviation = float(scores[present].std())
    return (scores - scores[present].mean()) / deviation if deviation > _FLAT else np.zeros(len(turns))


def speaker_boost(corpus: Corpus, text: str, weights: Weights) -> Floats:
    """For turns of the only speaker that the question names."""
    folded = text.casefold()
    named = [name for name in spoken_names(corpus) if name.casefold() in folded]
    if len(named) != 1:
        return np.zeros(corpus.size)
    return np.where(corpus.speaker == list(corpus.speakers).index(named[0]), weights.named_speaker, 0.0)


def about_boost(corpus: Corpus, names: Sequence[Sequence[str]], weights: Weights) -> Floats:
    """For rows that hold all the terms of one of the ``names``."""
    given = np.zeros(corpus.size)
    for name in names:
        given[corpus.coverage(name) > _WHOLE] = weights.about
    return given


def turn_prior(corpus: Corpus, weights: Weights) -> Floats:
    """In chats with an assistant, for the user's turns; among people, against turns that ask."""
    roles = list(corpus.roles)
    shares = np.bincount(corpus.role, minlength=len(roles)) / corpus.size
    if "assistant" in roles and shares[roles.index("assistant")] >= _ASSISTANT_SHARE:
        return np.where(corpus.role == (roles.index("user") if "user" in roles else -1), weights.user_turn, 0.0)
    if len(spoken_names(corpus)) < 2:  # noqa: PLR2004 - nobody to ask
        return np.zeros(corpus.size)
    return -weights.asks * corpus.question.astype(float)


def time_told(corpus: Corpus, *, asked: bool, weights: Weights) -> Floats:
    """For turns that place what they tell in time, more when a time is ``asked``."""
    given = np.zeros(corpus.size)
    for rows in corpus.rows(sorted(TIME_TERMS)):
        given[rows] = weights.tells_time + weights.asked_time * asked
    return given


def date_boost(created: Floats, days: Sequence[tuple[float, float]], boost: float) -> Floats:
    """For rows of the days that the question names, half for a day before or after."""
    given = np.zeros(len(created))
    for start, end in days:
        near = (created >= start - _DAY) & (created < end + _DAY)
        inside = (created >= start) & (created < end)
        given = np.maximum(given, np.where(inside, boost, np.where(near, boost / 2, 0)))
    return given


def spread(ranked: NDArray[np.int64], session: NDArray[np.int32], weights: Weights) -> Floats:
    """What each of the ``ranked`` rows, best first, loses for those of its conversation that stand before it."""
    named = session[ranked]
    order = np.argsort(named, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(named[order]) != 0])
    before = np.empty(len(ranked))
    before[order] = np.arange(len(ranked)) - np.repeat(starts, np.diff(np.r_[starts, len(ranked)]))
    lost: Floats = -weights.spread * np.log1p(before)
    return lost


def lent_beside(score: Floats, session: NDArray[np.int32], allowed: Bools, weights: Weights) -> Floats:
    """The absolute score, or what of it a turn beside has to lend if that is more."""
    order = np.argsort(session, kind="stable")
    given = weights.beside * np.where(allowed, score, 0.0)[order]
    same = session[order][1:] == session[order][:-1]
    best = score[order]
    best[1:] = np.maximum(best[1:], given[:-1] * same)
    best[:-1] = np.maximum(best[:-1], given[1:] * same)
    back = np.empty(len(score))
    back[order] = best
    return back


def conversation_named(corpus: Corpus, asked: str, allowed: Bools, boost: float) -> Floats:
    """For turns of the first or the last conversation there was, if that is what the question is about."""
    if not asked or not allowed.any():
        return np.zeros(corpus.size)
    rows = np.flatnonzero(allowed)
    times = corpus.created[rows]
    row = rows[times.argmin() if asked == "first" else times.argmax()]
    return np.where(corpus.session == corpus.session[row], boost, 0.0)


def unworded(corpus: Corpus, coverage: Floats, weights: Weights) -> Floats:
    """What the meaning of Chinese rows loses for sharing hardly a character with a Chinese question."""
    silent = coverage < weights.worded
    if not silent.any():
        return np.zeros(corpus.size)
    chinese = np.zeros(corpus.size, bool)
    for rows in corpus.rows(sorted(HAN_TERMS)):
        chinese[rows] = True
    return np.where(silent & chinese, weights.unworded, 0.0)


def absolute(
    cosine: Floats, coverage: Floats, lost: Floats, calibration: Calibration | None, weights: Weights
) -> tuple[Floats, Floats]:
    """``(score, meaning)``: a noisy-or of calibrated cosine, weaker where there is something ``lost``, and word
    coverage; neither alone reaches 1."""
    meaning = np.zeros(len(cosine))
    worded = coverage * np.where(np.isnan(cosine), weights.only_words, weights.words)
    if calibration is not None:
        width = calibration.related - calibration.unrelated
        meaning = np.clip((np.nan_to_num(cosine, nan=-1.0) - calibration.unrelated) / width, 0, 1)
    sure = np.maximum(meaning - lost * (1 - meaning), 0)
    return 1 - (1 - weights.meaning * sure) * (1 - worded), meaning
