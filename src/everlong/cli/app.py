"""The commands. Each opens memory as the settings say, does one thing, prints it for a person or as JSON."""

from __future__ import annotations

import signal
import sys
from typing import Annotated, Any

import typer

from everlong.cli import audit, doctor, files, forgetting, metrics, oversight, render, rights, transfer, upkeep
from everlong.cli import explain as explaining
from everlong.cli import mcp as connecting
from everlong.cli import serve as serving
from everlong.cli.explain import show
from everlong.cli.options import Agent, Cursor, Json, Limit, Org, SessionName, Url, User, at, on_scope, opened
from everlong.errors import EverlongError, InvalidInput
from everlong.memory import ScopedMemory

app = typer.Typer(
    help="Long-term memory for LLM agents. Settings: EVERLONG_… variables or everlong.toml.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
)

Explain = Annotated[bool, typer.Option("--explain", help="Say why: every candidate and its fate. Stores the trace.")]
Language = Annotated[str, typer.Option("--language", help="Play only this one: zh or en.")]


@app.command()
def demo(*, language: Language = "", as_json: Json = False) -> None:
    """Play two conversations, three days apart, on a fresh store and watch an agent remember."""
    from everlong.cli.demo import play

    play([language] if language else ["zh", "en"], as_json=as_json)


@app.command()
def chat(
    *,
    url: Url = None,
    user: User = "local",
    agent: Agent = "",
    org: Org = "",
    session: SessionName = "",
    as_json: Json = False,
) -> None:
    """Talk to a model that remembers. Needs EVERLONG_MODEL, such as openai:gpt-4o-mini (and EVERLONG_BASE_URL)."""
    from everlong.cli.chat import converse

    with opened(url) as memory:
        scoped = at(memory, org=org, agent=agent, user=user, session=session or memory.parts.new_id("chat"))
        converse(memory, scoped, as_json=as_json)


@app.command()
def add(
    text: Annotated[
        list[str] | None, typer.Argument(help="What the user said; from standard input if left out.")
    ] = None,
    *,
    role: Annotated[str, typer.Option("--role", help="user or assistant.")] = "user",
    url: Url = None,
    user: User = "local",
    agent: Agent = "",
    org: Org = "",
    session: SessionName = "cli",
    wait: Annotated[bool, typer.Option(help="Extract facts now, or leave it to a worker.")] = True,
    as_json: Json = False,
) -> None:
    """Keep something that was said, and learn from it."""
    words = " ".join(text) if text else sys.stdin.read()
    with opened(url, worker="none") as memory:
        scoped = at(memory, org=org, agent=agent, user=user, session=session)
        home = at(memory, org=org, agent=agent, user=user)
        before = {entry.id for entry in home.journal(limit=50).items}
        added = scoped.add([(role, words)])
        learned: tuple[Any, ...] = ()
        if wait and added.status == "queued":
            with render.progress("extracting", quiet=as_json):
                memory.drain()
            entries = home.journal(limit=50).items
            learned = tuple(e for e in entries if e.by.startswith("extractor:") and e.id not in before)
        render.added(added, learned, scoped, as_json=as_json)


@on_scope(app, session=True)
def recall(
    scoped: ScopedMemory,
    question: list[str],
    *,
    limit: Limit = 5,
    explain: Explain = False,
    as_json: Json = False,
) -> None:
    """What memory holds on a question, with scores."""
    found = scoped.recall(" ".join(question), limit=limit, trace=explain)
    if explain and as_json:
        render.document(found)
        return
    render.recall(found, as_json=as_json)
    if explain:
        show(scoped.explanation(found.trace.id))


@on_scope(app, session=True)
def context(
    scoped: ScopedMemory,
    question: list[str],
    *,
    budget: Annotated[int | None, typer.Option("--budget", help="Tokens, 100 to 8000.")] = None,
    explain: Explain = False,
    as_json: Json = False,
) -> None:
    """The exact block that an agent's prompt would get for a question."""
    block = scoped.context(" ".join(question), budget=budget, trace=explain)
    if explain and block.trace is not None and not as_json:
        show(scoped.explanation(block.trace.id))
    else:
        render.context(block, as_json=as_json)


@on_scope(app)
def facts(
    scoped: ScopedMemory,
    *,
    every: Annotated[bool, typer.Option("--all", help="Also facts that are held for review or retired.")] = False,
    cursor: Cursor = "",
    limit: Limit = 100,
    as_json: Json = False,
) -> None:
    """What is known, newest first."""
    render.facts(scoped.facts(status=None if every else "active", cursor=cursor, limit=limit), as_json=as_json)


@on_scope(app)
def profile(
    scoped: ScopedMemory,
    assignments: Annotated[list[str] | None, typer.Argument(help="name=value to set; name= to remove.")] = None,
    *,
    as_json: Json = False,
) -> None:
    """Show the profile, or set attributes (birthday=5-1) and sections (workContext="…")."""
    from everlong.records import SECTIONS

    pairs = dict(_assignment(each) for each in assignments or ())
    if pairs:
        scoped.update_profile(
            sections={k: v for k, v in pairs.items() if k in SECTIONS},
            attributes={k: v or None for k, v in pairs.items() if k not in SECTIONS},
        )
    render.profile(scoped.profile(), as_json=as_json)


def _assignment(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        msg = f"{text!r} is not name=value"
        raise InvalidInput(msg)
    return name.strip(), value.strip()


@app.command()
def status(*, url: Url = None, as_json: Json = False) -> None:
    """Where memory is, which parts are active, how much work waits."""
    with opened(url, worker="none") as memory:
        render.status(memory.status(), as_json=as_json)


@app.command()
def reembed(*, url: Url = None, as_json: Json = False) -> None:
    """Gives every text a vector of the present embedder; needed once after another was set. May be run again."""
    with opened(url, worker="none") as memory:
        places = memory.reembed()
        jobs = memory.drain(timeout=3600)
        render.reembedded(memory.status(), places=places, jobs=jobs, as_json=as_json)


@app.command()
def worker(
    *,
    url: Url = None,
    once: Annotated[bool, typer.Option("--once", help="Do the work that is due and end.")] = False,
    as_json: Json = False,
) -> None:
    """Do background work until stopped (SIGTERM and Ctrl-C finish the present job first)."""
    with opened(url, worker="none") as memory:
        if once:
            render.document({"ran": memory.parts.worker.run_due()}, as_json=as_json)
            return

        def stop(*_: object) -> None:
            memory.parts.worker.request_stop()

        signal.signal(signal.SIGTERM, stop)
        signal.signal(signal.SIGINT, stop)
        render.note(f"working on {memory.status().url}; stop with Ctrl-C", quiet=as_json)
        memory.parts.worker.run_forever()


oversight.register(app)
forgetting.register(app)
metrics.register(app)
audit.register(app)
explaining.register(app)
doctor.register(app)
rights.register(app)
serving.register(app)
connecting.register(app)
files.register(app)
transfer.register(app)
upkeep.register(app)


def main() -> None:
    """Runs the command line; an error of ours prints its message and ends with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A console that cannot show a character shows its escape instead of crashing.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        app()
    except EverlongError as error:
        render.error(error)
        sys.exit(error.exit_code)
