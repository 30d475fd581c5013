"""Commands for memory files: look at them, and keep a folder in step with them."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everlong.cli import render
from everlong.cli.options import Json, on_scope
from everlong.memory import ScopedMemory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everlong.files.folder import Folder
    from everlong.records import SyncStep

__all__ = ["register"]

files = typer.Typer(help="Memory files, and a folder in step with them.", no_args_is_help=True)

Root = Annotated[Path, typer.Argument(help="The folder on this machine.", metavar="FOLDER")]
Prefix = Annotated[str, typer.Option("--prefix", help="Only files below this memory folder.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")]


def register(app: typer.Typer) -> None:
    """Adds these commands to ``app``."""
    app.add_typer(files, name="files")


def _folder(scoped: ScopedMemory, root: Path, prefix: str) -> Folder:
    from everlong.files.folder import Folder

    return Folder(root, scoped.files, scope=scoped.scope, prefix=prefix)


def _report(steps: Sequence[SyncStep], *, as_json: bool, quiet: bool = False) -> bool:
    """Prints what was done; whether some of it needs a person."""
    if as_json:
        render.document(steps)
    else:
        for step in steps:
            reason = f" — {step.reason}" if step.reason else ""
            print(f"{step.action:<8} {step.path or step.name}{reason}")
        if not steps and not quiet:
            print("nothing to do")
    return any(step.action in {"conflict", "refuse"} for step in steps)


@on_scope(files, "list")
def listing(
    scoped: ScopedMemory,
    prefix: Annotated[str, typer.Argument(help="Only files below this folder.")] = "/",
    *,
    as_json: Json = False,
) -> None:
    """Memory files that are visible, by path."""
    found = scoped.files.list(prefix)
    if as_json:
        render.document(found)
        return
    for info in found:
        print(f"{info.size:>9}  v{info.version:<4} {info.path}{'  (read-only)' if info.read_only else ''}")


@on_scope(files)
def show(
    scoped: ScopedMemory,
    path: Annotated[str, typer.Argument(help="As shown by: everlong files list.")],
    *,
    version: Annotated[int | None, typer.Option("--version", help="An earlier version.")] = None,
) -> None:
    """Print one file, byte for byte."""
    file = scoped.files.read(path, version=version)
    sys.stdout.buffer.write(file.content)


@on_scope(files)
def pull(
    scoped: ScopedMemory,
    folder: Root,
    *,
    prefix: Prefix = "/",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Bring what changed in memory into a folder; what changed there is never overwritten."""
    if _report(_folder(scoped, folder, prefix).pull(dry_run=dry_run), as_json=as_json):
        raise typer.Exit(6)


@on_scope(files)
def push(
    scoped: ScopedMemory,
    folder: Root,
    *,
    prefix: Prefix = "/",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Bring what changed in a folder into memory, merged with what changed there."""
    if _report(_folder(scoped, folder, prefix).push(dry_run=dry_run), as_json=as_json):
        raise typer.Exit(6)


@on_scope(files)
def watch(
    scoped: ScopedMemory,
    folder: Root,
    *,
    prefix: Prefix = "/",
    every: Annotated[float, typer.Option("--every", min=0.1, help="Seconds between two looks.")] = 2.0,
) -> None:
    """Keep a folder in step, both ways, until stopped with Ctrl-C."""
    kept = _folder(scoped, folder, prefix)
    render.note(f"watching {folder}; stop with Ctrl-C", quiet=False)
    said: set[SyncStep] = set()
    try:
        while True:
            steps = [*kept.push(), *kept.pull()]
            _report([step for step in steps if step not in said], as_json=False, quiet=True)
            said = {step for step in steps if step.action in {"conflict", "refuse"}}
            time.sleep(every)
    except KeyboardInterrupt:
        return
