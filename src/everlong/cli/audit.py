"""Commands that export the journal and verify its chain."""

from __future__ import annotations

import typer

from everlong.cli import render
from everlong.cli.options import Json, on_scope
from everlong.memory import ScopedMemory

__all__ = ["register"]

audit = typer.Typer(help="The journal: exported, and verified.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Adds these commands to ``app``."""
    app.add_typer(audit, name="audit")


@on_scope(audit)
def export(scoped: ScopedMemory, *, as_json: Json = False) -> None:
    """Print the whole journal of a user as lines of JSON, oldest first."""
    del as_json
    print(scoped.journal_lines(), end="")


@on_scope(audit)
def verify(scoped: ScopedMemory, *, as_json: Json = False) -> None:
    """Look whether an entry was changed, removed or moved; needs the setting audit_chain, --user "" and --operator."""
    report = scoped.verify_journal()
    render.document(report, as_json=as_json)
    if not report.whole:
        raise typer.Exit(1)
