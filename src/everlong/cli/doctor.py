"""The command that examines a live store and says what to do."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everlong.cli import render
from everlong.cli.options import Agent, Json, Org, Url, User, at, opened
from everlong.errors import EverlongError
from everlong.telemetry import doctor as examination

if TYPE_CHECKING:
    from everlong.memory import Memory, ScopedMemory
    from everlong.telemetry.doctor import Finding

__all__ = ["register"]

_FILE = "sqlite:///"


def register(app: typer.Typer) -> None:
    """Adds this command to ``app``."""
    app.command()(doctor)


def doctor(
    *,
    asked: Annotated[str, typer.Option("--question", help="Also find out why this finds what it finds.")] = "",
    url: Url = None,
    user: User = "local",
    agent: Agent = "",
    org: Org = "",
    as_json: Json = False,
) -> None:
    """Examine a store: what is wrong, and the one command that helps. Ends with 1 if there is a problem."""
    try:
        with opened(url, worker="none") as memory:
            scoped = at(memory, org=org, agent=agent, user=user)
            found = [*_machine(memory), *_store(memory, scoped, asked, url or "")]
    except EverlongError as error:
        said = f"{type(error).__name__}: {error}"
        found = [examination.Finding(check="store", severity="problem", said=said, command="everlong status")]
    _print(found, as_json=as_json)
    if any(finding.severity == "problem" for finding in found):
        raise typer.Exit(1)


def _machine(memory: Memory) -> list[Finding]:
    url = memory.parts.store.url
    found = [examination.Finding(check="store", severity="ok", said=f"{url} is reachable, its schema is current")]
    if not url.startswith("sqlite:"):
        return found
    from everlong.store.sqlite import version

    found += examination.sqlite(version(), durable=url.startswith(_FILE))
    if url.startswith(_FILE):
        path = Path(url.removeprefix(_FILE))
        size = sum(each.stat().st_size for each in path.parent.glob(f"{path.name}*") if each.is_file())
        found.append(examination.disk(shutil.disk_usage(path.parent).free, size))
    return found


def _store(memory: Memory, scoped: ScopedMemory, asked: str, url: str) -> list[Finding]:
    parts = memory.parts
    model = parts.embedder.model if parts.embedder else ""
    recall = scoped.recall(asked) if asked else None
    with parts.store.read() as tx:
        found = list(examination.examine(tx, scoped.scope, model=model, now=parts.clock(), url=url))
        if recall is not None:
            found += examination.question(tx, scoped.scope, recall, model=model, url=url)
    return found


def _print(found: list[Finding], *, as_json: bool) -> None:
    if as_json:
        render.document(found)
        return
    out = render.console()
    for each in found:
        look = {"ok": "green", "note": "yellow", "problem": "red"}[each.severity]
        out.print(f"{each.severity:8}{each.check:12}{each.said}", style=look, markup=False)
        if each.command:
            out.print(f"{'':20}{each.command}", markup=False)
