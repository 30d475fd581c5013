"""What memory answers, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from everlong.errors import InvalidInput
from everlong.memory.view import View
from everlong.read.explain import compared, explained, varied
from everlong.read.presets import adapted, preset_of
from everlong.records import Query, Recall

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import timedelta

    from everlong.read.explain import Explanation, Replay
    from everlong.read.formats import Format
    from everlong.read.presets import Preset
    from everlong.records import (
        Context,
        Trace,
    )
    from everlong.telemetry.traces import Epochs

__all__ = ["Reading"]


class Reading(View):
    """Operations that ask memory."""

    def recall(self, question: str | Query, *, trace: bool = False, **filters: Any) -> Recall:
        """What memory holds on a question, best first, with a score from 0 to 1 and an explanation.

        ``filters`` are the fields of :class:`~everlong.records.Query`: ``kinds``, ``categories``, ``sessions``,
        ``origins``, ``metadata``, ``since``, ``until``, ``as_of``, ``valid_at``, ``min_trust``, ``limit`` and others.

        Raises:
            EmptyText: the question is empty.
            InvalidInput: a filter is unknown or malformed.
        """
        return self._run("recall", self._recall, query=self._query(question, filters), trace=trace)

    def _recall(self, *, query: Query, trace: bool) -> Recall:
        parts = self._memory.parts
        epochs = parts.traces.epochs(self.scope)
        recall = parts.reader.recall(self.scope, query)
        self._asked(recall, epochs, injected=bool(recall.hits), durable=trace)
        return recall

    def _asked(self, recall: Recall, epochs: Epochs, *, injected: bool, durable: bool) -> None:
        """What follows from a question: its trace, its line in the log, a use of each fact it brought up."""
        parts = self._memory.parts
        parts.traces.keep(recall.trace, epochs, by=self.by, durable=durable)
        parts.on_recall(recall, injected=injected)
        left_out = {each.what for each in recall.trace.omitted}
        parts.uses.note([hit for hit in recall.hits if f"fact {hit.id}" not in left_out], parts.clock())
        if parts.uses.full:
            self._memory.wake()

    def context(
        self,
        question: str | Query | None = None,
        *,
        budget: int | None = None,
        preset: str | Preset | None = None,
        format: str | Format | None = None,  # noqa: A002 - the word for it
        max_messages: int | None = None,
        max_tokens: int | None = None,
        time_window: str | timedelta | None = None,
        files: Sequence[str] | None = None,
        trace: bool = False,
        **filters: Any,
    ) -> Context:
        """A block for the agent's prompt: static facts, facts that bear on the question, and conversation, as data.

        Without a question it holds what is known whatever is asked: profile, files, the surest facts, the latest turns.

        Args:
            question: text, or a :class:`~everlong.records.Query`.
            budget: tokens, 100 to 8000; default: the setting ``max_injection_tokens``, 2000. It is never exceeded.
            preset: ``default``, ``deerflow``, ``vector``, ``three-layer`` or a preset of your own; default: the setting.
            format: ``deerflow``, ``marked``, ``layers`` (the last two also with ``-zh``), ``json`` or one of your own.
            max_messages: so many of the latest turns at most (10); 0 shows none.
            max_tokens: tokens of them at most (2000).
            time_window: how old they are at most (``"7d"``).
            files: memory files that are always shown; a path that ends in ``/`` means all below it.
            trace: stores the trace, so that other processes can explain it too; a write.
            filters: fields of :class:`~everlong.records.Query`, as in :meth:`recall`.

        Raises:
            InvalidInput: an option or filter is unknown or malformed.
        """
        budget = self._memory.parts.budget if budget is None else budget
        if not isinstance(budget, int) or not 100 <= budget <= 8000:  # noqa: PLR2004 - the documented range
            msg = f"budget is {budget!r}; it must be 100 to 8000 tokens"
            raise InvalidInput(msg)
        usual = self._memory.parts.preset
        chosen = usual if preset is None else replace(preset_of(preset), shares=usual.shares)
        chosen = adapted(
            chosen,
            format=format,
            max_messages=max_messages,
            max_tokens=max_tokens,
            time_window=time_window,
            files=files,
        )
        query = self._query("" if question is None else question, {**chosen.filters, **filters})
        return self._run("context", self._context, query=query, budget=budget, preset=chosen, trace=trace)

    def _context(self, *, query: Query, budget: int, preset: Preset, trace: bool) -> Context:
        parts = self._memory.parts
        epochs = parts.traces.epochs(self.scope)
        context = parts.reader.context(self.scope, query, budget=budget, preset=preset)
        if context.trace is not None:
            recall = Recall(hits=context.hits, trace=context.trace)
            self._asked(recall, epochs, injected=bool(context.text), durable=trace)
        return context

    def _query(self, question: str | Query, filters: Mapping[str, Any]) -> Query:
        """The question in the users' zone, unless it names another."""
        return _query(question, {"zone": self._memory.parts.zone, **filters})

    def explain(self, trace_id: str) -> Trace:
        """Why a recall found what it found: every candidate, its score parts, and why it was kept or dropped.

        The latest 1,000 of this process are known, and those stored because the call said ``trace=True`` or by the
        setting ``trace_sample``.

        Raises:
            NotFound: no such trace of this scope.
        """
        return self._run("explain", self._memory.parts.traces.get, scope=self.scope, trace_id=trace_id)

    def traces(self, *, limit: int = 20) -> tuple[Trace, ...]:
        """The latest traces that can be explained here, newest first."""
        return self._run("explain", self._memory.parts.traces.latest, scope=self.scope, limit=limit)

    def explanation(self, trace_id: str) -> Explanation:
        """:meth:`explain` as a person reads it: with the candidates' texts as they stand now, what the block left out,
        and the stages in order. Raises :class:`~everlong.errors.NotFound`."""
        return self._run("explain", self._explanation, trace_id=trace_id)

    def _explanation(self, *, trace_id: str) -> Explanation:
        trace = self._memory.parts.traces.get(self.scope, trace_id)
        with self._store.read() as tx:
            return explained(tx, self.scope, trace)

    def replay(self, trace_id: str, **changes: Any) -> Replay:
        """Asks the question of a trace again with other settings, as at the time of the trace, and compares.

        ``changes`` are fields of :class:`~everlong.records.Query`, such as ``limit`` or ``min_score``. Memory is asked
        as it is now; ``as_of=trace.at`` asks it as it was then. Nothing is counted or stored.

        Raises:
            NotFound: no such trace of this scope. InvalidInput: a setting is unknown or malformed.
        """
        return self._run("explain", self._replay, trace_id=trace_id, changes=changes)

    def _replay(self, *, trace_id: str, changes: Mapping[str, Any]) -> Replay:
        before = self._memory.parts.traces.get(self.scope, trace_id)
        after = self._memory.parts.reader.recall(before.scope, varied(before, changes)).trace
        with self._store.read() as tx:
            return compared(tx, self.scope, before, after, changes)


def _query(question: str | Query, filters: Mapping[str, Any]) -> Query:
    if isinstance(question, Query):
        return question
    if not isinstance(question, str):
        msg = f"a question must be text, not {type(question).__name__}"
        raise InvalidInput(msg)
    try:
        return Query(text=question, **filters)
    except TypeError as error:
        known = ", ".join(name for name in Query.__slots__ if name != "text")
        msg = f"{error}; filters are {known}"
        raise InvalidInput(msg) from None
