"""Commands that forget a topic."""

from __future__ import annotations

from typing import Annotated

import typer

from everlong.cli import render
from everlong.cli.options import Json, on_scope
from everlong.memory import ScopedMemory
from everlong.records import Mention
from everlong.write.forget import THRESHOLD

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Adds these commands to ``app``."""
    on_scope(app, "forget-topic")(forget_topic)


def forget_topic(
    scoped: ScopedMemory,
    topic: Annotated[str, typer.Argument(help="A name or a few words.")],
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do it; without this it only shows what would go.")] = False,
    ref: Annotated[list[str] | None, typer.Option("--ref", help="Only this, as shown; may be repeated.")] = None,
    files: Annotated[bool, typer.Option("--files", help="Take lines out of memory files too.")] = False,
    erase: Annotated[bool, typer.Option("--erase", help="Leave no history either.")] = False,
    threshold: Annotated[float, typer.Option("--threshold", help="How near in meaning, 0 to 1.")] = THRESHOLD,
    as_json: Json = False,
) -> None:
    """Take a topic out of facts, turns, profile and what waits; first shows what would go."""
    found = scoped.forget_preview(topic, threshold=threshold)
    if not yes:
        if as_json:
            render.document(found)
        else:
            _show(found.mentions)
        return
    lines = tuple(each.ref for each in found.mentions if each.kind == "file") if files else ()
    gone = scoped.forget_topic(topic, ref or (*found.refs, *lines), threshold=threshold, erase=erase)
    render.document(gone, as_json=as_json)


def _show(mentions: tuple[Mention, ...]) -> None:
    for each in mentions:
        shown = " ".join(each.text.split())[:120]
        render.console().print(f"{each.ref}  ({each.score:.2f})  {shown}", markup=False, soft_wrap=True)
    said = "Nothing tells of it." if not mentions else "Nothing was changed: say --yes to take this out."
    render.note(said, quiet=False)
