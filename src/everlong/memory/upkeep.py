"""Looking after the memory of a scope."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from everlong.write.apply import name_of

if TYPE_CHECKING:
    from everlong.memory.scoped import ScopedMemory
    from everlong.records import Fact, Upkept, ValueReport

__all__ = ["Upkeep"]

_QUESTIONS: Final = 500
"""Traces of the latest questions that the hit rate is counted over."""


class Upkeep:
    """What keeps memory small and true: old records go, facts that are over are retired, equal ones merged, silent ones
    reviewed, summaries move on with time. The background does it by itself for every memory that changed.

    It is done at the scope less its session. Every change of a fact is in the journal with its reason, and what was
    retired can be restored with ``memory.restore``; what a person restored is not touched again.
    """

    def __init__(self, scoped: ScopedMemory) -> None:
        self._scope, self._by, self._run, self._memory = scoped.scope.home, scoped.by, scoped._run, scoped._memory
        self._upkeep = scoped._memory.parts.upkeep

    def preview(self) -> Upkept:
        """What :meth:`run` would do now. Changes nothing and asks no model, so it tells of models only what they would
        be asked about."""
        return self._run("upkeep_preview", partial(self._upkeep.run, self._scope, preview=True))

    def run(self) -> Upkept:
        """Does what is due now, in this thread, a bounded number of changes of each kind; the result says what and why.

        A model that fails, or others who keep changing the same memory, leave something for the next run; the result
        has a ``skip`` for it.
        """
        return self._run("upkeep", partial(self._upkeep.run, self._scope, by=name_of(self._by)))

    def report(self) -> ValueReport:
        """What the facts are worth: used, never recalled, outdated, contradicted, the same; how many of the latest
        questions found anything (those of this process, and stored traces); and suggestions, each with an id."""
        return self._run("upkeep_report", self._report)

    def _report(self) -> ValueReport:
        self._memory.parts.uses.store(self._memory.parts.store)
        traces = self._memory.parts.traces.latest(self._scope, limit=_QUESTIONS)
        found = sum(any(each.kept for each in trace.considered) for trace in traces)
        return self._upkeep.report(self._scope, questions=len(traces), answered=found)

    def apply(self, suggestion_id: str) -> tuple[Fact, ...]:
        """Does what a suggestion of the report says; returns the facts it touched, as they are now.

        Raises:
            NotFound: the present report has no such suggestion (any more).
            Conflict: others keep changing these facts.
        """
        follow = partial(self._upkeep.follow, self._scope, by=self._by)
        return self._run("upkeep_apply", follow, suggestion_id=suggestion_id)
