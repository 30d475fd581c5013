"""What most commands share: where memory is, whose it is, how it is printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from everlong.memory import Memory, ScopedMemory

Url = Annotated[str | None, typer.Option("--url", help="Where memory is kept, such as sqlite:///memory.db.")]
User = Annotated[str, typer.Option("--user", envvar="EVERLONG_USER", help="Whose memory.")]
Agent = Annotated[str, typer.Option("--agent", help="The agent it belongs to; empty for every agent.")]
Org = Annotated[str, typer.Option("--org", help="The organisation.")]
SessionName = Annotated[str, typer.Option("--session", help="The conversation.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Limit = Annotated[int, typer.Option("--limit", min=1, help="How many at most.")]
Cursor = Annotated[str, typer.Option("--cursor", help="Where the page before ended.")]


def opened(url: str | None, **settings: Any) -> Memory:
    """Memory as the settings say, or at ``url``."""
    from everlong.config import open_memory

    return open_memory(url, **settings) if url else open_memory(**settings)


def at(memory: Memory, *, org: str, agent: str, user: str, session: str = "") -> ScopedMemory:
    """The memory of the scope that a command names."""
    from everlong.records import Scope

    return memory.at(Scope(org=org, agent=agent, user=user, session=session))
