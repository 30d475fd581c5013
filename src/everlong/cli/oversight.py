"""Commands for the person who answers for a memory: what waits for review, what was decided, what runs, what goes."""

from __future__ import annotations

from typing import Annotated

import typer

from everlong.cli import render
from everlong.cli.options import Cursor, Json, Limit, on_scope
from everlong.errors import InvalidInput
from everlong.memory import ScopedMemory

__all__ = ["register"]

inbox = typer.Typer(help="Changes that wait for a person.", no_args_is_help=True)
ProposalId = Annotated[str, typer.Argument(help="As shown by: everlong inbox list.")]


def register(app: typer.Typer) -> None:
    """Adds these commands to ``app``."""
    app.add_typer(inbox, name="inbox")
    on_scope(app, session=True)(extractions)
    on_scope(app)(journal)
    on_scope(app)(jobs)
    on_scope(app)(forget)
    on_scope(app)(restore)
    on_scope(app, session=True)(erase)


@on_scope(inbox, "list")
def waiting(scoped: ScopedMemory, *, cursor: Cursor = "", limit: Limit = 100, as_json: Json = False) -> None:
    """What waits, newest first."""
    render.proposals(scoped.inbox.list(cursor=cursor, limit=limit), scoped, as_json=as_json)


@on_scope(inbox)
def approve(
    scoped: ScopedMemory,
    proposal_id: ProposalId,
    *,
    content: Annotated[str | None, typer.Option("--content", help="Better wording.")] = None,
    as_json: Json = False,
) -> None:
    """Let it take effect, as it stands or in better words."""
    render.document(scoped.inbox.approve(proposal_id, content=content), as_json=as_json)


@on_scope(inbox)
def reject(
    scoped: ScopedMemory,
    proposal_id: ProposalId,
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the journal.")] = "rejected in review",
    as_json: Json = False,
) -> None:
    """Turn it away."""
    scoped.inbox.reject(proposal_id, reason=reason)
    render.document({"rejected": proposal_id}, as_json=as_json)


def extractions(
    scoped: ScopedMemory,
    record_id: Annotated[str | None, typer.Argument(help="One extraction, in full.")] = None,
    *,
    cursor: Cursor = "",
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """Why something was remembered: what each extraction read, answered, decided and cost."""
    if record_id:
        render.document(scoped.extraction(record_id), as_json=as_json)
    else:
        render.extractions(scoped.extractions(cursor=cursor, limit=limit), as_json=as_json)


def journal(
    scoped: ScopedMemory,
    *,
    target: Annotated[str, typer.Option("--target", help="Only entries about this fact, file or section.")] = "",
    action: Annotated[str, typer.Option("--action", help="Only this action, such as supersede.")] = "",
    cursor: Cursor = "",
    limit: Limit = 100,
    as_json: Json = False,
) -> None:
    """Who changed what, when and why, newest first."""
    render.journal(scoped.journal(target=target, action=action, cursor=cursor, limit=limit), as_json=as_json)


def jobs(
    scoped: ScopedMemory,
    *,
    retry: Annotated[str | None, typer.Option("--retry", help="Let this parked job run again.")] = None,
    as_json: Json = False,
) -> None:
    """Work that waits, runs, or was set aside after failing too often."""
    if retry:
        scoped.retry(retry)
    render.jobs(scoped.jobs(), as_json=as_json)


def forget(
    scoped: ScopedMemory,
    fact_id: Annotated[str, typer.Argument(help="As shown by: everlong facts.")],
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in its history.")] = "asked to forget",
    as_json: Json = False,
) -> None:
    """Retire one fact: it is never recalled again, its history stays until erased."""
    render.document(scoped.forget(fact_id, reason=reason), as_json=as_json)


def restore(
    scoped: ScopedMemory,
    fact_id: Annotated[str, typer.Argument(help="As shown by: everlong facts --all.")],
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in its history.")] = "asked to restore",
    as_json: Json = False,
) -> None:
    """Make a retired or replaced fact active again."""
    restored = scoped.restore(fact_id, reason=reason)
    render.document(restored if as_json else {"fact": restored}, as_json=as_json)


def erase(
    scoped: ScopedMemory,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this nothing happens.")] = False,
    as_json: Json = False,
) -> None:
    """Remove everything kept of a user, or of one conversation, for good."""
    if not yes:
        msg = f"this removes everything kept at {scoped.scope} for good; say --yes to do it"
        raise InvalidInput(msg)
    render.document(scoped.erase(), as_json=as_json)
