"""Commands that carry memory: out to a file, in from one or from another program, the whole store to a backup and back."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everlong.cli import render
from everlong.cli.options import Json, Url, on_scope, opened
from everlong.errors import InvalidInput
from everlong.memory import ScopedMemory

if TYPE_CHECKING:
    from everlong.memory import Memory, Transfer
    from everlong.records import Exported, Transferred

__all__ = ["register"]

Out = Annotated[Path, typer.Argument(help="The file to write; - for standard output.", metavar="FILE")]
In = Annotated[str, typer.Argument(help="A file (with --from: what that program keeps).", metavar="FILE")]
Audit = Annotated[bool, typer.Option("--audit", help="Also the journal and what extractions read and answered.")]
From = Annotated[
    str,
    typer.Option("--from", help="Of another program: deerflow, mem0, langgraph, agents-md, chatgpt, claude or jsonl."),
]
Preview = Annotated[bool, typer.Option("--preview", help="Only say what would come in.")]
Replace = Annotated[bool, typer.Option("--replace", help="Erase what is here first; it goes to --backup.")]
Backup = Annotated[Path | None, typer.Option("--backup", help="Where that goes; default: beside the file.")]
Only = Annotated[str, typer.Option("--only", help="Of memory of several users, the one to take.")]
Facts = Annotated[bool, typer.Option("--facts", help="Of AGENTS.md, make each bullet a fact too.")]
File = Annotated[Path, typer.Argument(help="The backup.", metavar="FILE")]


def register(app: typer.Typer) -> None:
    """Adds these commands to ``app``."""
    on_scope(app)(export)
    on_scope(app, "import")(bring_in)
    app.command()(backup)
    app.command("restore-backup")(restore_backup)


def export(scoped: ScopedMemory, file: Out, *, audit: Audit = False, as_json: Json = False) -> None:
    """Write everything kept of a user as JSON lines, with history, ids and times."""
    if str(file) == "-":
        scoped.transfer.export(sys.stdout.buffer, audit=audit)
        return
    _wrote(scoped.transfer.export(file, audit=audit), file, as_json=as_json)


def bring_in(
    scoped: ScopedMemory,
    file: In,
    *,
    dialect: From = "",
    preview: Preview = False,
    replace: Replace = False,
    backup: Backup = None,
    only: Only = "",
    facts: Facts = False,
    as_json: Json = False,
) -> None:
    """Take in an export, or memory of another program; all of it or nothing."""
    if dialect:
        if replace:
            raise InvalidInput("--replace takes an export of everlong; what another program kept can only be added")
        from everlong.integrations.importers import bring, look

        result = (look if preview else bring)(scoped, dialect, file, only=only, facts=facts)
    else:
        result = _own(scoped.transfer, file, preview=preview, replace=replace, backup=backup)
    _told(result, preview=preview, as_json=as_json)


def _own(transfer: Transfer, file: str, *, preview: bool, replace: bool, backup: Path | None) -> Transferred:
    if preview:
        return transfer.preview(file)
    return transfer.import_(file, mode="replace" if replace else "merge", backup=backup)


def backup(file: File, *, url: Url = None, as_json: Json = False) -> None:
    """Copy the whole store, while it is in use: SQLite as one examined file, PostgreSQL as an export of everything."""
    from everlong.store.backup import backup as copy

    if file.exists():
        raise InvalidInput(f"{file} exists already: name another file")
    with opened(url, worker="none") as memory:
        kept = _file_of(memory)
        if kept is None:
            _wrote(_everything(memory).export(file, audit=True), file, as_json=as_json)
            return
        render.document({"backup": str(file), "bytes": copy(kept, file)}, as_json=as_json)


def restore_backup(file: File, *, url: Url = None, as_json: Json = False) -> None:
    """Make an empty store what a backup holds. One that holds anything is refused."""
    from everlong.config import load_settings
    from everlong.store.backup import is_backup, path_of, restore

    where = url or load_settings().url
    target = path_of(where)
    if is_backup(file):
        if target is None:
            raise InvalidInput(f"{file} is a backup of SQLite: restore it to sqlite:///…, then export and import it")
        render.document({"restored": str(target), "bytes": restore(file, target)}, as_json=as_json)
        return
    with opened(where, worker="none") as memory:
        if not _is_empty(memory):
            raise InvalidInput("the store holds memory already: name an empty one, for nothing is ever written over")
        _told(_everything(memory).import_(file), preview=False, as_json=as_json)


def _everything(memory: Memory) -> Transfer:
    """The whole store, as the operator who may run commands on it sees it."""
    from everlong.records import Principal, Scope

    return memory.at(Scope(), by=Principal(id="backup", role="operator")).transfer


def _is_empty(memory: Memory) -> bool:
    from everlong.records import COPY_KINDS, Scope

    with memory.parts.store.read() as tx:
        return not any(next(tx.copies.each(kind, Scope()), None) for kind in COPY_KINDS)


def _file_of(memory: Memory) -> Path | None:
    from everlong.store.backup import path_of

    return path_of(memory.parts.store.url)


def _wrote(done: Exported, file: Path, *, as_json: bool) -> None:
    if as_json:
        render.document({"file": str(file), "records": dict(done.records), "sha256": done.sha256}, as_json=True)
        return
    for kind, count in done.records.items():
        print(f"{count:>8} {kind}")
    print(f"{done.total:>8} in all, in {file}")


def _told(result: Transferred, *, preview: bool, as_json: bool) -> None:
    """Prints what came, or would come, of a file; ends with 3 when a preview shows that it would be refused."""
    if as_json:
        render.document(result, as_json=True)
    else:
        for kind, tally in result.tallies.items():
            fates = ("new", "same", "conflicting", "invalid", "left_out")
            told = ", ".join(
                f"{getattr(tally, fate)} {fate.replace('_', ' ')}" for fate in fates if getattr(tally, fate)
            )
            print(f"{kind}: {told}")
        for fault in result.faults:
            print(f"line {fault.line}: {fault.kind} {fault.id} {fault.fate}: {fault.reason}")
        hidden = result.count("conflicting") + result.count("invalid") - len(result.faults)
        if hidden > 0:
            print(f"and {hidden} more")
        if result.backup:
            print(f"what was here is in {result.backup}")
    if preview and result.count("invalid"):
        raise typer.Exit(InvalidInput.exit_code)
