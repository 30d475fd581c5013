"""Commands for the person who answers for a memory: what waits for review, what was decided, what runs, what goes."""

from __future__ import annotations

from typing import Annotated

import typer

from everlong.cli import render
from everlong.cli.options import Agent, Cursor, Json, Limit, Org, SessionName, Url, User, at, opened
from everlong.errors import InvalidInput

__all__ = ["register"]

inbox = typer.Typer(help="Changes that wait for a person.", no_args_is_help=True)
ProposalId = Annotated[str, typer.Argument(help="As shown by: everlong inbox list.")]


def register(app: typer.Typer) -> None:
    """Adds these commands to ``app``."""
    app.add_typer(inbox, name="inbox")
    for command in (extractions, journal, jobs, forget, erase):
        app.command()(command)


@inbox.command("list")
def waiting(
    *,
    url: Url = None,
    user: User = "local",
    agent: Agent = "",
    org: Org = "",
    cursor: Cursor = "",
    limit: Limit = 100,
    as_json: Json = False,
) -> None:
    """What waits, newest first."""
    with opened(url, worker="none") as memory:
        scoped = at(memory, org=org, agent=agent, user=user)
        render.proposals(scoped.inbox.list(cursor=cursor, limit=limit), scoped, as_json=as_json)


@inbox.command()
def approve(
    proposal_id: ProposalId,
    *,
    content: Annotated[str | None, typer.Option("--content", help="Better wording.")] = None,
    url: Url = None,
    user: User = "local",
    agent: Agent = "",
    org: Org = "",
    as_json: Json = False,
) -> None:
    """Let it take effect, as it stands or in better words."""
    with opened(url, worker="none") as memory:
        changed = at(memory, org=org, agent=agent, user=user).inbox.approve(proposal_id, content=content)
        render.document(changed, as_json=as_json)


@inbox.command()
def reject(
    proposal_id: ProposalId,
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in the journal.")] = "rejected in review",
    url: Url = None,
    user: User = "local",
    agent: Agent = "",
    org: Org = "",
    as_json: Json = False,
) -> None:
    """Turn it away."""
    with opened(url, worker="none") as memory:
        at(memory, org=org, agent=agent, user=user).inbox.reject(proposal_id, reason=reason)
        render.document({"rejected": proposal_id}, as_json=as_json)


def extractions(
    record_id: Annotated[str | None, typer.Argument(help="One extraction, in full.")] = None,
    *,
    url: Url = None,
    user: User = "local",
    agent: Agent = "",
    org: Org = "",
    session: SessionName = "",
    cursor: Cursor = "",
    limit: Limit = 20,
    as_json: Json = False,
) -> None:
    """Why something was remembered: what each extraction read, answered, decided and cost."""
    with opened(url, worker="none") as memory:
        scoped = at(memory, org=org, agent=agent, user=user, session=session)
        if record_id:
            render.document(scoped.extraction(record_id), as_json=as_json)
        else:
            render.extractions(scoped.extractions(cursor=cursor, limit=limit), as_json=as_json)


def journal(
    *,
    url: Url = None,
    user: User = "local",
    agent: Agent = "",
    org: Org = "",
    target: Annotated[str, typer.Option("--target", help="Only entries about this fact, file or section.")] = "",
    action: Annotated[str, typer.Option("--action", help="Only this action, such as supersede.")] = "",
    cursor: Cursor = "",
    limit: Limit = 100,
    as_json: Json = False,
) -> None:
    """Who changed what, when and why, newest first."""
    with opened(url, worker="none") as memory:
        scoped = at(memory, org=org, agent=agent, user=user)
        entries = scoped.journal(target=target, action=action, cursor=cursor, limit=limit)
        render.journal(entries, as_json=as_json)


def jobs(
    *,
    retry: Annotated[str | None, typer.Option("--retry", help="Let this parked job run again.")] = None,
    url: Url = None,
    user: User = "local",
    agent: Agent = "",
    org: Org = "",
    as_json: Json = False,
) -> None:
    """Work that waits, runs, or was set aside after failing too often."""
    with opened(url, worker="none") as memory:
        scoped = at(memory, org=org, agent=agent, user=user)
        if retry:
            scoped.retry(retry)
        render.jobs(scoped.jobs(), as_json=as_json)


def forget(
    fact_id: Annotated[str, typer.Argument(help="As shown by: everlong facts.")],
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept in its history.")] = "asked to forget",
    url: Url = None,
    user: User = "local",
    agent: Agent = "",
    org: Org = "",
    as_json: Json = False,
) -> None:
    """Retire one fact: it is never recalled again, its history stays until erased."""
    with opened(url, worker="none") as memory:
        gone = at(memory, org=org, agent=agent, user=user).forget(fact_id, reason=reason)
        render.document(gone, as_json=as_json)


def erase(
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this nothing happens.")] = False,
    url: Url = None,
    user: User = "local",
    agent: Agent = "",
    org: Org = "",
    session: SessionName = "",
    as_json: Json = False,
) -> None:
    """Remove everything kept of a user, or of one conversation, for good."""
    with opened(url, worker="none") as memory:
        scoped = at(memory, org=org, agent=agent, user=user, session=session)
        if not yes:
            msg = f"this removes everything kept at {scoped.scope} for good; say --yes to do it"
            raise InvalidInput(msg)
        render.document(scoped.erase(), as_json=as_json)
