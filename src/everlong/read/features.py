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
    "nothing",
    "owners",
    "speaker_boost",
    "spoken_names",
    "spread",
    "time_told",
    "turn_prior",
    "unworded",
    "with_beside",
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


def nothing(size: int) -> Floats:
    """What a feature gives that speaks for no row: takes no memory and need not be added."""
    return np.broadcast_to(0.0, size)


def fused(bm25: Floats, cosine: Floats, allowed: Bools, *, lexical: float, pool: int) -> Floats:
    """Weighted sum of z-scores over the union of the best of both lists; elsewhere each list's minimum."""
    listed_words = _best(bm25, allowed & (bm25 > 0), pool)
    listed_meaning = _best(cosine, allowed & ~np.isnan(cosine), pool)
    union = _united(listed_words, listed_meaning)
    words, no_words = _z(bm25, listed_words, union)
    meaning, no_meaning = _z(cosine, listed_meaning, union)
    if not len(listed_meaning):  # nothing else tells the weakest match from the rows without any
        least = min([*words.tolist(), *([no_words] if len(union) < len(bm25) else [])], default=0.0)
        return _over(len(bm25), union, words - least + 1, 0.0)
    if not len(listed_words):
        return _over(len(bm25), union, meaning, no_meaning)
    both = lexical * words + (1 - lexical) * meaning
    return _over(len(bm25), union, both, lexical * no_words + (1 - lexical) * no_meaning)


def _united(*parts: NDArray[np.int64]) -> NDArray[np.int64]:
    """All rows of ``parts``, each once, in order. For so few, a sort is ten times as fast as numpy's set functions."""
    rows = np.sort(np.concatenate(parts))
    first = np.ones(len(rows), bool)
    np.not_equal(rows[1:], rows[:-1], out=first[1:])
    return rows[first]


def _over(size: int, rows: NDArray[np.int64], values: Floats, elsewhere: float) -> Floats:
    made = np.full(size, elsewhere)
    made[rows] = values
    return made


def _best(values: Floats, allowed: Bools, count: int) -> NDArray[np.int64]:
    rows = np.flatnonzero(allowed)
    if len(rows) <= count:
        return rows
    least = -(values if len(rows) == len(values) else values[rows])
    return np.sort(rows[np.argpartition(least, count - 1)[:count]])


def _z(values: Floats, listed: NDArray[np.int64], union: NDArray[np.int64]) -> tuple[Floats, float]:
    """z-scores of the rows of ``union``, and of every other row; those that are not ``listed`` have the least value."""
    if not len(listed):
        return np.zeros(len(union)), 0.0
    known = values[listed].astype(float)
    least = float(known.min())
    if known.max() - least <= _FLAT:  # a single match, or equal ones: they stand against the rows without any
        least = min(0.0, least)
    filled = np.full(len(union), least)
    filled[np.searchsorted(union, listed)] = known
    deviation, mean = float(filled.std()), filled.mean()
    if deviation <= _FLAT:
        return np.zeros(len(union)), 0.0
    return (filled - mean) / deviation, float((least - mean) / deviation)


def spoken_names(corpus: Corpus) -> list[str]:
    """Names of speakers, without the blank one and the words that only name a side."""
    return [name for name in corpus.speakers if name.strip().casefold() not in _SIDES]


def owners(corpus: Corpus, weights: Weights) -> list[str]:
    """Speakers who own at least a fifth of the rows."""
    if not corpus.size:
        return []
    counts = corpus.counts("speaker") / corpus.size
    shares = dict(zip(corpus.speakers, counts, strict=True))
    return [name for name in spoken_names(corpus) if shares[name] >= weights.owner]


def neighbours(strength: Floats, corpus: Corpus, weights: Weights) -> Floats:
    """What each turn takes from the two on either side of it in its conversation, more from one before that asks. One that matches
    less than most lends nothing: it would speak against turns only for standing between others. What lies a day apart answers nothing."""
    taken = np.zeros(len(strength))
    lenders = np.flatnonzero(strength > 0)
    lent = strength[lenders]
    asking = (weights.before + weights.answers * corpus.question[lenders]) * lent
    back = (asking, weights.second_before * lent)
    ahead = (weights.after * lent, weights.second_after * lent)
    for step in (1, 2):
        for way, given in ((step, back[step - 1]), (-step, ahead[step - 1])):
            other = _beside(lenders, way, corpus)
            near = (other >= 0) & (np.abs(corpus.created[other] - corpus.created[lenders]) < _DAY)
            taken[other[near]] += given[near]
    return taken


def _beside(rows: NDArray[np.int64], step: int, corpus: Corpus) -> NDArray[np.int64]:
    """The rows ``step`` turns later (earlier, if negative) in the same conversation; -1 where there is none."""
    order = corpus.by_session
    places = corpus.in_session[rows] + np.int64(step)
    inside = (places >= 0) & (places < len(order))
    found = order[np.where(inside, places, 0)].astype(np.int64)
    return np.where(inside & (corpus.session[found] == corpus.session[rows]), found, -1)


def conversation(corpus: Corpus, strength: Floats, terms: Sequence[str], allowed: Bools, weights: Weights) -> Floats:
    """What each turn takes from the whole of its conversation: its words if it is short, its best turns if long."""
    turns = corpus.counts("session")
    if not allowed.all():
        turns = np.bincount(corpus.session[allowed], minlength=len(corpus.sessions))
    present = turns > 0
    if present.sum() < 2:  # noqa: PLR2004 - one conversation tells no turn of it from another
        return nothing(corpus.size)
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
        return nothing(corpus.size)
    return np.where(corpus.speaker == list(corpus.speakers).index(named[0]), weights.named_speaker, 0.0)


def about_boost(corpus: Corpus, names: Sequence[Sequence[str]], weights: Weights) -> Floats:
    """For rows that hold all the terms of one of the ``names``."""
    if not names:
        return nothing(corpus.size)
    given = np.zeros(corpus.size)
    for name in names:
        given[corpus.coverage(name) > _WHOLE] = weights.about
    return given


def turn_prior(corpus: Corpus, weights: Weights) -> Floats:
    """In chats with an assistant, for the user's turns; among people, against turns that ask."""
    roles = list(corpus.roles)
    shares = corpus.counts("role") / corpus.size
    if "assistant" in roles and shares[roles.index("assistant")] >= _ASSISTANT_SHARE:
        return np.where(corpus.role == (roles.index("user") if "user" in roles else -1), weights.user_turn, 0.0)
    if len(spoken_names(corpus)) < 2:  # noqa: PLR2004 - nobody to ask
        return nothing(corpus.size)
    return -weights.asks * corpus.question.astype(float)


def time_told(corpus: Corpus, *, asked: bool, weights: Weights) -> Floats:
    """For turns that place what they tell in time, more when a time is ``asked``."""
    given = np.zeros(corpus.size)
    for rows in corpus.rows(sorted(TIME_TERMS)):
        given[rows] = weights.tells_time + weights.asked_time * asked
    return given


def date_boost(created: Floats, days: Sequence[tuple[float, float]], boost: float) -> Floats:
    """For rows of the days that the question names, half for a day before or after."""
    if not days:
        return nothing(len(created))
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


def with_beside(rows: NDArray[np.int64], corpus: Corpus) -> NDArray[np.int64]:
    """These rows and the turns right before and after each."""
    around = _united(rows, _beside(rows, 1, corpus), _beside(rows, -1, corpus))
    return around[around >= 0]


def lent_beside(score: Floats, rows: NDArray[np.int64], corpus: Corpus, allowed: Bools, weights: Weights) -> Floats:
    """The absolute score of these rows, or what of it a turn beside has to lend if that is more."""
    best = score[rows]
    for step in (1, -1):
        other = _beside(rows, step, corpus)
        best = np.maximum(best, np.where((other >= 0) & allowed[other], weights.beside * score[other], 0.0))
    return best


def conversation_named(corpus: Corpus, asked: str, allowed: Bools, boost: float) -> Floats:
    """For turns of the first or the last conversation there was, if that is what the question is about."""
    if not asked or not allowed.any():
        return nothing(corpus.size)
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
