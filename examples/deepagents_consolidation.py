"""Past conversations, searched by the agent itself, and tidied up by a second agent in the background.

EXAMPLE_MODEL=openai:gpt-4o-mini python examples/deepagents_consolidation.py
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from deepagents import create_deep_agent
from langchain.chat_models import init_chat_model
from langchain.tools import ToolRuntime, tool

from everlong import open_memory
from everlong.integrations.deepagents import EverlongBackend
from everlong.integrations.identity import scope_of
from everlong.integrations.langchain import EverlongMiddleware

TIDY = "Look at the latest conversations. Merge what is new into /memories/AGENTS.md, delete what is outdated, stay concise."


@dataclass
class Who:
    user_id: str


def main(model: Any = None) -> None:
    model = model or init_chat_model(os.environ["EXAMPLE_MODEL"])
    with open_memory("sqlite://") as memory:
        backend = EverlongBackend(memory, agent="helper")

        @tool
        def search_recent_conversations(query: str, runtime: ToolRuntime[Any, Any]) -> str:
            """What was said in the last six hours."""
            since = datetime.now(UTC) - timedelta(hours=6)
            found = memory.at(scope_of(runtime).home).recall(query, kinds=("message",), since=since, limit=20)
            return "\n".join(f"- {hit.at:%H:%M} {hit.text}" for hit in found.hits) or "nothing"

        helper = create_deep_agent(
            model,
            memory=["/memories/AGENTS.md"],
            backend=backend,
            middleware=[EverlongMiddleware(memory, tools=("search_past_conversations",))],
            context_schema=Who,
        )
        tidier = create_deep_agent(
            model, system_prompt=TIDY, tools=[search_recent_conversations], backend=backend, context_schema=Who
        )

        def ask(text: str, *, thread: str) -> None:
            config = {"configurable": {"thread_id": thread}}
            answer = helper.invoke({"messages": [("user", text)]}, config, context=Who("ann"))
            print(f"[{thread}] ann: {text}\n[{thread}] helper: {answer['messages'][-1].text}")

        ask("My blue bicycle has a flat tyre.", thread="monday")
        # A scheduler runs this every six hours (cron "0 */6 * * *"), or half an hour after the last message.
        tidier.invoke({"messages": [("user", "Consolidate recent memory.")]}, context=Who("ann"))
        ask("What was wrong with my bicycle?", thread="thursday")


if __name__ == "__main__":
    main()
