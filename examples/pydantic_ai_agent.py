"""PydanticAI: a function of the instructions says what is known, and each run's words are kept.

OPENAI_API_KEY=… EXAMPLE_MODEL=openai:gpt-4o-mini python examples/pydantic_ai_agent.py
"""

from __future__ import annotations

import asyncio
import os
from dataclasses import dataclass
from typing import Any

from pydantic_ai import Agent, RunContext

from everlong import Scope, open_memory
from everlong.aio import AsyncMemory


@dataclass(frozen=True)
class Deps:
    """What a run is given; ``scope`` comes from your login."""

    memory: AsyncMemory
    scope: Scope


# PydanticAI sends traces nowhere unless you call Agent.instrument_all() or name an instrumentation; this example does not.
agent = Agent(deps_type=Deps, instructions="You are a helpful cook.", defer_model_check=True)


@agent.instructions
async def known(run: RunContext[Deps]) -> str:
    asked = run.prompt if isinstance(run.prompt, str) else None
    home = run.deps.memory.at(run.deps.scope.home)
    return (await home.context(asked, exclude_sessions=(run.deps.scope.session,))).text


async def turn(memory: AsyncMemory, scope: Scope, model: Any, text: str, history: Any = None) -> Any:
    """One turn; its ``all_messages()`` is the ``history`` of the next."""
    done = await agent.run(text, model=model, deps=Deps(memory, scope), message_history=history)
    await memory.at(scope).add([("user", text), ("assistant", str(done.output))], idempotency_key=done.run_id)
    return done


async def main(model: Any = None) -> None:
    model = model or os.environ.get("EXAMPLE_MODEL", "openai:gpt-4o-mini")
    async with AsyncMemory(open_memory("sqlite://")) as memory:
        for session, text in (("monday", "I'm allergic to peanuts."), ("thursday", "Are peanuts fine on noodles?")):
            done = await turn(memory, Scope(user="ann", session=session), model, text)
            print(f"[{session}] ann: {text}\n[{session}] cook: {done.output}")
            await memory.drain()  # learn now; an application that keeps running does it in the background


if __name__ == "__main__":
    asyncio.run(main())
