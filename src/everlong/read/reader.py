"""The read path: a question in, hits with reasons out, or a block for a prompt."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final
from zoneinfo import ZoneInfo

import numpy as np

from everlong import text as words
from everlong.errors import EmptyText, ModelError
from everlong.read import filters
from everlong.read.cache import Answers
from everlong.read.compose import compose
from everlong.read.dates import dates_in, zone_of
from everlong.read.features import nothing, owners
from everlong.read.layers import latest, material
from everlong.read.neighbours import Shelves, with_neighbours
from everlong.read.presets import PRESETS
from everlong.read.question import (
    asks_time,
    by_characters,
    conversation_asked,
    last_turn,
    own_words,
    people,
    unlabelled,
    views,
    without_names,
)
from everlong.read.rank import Question, Ranking, associated, rank_facts, rank_messages
from everlong.read.verdicts import Candidates, Verdicts
from everlong.read.weights import Weights
from everlong.records import (
    ALL_KINDS,
    Considered,
    Context,
    Hit,
    Query,
    Recall,
    Scope,
    Trace,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from everlong.protocols import Clock, Corpus, Embedder, Index, NewId, Store, TokenCounter, Transaction
    from everlong.read.presets import Preset
    from everlong.records import Kind

__all__ = ["MIN_SCORE", "Reader"]

MIN_SCORE: Final = 0.35
"""Default threshold on the absolute score. Measured on lists that nothing was set with (``bench/relevance.py``: 30 facts,
a question to each, 40 questions about anything else, in English and in Chinese): with the built-in embedder it keeps 100
and 93 % of the answers and lets something in for 30 and 40 % of the other questions; with E5 83 and 97 % for 2 and 10 %;
by words alone 57 and 27 % for 5 and none. 0.4 would lose two more points of what long chats hold. Among hundreds of long
turns some pass for any question (1.8 of five): there the limit holds, not the threshold."""
_DEPTH: Final = 1000
"""Candidates of a kind that are looked at until enough are found: some may have expired or be shown already."""
_TERMS: Final = 256
_CHARACTERS: Final = 4000


@dataclass(slots=True)
class _Work:
    """One question on its way: what is fixed, and the stages' times. ``shown`` are ids that need no recall.

    ``asked`` is what each kind is searched for: facts with the question as it is, conversations without the names of
    those who lead them.
    """

    scope: Scope
    query: Query
    at: datetime
    minimum: float
    asked: dict[Kind, str]
    shown: frozenset[str] = frozenset()
    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    milliseconds: dict[str, float] = field(default_factory=dict)
    searched: dict[str, int] = field(default_factory=dict)
    embedder: str = ""

    @property
    def moment(self) -> datetime:
        """The time of the world at which what is found has to hold."""
        return self.query.valid_at or self.query.as_of or self.at


class Reader:
    """Finds and composes. Holds only the latest answers; safe for many threads when its parts are.

    ``embedder`` ``None`` searches by words only. ``min_score`` is the preset for questions that name none.
    """

    def __init__(
        self,
        *,
        store: Store,
        index: Index,
        embedder: Embedder | None,
        counter: TokenCounter,
        clock: Clock,
        new_id: NewId,
        weights: Weights | None = None,
        min_score: float = MIN_SCORE,
    ) -> None:
        self._store = store
        self._index = index
        self._embedder = embedder
        self._counter = counter
        self._clock = clock
        self._new_id = new_id
        self._weights = weights or Weights()
        self._min_score = min_score
        self._answers = Answers()

    def recall(self, scope: Scope, query: Query) -> Recall:
        """The best ``query.limit`` facts and messages visible from ``scope``, and why.

        A failing embedder leaves a search by words, which the trace says.

        Raises:
            EmptyText: nothing is left of the question's text.
            InvalidInput: ``query.zone`` is no time zone.
        """
        filters.check(query)
        started, now = time.perf_counter(), self._clock()
        with self._store.read() as tx:
            revisions = tx.index.revisions(scope, query.kinds)
            known = self._answers.get(scope, query, revisions, now)
            names = self._owners(tx, scope, query) if known is None else []
        if known is not None:
            spent = {"known": _since(started)}
            name, at = self._new_id("trace"), query.at or now
            return replace(known, trace=replace(known.trace, id=name, at=at, milliseconds=spent))
        work = self._prepare(scope, query, names)
        with self._store.read() as tx:
            unchanged = tx.index.revisions(scope, query.kinds) == revisions
            found = self._recall(tx, work)
        if unchanged and (self._embedder is None or work.embedder == self._embedder.model):
            self._answers.keep(scope, query, revisions, now, found)
        return found

    def forget(self, scope: Scope) -> None:
        """Drops answers that may hold something kept within ``scope``, after an erasure."""
        self._answers.forget(scope)

    def context(
        self, scope: Scope, query: Query, *, budget: int = 2000, preset: Preset = PRESETS["default"], session: str = ""
    ) -> Context:
        """The prompt block for a question: static facts, extracted facts, and conversation, as ``preset`` says.

        Without a question (an empty text) nothing is searched: facts stand in the order of their worth. ``session`` is
        the present conversation (default: the scope's); without one the latest turns come from all of them. ``budget``
        is in tokens.

        Raises:
            InvalidInput: ``query.zone`` is no time zone, or the preset names no known format.
        """
        filters.check(query)
        asked = bool(words.clean(query.text).strip())
        preset = preset if asked else replace(preset, by_worth=True)
        work = None
        if asked and not preset.by_worth:
            with self._store.read() as tx:
                names = self._owners(tx, scope, query)
            work = self._prepare(scope, query, names)
        at = query.at or self._clock()
        zone = zone_of(query.zone)
        session = session or scope.session
        with self._store.read() as tx:
            recent = latest(tx, scope, query, preset, session=session, at=at, counter=self._counter)
            recall = None
            if work is not None:
                work.shown = frozenset(message.id for message in recent.turns)
                recall = self._recall(tx, work)
            hits = recall.hits if recall else ()
            made_of = material(tx, scope, preset, hits=hits, recent=recent.turns, at=at)
        started = time.perf_counter()
        block = compose(
            made_of,
            budget=budget,
            counter=self._counter,
            look=preset.format,
            shares=preset.shares,
            zone=zone,
            at=at,
            hits=hits,
        )
        block = replace(block, omitted=(*block.omitted, *recent.omitted))
        if recall is None:
            return block
        return replace(block, trace=_with_block(recall.trace, block, milliseconds=_since(started)))

    # ------------------------------------------------------------------------------------------------------ steps

    def _owners(self, tx: Transaction, scope: Scope, query: Query) -> list[str]:
        """Who leads the conversations; read before the question is embedded, for no model runs inside a transaction."""
        if "message" not in query.kinds:
            return []
        return owners(self._index.corpus(tx, scope, "message"), self._weights)

    def _prepare(self, scope: Scope, query: Query, names: Sequence[str]) -> _Work:
        text = words.clean(query.text).strip()
        if not text:
            raise EmptyText("the question is empty")
        filters.check(query)
        query = replace(query, text=text)
        minimum = self._min_score if query.min_score is None else query.min_score
        text = unlabelled(text[:_CHARACTERS])
        work = _Work(scope, query, query.at or self._clock(), minimum, dict.fromkeys(ALL_KINDS, text))
        work.asked["message"] = without_names(text, names)
        started = time.perf_counter()
        self._embed(work, list(dict.fromkeys(work.asked[kind] for kind in query.kinds)))
        work.milliseconds["embed"] = _since(started)
        return work

    def _embed(self, work: _Work, texts: Sequence[str]) -> None:
        """Vectors of ``texts`` into ``work``; none when there is no embedder or it fails."""
        if self._embedder is None:
            work.embedder = "words only: no embedder"
            return
        parts = {text: views(text) for text in texts}
        distinct = list(dict.fromkeys(part for each in parts.values() for part in each))
        try:
            made = dict(zip(distinct, self._embedder.embed(distinct, query=True), strict=True))
        except ModelError as failed:
            work.embedder = f"words only: {failed}"
            return
        for text, each in parts.items():
            work.vectors[text] = _unit(np.sum([made[part] for part in each], axis=0))
        work.embedder = self._embedder.model

    def _recall(self, tx: Transaction, work: _Work) -> Recall:
        found: list[list[Hit]] = []
        considered: list[Considered] = []
        for kind in dict.fromkeys(work.query.kinds):
            started = time.perf_counter()
            hits, seen = self._search(tx, work, kind)
            found.append(hits)
            considered += seen
            work.milliseconds[kind] = _since(started)
        trace = Trace(
            id=self._new_id("trace"),
            query=work.query,
            scope=work.scope,
            at=work.at,
            embedder=work.embedder,
            considered=tuple(considered),
            milliseconds=work.milliseconds,
            minimum=work.minimum,
            searched=work.searched,
        )
        return Recall(hits=_merged(found), trace=trace)

    def _search(self, tx: Transaction, work: _Work, kind: Kind) -> tuple[list[Hit], list[Considered]]:
        query = work.query
        work.searched[kind] = 0
        corpus = self._index.corpus(tx, work.scope, kind, metadata=bool(query.metadata), as_of=query.as_of)
        if not corpus.size:
            return [], []
        shelves = Shelves(tx, work.scope, query)
        allowed = filters.allowed(corpus, query, kind, shelves.told(kind, corpus))
        work.searched[kind] = int(allowed.sum())
        if not work.searched[kind]:
            return [], []
        ranking = self._ranked(corpus, work, kind, allowed)
        score, lent = ranking.score, nothing(corpus.size)
        if kind == "fact" and work.minimum > 0:
            lent = associated(corpus, ranking.score, ranking.parts["meaning"], allowed, self._weights)
            score = np.maximum(score, lent)
        verdicts = Verdicts(
            shelves=shelves,
            limit=query.limit,
            minimum=work.minimum,
            at=work.at.timestamp(),
            moment=work.moment.timestamp(),
            shown=work.shown,
        )
        order = _by_worth(ranking.order, score, lent, work.minimum)
        hits, considered = verdicts.of(
            Candidates(kind=kind, corpus=corpus, order=order, score=score, lent=lent, parts=ranking.parts)
        )
        return with_neighbours(tx, query, hits), considered

    def _ranked(self, corpus: Corpus, work: _Work, kind: Kind, allowed: NDArray[np.bool_]) -> Ranking:
        asked = work.asked[kind]
        named = last_turn(work.query.text)
        latest = datetime.fromtimestamp(float(corpus.created.max()), UTC)
        days = dates_in(named, work.at, work.query.zone, latest=latest)
        question = Question(
            terms=words.terms(asked)[:_TERMS],
            own_terms=words.terms(own_words(work.query.text[:_CHARACTERS]))[:_TERMS],
            people=[words.terms(name) for name in people(work.query.text[:_CHARACTERS])],
            vector=work.vectors.get(asked),
            text=work.query.text,
            days=[(start.timestamp(), end.timestamp()) for start, end in days],
            conversation=conversation_asked(named),
            present=work.scope.session,
            asks_time=asks_time(named),
            by_characters=by_characters(named),
            today=work.at.astimezone(ZoneInfo(work.query.zone)).replace(hour=0, minute=0, second=0).timestamp(),
            depth=max(_DEPTH, 4 * work.query.limit),
        )
        calibration = self._embedder.calibration if self._embedder is not None else None
        rank = rank_messages if kind == "message" else rank_facts
        return rank(corpus, question, allowed, calibration, self._weights)


def _with_block(trace: Trace, block: Context, *, milliseconds: float) -> Trace:
    return replace(
        trace,
        milliseconds={**trace.milliseconds, "compose": milliseconds},
        block=block.text,
        tokens=block.tokens,
        budget=block.budget,
        omitted=block.omitted,
    )


def _unit(vector: NDArray[np.float32]) -> NDArray[np.float32]:
    norm = float(np.linalg.norm(vector))
    return vector / np.float32(norm) if norm else vector


def _by_worth(
    order: NDArray[np.int64], score: NDArray[np.float64], lent: NDArray[np.float64], minimum: float
) -> NDArray[np.int64]:
    """Rows that pass by themselves, then those lent to, then the others; each in the order of the ranking."""
    direct = order[lent[order] == 0]
    passed = score[direct] >= minimum
    return np.concatenate((direct[passed], order[lent[order] > 0], direct[~passed]))


def _levelled(hits: Sequence[Hit]) -> list[Hit]:
    """The same hits with scores that never rise down the list: neighbours that the ranking orders against their scores
    share the mean of them.

    A ranking sees more than a score (who speaks, what stands beside), so what it puts first is at least as relevant.
    """
    runs: list[list[Hit]] = []
    means: list[float] = []
    for hit in hits:
        runs.append([hit])
        means.append(hit.score)
        while len(means) > 1 and means[-2] < means[-1]:
            last = runs.pop()
            runs[-1] += last
            means[-2:] = [sum(each.score for each in runs[-1]) / len(runs[-1])]
    return [
        hit if hit.score == mean else replace(hit, score=mean)
        for run, mean in zip(runs, means, strict=True)
        for hit in run
    ]


def _merged(found: Iterable[Sequence[Hit]]) -> tuple[Hit, ...]:
    """All kinds together, best first: each keeps the order of its ranking, and the score decides between them."""
    return tuple(sorted((hit for hits in found for hit in _levelled(hits)), key=lambda hit: -hit.score))


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)
