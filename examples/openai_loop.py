"""A chat loop of your own over OpenAI's client, or any endpoint that speaks as OpenAI does.

OPENAI_API_KEY=… EXAMPLE_MODEL=gpt-4o-mini python examples/openai_loop.py
"""

from __future__ import annotations

import os
from typing import Any

from openai import OpenAI

from everlong import Memory, Scope, open_memory

RULES = "You are a helpful cook."


def turn(memory: Memory, scope: Scope, client: OpenAI, messages: list[Any], text: str) -> str:
    """One turn: ask memory before the call, keep what was said after it. ``scope`` comes from your login."""
    here = (scope.session,)  # the model sees the present conversation anyway
    known = memory.at(scope.home).context(text, exclude_sessions=here).text
    messages.append({"role": "user", "content": text})
    asked = [{"role": "system", "content": f"{RULES}\n\n{known}".strip()}, *messages]
    done = client.chat.completions.create(model=os.environ.get("EXAMPLE_MODEL", "gpt-4o-mini"), messages=asked)
    messages.append({"role": "assistant", "content": done.choices[0].message.content})
    memory.at(scope).add(messages)  # all of it each time: what is kept already is known again
    return messages[-1]["content"]


def main(client: OpenAI | None = None) -> None:
    client = client or OpenAI()
    with open_memory("sqlite://") as memory:
        for session, text in (("monday", "I'm allergic to peanuts."), ("thursday", "Are peanuts fine on noodles?")):
            print(f"[{session}] ann: {text}")
            print(f"[{session}] cook: {turn(memory, Scope(user='ann', session=session), client, [], text)}")
            memory.drain()  # learn now; an application that keeps running does it in the background


if __name__ == "__main__":
    main()
