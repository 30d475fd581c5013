"""What was said: keeping it, showing it, and having it learned from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from everlong.memory.view import View

if TYPE_CHECKING:
    from collections.abc import Iterable

    from everlong.records import (
        Added,
        Message,
        Page,
        Session,
    )

__all__ = ["Conversation"]


class Conversation(View):
    """Operations on conversations."""

    def add(self, messages: Iterable[Any], *, idempotency_key: str = "") -> Added:
        """Keeps what was said, durably, and returns at once; facts are extracted in the background.

        ``messages`` are dicts (``role``, ``content``, optional ``id``, ``name``, ``created_at``), ``(role, text)``
        pairs, LangChain messages or :class:`~everlong.records.Message`. User input and final answers are kept; tool
        noise, system text and injected memory are not, and the result says so. Giving the same messages again adds
        nothing. ``idempotency_key`` names this call, so that it may be made again at any time and adds only what is
        missing, and so that the same words under another key count as said again.

        Raises:
            InvalidScope: the scope names no session.
            Overloaded: too much waits for extraction already; nothing was stored, try again later.
            InvalidInput: a message has no known role or shape; nothing was stored.
            TooLarge: a message is over the limit; nothing was stored.
            Conflict: ``idempotency_key`` was used before for other words; nothing was stored.
        """
        return self._run("add", self._add, messages=messages, idempotency_key=idempotency_key)

    def _add(self, *, messages: Iterable[Any], idempotency_key: str) -> Added:
        added = self._writer.add(self.scope, messages, by=self.by, idempotency_key=idempotency_key)
        if added.status == "queued":
            self._memory.wake()
        return added

    def messages(self, *, limit: int = 50) -> tuple[Message, ...]:
        """The latest messages, oldest first: of this conversation if the scope names one, else of all."""
        return self._run("messages", self._messages, limit=limit)

    def _messages(self, *, limit: int) -> tuple[Message, ...]:
        with self._store.read() as tx:
            if self.scope.session:
                return tx.messages.tail(self.scope, limit=limit)
            return tx.messages.recent(self.scope, limit=limit)

    def sessions(self, *, cursor: str = "", limit: int = 100) -> Page[Session]:
        """The user's conversations, latest first."""
        return self._run("sessions", self._sessions, cursor=cursor, limit=limit)

    def _sessions(self, *, cursor: str, limit: int) -> Page[Session]:
        with self._store.read() as tx:
            return tx.sessions.list(self.scope, cursor=cursor, limit=limit)

    def flush(self) -> int:
        """Makes the work that waits within this scope due now, as when a task is finished; returns how many jobs.

        It is done in the background, right after the present job; :meth:`everlong.memory.Memory.drain` waits for it.
        """
        return self._run("flush", self._flush)

    def _flush(self) -> int:
        hurried = self._writer.flush(self.scope)
        self._memory.wake()
        return hurried

    def clear(self) -> int:
        """Drops the work that waits within this scope: what was said so far is never extracted, not even by a worker
        that is reading it just now. Messages and facts stay; what is said from now on is extracted as ever.

        Returns how many conversations were cleared.
        """
        return self._run("clear", self._clear)

    def _clear(self) -> int:
        return self._writer.clear(self.scope, by=self.by)
