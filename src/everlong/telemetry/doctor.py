"""An examination of a live store: what is wrong, what might be, and the one command that helps."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from shlex import quote
from typing import TYPE_CHECKING, Final, Literal

from everlong import text as words
from everlong.records import Scope

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from everlong.protocols import Transaction
    from everlong.records import Fact, Recall

__all__ = ["Finding", "Severity", "disk", "examine", "question", "sqlite"]

Severity = Literal["ok", "note", "problem"]

_EVERYWHERE: Final = Scope()
_OVERDUE: Final = timedelta(minutes=15)
"""Work that is due for longer than the longest pause between two tries (10 minutes) has no worker."""
_SKEW: Final = timedelta(minutes=2)
_OLD: Final = timedelta(days=30)
_MANY: Final = 0.05
"""Share of facts that say what another says, from which it is worth a word."""
_LOOKED_AT: Final = 500
"""Facts, jobs and extractions that are looked at: as many facts as one scope keeps at most."""
_ROOM: Final = 256 * 1024 * 1024
"""Bytes below which a disk is nearly full; a checkpoint or a migration may need as much as the store is large."""
_FIXED: Final = (3, 51, 3)
"""The SQLite that mends a fault of write-ahead logs: a checkpoint beside a write in another process could lose pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at. ``command`` is what helps, to be run as it stands; empty if nothing is needed."""

    check: str
    severity: Severity
    said: str
    command: str = ""


def examine(tx: Transaction, scope: Scope, *, model: str, now: datetime, url: str = "") -> Iterator[Finding]:
    """Looks at the whole store's work and vectors, and at what is kept for ``scope``. ``model`` is the present
    embedder's, or empty; ``url`` is the store that the commands should name, if it is not that of the settings."""
    yield from _work(tx, now, url)
    yield from _extractions(tx, url)
    yield from _vectors(tx, model, url)
    yield from _clock(tx, now)
    yield from _contents(tx, scope, now, url)


def _work(tx: Transaction, now: datetime, url: str) -> Iterator[Finding]:
    jobs = tx.jobs.list(_EVERYWHERE, limit=_LOOKED_AT)
    parked = [job for job in jobs if job.state == "parked"]
    late = [job for job in jobs if job.state == "waiting" and now - job.run_after > _OVERDUE]
    if parked:
        first = parked[0]
        yield Finding(
            check="work",
            severity="problem",
            said=f"{len(parked)} jobs were set aside after failing too often; {first.kind} at {first.scope}: {first.error}",
            command=f"everlong jobs --retry {first.id} --operator doctor{_to(url, first.scope)}",
        )
    if late:
        yield Finding(
            check="work",
            severity="problem",
            said=f"{len(late)} jobs have been due since {late[0].run_after:%Y-%m-%d %H:%M} or later: no worker runs",
            command=f"everlong worker --once{_to(url)}",
        )
    if not parked and not late:
        yield Finding(check="work", severity="ok", said=f"{len(jobs)} jobs wait or run, none is late or was set aside")


def _extractions(tx: Transaction, url: str) -> Iterator[Finding]:
    found = tx.extractions.list(_EVERYWHERE, limit=100).items
    failed = [record for record in found if record.error]
    said = f"{len(failed)} of the latest {len(found)} extractions failed"
    if not failed:
        yield Finding(check="extraction", severity="ok", said=said)
        return
    last = failed[0]
    still = last is found[0]
    yield Finding(
        check="extraction",
        severity="problem" if still else "note",
        said=f"{said}; {'the latest' if still else 'last'} at {last.at:%Y-%m-%d %H:%M} ({last.extractor}): {last.error}",
        command=f"everlong extractions {last.id} --operator doctor{_to(url, last.scope)}",
    )


def _vectors(tx: Transaction, model: str, url: str) -> Iterator[Finding]:
    if not model:
        said = "no embedder: search goes by words alone; set embedder = 'use' to search by meaning too"
        yield Finding(check="vectors", severity="note", said=said)
        return
    places = tx.index.unembedded(model)
    if not places:
        yield Finding(check="vectors", severity="ok", said=f"every text has a vector of {model}")
        return
    count = sum(
        len(shelf.unembedded(place, model, limit=_LOOKED_AT))
        for place in places
        for shelf in (tx.facts, tx.messages, tx.passages)
    )
    waiting = sum(job.kind == "embed" and job.state != "parked" for job in tx.jobs.list(_EVERYWHERE, limit=_LOOKED_AT))
    yield Finding(
        check="vectors",
        severity="note" if waiting >= len(places) else "problem",
        said=f"{count} texts in {len(places)} places have no vector of {model} and are found by their words only; "
        f"{waiting} jobs wait to make some",
        command=f"everlong reembed{_to(url)}",
    )


def _clock(tx: Transaction, now: datetime) -> Iterator[Finding]:
    latest = tx.journal.list(_EVERYWHERE, limit=1).items
    if latest and latest[0].at - now > _SKEW:
        ahead = latest[0].at - now
        said = f"the latest change is dated {ahead} ahead of this clock: relative dates and expiry will be wrong"
        yield Finding(check="clock", severity="problem", said=said, command="timedatectl status")
    else:
        yield Finding(check="clock", severity="ok", said=f"{now:%Y-%m-%d %H:%M:%S} UTC, no change is dated later")


def _contents(tx: Transaction, scope: Scope, now: datetime, url: str) -> Iterator[Finding]:
    page = tx.facts.list(scope, limit=_LOOKED_AT)
    sessions = tx.sessions.list(scope, limit=1).total
    if not page.total and not sessions:
        said = f"nothing is remembered at {scope}: was it stored under another user, agent or organisation?"
        yield Finding(check="contents", severity="note", said=said, command=f'everlong add "…"{_to(url, scope)}')
        return
    yield Finding(check="contents", severity="ok", said=f"{page.total} facts and {sessions} conversations at {scope}")
    yield from _repeated(page.items, scope, url)
    unused = sum(not fact.uses and now - fact.created_at > _OLD for fact in page.items)
    if unused:
        said = f"{unused} of {len(page.items)} facts are older than {_OLD.days} days and were never recalled"
        yield Finding(check="uses", severity="note", said=said, command=f"everlong facts{_to(url, scope)}")
    waiting = tx.proposals.list(scope, limit=1).total
    if waiting:
        said = f"{waiting} changes wait for a person and are not recalled until then"
        yield Finding(check="inbox", severity="note", said=said, command=f"everlong inbox list{_to(url, scope)}")


def _repeated(facts: Sequence[Fact], scope: Scope, url: str) -> Iterator[Finding]:
    same = Counter(frozenset(words.terms(fact.content)) for fact in facts)
    repeated = sum(count - 1 for count in same.values())
    if facts and repeated / len(facts) > _MANY:
        said = f"{repeated} of {len(facts)} facts use the words of another: the same thing may be stored twice"
        yield Finding(check="duplicates", severity="problem", said=said, command=f"everlong facts{_to(url, scope)}")
    elif facts:
        yield Finding(check="duplicates", severity="ok", said=f"{repeated} of {len(facts)} facts repeat another")


# --------------------------------------------------------------------------------------------------- one question


def question(tx: Transaction, scope: Scope, recall: Recall, *, model: str, url: str = "") -> Iterator[Finding]:
    """Why ``recall`` found what it found, or nothing: what was searched, by what, what the threshold and the limit
    left out, and whether something that waits or was retired would have answered."""
    trace = recall.trace
    asked = f'"{trace.query.text}"'
    if model and trace.embedder != model:
        yield Finding(
            check="question", severity="problem", said=f"{asked} was searched by words only: {trace.embedder}"
        )
    if not sum(trace.searched.values()):
        said = f"nothing was there to be searched for {asked} at {scope}"
        yield Finding(check="question", severity="problem", said=said, command=f"everlong facts{_to(url, scope)}")
    below = [each for each in trace.considered if each.reason.startswith("below the threshold")]
    over = sum(each.reason == "over the limit" for each in trace.considered)
    if recall.hits:
        first = recall.hits[0]
        said = f"{asked} finds {len(recall.hits)}, first ({first.score:.2f}): {first.text[:200]}"
        yield Finding(check="question", severity="ok", said=said)
    elif below:
        best = max(each.score for each in below)
        yield Finding(
            check="question",
            severity="problem",
            said=f"{asked} finds nothing: the best of {len(below)} scores {best:.2f}, below the threshold of "
            f"{trace.minimum:.2f}. Look at them before changing the threshold; ask in the words of what was said",
            command=f"everlong recall {quote(trace.query.text)} --explain{_to(url, scope)}",
        )
    if over:
        said = f"{over} more passed the threshold and were over the limit of {trace.query.limit}"
        command = f"everlong recall {quote(trace.query.text)} --limit {trace.query.limit + over}{_to(url, scope)}"
        yield Finding(check="question", severity="note", said=said, command=command)
    yield from _not_searched(tx, scope, trace.query.text, url)


def _not_searched(tx: Transaction, scope: Scope, asked: str, url: str) -> Iterator[Finding]:
    terms = set(words.terms(asked))
    if len(terms) < 2:  # noqa: PLR2004 - one word is no question
        said = "the question is one word: name whom and what it is about"
        yield Finding(check="question", severity="note", said=said)
    for fact in tx.facts.list(scope, status=None, limit=_LOOKED_AT).items:
        if fact.status != "active" and len(terms & set(words.terms(fact.content))) * 2 >= len(terms) > 0:
            held = fact.status == "held"
            said = f"{'held for review' if held else 'retired'}, so not searched: {fact.content[:200]} ({fact.reason})"
            command = "everlong inbox list" if held else f"everlong journal --target {fact.id}"
            yield Finding(check="question", severity="note", said=said, command=command + _to(url, scope))


# ------------------------------------------------------------------------------------------------- the machine


def disk(free: int, size: int) -> Finding:
    """Whether there is room for a store of ``size`` bytes to go on, with ``free`` bytes left."""
    said = f"{free / 1e9:.1f} GB are free, the store takes {size / 1e9:.3f} GB"
    if free < max(_ROOM, size):
        return Finding(check="disk", severity="problem", said=f"nearly full: {said}", command="df -h")
    return Finding(check="disk", severity="ok", said=said)


def sqlite(version: tuple[int, ...], *, durable: bool) -> Iterator[Finding]:
    """Which SQLite, and whether what it is told survives."""
    shown = ".".join(map(str, version))
    if not durable:
        said = "memory is kept in this process only and gone at its end: name a file, such as sqlite:///memory.db"
        yield Finding(check="durability", severity="problem", said=said)
    else:
        said = "what was acknowledged survives a crash and a power failure (write-ahead log, synchronous=FULL)"
        yield Finding(check="durability", severity="ok", said=said)
    if version < _FIXED:
        said = f"SQLite {shown} has a fault in its write-ahead log that {'.'.join(map(str, _FIXED))} mends; several "
        said += "processes that write at the same time might meet it"
        yield Finding(check="sqlite", severity="note", said=said, command="pip install 'everlong[sqlite]'")
    else:
        yield Finding(check="sqlite", severity="ok", said=f"SQLite {shown}")


def _to(url: str, scope: Scope | None = None) -> str:
    """The options that lead a command to the store, and to ``scope``."""
    parts = zip(("org", "agent", "user", "session"), scope.parts if scope else ("",) * 4, strict=True)
    named = [*parts, ("url", url)]
    return "".join(f" --{name} {quote(part)}" for name, part in named if part)
