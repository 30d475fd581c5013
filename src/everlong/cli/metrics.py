"""The command ``everlong metrics``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from everlong.cli import render
from everlong.cli.options import Json, Url, opened

if TYPE_CHECKING:
    import typer

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Adds this command to ``app``."""
    app.command()(metrics)


def metrics(*, url: Url = None, as_json: Json = False) -> None:
    """Print the store's metrics for Prometheus: how much work waits and for how long; needs everlong[metrics]."""
    with opened(url, worker="none", metrics=True) as memory:
        instruments = memory.parts.instruments
        text = instruments.exposition() if instruments else ""
        if as_json:
            render.document({"metrics": text})
        else:
            print(text, end="")
