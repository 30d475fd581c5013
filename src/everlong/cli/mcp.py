"""``everlong mcp``: memory as tools for any MCP client."""

from __future__ import annotations

import logging
import signal
import sys
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated

import typer

from everlong.cli.options import Url, User, at, opened
from everlong.errors import MissingExtra

if TYPE_CHECKING:
    from everlong.memory import Memory, ScopedMemory

__all__ = ["register"]

_Agent = Annotated[
    str, typer.Option("--agent", envvar="EVERLONG_AGENT", help="The agent it belongs to; empty for every agent.")
]
_Org = Annotated[str, typer.Option("--org", envvar="EVERLONG_ORG", help="The organisation.")]
_Person = Annotated[
    bool,
    typer.Option(
        "--person", envvar="EVERLONG_MCP_PERSON", help="The user asks, not an agent: may decide what waits for review."
    ),
]
_Http = Annotated[bool, typer.Option("--http", help="Serve streamable HTTP at /mcp instead of standard input.")]
_Auth = Annotated[
    bool, typer.Option("--auth/--no-auth", help="With --http: ask for a key or token, or serve --user to this machine.")
]


def register(app: typer.Typer) -> None:
    """Adds this command to ``app``."""
    app.command("mcp")(mcp)


def mcp(
    *,
    url: Url = None,
    user: User = "local",
    agent: _Agent = "",
    org: _Org = "",
    person: _Person = False,
    http: _Http = False,
    host: Annotated[str, typer.Option("--host", help="With --http: where to listen.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="With --http.")] = 8766,
    auth: _Auth = True,
) -> None:
    """Serve memory to an MCP client, such as Claude Code, Cursor or VS Code."""
    logging.basicConfig(stream=sys.stderr, level=logging.WARNING, format="%(levelname)s %(name)s: %(message)s")
    _need("mcp", "mcp")
    if http:
        _need("server", "fastapi", "limits", "uvicorn")
        with opened(url) as memory:
            own = None if auth else _own(memory, org=org, agent=agent, user=user, person=person)
            _serve_http(memory, own, host=host, port=port, person=person)
        return
    from everlong.server.mcp import serve_stdio, wire

    # A thread waits in a read that nothing ends but the client: the default handler would wait for it for ever.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    with wire() as (stdin, stdout):
        memory = opened(url)
        try:
            scoped = _own(memory, org=org, agent=agent, user=user, person=person)
            serve_stdio(scoped, stdin, stdout, zone=memory.parts.zone)
        finally:
            memory.close(timeout=1)  # clients wait two seconds before they kill; what is left waits in the store


def _need(extra: str, *packages: str) -> None:
    if any(find_spec(name) is None for name in packages):
        raise MissingExtra(extra, "everlong mcp")


def _own(memory: Memory, *, org: str, agent: str, user: str, person: bool) -> ScopedMemory:
    from everlong.server.mcp import as_agent

    scoped = at(memory, org=org, agent=agent, user=user)
    return scoped if person else as_agent(scoped)


def _serve_http(memory: Memory, own: ScopedMemory | None, *, host: str, port: int, person: bool) -> None:
    import uvicorn

    from everlong.config import load_settings
    from everlong.server.app import check_open, credentials
    from everlong.server.door import Door, Rate
    from everlong.server.mcp_http import Entrance, http_app

    check_open(host, auth=own is None)
    settings = load_settings()
    door = Door(memory=memory, credentials=credentials(memory, settings), rate=Rate(settings.rate_limit))
    entrance = Entrance(memory=memory, identify=door.identity)
    opened_by = entrance.open if own is None else lambda *_: own
    app = http_app(opened_by, host=host, zone=memory.parts.zone, person=person)
    uvicorn.run(app, host=host, port=port, access_log=False, server_header=False, timeout_graceful_shutdown=10)
