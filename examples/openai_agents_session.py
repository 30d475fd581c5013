"""OpenAI Agents SDK: its session is a conversation of the memory, and instructions say what is known.

OPENAI_API_KEY=… EXAMPLE_MODEL=gpt-4o-mini python examples/openai_agents_session.py
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from agents import Agent, RunContextWrapper, Runner, set_tracing_disabled

from everlong import Memory, Scope, open_memory
from everlong.integrations.openai_agents import EverlongSession

# The SDK traces every run, with all prompts, to OpenAI's servers unless it is told not to. Memory is in those prompts.
set_tracing_disabled(True)


async def instructions(run: RunContextWrapper[EverlongSession], _: Agent[EverlongSession]) -> str:
    return f"You are a helpful cook.\n\n{await run.context.known(run.turn_input)}".strip()


async def turn(memory: Memory, scope: Scope, model: Any, text: str) -> str:
    """``scope`` comes from your login."""
    session = EverlongSession(memory, scope)
    agent = Agent[EverlongSession](name="cook", instructions=instructions, model=model)
    return (await Runner.run(agent, text, session=session, context=session)).final_output


async def main(model: Any = None) -> None:
    model = model or os.environ.get("EXAMPLE_MODEL", "gpt-4o-mini")
    with open_memory("sqlite://") as memory:
        for session, text in (("monday", "I'm allergic to peanuts."), ("thursday", "Are peanuts fine on noodles?")):
            print(f"[{session}] ann: {text}")
            print(f"[{session}] cook: {await turn(memory, Scope(user='ann', session=session), model, text)}")
            memory.drain()  # learn now; an application that keeps running does it in the background


if __name__ == "__main__":
    asyncio.run(main())
