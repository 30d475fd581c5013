"""Commands that serve memory over HTTP, and look after the keys to it."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import TYPE_CHECKING, Annotated, Any, Final, get_args

import typer

from everlong.cli import render
from everlong.cli.options import Agent, Json, Org, Url, opened
from everlong.errors import InvalidInput
from everlong.records import Role
from everlong.records.plain import plain

if TYPE_CHECKING:
    from everlong.memory import Memory
    from everlong.server.keys import Key, Keys

__all__ = ["register"]

User = Annotated[str, typer.Option("--user", help="Whose memory it opens.")]
keys = typer.Typer(help="Keys to the server.", no_args_is_help=True)
KeyId = Annotated[str, typer.Argument(help="As shown by: everlong keys list.")]
_DAYS: Final = {"h": 1 / 24, "d": 1.0, "w": 7.0}


def register(app: typer.Typer) -> None:
    """Adds these commands to ``app``."""
    app.command()(serve)
    app.add_typer(keys, name="keys")


def serve(
    *,
    host: Annotated[str, typer.Option("--host", help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port.")] = 8080,
    auth: Annotated[
        bool, typer.Option("--auth/--no-auth", help="Without it, everyone on this machine may do everything.")
    ] = True,
    url: Url = None,
) -> None:
    """Serve memory over HTTP until stopped (SIGTERM and Ctrl-C finish what runs first)."""
    from everlong.config import load_settings

    _needs_server()
    from everlong.server.app import check_open
    from everlong.server.app import serve as run

    check_open(host, auth=auth)
    with opened(url) as memory:
        run(memory, load_settings(**({"url": url} if url else {})), host=host, port=port, auth=auth)


def _needs_server() -> None:
    from importlib.util import find_spec

    from everlong.errors import MissingExtra

    if any(find_spec(name) is None for name in ("fastapi", "uvicorn", "limits")):
        raise MissingExtra("server", "the server")


def _keys(memory: Memory) -> Keys:
    from everlong.server.keys import Keys

    return Keys(memory.parts.store, clock=memory.parts.clock)


@keys.command()
def add(
    name: Annotated[str, typer.Argument(help="What it is for, such as a host's name.")],
    *,
    role: Annotated[str, typer.Option("--role", help="user, agent or operator.")] = "user",
    user: User = "",
    agent: Agent = "",
    org: Org = "",
    group: Annotated[list[str] | None, typer.Option("--group", help="A group for the rules; may be repeated.")] = None,
    lasts: Annotated[str, typer.Option("--lasts", help="Until it expires: 12h, 90d, 52w; empty: never.")] = "",
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Make a key. It is shown this once and kept nowhere."""
    known = next((each for each in get_args(Role) if each == role), None)
    if known is None:
        raise InvalidInput(f"unknown role {role!r}; there are user, agent and operator")
    with opened(url, worker="none") as memory:
        made, text = _keys(memory).make(
            name,
            role=known,
            org=org,
            user=user,
            agent=agent,
            groups=tuple(group or ()),
            lasts=_length(lasts) if lasts else None,
        )
    _shown(made, text, as_json=as_json)


@keys.command("list")
def listing(*, url: Url = None, as_json: Json = False) -> None:
    """The keys, less what is secret in them."""
    with opened(url, worker="none") as memory:
        render.document([_public(key) for key in _keys(memory).list()], as_json=as_json)


@keys.command()
def rotate(
    key_id: KeyId,
    *,
    grace: Annotated[str, typer.Option("--grace", help="How long the old one still holds: 12h, 7d; empty: not.")] = "",
    url: Url = None,
    as_json: Json = False,
) -> None:
    """Make a new key with the rights of this one, which ends."""
    with opened(url, worker="none") as memory:
        made, text = _keys(memory).rotate(key_id, grace=_length(grace) if grace else timedelta(0))
    _shown(made, text, as_json=as_json)


@keys.command()
def revoke(key_id: KeyId, *, url: Url = None, as_json: Json = False) -> None:
    """End a key at once."""
    with opened(url, worker="none") as memory:
        render.document(_public(_keys(memory).revoke(key_id)), as_json=as_json)


def _length(text: str) -> timedelta:
    match = re.fullmatch(r"(\d{1,5})([hdw])", text)
    if match is None:
        raise InvalidInput(f"{text!r} is no length of time; write 12h, 90d or 52w")
    return timedelta(days=int(match[1]) * _DAYS[match[2]])


def _public(key: Key) -> dict[str, Any]:
    return {name: value for name, value in plain(key).items() if name != "hash"}


def _shown(key: Key, text: str, *, as_json: bool) -> None:
    render.document({"key": text, **_public(key)}, as_json=as_json)
