"""Commands that look after a memory."""

from __future__ import annotations

from typing import Annotated

import typer

from everlong.cli import render
from everlong.cli.options import Json, on_scope
from everlong.memory import ScopedMemory

__all__ = ["register"]

upkeep = typer.Typer(help="Retention, merging, review of old facts, and what facts are worth.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Adds these commands to ``app``."""
    app.add_typer(upkeep, name="upkeep")


@on_scope(upkeep)
def preview(scoped: ScopedMemory, *, as_json: Json = False) -> None:
    """What a run would do now; changes nothing."""
    render.document(scoped.upkeep.preview(), as_json=as_json)


@on_scope(upkeep)
def run(scoped: ScopedMemory, *, as_json: Json = False) -> None:
    """Do what is due now."""
    render.document(scoped.upkeep.run(), as_json=as_json)


@on_scope(upkeep)
def report(scoped: ScopedMemory, *, as_json: Json = False) -> None:
    """What the facts are worth, and suggestions."""
    render.document(scoped.upkeep.report(), as_json=as_json)


@on_scope(upkeep)
def apply(
    scoped: ScopedMemory,
    suggestion_id: Annotated[str, typer.Argument(help="As shown by: everlong upkeep report.")],
    *,
    as_json: Json = False,
) -> None:
    """Follow one suggestion of the report."""
    render.document(list(scoped.upkeep.apply(suggestion_id)), as_json=as_json)
