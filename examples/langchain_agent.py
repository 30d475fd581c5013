"""A LangChain agent that knows its user across conversations.

EXAMPLE_MODEL=openai:gpt-4o-mini python examples/langchain_agent.py
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from langchain.agents import create_agent
from langchain.chat_models import init_chat_model
from langgraph.checkpoint.memory import InMemorySaver

from everlong import open_memory
from everlong.integrations.langchain import EverlongMiddleware


@dataclass
class Who:
    """Whose run it is; it comes from your login, never from the model."""

    user_id: str


def main(model: Any = None) -> None:
    model = model or init_chat_model(os.environ["EXAMPLE_MODEL"])
    with open_memory("sqlite://") as memory:
        agent = create_agent(
            model,
            system_prompt="You are a helpful cook.",
            middleware=[EverlongMiddleware(memory, tools=("search_past_conversations",))],
            context_schema=Who,
            checkpointer=InMemorySaver(),
        )

        def ask(text: str, *, thread: str) -> None:
            config = {"configurable": {"thread_id": thread}}
            answer = agent.invoke({"messages": [("user", text)]}, config, context=Who("ann"))
            print(f"[{thread}] ann: {text}\n[{thread}] agent: {answer['messages'][-1].text}")

        ask("I'm allergic to peanuts.", thread="monday")
        memory.drain()  # learn now; an application that keeps running does it in the background
        ask("What can I put on my noodles?", thread="thursday")


if __name__ == "__main__":
    main()
