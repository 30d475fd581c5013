"""Records to store in tests: everything has a default but what the test is about."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from everlong.protocols import Indexed
from everlong.records import (
    Entry,
    ExtractionRecord,
    Fact,
    Job,
    MemoryFile,
    Message,
    Profile,
    Proposal,
    Scope,
    Section,
    Usage,
)
from everlong.text import terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everlong.protocols import Transaction

__all__ = [
    "ANN",
    "BOB",
    "ODD_NAMES",
    "ODD_TEXTS",
    "START",
    "TALK",
    "add_fact",
    "at",
    "entry",
    "extraction",
    "fact",
    "file",
    "indexed",
    "job",
    "message",
    "profile",
    "proposal",
    "say",
]

START: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
ANN: Final = Scope(org="acme", user="ann")
BOB: Final = Scope(org="acme", user="bob")
TALK: Final = Scope(org="acme", user="ann", session="talk")

ODD_TEXTS: Final = (
    'Ann\'s "tea" \\ back`tick',
    "'; DROP TABLE facts; -- %s %(x)s :name ? $1 {0}",
    "安娜喜欢喝绿茶，不喝咖啡。",
    "👩\u200d👩\u200d👧 is happy 🎉 \U0001f9d1\U0001f3fd\u200d\U0001f4bb",
    "مرحبا بالعالم \u200fשלום‎",
    "100% a_b [c] *d* ^e$",
    "tab\tnew\nline\r\nreturn",
    "e\u0301 and \u00e9 are two spellings",
    " spaces around ",
    "𠮷野家 and \uffff and \u2028",
    "long " * 20_000,
)
"""Texts that break careless stores: quotes, SQL, CJK, emoji, right-to-left, wildcards, controls, length."""

ODD_NAMES: Final = (
    "ann",
    "an",
    "anna",
    "Ann",
    "ANN",
    "ann ",
    "a%",
    "a_n",
    "%",
    "_",
    "ann@example.com",
    "ann@example.co",
    "安娜",
    "安",
    "x" * 300,
    "x" * 299,
    "'; DROP TABLE facts; --",
    "a/b",
    "a\\b",
    "🎉",
    "ann\n",
    "é",
    "e\u0301",
)
"""Names that are each other's prefixes, patterns, cases or look-alikes, and yet all different people."""


def at(seconds: float) -> datetime:
    """``START`` and ``seconds``."""
    return START + timedelta(seconds=seconds)


def indexed(text: str, *, model: str = "", vectors: Sequence[Sequence[float]] | None = None) -> Indexed:
    """What the index gets for ``text``."""
    rows = None if vectors is None else np.asarray(vectors, dtype=np.float32)
    return Indexed(terms=terms(text), model=model, vectors=rows)


def fact(fact_id: str = "f1", scope: Scope = ANN, *, seconds: float = 0, **changes: Any) -> Fact:
    """A fact of ``scope``, made ``seconds`` after ``START``."""
    made: dict[str, Any] = {"content": f"{fact_id} is a fact.", "created_at": at(seconds), "updated_at": at(seconds)}
    return Fact(id=fact_id, scope=scope, **(made | changes))


def add_fact(tx: Transaction, fact_id: str = "f1", scope: Scope = ANN, *, seconds: float = 0, **changes: Any) -> Fact:
    """Stores such a fact."""
    made = fact(fact_id, scope, seconds=seconds, **changes)
    return tx.facts.add(made, indexed(made.content))


def message(message_id: str, session: Scope = TALK, *, seconds: float = 0, **changes: Any) -> Message:
    """A message of the conversation ``session``."""
    made: dict[str, Any] = {"role": "user", "content": f"This is {message_id}.", "created_at": at(seconds)}
    return Message(id=message_id, scope=session.home, session=session.session, **(made | changes))


def say(tx: Transaction, *ids: str, session: Scope = TALK, seconds: float = 0) -> tuple[Message, ...]:
    """Appends a message for each id, a second apart."""
    made = [message(name, session, seconds=seconds + i) for i, name in enumerate(ids)]
    return tx.messages.append(session, made, [indexed(one.content) for one in made])


def profile(scope: Scope = ANN, **changes: Any) -> Profile:
    """A profile with one section and one attribute."""
    made: dict[str, Any] = {
        "sections": {"workContext": Section(summary="Builds kites. 做风筝。", updated_at=START)},
        "attributes": {"name": "Ann", "allergies": ["nuts", "花生"], "born": None, "height": 1.7},
        "updated_at": START,
    }
    return Profile(scope=scope, **(made | changes))


def file(path: str, scope: Scope = ANN, content: bytes = b"# hello", **changes: Any) -> MemoryFile:
    """A memory file."""
    return MemoryFile(scope=scope, path=path, content=content, created_at=START, updated_at=START, **changes)


def job(job_id: str = "j1", scope: Scope = TALK, *, seconds: float = 0, **changes: Any) -> Job:
    """A job asked for at ``START`` that may run ``seconds`` later."""
    made: dict[str, Any] = {"kind": "extract", "key": "talk", "first_at": START}
    return Job(id=job_id, scope=scope, run_after=at(seconds), **(made | changes))


def entry(entry_id: str, scope: Scope = ANN, *, seconds: float = 0, **changes: Any) -> Entry:
    """A line of the journal."""
    made: dict[str, Any] = {"by": "ann", "action": "add"}
    return Entry(id=entry_id, at=at(seconds), scope=scope, **(made | changes))


def proposal(proposal_id: str = "p1", scope: Scope = ANN, *, seconds: float = 0, **changes: Any) -> Proposal:
    """A change that waits for a person; each for a target of its own."""
    made: dict[str, Any] = {"kind": "removal", "target": f"f-{proposal_id}", "reason": "out of date", "by": "llm"}
    return Proposal(id=proposal_id, scope=scope, created_at=at(seconds), **(made | changes))


def extraction(record_id: str = "x1", scope: Scope = TALK, *, seconds: float = 0, **changes: Any) -> ExtractionRecord:
    """An extraction of one call, 100 tokens read and 10 written."""
    made: dict[str, Any] = {"extractor": "llm", "usage": Usage(calls=1, input_tokens=100, output_tokens=10)}
    return ExtractionRecord(id=record_id, scope=scope, at=at(seconds), **(made | changes))
