"""An async chat loop of your own over Anthropic's client.

ANTHROPIC_API_KEY=… EXAMPLE_MODEL=claude-haiku-4-5 python examples/anthropic_loop.py
"""

from __future__ import annotations

import asyncio
import os
from typing import Any

from anthropic import AsyncAnthropic

from everlong import Scope, open_memory
from everlong.aio import AsyncMemory

RULES = "You are a helpful cook."


async def turn(memory: AsyncMemory, scope: Scope, client: AsyncAnthropic, messages: list[Any], text: str) -> str:
    """One turn: ask memory before the call, keep what was said after it. ``scope`` comes from your login."""
    here = (scope.session,)  # the model sees the present conversation anyway
    known = await memory.at(scope.home).context(text, exclude_sessions=here)
    messages.append({"role": "user", "content": text})
    steady = {"type": "text", "text": f"{RULES}\n\n{known.stable}".strip(), "cache_control": {"type": "ephemeral"}}
    system = [steady, {"type": "text", "text": known.relevant}] if known.relevant else [steady]
    model = os.environ.get("EXAMPLE_MODEL", "claude-haiku-4-5")
    done = await client.messages.create(model=model, max_tokens=1000, system=system, messages=messages)
    answer = "".join(block.text for block in done.content if block.type == "text")
    messages.append({"role": "assistant", "content": answer})
    await memory.at(scope).add(messages)  # all of it each time: what is kept already is known again
    return answer


async def main(client: AsyncAnthropic | None = None) -> None:
    client = client or AsyncAnthropic()
    async with AsyncMemory(open_memory("sqlite://")) as memory:
        for session, text in (("monday", "I'm allergic to peanuts."), ("thursday", "Are peanuts fine on noodles?")):
            print(f"[{session}] ann: {text}")
            print(f"[{session}] cook: {await turn(memory, Scope(user='ann', session=session), client, [], text)}")
            await memory.drain()  # learn now; an application that keeps running does it in the background


if __name__ == "__main__":
    asyncio.run(main())
