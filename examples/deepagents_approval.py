"""A file that agents may change once a person agrees: the run stops, a person looks, the run goes on.

EXAMPLE_MODEL=openai:gpt-4o-mini python examples/deepagents_approval.py
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from deepagents import create_deep_agent
from langchain.chat_models import init_chat_model
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from everlong import Principal, Scope, open_memory
from everlong.integrations.deepagents import EverlongBackend
from everlong.policy import Rule

ASK = Rule(
    effect="ask",
    reason="what all users see needs a person",
    roles=("agent",),
    actions=("write",),
    paths=("/policies/*",),
)


@dataclass
class Who:
    user_id: str
    org: str = "acme"


def main(model: Any = None) -> None:
    model = model or init_chat_model(os.environ["EXAMPLE_MODEL"])
    with open_memory("sqlite://", rules=[ASK]) as memory:
        agent = create_deep_agent(
            model, backend=EverlongBackend(memory), context_schema=Who, checkpointer=InMemorySaver()
        )
        config = {"configurable": {"thread_id": "monday"}}
        request = {"messages": [("user", "Write /policies/tone.md: we always answer in rhymes.")]}
        stopped = agent.invoke(request, config, context=Who("ann"))
        for waiting in stopped.get("__interrupt__", ()):
            print(f"waits: {waiting.value['action']} {waiting.value['arguments']['path']}: {waiting.value['reason']}")
        agent.invoke(Command(resume={"approved": True, "by": "boss"}), config, context=Who("ann"))
        shared = memory.at(Scope(org="acme"), by=Principal(id="boss", role="operator"))
        for file in shared.files.list():
            print(f"{file.path}: {shared.files.read(file.path).content.decode()}")


if __name__ == "__main__":
    main()
