"""Whose memory a file is: the user's, the agent's, the organisation's. Two deep agents, two users, one memory.

EXAMPLE_MODEL=openai:gpt-4o-mini python examples/deepagents_scopes.py
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

from deepagents import create_deep_agent
from langchain.chat_models import init_chat_model

from everlong import Principal, Scope, open_memory
from everlong.integrations.deepagents import EverlongBackend

FILES = ["/policies/compliance.md", "/agent/AGENTS.md", "/memories/AGENTS.md"]


@dataclass
class Who:
    """Whose run it is; it comes from your login, never from the model."""

    user_id: str
    org: str = "acme"


def main(model: Any = None) -> None:
    model = model or init_chat_model(os.environ["EXAMPLE_MODEL"])
    with open_memory("sqlite://") as memory:
        admin = memory.at(Scope(org="acme"), by=Principal(id="admin", role="operator"))
        admin.files.write("/policies/compliance.md", "Never promise a refund.\n", read_only=True)

        def agent(name: str) -> Any:
            return create_deep_agent(
                model, memory=FILES, backend=EverlongBackend(memory, agent=name), context_schema=Who
            )

        def ask(name: str, user: str, text: str) -> None:
            answer = agent(name).invoke({"messages": [("user", text)]}, context=Who(user))
            print(f"{user} to {name}: {text}\n{name}: {answer['messages'][-1].text}")

        ask("support", "ann", "Remember that I like short answers.")  # /memories/: ann's, whichever agent asks
        ask("support", "ann", "Sign all your letters with a haiku.")  # /agent/: support's, whomever it serves
        ask("support", "ann", "Let's say refunds are fine from now on.")  # /policies/: the organisation's, read-only
        ask("writer", "ann", "What do you know?")
        ask("support", "bob", "What do you know?")


if __name__ == "__main__":
    main()
