"""LangChain agents that remember: :class:`EverlongMiddleware` for ``create_agent`` and ``create_deep_agent``."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from anyio import to_thread

from everlong.errors import EverlongError, MissingExtra
from everlong.integrations.identity import scope_of
from everlong.records import Context, Principal, Scope

try:
    from langchain.agents.middleware import AgentMiddleware
    from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
except ImportError as missing:  # pragma: no cover - the extra is installed where tests run
    raise MissingExtra("langchain", "EverlongMiddleware") from missing

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence

    from langchain.agents.middleware import AgentState, ModelRequest, ModelResponse
    from langchain_core.messages import AnyMessage
    from langchain_core.tools import BaseTool
    from langgraph.runtime import Runtime

    from everlong.memory import Memory, ScopedMemory

__all__ = ["EverlongMiddleware"]

_log = logging.getLogger("everlong.langchain")
_BREAKPOINTS: Final = 4
"""Cache breakpoints that Anthropic accepts in one request."""


class EverlongMiddleware(AgentMiddleware[Any, Any, Any]):
    """Gives an agent memory of its user: what is known goes into each model call, what is said is kept.

    Memory stands in the system message of the request and never in the agent's state, so that there is one present
    block per call, whatever a checkpointer, a summary, a retry or a stream does. The part that does not depend on
    the question comes first. The user's input is kept when the run starts, the answer when it ends. A fault of
    memory never fails the turn: the agent answers without, and the log says why.

    Args:
        memory: an open memory; it stays yours to close.
        agent: set it to give this agent facts of its own, apart from what all agents know of the user.
        org: the organisation, when the run does not name one.
        identify: says whose run it is; default :func:`everlong.integrations.identity.scope_of`. Raise
            :class:`~everlong.errors.InvalidScope` to keep memory closed.
        budget: tokens of the block; default: the memory's ``max_injection_tokens``.
        inject: put memory into the prompt; without it the agent only has its tools.
        capture: keep what is said.
        tools: any of ``recall_memory``, ``remember``, ``forget``, ``search_past_conversations``, for agents that
            decide themselves when to look. They take no identity: that comes from the run.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        agent: str = "",
        org: str = "",
        identify: Callable[[Runtime[Any]], Scope] | None = None,
        budget: int | None = None,
        inject: bool = True,
        capture: bool = True,
        tools: Collection[str] = (),
    ) -> None:
        from everlong.integrations.langchain_tools import memory_tools

        super().__init__()
        self._memory, self._agent, self._org, self._budget = memory, agent, org, budget
        self._identify, self._inject, self._capture = identify, inject, capture
        self.tools: Sequence[BaseTool] = memory_tools(self._scoped_for_agent, tools)

    # ------------------------------------------------------------------------------------------------------ hooks

    def before_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Keeps the user's input before anything can lose it."""
        self.keep(state["messages"], runtime)

    async def abefore_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """The async twin of :meth:`before_agent`."""
        await to_thread.run_sync(self.before_agent, state, runtime)

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Keeps the final answer."""
        self.keep(state["messages"], runtime)

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """The async twin of :meth:`after_agent`."""
        await to_thread.run_sync(self.after_agent, state, runtime)

    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        """Calls the model with what is known about the user's question."""
        return handler(self._with_memory(request))

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]]
    ) -> ModelResponse[Any]:
        """The async twin of :meth:`wrap_model_call`; recall is over before the answer starts to stream."""
        return await handler(await to_thread.run_sync(self._with_memory, request))

    def keep(self, messages: Sequence[AnyMessage], runtime: Runtime[Any]) -> None:
        """Keeps what was said since the last answer that is known to be kept. Call it yourself before something
        compresses ``messages``; keeping them twice adds nothing."""
        if not self._capture:
            return
        with _never_failing("capture"):
            self._scoped(runtime).add(_unanswered(messages))

    # ------------------------------------------------------------------------------------------------------ steps

    def _with_memory(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        if not self._inject:
            return request
        with _never_failing("recall"):
            question = _question(request.messages)
            if question:
                scoped = self._scoped(request.runtime)
                here = (scoped.scope.session,) if scoped.scope.session else ()
                block = self._memory.at(scoped.scope.home, by=scoped.by).context(
                    question, budget=self._budget, exclude_sessions=here
                )
                if block.text:
                    return request.override(system_message=_extended(request, block))
        return request

    def _scope(self, runtime: Any) -> Scope:
        if self._identify is not None:
            return self._identify(runtime)
        return scope_of(runtime, org=self._org, agent=self._agent)

    def _scoped(self, runtime: Any) -> ScopedMemory:
        return self._memory.at(self._scope(runtime))

    def _scoped_for_agent(self, runtime: Any) -> ScopedMemory:
        """Memory as the agent itself may touch it, by its tools."""
        scope = self._scope(runtime)
        return self._memory.at(scope, by=Principal(id=scope.agent or "agent", role="agent"))


@contextmanager
def _never_failing(step: str) -> Iterator[None]:
    """A fault of memory is logged and goes no further: the agent's turn is worth more."""
    try:
        yield
    except EverlongError as error:
        _log.warning("%s without memory: %s: %s", step, type(error).__name__, error)
    except Exception:  # noqa: BLE001 - a middleware must not fail the call it surrounds
        _log.exception("%s without memory: a fault in everlong", step)


def _unanswered(messages: Sequence[AnyMessage]) -> Sequence[AnyMessage]:
    """From the first message after the last final answer that something was said after; all if there is none."""
    end = len(messages)
    while end and not isinstance(messages[end - 1], HumanMessage):
        end -= 1
    while end and not _is_answer(messages[end - 1]):
        end -= 1
    return messages[end:]


def _is_answer(message: AnyMessage) -> bool:
    return isinstance(message, AIMessage) and not message.tool_calls and bool(message.text.strip())


def _question(messages: Sequence[AnyMessage]) -> str:
    """The user's latest text; messages that a framework made up in the user's name are none."""
    for message in reversed(messages):
        made_up = {"lc_source", "hide_from_ui"} & message.additional_kwargs.keys()
        if isinstance(message, HumanMessage) and not made_up and message.text.strip():
            return message.text
    return ""


def _extended(request: ModelRequest[Any], block: Context) -> SystemMessage:
    """The system message with the block at its end; the steady part is marked for the provider's prompt cache where
    the model takes such marks."""
    present = request.system_message
    if not _takes_cache_marks(request):
        parts = [present.text] if present is not None and present.text else []
        return SystemMessage("\n\n".join([*parts, block.text]))
    blocks: list[Any] = []
    if present is not None:
        blocks = [{"type": "text", "text": present.content}] if isinstance(present.content, str) else [*present.content]
    steady: dict[str, Any] = {"type": "text", "text": block.stable}
    if sum("cache_control" in b for b in blocks if isinstance(b, dict)) < _BREAKPOINTS:
        steady["cache_control"] = {"type": "ephemeral"}
    return SystemMessage(content=[*(b for b in blocks if b != {"type": "text", "text": ""}), steady,
                                  {"type": "text", "text": block.relevant}])  # fmt: skip


def _takes_cache_marks(request: ModelRequest[Any]) -> bool:
    return getattr(request.model, "_llm_type", "") == "anthropic-chat"
