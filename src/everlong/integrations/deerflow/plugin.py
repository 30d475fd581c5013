"""DeerFlow's plug-in: ``memory.manager_class: everlong.integrations.deerflow:EverlongMemoryManager``.

DeerFlow loads this by its dotted path, so its own module is there by then: its base class and its errors are taken from
it where they are, and nothing of it is imported.
"""

from __future__ import annotations

import logging
import sys
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, ClassVar, Final, ParamSpec, Self, TypeVar, cast

from anyio import to_thread

from everlong.config import build, load_settings
from everlong.errors import Conflict, EverlongError, InvalidInput, NotFound, StoreError
from everlong.integrations.deerflow.calls import DocumentCalls, MemoryUpdateQueue
from everlong.integrations.deerflow.config import MemoryConfig
from everlong.integrations.deerflow.document import document, entry_of
from everlong.integrations.deerflow.prompt import BODY
from everlong.models.langchain import as_chat_model
from everlong.records import TIMED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from everlong.memory import Memory

__all__ = ["EverlongMemoryManager", "MemoryConflictError", "MemoryCorruptionError", "MemoryManagerError"]

_log = logging.getLogger("everlong.deerflow")
P = ParamSpec("P")
T = TypeVar("T")
_HOST: Final[Any] = sys.modules.get("deerflow.agents.memory.manager")

if _HOST is not None:
    _Base: Any = getattr(_HOST, "MemoryManager", object)
    MemoryManagerError: Any = _HOST.MemoryManagerError
    MemoryConflictError: Any = _HOST.MemoryConflictError
    MemoryCorruptionError: Any = _HOST.MemoryCorruptionError
else:
    _Base = object

    class _MemoryManagerError(Exception):
        """Root of what a memory manager raises."""

    class _MemoryConflictError(_MemoryManagerError):
        """Others changed the memory meanwhile (HTTP 409)."""

    class _MemoryCorruptionError(_MemoryManagerError):
        """The store cannot be read (HTTP 500)."""

    MemoryManagerError = _MemoryManagerError
    MemoryConflictError = _MemoryConflictError
    MemoryCorruptionError = _MemoryCorruptionError


def _told(call: Callable[P, T]) -> Callable[P, T]:
    """``call`` with its errors as the host knows them; ``ValueError`` and ``KeyError`` are its 400 and 404."""

    @wraps(call)
    def telling(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return call(*args, **kwargs)
        except Conflict as error:
            raise MemoryConflictError(str(error)) from error
        except NotFound as error:
            raise KeyError(str(error)) from error
        except InvalidInput:
            raise
        except StoreError as error:
            raise MemoryCorruptionError(str(error)) from error
        except EverlongError as error:
            raise MemoryManagerError(str(error)) from error

    return telling


class EverlongMemoryManager(_Base):  # type: ignore[misc]
    """Memory for DeerFlow. Documents are in DeerMem's shape; every ``user_id`` comes from the host.

    Made by :meth:`from_config`, or round a memory of yours with :meth:`over`.
    """

    supports_search: ClassVar[bool] = True
    requires_passive_writes_in_tool_mode: ClassVar[bool] = False

    calls: ClassVar[DocumentCalls]  # set on each instance, past the host's own checks of fields
    mode: ClassVar[str]

    @classmethod
    def from_config(
        cls, backend_config: Mapping[str, Any] | None, *, mode: str = "middleware", **host_hooks: Any
    ) -> Self:
        """Opens memory with ``memory.backend_config``: DeerFlow's keys, and any setting of everlong.

        ``host_llm`` (a LangChain model, or a function that makes one) extracts when the settings name no model; without
        both, built-in rules do. Other hooks are taken and not needed.

        Raises:
            ConfigError: a setting is wrong. StoreError: the store cannot be opened.
        """
        config = MemoryConfig.read({**(backend_config or {}), "mode": mode})
        if config.storage_path:
            _log.warning(
                "memory.storage_path %s is not read any more: bring it in with import_memory", config.storage_path
            )
        values, hook = config.settings(), host_hooks.get("host_llm")
        if hook is None or "model" in values:
            return cls.over(build(load_settings(**values)), config)
        model = hook() if callable(hook) and not hasattr(hook, "invoke") and not hasattr(hook, "complete") else hook
        values |= {"extractor": "llm"}
        return cls.over(build(load_settings(**values), chat_model=as_chat_model(model)), config)

    @classmethod
    def over(cls, memory: Memory, config: MemoryConfig | None = None) -> Self:
        """A manager over an open memory."""
        made = cls()
        calls = DocumentCalls(memory, config)
        object.__setattr__(made, "calls", calls)
        object.__setattr__(made, "mode", calls.config.mode)
        return made

    # ------------------------------------------------------------------------------------- what every manager has

    @_told
    def add(
        self,
        thread_id: str,
        messages: Iterable[Any],
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
        trace_id: str | None = None,
    ) -> None:
        """Keeps what was said, durably; it is learned from once the conversation pauses."""
        del trace_id
        MemoryUpdateQueue(self.calls).add(thread_id, messages, agent_name, user_id)

    @_told
    def add_nowait(
        self,
        thread_id: str,
        messages: Iterable[Any],
        *,
        agent_name: str | None = None,
        user_id: str | None = None,
        trace_id: str | None = None,
    ) -> None:
        """:meth:`add`, and learns from it now: the host is about to summarise it away."""
        del trace_id
        MemoryUpdateQueue(self.calls).add_nowait(thread_id, messages, agent_name, user_id)

    @_told
    def get_context(self, user_id: str | None, *, agent_name: str | None = None, thread_id: str | None = None) -> str:
        """What is known, for the prompt: profile, history, the surest facts. Empty when there is nothing to say, or
        injection is off. In tool mode without facts, which the agent looks up itself."""
        del thread_id
        config = self.calls.config
        if not config.enabled or not config.injection_enabled:
            return ""
        block = self.calls.at(user_id, agent_name).context(
            preset="deerflow", format=BODY, budget=config.max_injection_tokens
        )
        return block.stable.strip() if config.mode == "tool" else block.text

    @_told
    def search(
        self,
        query: str,
        top_k: int = 5,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
        category: str | None = None,
    ) -> list[dict[str, Any]]:
        """Facts that bear on ``query``, best first, each an entry of the document with its ``score`` (0 to 1)."""
        found = self.calls.at(user_id, agent_name).recall(
            query, kinds=("fact",), limit=top_k, categories=(category,) if category else ()
        )
        return [{**entry_of(cast("Any", hit.record)), "score": hit.score} for hit in found.hits]

    async def aadd(self, thread_id: str, messages: Iterable[Any], **whose: Any) -> None:
        """The async twin of :meth:`add`."""
        await to_thread.run_sync(partial(self.add, thread_id, messages, **whose))

    async def aget_context(self, user_id: str | None, **whose: Any) -> str:
        """The async twin of :meth:`get_context`."""
        return await to_thread.run_sync(partial(self.get_context, user_id, **whose))

    async def asearch(self, query: str, top_k: int = 5, **whose: Any) -> list[dict[str, Any]]:
        """The async twin of :meth:`search`."""
        return await to_thread.run_sync(partial(self.search, query, top_k, **whose))

    # -------------------------------------------------------------------------------------------------- documents

    @_told
    def get_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        """The document."""
        return self.calls.get_memory(user_id=user_id, agent_name=agent_name)

    export_memory = get_memory
    reload_memory = get_memory

    @_told
    def import_memory(
        self, memory_data: dict[str, Any], *, user_id: str | None = None, agent_name: str | None = None
    ) -> dict[str, Any]:
        """Replaces the document, whole or not at all."""
        return self.calls.import_memory(memory_data, user_id=user_id, agent_name=agent_name)

    @_told
    def clear_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        """Empties the document; history stays until :meth:`delete_memory`."""
        return self.calls.clear_memory(user_id=user_id, agent_name=agent_name)

    @_told
    def delete_memory(self, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        """Erases all that is kept there for good: facts, history, conversations, traces. Returns the empty document."""
        scoped = self.calls.at(user_id, agent_name)
        scoped.erase()
        return document(scoped)

    @_told
    def create_fact(
        self,
        content: str,
        category: str = "context",
        confidence: float = 0.5,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
    ) -> tuple[dict[str, Any], str | None]:
        """Stores a fact; returns the document and the fact's id, ``None`` while it waits for a person."""
        return self.calls.create_memory_fact(content, category, confidence, user_id=user_id, agent_name=agent_name)

    @_told
    def update_fact(
        self,
        fact_id: str,
        content: str | None = None,
        category: str | None = None,
        confidence: float | None = None,
        *,
        user_id: str | None = None,
        agent_name: str | None = None,
    ) -> dict[str, Any]:
        """Changes a fact. Raises ``KeyError`` when the document has none of that id."""
        return self.calls.update_memory_fact(
            fact_id, content, category, confidence, user_id=user_id, agent_name=agent_name
        )

    @_told
    def delete_fact(self, fact_id: str, *, user_id: str | None = None, agent_name: str | None = None) -> dict[str, Any]:
        """Retires a fact. Raises ``KeyError`` when the document has none of that id."""
        return self.calls.delete_memory_fact(fact_id, user_id=user_id, agent_name=agent_name)

    # ------------------------------------------------------------------------------------------------ life and hooks

    def warm(self) -> None:
        """Loads the embedder before the first question, if there is one."""
        embedder = self.calls.memory.parts.embedder
        if embedder is not None:
            embedder.embed(["warm"])

    def on_pre_compress(self, thread_id: str, messages: Iterable[Any], **whose: Any) -> None:
        """Keeps what the host is about to summarise away."""
        self.add_nowait(thread_id, messages, **whose)

    def on_turn_start(self, *args: Any, **whose: Any) -> None:
        """Nothing to do: each question reads what is stored then."""

    def shutdown_flush(self, timeout: float = 30.0) -> bool:
        """Learns from what this process took in, for ``timeout`` seconds at most; false when some of it is left to the next
        worker, in the store."""
        parts = self.calls.memory.parts
        accepted = parts.writer.accepted
        parts.worker.finish(accepted, timeout)
        with parts.store.read() as tx:
            return not any(
                job.scope == place and job.kind not in TIMED for place in accepted for job in tx.jobs.list(place)
            )

    def close(self) -> None:
        """Ends the memory. What it took in is extracted first, for the setting's ``shutdown_flush_timeout_seconds``."""
        self.calls.memory.close(timeout=self.calls.config.shutdown_flush_timeout_seconds)
