"""Commands that say who may do what, and why."""

from __future__ import annotations

from typing import Annotated, Any, get_args

import typer

from everlong.cli import render
from everlong.cli.options import Agent, Json, Org, User

__all__ = ["register"]

policy = typer.Typer(help="Who may do what.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Adds these commands to ``app``."""
    app.add_typer(policy, name="policy")


def _rules() -> Any:
    from everlong.config import load_settings
    from everlong.policy import Rules

    return Rules(load_settings().rules)


@policy.command("list")
def listing(*, as_json: Json = False) -> None:
    """The rules, in the order in which they are asked; your own come first."""
    render.rules(_rules().all, as_json=as_json)


@policy.command()
def check(
    action: Annotated[str, typer.Argument(help="An operation, such as recall, remember, erase.")],
    *,
    role: Annotated[str, typer.Option("--role", help="user, agent, operator or system.")] = "user",
    by: Annotated[str, typer.Option("--by", help="The id of who asks.")],
    group: Annotated[list[str] | None, typer.Option("--group", help="A group of theirs; may be repeated.")] = None,
    user: User = "",
    agent: Agent = "",
    org: Org = "",
    kind: Annotated[str, typer.Option("--kind", help="fact, message, profile or file.")] = "",
    category: Annotated[str, typer.Option("--category", help="The fact's category.")] = "",
    path: Annotated[str, typer.Option("--path", help="The file's path.")] = "",
    as_json: Json = False,
) -> None:
    """What the policy says to one request, and which rule says it."""
    from everlong.errors import InvalidInput
    from everlong.protocols import Request
    from everlong.records import Principal, Role, Scope

    known = next((each for each in get_args(Role) if each == role), None)
    if known is None:
        msg = f"unknown role {role!r}; there are {', '.join(get_args(Role))}"
        raise InvalidInput(msg)
    rules = _rules()
    request = Request(
        by=Principal(id=by, role=known, groups=tuple(group or ())),
        action=action,
        scope=Scope(org=org, agent=agent, user=user),
        kind=kind,
        category=category,
        path=path,
    )
    rule = rules.match(request)
    number = rules.all.index(rule) + 1 if rule in rules.all else 0
    render.document({"effect": rule.effect, "reason": rule.reason, "rule": number}, as_json=as_json)
