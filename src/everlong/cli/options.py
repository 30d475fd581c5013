"""What most commands share: where memory is, whose it is, how it is printed."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from collections.abc import Callable

    from everlong.memory import Memory, ScopedMemory

Url = Annotated[str | None, typer.Option("--url", help="Where memory is kept, such as sqlite:///memory.db.")]
User = Annotated[str, typer.Option("--user", envvar="EVERLONG_USER", help="Whose memory.")]
Agent = Annotated[str, typer.Option("--agent", help="The agent it belongs to; empty for every agent.")]
Org = Annotated[str, typer.Option("--org", help="The organisation.")]
SessionName = Annotated[str, typer.Option("--session", help="The conversation.")]
Operator = Annotated[str, typer.Option("--operator", help="Act as this operator, who may do everything.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Limit = Annotated[int, typer.Option("--limit", min=1, help="How many at most.")]
Cursor = Annotated[str, typer.Option("--cursor", help="Where the page before ended.")]


def opened(url: str | None, **settings: Any) -> Memory:
    """Memory as the settings say, or at ``url``."""
    from everlong.config import open_memory

    return open_memory(url, **settings) if url else open_memory(**settings)


def at(
    memory: Memory, *, org: str = "", agent: str = "", user: str = "", session: str = "", operator: str = ""
) -> ScopedMemory:
    """The memory of the scope that a command names, as its user or an operator may touch it."""
    from everlong.records import Principal, Scope

    by = Principal(id=operator, role="operator") if operator else None
    return memory.at(Scope(org=org, agent=agent, user=user, session=session), by=by)


_WHERE: Final = {
    "url": (Url, None),
    "user": (User, "local"),
    "agent": (Agent, ""),
    "org": (Org, ""),
    "operator": (Operator, ""),
}


def on_scope(app: typer.Typer, name: str | None = None, *, session: bool = False) -> Callable[..., Any]:
    """Makes a function a command on one scope: it gets that scope's memory first, then its own parameters. The
    options that say where memory is and whose (with ``session``: also which conversation) are added to its own."""
    where = {**_WHERE, "session": (SessionName, "")} if session else _WHERE

    def register(function: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        added = [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=kind)
            for key, (kind, default) in where.items()
        ]

        def run(**given: Any) -> None:
            place = {key: given.pop(key) for key in where}
            with opened(place.pop("url"), worker="none") as memory:
                function(at(memory, **place), **given)

        run.__doc__, run.__name__ = function.__doc__, function.__name__
        run.__annotations__ = {each.name: each.annotation for each in (*own, *added)}
        run.__dict__["__signature__"] = inspect.Signature([*own, *added])
        app.command(name)(run)
        return function

    return register
