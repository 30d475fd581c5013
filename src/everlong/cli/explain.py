"""The command that says why a question found what it found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from everlong.cli import render
from everlong.cli.options import Json, on_scope
from everlong.errors import InvalidInput, NotFound
from everlong.memory import ScopedMemory

if TYPE_CHECKING:
    from everlong.read.explain import Explanation, Replay, Row

__all__ = ["register", "show"]


def register(app: typer.Typer) -> None:
    """Adds this command to ``app``."""
    on_scope(app, session=True)(explain)


def explain(
    scoped: ScopedMemory,
    trace_id: Annotated[str | None, typer.Argument(help="As printed by recall and context with --explain.")] = None,
    *,
    last: Annotated[bool, typer.Option("--last", help="The latest trace here.")] = False,
    html: Annotated[Path | None, typer.Option("--html", help="Write one self-contained page to this file.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", min=1, help="Ask again with this limit, and compare.")] = None,
    min_score: Annotated[
        float | None, typer.Option("--min-score", min=0, max=1, help="Ask again with this threshold, and compare.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Why a question found what it found: every candidate, its score, its fate and why; times; the block."""
    chosen = _chosen(scoped, trace_id, last=last)
    given = {"limit": limit, "min_score": min_score}
    changes = {name: value for name, value in given.items() if value is not None}
    if changes:
        replay = scoped.replay(chosen, **changes)
        render.document(replay) if as_json else _compare(replay)
        return
    told = scoped.explanation(chosen)
    if html is not None:
        from everlong.read.page import page

        html.write_text(page(told), encoding="utf-8")
        render.note(f"written to {html}", quiet=as_json)
    if as_json:
        render.document(told)
    elif html is None:
        show(told)


def _chosen(scoped: ScopedMemory, trace_id: str | None, *, last: bool) -> str:
    if bool(trace_id) == last:
        raise InvalidInput("name a trace, or say --last")
    if trace_id:
        return trace_id
    latest = scoped.traces(limit=1)
    if not latest:
        msg = f"no trace is stored at {scoped.scope.home}; ask with --explain, or set trace_sample"
        raise NotFound(msg)
    return latest[0].id


def show(told: Explanation) -> None:
    """An explanation in a terminal."""
    trace, out = told.trace, render.console()
    searched = ", ".join(f"{count} × {kind}" for kind, count in trace.searched.items()) or "nothing"
    out.print(f"{trace.query.text}", style="bold", markup=False)
    out.print(f"trace {trace.id} at {trace.scope}, asked {trace.at:%Y-%m-%d %H:%M:%S %Z}", markup=False)
    out.print(f"model {trace.embedder}; searched {searched}; threshold {trace.minimum:.2f}", markup=False)
    times = ", ".join(f"{each.name} {each.milliseconds:.1f}" for each in told.stages)
    out.print(f"{told.milliseconds:.1f} ms: {times}", markup=False)
    rows = [(f"{row.score:.2f}", _fate(row), row.kind, row.id, row.text, _parts(row)) for row in told.rows]
    out.print(render.table(rows, "score", "fate", "what", "id", "text", "parts"))
    if trace.budget:
        out.print(f"block: {trace.tokens} of {trace.budget} tokens", markup=False)
        out.print(trace.block or "(nothing was put into the prompt)", markup=False)
        for each in trace.omitted:
            out.print(f"left out: {each.what}: {each.reason}", markup=False)


def _fate(row: Row) -> str:
    return f"{'used' if row.shown else 'dropped'}: {row.reason}"


def _parts(row: Row) -> str:
    return ", ".join(f"{name} {value:.2f}" for name, value in row.parts.items() if abs(value) >= 0.005)  # noqa: PLR2004 - would print as 0.00


def _compare(replay: Replay) -> None:
    out = render.console()
    asked = ", ".join(f"{name} = {value}" for name, value in replay.changes.items())
    out.print(f"{replay.after.query.text}: again with {asked}", style="bold", markup=False)
    rows = []
    for each in replay.rows:
        was, now = each.before, each.after
        rows.append(
            (
                each.verdict,
                f"{was.score:.2f}" if was else "–",
                f"{now.score:.2f}" if now else "–",
                each.text,
                now.reason if now else "not weighed",
            )
        )
    out.print(render.table(rows, "found", "before", "after", "text", "now"))
