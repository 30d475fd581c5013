"""OpenAI Agents SDK: a conversation of the memory as the SDK's session. Nothing of the SDK is imported."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from everlong.aio import AsyncMemory
from everlong.errors import EmptyText, EverlongError, InvalidScope

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from everlong.memory import Memory
    from everlong.records import Message, Scope

__all__ = ["EverlongSession"]

Item = dict[str, Any]

_log = logging.getLogger("everlong.openai_agents")
_FORGOTTEN: Final = "forgotten"
"""The signal of a turn whose words are gone."""


def _random_key() -> str:
    return uuid4().hex


class EverlongSession:
    """The SDK's ``Session`` protocol over one conversation: ``Runner.run(agent, text, session=EverlongSession(…))``.

    What the user says and what the agent answers is kept, and learned from in the background; tool traffic and
    reasoning is not, so the next run starts from the words alone. Also give it as the run's ``context``, so that
    instructions can ask it for :meth:`known`.

    Args:
        memory: an open memory; it stays yours to close.
        scope: whose conversation it is, from your login, and which; never from a model.
        latest: so many of the latest turns are history when the SDK asks for all.
        new_key: names each call of :meth:`add_items`, so that the same words said again count as said again.

    Raises:
        InvalidScope: the scope names no session.
    """

    session_settings = None
    """The SDK's own setting of how many items it asks for; it may be set."""

    def __init__(
        self, memory: Memory, scope: Scope, *, latest: int = 200, new_key: Callable[[], str] = _random_key
    ) -> None:
        if not scope.session:
            raise InvalidScope("a conversation is needed; name the session in the scope")
        everything = AsyncMemory(memory)
        self._here, self._home = everything.at(scope), everything.at(scope.home)
        self.session_id, self._latest, self._new_key = scope.session, latest, new_key
        self._taken: set[str] = set()

    async def known(self, items: Sequence[Any], *, budget: int | None = None) -> str:
        """What memory holds on the user's latest words in ``items`` (the run's ``turn_input``), from anywhere but this
        conversation; a fault of memory is logged and gives nothing, for the turn is worth more."""
        try:
            block = await self._home.context(_question(items), budget=budget, exclude_sessions=(self.session_id,))
        except EverlongError as error:
            _log.warning("recall without memory: %s: %s", type(error).__name__, error)
            return ""
        return block.text

    async def get_items(self, limit: int | None = None) -> list[Item]:
        """The latest turns, oldest first."""
        said = await self._said(self._latest if limit is None else limit)
        return [{"role": message.role, "content": message.content} for message in said]

    async def add_items(self, items: Iterable[Any]) -> None:
        """Keeps the words of ``items``. Ids are left out: models other than OpenAI's give the same to every answer."""
        words = [{key: value for key, value in dict(item).items() if key != "id"} for item in items]
        await self._here.add(words, idempotency_key=self._new_key())

    async def pop_item(self) -> Item | None:
        """Takes back the latest turn: its words are gone for good. What was learned from it already stays.

        A turn of words that every text has, such as ``What is it?`` or ``是的``, cannot be found by them; its words stay, and
        only this session leaves it out.
        """
        said = await self._said(1)
        if not said:
            return None
        last = said[0]
        self._taken.add(last.id)
        with suppress(EmptyText):
            await self._here.forget_topic(last.content, [f"message {self.session_id} {last.id}"], reason="taken back")
        return {"role": last.role, "content": last.content}

    async def clear_session(self) -> None:
        """Erases this conversation and what was learned in it. To begin anew and forget nothing, name another session."""
        await self._here.erase()

    async def _said(self, limit: int) -> Sequence[Message]:
        if limit < 1:
            return ()
        found: Sequence[Message] = await self._here.messages(limit=limit)
        kept = [each for each in found if _FORGOTTEN not in each.signals and each.id not in self._taken]
        if len(kept) == len(found) or len(found) < limit:
            return kept
        return (await self._said(limit + len(found) - len(kept)))[-limit:]


def _question(items: Sequence[Any]) -> str | None:
    for item in reversed(items):
        if isinstance(item, dict) and item.get("role") == "user":
            content = item.get("content")
            parts = content if isinstance(content, list) else [{"text": content}]
            words = "\n".join(str(part["text"]) for part in parts if isinstance(part, dict) and part.get("text"))
            if words.strip():
                return words
    return None
