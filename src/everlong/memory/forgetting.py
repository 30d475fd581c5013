"""Forgetting: one fact, a topic wherever it is told, or everything."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everlong.memory.view import View
from everlong.records import Forgotten
from everlong.write.forget import THRESHOLD

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everlong.records import Receipt, Topic, TopicForgotten

__all__ = ["Forgetting"]


class Forgetting(View):
    """Operations that take something out of memory."""

    def forget(self, fact_id: str, *, reason: str = "asked to forget") -> Forgotten:
        """Retires one fact: no recall and no prompt shows it again. Its history stays until erased.

        ``mentions`` of the result are the other places that tell of it: the turns that it was learned from, and whatever
        uses its names or half of its words. They are reported and not changed; :meth:`forget_topic` changes them.

        Raises:
            NotFound: no such fact.
        """
        return self._run("forget", self._forget, fact_id=fact_id, reason=reason)

    def _forget(self, **fields: Any) -> Forgotten:
        fact = self._writer.forget(self.scope, by=self.by, **fields)
        return Forgotten(fact=fact, mentions=self._memory.parts.forgetter.mentions(self.scope, fact))

    def forget_preview(self, topic: str, *, threshold: float = THRESHOLD) -> Topic:
        """Everything of this user that tells of ``topic``, and what :meth:`forget_topic` would take out: facts of any
        status, turns, clauses of the profile, its attributes, lines of memory files, and what waits for review.

        What names the topic has the score 1; what is near its meaning has less, from ``threshold`` (above 0, 1 at most)
        on. Changes nothing.

        Raises:
            EmptyText: nothing is left of the topic. InvalidInput: the threshold is none.
        """
        preview = self._memory.parts.forgetter.preview
        return self._run(
            "forget_preview",
            lambda **given: preview(self.scope, given["topic"], threshold=given["threshold"]),
            topic=topic,
            threshold=threshold,
        )

    def forget_topic(
        self,
        topic: str,
        refs: Sequence[str],
        *,
        threshold: float = THRESHOLD,
        erase: bool = False,
        reason: str = "asked to forget a topic",
    ) -> TopicForgotten:
        """Takes out what a person confirmed: those of ``refs`` (:attr:`~everlong.records.Mention.ref`) that
        :meth:`forget_preview` with the same ``threshold`` finds still.

        Facts are retired. Turns lose their words for good and stay as ``[forgotten]``, so that a conversation that the
        host sends again is not learned again; what the user says anew is. Profiles lose the clauses that name the topic.
        Lines of files go only if they are named. With ``erase`` nothing is left of the facts, nor of what names the topic
        in earlier versions of facts, profile and these files, in the journal, the records of extractions and what waits.
        All in one transaction.

        Raises:
            EmptyText, InvalidInput: see :meth:`forget_preview`; or a file is read-only. Conflict: others changed it
                meanwhile; nothing was changed.
        """
        action = "erase_topic" if erase else "forget_topic"
        given: dict[str, Any] = {
            "topic": topic,
            "refs": tuple(refs),
            "threshold": threshold,
            "erase": erase,
            "reason": reason,
        }
        return self._run(action, self._forget_topic, **given)

    def _forget_topic(self, *, topic: str, **given: Any) -> TopicForgotten:
        forgotten = self._memory.parts.forgetter.apply(self.scope, topic, by=self.by, **given)
        self._drop_read()
        self._memory.wake()
        return forgotten

    def erase(self) -> Receipt:
        """Removes everything kept at or within this scope for good, in one transaction: after a crash all of it is there,
        or nothing. The receipt says how many records of each kind, and is signed if the setting ``signing_key`` is set.

        With a session in the scope: that conversation and what was learned in it.
        """
        return self._run("erase", self._erase)

    def _erase(self) -> Receipt:
        receipt = self._writer.erase(self.scope, by=self.by)
        self._drop_read()
        return receipt

    def _drop_read(self) -> None:
        """Forgets what this process has read of this scope."""
        parts = self._memory.parts
        parts.traces.erase(self.scope)
        parts.uses.forget(self.scope)
        parts.reader.forget(self.scope)
        parts.index.forget(self.scope.home)
