"""How results look: for a person in a terminal, plain when piped, or as JSON."""

from __future__ import annotations

import json
from contextlib import nullcontext
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from rich.text import Text

from everlong.records.plain import plain

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from everlong.errors import EverlongError
    from everlong.memory import ScopedMemory, Status
    from everlong.policy import Rule
    from everlong.records import (
        Added,
        Context,
        Entry,
        ExtractionRecord,
        Fact,
        Hit,
        Job,
        Page,
        Profile,
        Proposal,
        Recall,
    )

_LABELS = {"fact": "fact", "message": "said"}


def console(*, stderr: bool = False) -> Console:
    """A console on the present standard output; wide when it is not a terminal, so that nothing is cut."""
    made = Console(stderr=stderr, highlight=False, soft_wrap=True)
    if not made.is_terminal:
        made = Console(stderr=stderr, highlight=False, soft_wrap=True, width=200)
    return made


def document(value: Any, *, as_json: bool = True) -> None:
    """Prints a value as JSON, or as ``name: value`` lines."""
    value = plain(value)
    if as_json or not isinstance(value, dict):
        print(json.dumps(value, ensure_ascii=False, indent=2))
        return
    for name, each in value.items():
        shown = _shown(each)
        space = " " if shown and not shown.startswith("\n") else ""
        console().print(f"{name}:{space}{shown}", markup=False)


def _shown(value: Any) -> str:
    """A value for a person: records as their id and text, several of them a line each, scopes as ``user=ann``."""
    if isinstance(value, list) and any(isinstance(each, dict) for each in value):
        return "".join(f"\n  {_shown(each)}" for each in value)
    if isinstance(value, list):
        return ", ".join(map(_shown, value))
    if not isinstance(value, dict):
        return "" if value is None else str(value)
    told = value.get("content", value.get("text"))
    if told is not None and "id" in value:
        state = value.get("status", "active")
        marked = "" if state == "active" else f"[{state}] "
        return " ".join(part for part in (value.get("kind", ""), value["id"], f"{marked}{told}") if part)
    return ", ".join(f"{name}={_shown(each)}" for name, each in value.items() if each not in ("", None))


def note(message: str, *, quiet: bool) -> None:
    """A line for the person at the terminal, on standard error."""
    if not quiet:
        console(stderr=True).print(message, style="dim", markup=False)


def error(problem: EverlongError) -> None:
    """What went wrong and what to do, on standard error."""
    console(stderr=True).print(f"{type(problem).__name__}: {problem}", style="red", markup=False)


def progress(label: str, *, quiet: bool) -> AbstractContextManager[Any]:
    """A spinner while work is long; nothing when piped or asked to be quiet."""
    out = console(stderr=True)
    return nullcontext() if quiet or not out.is_terminal else out.status(label)


def added(result: Added, learned: Sequence[Entry], scoped: ScopedMemory, *, as_json: bool) -> None:
    """What was stored, and what was learned from it."""
    if as_json:
        document({"added": result, "learned": learned})
        return
    out = console()
    out.print(f"{result.status}: {len(result.message_ids)} stored, {len(result.duplicates)} known already")
    for skipped in result.ignored:
        out.print(f"ignored: {skipped.reason}", markup=False)
    for entry in learned:
        if entry.kind == "fact" and entry.target:
            fact = scoped.fact(entry.target)
            out.print(
                f"{entry.action}: {fact.content}  ({fact.category}, {fact.confidence:.2f}) — {entry.reason}",
                markup=False,
            )


def hits_table(hits: Sequence[Hit]) -> Table:
    """Hits with their scores and what the scores are made of."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("score", "what", "text", "why"):
        table.add_column(name, style="bold" if name == "score" else "", overflow="fold")
    for hit in hits:
        parts = ", ".join(f"{name} {value:.2f}" for name, value in hit.parts.items() if abs(value) >= 0.005)  # noqa: PLR2004 - would print as 0.00
        table.add_row(f"{hit.score:.2f}", _LABELS[hit.kind], escape(hit.text), parts)
    return table


def recall(found: Recall, *, as_json: bool) -> None:
    """Hits with their scores."""
    if as_json:
        document({"hits": found.hits, "trace_id": found.trace.id})
        return
    out = console()
    if found.hits:
        out.print(hits_table(found.hits))
    else:
        out.print("nothing is remembered about that")


def context(block: Context, *, as_json: bool) -> None:
    """The block as it would stand in the prompt."""
    if as_json:
        document(block)
        return
    console().print(Text(block.text or "(nothing to say: the prompt stays as it is)"))


def table(rows: Sequence[Sequence[str]], *columns: str) -> Table:
    """Rows under named columns; long texts are folded, ids are not."""
    made = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in columns:
        made.add_column(name, overflow="fold", no_wrap=name == "id")
    for row in rows:
        made.add_row(*(escape(cell) for cell in row))
    return made


def _page(page: Page[Any], rows: Sequence[Sequence[str]], *columns: str, as_json: bool) -> None:
    if as_json:
        document(page)
        return
    out = console()
    out.print(table(rows, *columns))
    out.print(f"{len(page.items)} of {page.total}" + (f"; next: --cursor {page.next}" if page.next else ""))


def facts(page: Page[Fact], *, as_json: bool) -> None:
    """Facts, a line each."""
    rows = [
        (f.id, f.category, f"{f.confidence:.2f}", f"{f.created_at:%Y-%m-%d}", _marked(f) + f.content)
        for f in page.items
    ]
    _page(page, rows, "id", "category", "confidence", "since", "text", as_json=as_json)


def _marked(fact: Fact) -> str:
    return "" if fact.status == "active" else f"[{fact.status}] "


def proposals(page: Page[Proposal], scoped: ScopedMemory, *, as_json: bool) -> None:
    """What waits for review, with the words it is about."""
    rows = [(p.id, p.kind, f"{p.created_at:%Y-%m-%d}", _about(p, scoped), p.reason) for p in page.items]
    _page(page, rows, "id", "kind", "since", "text", "reason", as_json=as_json)


def _about(proposal: Proposal, scoped: ScopedMemory) -> str:
    if proposal.kind in {"fact", "removal"}:
        return scoped.fact(proposal.target).content
    return f"{proposal.target}: {proposal.payload.get('summary', '')}"


def extractions(page: Page[ExtractionRecord], *, as_json: bool) -> None:
    """Extractions, a line each: when, by what, what came of it, what it cost."""
    rows = []
    for each in page.items:
        outcome = each.error or ", ".join(f"{d.kind}: {d.content}" for d in each.decisions) or "nothing to keep"
        tokens = f"{each.usage.input_tokens + each.usage.output_tokens}"
        rows.append((each.id, f"{each.at:%Y-%m-%d %H:%M}", each.extractor, f"{len(each.messages)}", tokens, outcome))
    _page(page, rows, "id", "when", "extractor", "read", "tokens", "outcome", as_json=as_json)


def journal(page: Page[Entry], *, as_json: bool) -> None:
    """Journal entries, a line each."""
    rows = [(f"{e.at:%Y-%m-%d %H:%M}", e.by, e.action, e.target, e.reason) for e in page.items]
    _page(page, rows, "when", "by", "action", "target", "reason", as_json=as_json)


def rules(listed: Sequence[Rule], *, as_json: bool) -> None:
    """Rules of a policy, a line each, with what they match."""
    if as_json:
        document(listed)
        return
    rows = []
    for number, rule in enumerate(listed, 1):
        asked = {f.name: getattr(rule, f.name) for f in fields(rule) if f.name not in {"effect", "reason"}}
        given = (f"{name}={value!r}" for name, value in plain(asked).items() if value not in (None, []))
        rows.append((f"{number}", rule.effect, rule.reason, " ".join(given)))
    console().print(table(rows, "rule", "effect", "reason", "when"))


def jobs(work: Sequence[Job], *, as_json: bool) -> None:
    """Jobs, a line each."""
    if as_json:
        document(work)
        return
    rows = [(j.id, j.kind, j.state, f"{j.run_after:%Y-%m-%d %H:%M}", f"{j.attempts}", j.error) for j in work]
    console().print(table(rows, "id", "kind", "state", "due", "attempts", "error"))


def profile(known: Profile, *, as_json: bool) -> None:
    """Sections and attributes."""
    if as_json:
        document(known)
        return
    out = console()
    if not known.version:
        out.print("no profile yet")
    for name, section in known.sections.items():
        out.print(f"{name}: {section.summary}", markup=False)
    for name, value in known.attributes.items():
        out.print(f"{name} = {value}", markup=False)


def reembedded(state: Status, *, places: int, jobs: int, as_json: bool) -> None:
    """What was done, and what is left."""
    if as_json:
        document({"embedder": state.embedder, "places": places, "jobs": jobs, "waiting": state.waiting})
        return
    left = f"; {state.waiting} jobs wait for another try" if state.waiting else ""
    console().print(f"{state.embedder}: {places} places needed vectors, {jobs} jobs done{left}", markup=False)


def status(state: Status, *, as_json: bool) -> None:
    """Parts and counts."""
    if as_json:
        document(state)
        return
    out = console()
    out.print(f"store      {state.url}", markup=False)
    out.print(f"embedder   {state.embedder}", markup=False)
    out.print(f"extractor  {state.extractor}", markup=False)
    out.print(f"jobs       {state.waiting} waiting, {state.running} running, {state.parked} parked")
