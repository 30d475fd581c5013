"""LlamaIndex: a ``BaseMemory`` for chat engines and agents.

pip install llama-index-llms-openai; OPENAI_API_KEY=… EXAMPLE_MODEL=gpt-4o-mini python examples/llamaindex_memory.py
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from llama_index.core.chat_engine import SimpleChatEngine
from llama_index.core.llms import ChatMessage, MessageRole
from llama_index.core.memory import BaseMemory
from pydantic import PrivateAttr

from everlong import Memory, Scope, open_memory


class EverlongChatMemory(BaseMemory):
    """One conversation of the memory; what is known of the user stands before it as a system message.

    LlamaIndex runs these methods in threads where it is async itself. It is no ``MemoryBlock``, because a block is given
    only what falls out of the short-term memory: it would not see a conversation that is short.
    """

    _memory: Memory = PrivateAttr()
    _scope: Scope = PrivateAttr()

    def __init__(self, memory: Memory, scope: Scope) -> None:
        super().__init__()
        self._memory, self._scope = memory, scope

    @classmethod
    def from_defaults(cls, **kwargs: Any) -> EverlongChatMemory:
        return cls(kwargs["memory"], kwargs["scope"])

    def get(self, input: str | None = None, **_: Any) -> list[ChatMessage]:  # noqa: A002 - its name there
        said = self.get_all()
        asked = input or next((m.content for m in reversed(said) if m.role == MessageRole.USER), None)
        block = self._memory.at(self._scope.home).context(asked, exclude_sessions=(self._scope.session,))
        return [ChatMessage(block.text, role=MessageRole.SYSTEM), *said] if block.text else said

    def get_all(self) -> list[ChatMessage]:
        return [ChatMessage(m.content, role=m.role) for m in self._memory.at(self._scope).messages()]

    def put(self, message: ChatMessage) -> None:
        self.put_messages([message])

    def put_messages(self, messages: list[ChatMessage]) -> None:
        said = [m for m in messages if m.content]  # a call of a tool may have no words
        self._memory.at(self._scope).add([{"role": m.role.value, "content": m.content} for m in said])

    def set(self, messages: list[ChatMessage]) -> None:
        self.put_messages(messages)  # what is kept already is known again

    def reset(self) -> None:
        """Erases this conversation and what was learned in it; to begin anew and forget nothing, name another session."""
        self._memory.at(self._scope).erase()


async def turn(memory: Memory, scope: Scope, llm: Any, text: str) -> str:
    """``scope`` comes from your login."""
    kept = EverlongChatMemory(memory, scope)
    engine = SimpleChatEngine.from_defaults(llm=llm, memory=kept, system_prompt="You are a helpful cook.")
    return str(await engine.achat(text))


async def main(llm: Any = None) -> None:
    if llm is None:
        from llama_index.llms.openai import OpenAI

        llm = OpenAI(model=os.environ.get("EXAMPLE_MODEL", "gpt-4o-mini"))
    with open_memory("sqlite://") as memory:
        for session, text in (("monday", "I'm allergic to peanuts."), ("thursday", "Are peanuts fine on noodles?")):
            print(f"[{session}] ann: {text}")
            print(f"[{session}] cook: {await turn(memory, Scope(user='ann', session=session), llm, text)}")
            memory.drain()  # learn now; an application that keeps running does it in the background


if __name__ == "__main__":
    asyncio.run(main())
