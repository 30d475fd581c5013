"""The read path: a question in, hits with reasons out, or a block for a prompt."""

from __future__ import annotations

import time
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import numpy as np

from everlong import text as words
from everlong.errors import EmptyText, ModelError
from everlong.read.compose import compose
from everlong.read.dates import dates_in
from everlong.read.rank import (
    Question,
    Ranking,
    Weights,
    associated,
    owners,
    rank_facts,
    rank_messages,
    without_names,
)
from everlong.records import Considered, Context, Fact, Hit, Message, Query, Recall, Scope, Trace

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from everlong.protocols import Clock, Corpus, Embedder, Index, NewId, Store, TokenCounter, Transaction
    from everlong.records import Kind

__all__ = ["MIN_SCORE", "Reader"]

MIN_SCORE: Final = 0.3
"""Default threshold on the absolute score: what a question about something else does not reach."""
_CONSIDERED: Final = 50
_TERMS: Final = 256
_CHARACTERS: Final = 4000


@dataclass(slots=True)
class _Work:
    """One question on its way: what is fixed, and the stages' times."""

    scope: Scope
    query: Query
    at: datetime
    minimum: float
    terms: list[str]
    bare: str
    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    milliseconds: dict[str, float] = field(default_factory=dict)
    embedder: str = ""


class Reader:
    """Finds and composes. Holds no state of its own; safe for many threads when its parts are.

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

    def recall(self, scope: Scope, query: Query) -> Recall:
        """The best ``query.limit`` facts and messages visible from ``scope``, and why.

        A failing embedder leaves a search by words, which the trace says.

        Raises:
            EmptyText: nothing is left of the question's text.
            InvalidInput: ``query.zone`` is no time zone.
        """
        work = self._prepare(scope, query)
        with self._store.read() as tx:
            return self._recall(tx, work)

    def context(
        self,
        scope: Scope,
        query: Query,
        *,
        budget: int = 2000,
        recent_messages: int = 10,
        recent_tokens: int = 2000,
        recent_window: timedelta = timedelta(days=7),
        session: str = "",
    ) -> Context:
        """The prompt block for a question: profile, facts, recalled turns, and the latest turns.

        ``session`` is the present conversation (default: the scope's); without one the latest turns come from all
        of them. Recent turns are limited by number, tokens and age. ``budget`` is in tokens.

        Raises:
            EmptyText: nothing is left of the question's text.
        """
        work = self._prepare(scope, query)
        session = session or scope.session
        since = work.at - recent_window
        with self._store.read() as tx:
            recall = self._recall(tx, work)
            profiles = tx.profiles.visible(scope)
            standing = [f for f in tx.facts.list(scope, limit=100).items if f.pinned or f.category == "correction"]
            if session:
                here = replace(scope.home, session=session)
                recent: Sequence[Message] = tx.messages.tail(here, limit=recent_messages)
            else:
                recent = tx.messages.recent(scope, limit=recent_messages, since=since)
        left_out = query.exclude_sessions
        recent = [m for m in recent if m.created_at >= since and m.session not in left_out]
        shown = self._within(recent, recent_tokens)
        present = {message.id for message in shown}
        facts = [hit.record for hit in recall.hits if isinstance(hit.record, Fact)]
        turns = [hit.record for hit in recall.hits if isinstance(hit.record, Message) and hit.id not in present]
        standing = [fact for fact in standing if _current(fact, work.at)]
        standing.sort(key=lambda fact: -fact.confidence)
        block = compose(
            profiles, [*facts, *standing], turns, shown, budget=budget, counter=self._counter, hits=recall.hits
        )
        return replace(block, trace=recall.trace)

    # ------------------------------------------------------------------------------------------------------ steps

    def _within(self, messages: Sequence[Message], tokens: int) -> list[Message]:
        kept: list[Message] = []
        for message in reversed(messages):
            tokens -= self._counter(message.content)
            if tokens < 0:
                break
            kept.append(message)
        return kept[::-1]

    def _prepare(self, scope: Scope, query: Query) -> _Work:
        asked = words.clean(query.text).strip()
        if not asked:
            raise EmptyText("the question is empty")
        query = replace(query, text=asked)
        minimum = self._min_score if query.min_score is None else query.min_score
        work = _Work(scope, query, query.at or self._clock(), minimum, words.terms(asked[:_CHARACTERS])[:_TERMS], asked)
        if "message" in query.kinds and self._embedder is not None:
            with self._store.read() as tx:  # a model never runs inside a transaction, so the names are read first
                names = owners(self._index.corpus(tx, scope, "message"), self._weights)
            work.bare = without_names(asked, names)
        started = time.perf_counter()
        self._embed(work, list(dict.fromkeys([asked, work.bare])))
        work.milliseconds["embed"] = _since(started)
        return work

    def _embed(self, work: _Work, texts: Sequence[str]) -> None:
        """Vectors of ``texts`` into ``work``; none when there is no embedder or it fails."""
        if self._embedder is None:
            work.embedder = "words only: no embedder"
            return
        try:
            made = self._embedder.embed([each[:_CHARACTERS] for each in texts], query=True)
        except ModelError as failed:
            work.embedder = f"words only: {failed}"
            return
        work.vectors.update(zip(texts, made, strict=True))
        work.embedder = self._embedder.model

    def _recall(self, tx: Transaction, work: _Work) -> Recall:
        hits: list[Hit] = []
        considered: list[Considered] = []
        for kind in dict.fromkeys(work.query.kinds):
            started = time.perf_counter()
            found, seen = self._search(tx, work, kind)
            hits += found
            considered += seen
            work.milliseconds[kind] = _since(started)
        if len(work.query.kinds) > 1:
            hits.sort(key=lambda hit: -hit.score)
        trace = Trace(
            id=self._new_id("trace"),
            query=work.query,
            scope=work.scope,
            at=work.at,
            embedder=work.embedder,
            considered=tuple(considered),
            milliseconds=work.milliseconds,
        )
        return Recall(hits=tuple(hits), trace=trace)

    def _search(self, tx: Transaction, work: _Work, kind: Kind) -> tuple[list[Hit], list[Considered]]:
        corpus = self._index.corpus(tx, work.scope, kind)
        if not corpus.size:
            return [], []
        allowed = _allowed(corpus, work.query, kind)
        ranking = self._ranked(corpus, work, kind, allowed)
        lent = np.zeros(corpus.size)
        if kind == "fact" and work.minimum > 0:
            lent = associated(corpus, ranking.score, allowed, self._weights)
        score = np.maximum(ranking.score, lent)
        direct = ranking.order[lent[ranking.order] == 0]
        order = np.r_[direct[score[direct] >= work.minimum], ranking.order[lent[ranking.order] > 0],
                      direct[score[direct] < work.minimum]]  # fmt: skip
        head = [int(row) for row in order[: max(_CONSIDERED, work.query.limit * 2)]]
        ids = [corpus.ids[row] for row in head]
        records: Mapping[str, Fact | Message] = (
            tx.facts.many(work.scope, ids) if kind == "fact" else tx.messages.many(work.scope, ids)
        )
        hits: list[Hit] = []
        considered: list[Considered] = []
        for row, name in zip(head, ids, strict=True):
            parts = {key: round(float(part[row]), 4) for key, part in ranking.parts.items() if not np.isnan(part[row])}
            if lent[row]:
                parts["associated"] = round(float(lent[row]), 4)
            worth = float(score[row])
            reason = _refusal(records.get(name), worth, work, len(hits))
            if not reason:
                hits.append(Hit(kind=kind, id=name, score=worth, record=records[name], parts=parts))
            why = reason or ("learned with a strong match" if lent[row] else "relevant")
            considered.append(Considered(kind=kind, id=name, score=worth, kept=not reason, reason=why, parts=parts))
        return hits, considered

    def _ranked(self, corpus: Corpus, work: _Work, kind: Kind, allowed: NDArray[np.bool_]) -> Ranking:
        asked = work.query.text
        vector = work.vectors.get(asked if kind == "fact" else work.bare)
        days = [(a.timestamp(), b.timestamp()) for a, b in dates_in(asked, work.at, work.query.zone)]
        question = Question(terms=work.terms, vector=vector, text=asked, days=days)
        calibration = self._embedder.calibration if self._embedder is not None else None
        rank = rank_facts if kind == "fact" else rank_messages
        return rank(corpus, question, allowed, calibration, self._weights)


def _since(started: float) -> float:
    return round((time.perf_counter() - started) * 1000, 3)


def _current(fact: Fact, at: datetime) -> bool:
    return fact.valid_until is None or fact.valid_until > at


def _refusal(record: Fact | Message | None, score: float, work: _Work, taken: int) -> str:
    """Why a candidate is dropped; empty when it is kept."""
    if record is None:
        return "no longer there"
    if isinstance(record, Fact) and not _current(record, work.at):
        return "expired"
    if score < work.minimum:
        return f"below the threshold of {work.minimum:.2f}"
    return "over the limit" if taken >= work.query.limit else ""


def _allowed(corpus: Corpus, query: Query, kind: Kind) -> NDArray[np.bool_]:
    """Rows that the question's filters let in."""
    rows = np.ones(corpus.size, bool)
    if query.sessions:
        rows &= np.isin(corpus.session, [i for i, name in enumerate(corpus.sessions) if name in query.sessions])
    if query.exclude_sessions and kind == "message":
        rows &= ~np.isin(corpus.session, [i for i, n in enumerate(corpus.sessions) if n in query.exclude_sessions])
    if query.categories:
        rows &= np.isin(corpus.category, [i for i, name in enumerate(corpus.categories) if name in query.categories])
    if query.since is not None:
        rows &= corpus.created >= query.since.timestamp()
    if query.until is not None:
        rows &= corpus.created < query.until.timestamp()
    return rows
