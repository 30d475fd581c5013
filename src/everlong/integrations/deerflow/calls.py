"""What DeerFlow's client, gateway and updater call, over one memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from everlong.errors import Conflict, InvalidInput, InvalidScope
from everlong.integrations.deerflow.config import MemoryConfig
from everlong.integrations.deerflow.document import (
    apply_document,
    create_empty_memory,
    document,
    entry_of,
    fact_named,
    revision,
)
from everlong.integrations.deerflow.storage import AGENT_NAME_PATTERN, MemoryStorage
from everlong.records import Principal, Scope

if TYPE_CHECKING:
    from collections.abc import Iterable

    from everlong.memory import Memory, ScopedMemory
    from everlong.records import Added

__all__ = ["DocumentCalls", "MemoryUpdateQueue", "MemoryUpdater", "StoreMemoryStorage"]

_ANYONE: Final = "default"
"""DeerFlow's own name for the user of an installation without logins."""
_HOST: Final = Principal(id="deerflow", role="system")


class DocumentCalls:
    """Documents by (user, agent), with the calls of DeerFlow's client. Every ``user_id`` comes from the host's login.

    Args:
        memory: an open memory; it stays yours to close.
        config: DeerFlow's settings; with ``strict_user_scope`` a call that names no user is refused, else it is of the
            user ``default``.
    """

    def __init__(self, memory: Memory, config: MemoryConfig | None = None) -> None:
        self.memory, self.config = memory, config or MemoryConfig()

    def at(
        self, user_id: str | None = None, agent_name: str | None = None, thread_id: str | None = None
    ) -> ScopedMemory:
        """Memory of a user, with an agent, in a thread.

        Raises:
            InvalidScope: no user is named and scopes are strict, or the agent's name is malformed.
        """
        if not user_id and self.config.strict_user_scope:
            raise InvalidScope("no user is named and strict_user_scope is set: memory is kept closed")
        if agent_name is not None and not AGENT_NAME_PATTERN.fullmatch(agent_name):
            raise InvalidScope(f"agent name {agent_name!r} is not of letters, digits and hyphens")
        scope = Scope(
            org=self.config.org, agent=(agent_name or "").lower(), user=user_id or _ANYONE, session=thread_id or ""
        )
        return self.memory.at(scope, by=_HOST)

    def get_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        """The document."""
        return document(self.at(user_id, agent_name))

    export_memory = get_memory
    reload_memory = get_memory

    def import_memory(
        self, data: dict[str, Any], *, user_id: str | None = None, agent_name: str | None = None
    ) -> dict[str, Any]:
        """Replaces the document. Raises :class:`~everlong.errors.InvalidInput` for one that cannot be stored."""
        return apply_document(self.at(user_id, agent_name), data)

    def clear_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        """Empties the document; what waits to be learned is dropped too, so that nothing comes back later."""
        scoped = self.at(user_id, agent_name)
        scoped.clear()
        return apply_document(scoped, create_empty_memory(self.memory.parts.clock()))

    def create_memory_fact(
        self,
        content: str,
        category: str = "context",
        confidence: float = 0.5,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
    ) -> tuple[dict[str, Any], str | None]:
        """Stores a fact whatever its confidence; returns the document and its id, or that of the fact it says again, or
        ``None`` while it waits for a person.

        Raises:
            InvalidInput: there is no text, the category is unknown or the confidence out of 0 to 1 (a ``ValueError``).
        """
        scoped = self.at(user_id, agent_name)
        _check_confidence(confidence)
        done = scoped.remember(content, category=category)  # sure that it is wished for; how sure it is comes next
        fact = done.fact
        if fact is not None and done.outcome in {"add", "supersede"} and confidence != fact.confidence:
            fact = scoped.revise(fact.id, confidence=confidence)
        shown = entry_of(fact)["id"] if fact is not None and fact.status == "active" else None
        return document(scoped), shown

    def update_memory_fact(
        self,
        fact_id: str,
        content: str | None = None,
        category: str | None = None,
        confidence: float | None = None,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
    ) -> dict[str, Any]:
        """Changes what is given; returns the document.

        Raises:
            NotFound: the document has no such fact. InvalidInput: a value cannot be stored.
        """
        scoped = self.at(user_id, agent_name)
        given = {"content": content, "category": category, "confidence": confidence}
        changes = {name: value for name, value in given.items() if value is not None}
        fact = fact_named(scoped, fact_id)
        if changes:
            scoped.revise(fact.id, expected=fact.version, **changes)
        return document(scoped)

    def delete_memory_fact(
        self, fact_id: str, *, user_id: str | None = None, agent_name: str | None = None
    ) -> dict[str, Any]:
        """Retires a fact; returns the document. Raises :class:`~everlong.errors.NotFound`."""
        scoped = self.at(user_id, agent_name)
        scoped.forget(fact_named(scoped, fact_id).id)
        return document(scoped)

    def get_memory_config(self) -> dict[str, Any]:
        """The settings, less keys and other secrets."""
        names = set(MemoryConfig.model_fields) - {"model", "backend_config"}
        return self.config.model_dump(include=names)

    def get_memory_status(self, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        """``{"config": …, "data": …}``, as the gateway answers."""
        return {
            "config": self.get_memory_config(),
            "data": self.get_memory(user_id=user_id, agent_name=agent_name),
        }


def _check_confidence(value: object) -> None:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value <= 1:
        raise InvalidInput(f"confidence is {value!r}; it must be a number from 0 to 1")


class StoreMemoryStorage(MemoryStorage):
    """DeerFlow's storage contract over the store. A document that was loaded here and changed meanwhile by others is not
    saved over: :meth:`save` returns false, and the caller loads again."""

    def __init__(self, calls: DocumentCalls) -> None:
        self._calls = calls
        self._seen: dict[tuple[str | None, str | None], str] = {}

    def load(self, agent_name: str | None = None, *, user_id: str | None = None) -> dict[str, Any]:
        """The document as it is now."""
        found = self._calls.get_memory(user_id=user_id, agent_name=agent_name)
        self._seen[user_id, agent_name] = revision(found)
        return found

    def reload(self, agent_name: str | None = None, *, user_id: str | None = None) -> dict[str, Any]:
        """The same as :meth:`load`: there is no cache that could be stale."""
        return self.load(agent_name, user_id=user_id)

    def save(self, memory_data: dict[str, Any], agent_name: str | None = None, *, user_id: str | None = None) -> bool:
        """Keeps the document; false if others changed it since it was loaded here."""
        scoped = self._calls.at(user_id, agent_name)
        try:
            landed = apply_document(scoped, memory_data, expected=self._seen.get((user_id, agent_name)))
        except Conflict:
            return False
        self._seen[user_id, agent_name] = revision(landed)
        return True


class MemoryUpdateQueue:
    """DeerFlow's queue over the durable jobs: what is added survives a crash, and no timer runs here. Signals are found in
    the messages themselves, so the two flags are taken and change nothing."""

    def __init__(self, calls: DocumentCalls) -> None:
        self._calls = calls

    def add(
        self,
        thread_id: str,
        messages: Iterable[Any],
        agent_name: str | None = None,
        user_id: str | None = None,
        correction_detected: bool = False,  # noqa: FBT001, FBT002 - DeerFlow's signature
        reinforcement_detected: bool = False,  # noqa: FBT001, FBT002
    ) -> Added | None:
        """Keeps the messages; they are learned from once the conversation pauses. ``None`` when memory is off."""
        del correction_detected, reinforcement_detected
        if not self._calls.config.enabled:
            return None
        return self._calls.at(user_id, agent_name, thread_id).add(messages)

    def add_nowait(
        self, thread_id: str, messages: Iterable[Any], agent_name: str | None = None, user_id: str | None = None
    ) -> Added | None:
        """:meth:`add` without the pause, as before messages are summarised away."""
        added = self.add(thread_id, messages, agent_name, user_id)
        if added is not None:
            self._calls.at(user_id, agent_name, thread_id).flush()
        return added

    @property
    def pending_count(self) -> int:
        """Jobs that wait."""
        return self._calls.memory.status().waiting

    @property
    def is_processing(self) -> bool:
        """Whether some worker is at it."""
        return self._calls.memory.status().running > 0

    def flush(self, timeout: float = 60.0) -> int:
        """Does all that waits, here and now; returns how many jobs."""
        return self._calls.memory.drain(timeout)


class MemoryUpdater:
    """Learns from a conversation at once, in this thread."""

    def __init__(self, calls: DocumentCalls) -> None:
        self._calls = calls

    def update_memory(
        self,
        messages: Iterable[Any],
        thread_id: str | None = None,
        agent_name: str | None = None,
        user_id: str | None = None,
        *,
        timeout: float = 60.0,
    ) -> bool:
        """Keeps the messages and extracts from them; false if nothing was new, or extraction failed (it is tried again in
        the background). ``timeout`` is in seconds."""
        scoped = self._calls.at(user_id, agent_name, thread_id or "unknown")
        if not self._calls.config.enabled or scoped.add(messages).status != "queued":
            return False
        self._calls.memory.parts.worker.finish((scoped.scope,), timeout)
        return not any(job.kind == "extract" for job in scoped.jobs())
