"""The tables: tenant first in every key, ids made by the application, times in microseconds, JSON as text.

Two dialects share them. Nothing here counts by itself (no sequences) and no key reaches over tenants, so that the same
tables can be spread over many machines by tenant.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import BigInteger, Column, Double, Index, Integer, LargeBinary, MetaData, Table, Text, text

HEAD: Final = "0005"
"""The revision that :data:`metadata` describes."""

metadata: Final = MetaData()

Words: Final = Text().with_variant(Text(collation="C"), "postgresql")
"""Text that is compared and sorted by code point on both dialects."""

PLACE: Final = ("org", "agent", "user", "session")
_WITHIN: Final = ("org", "user", "agent", "session")
"""The order for lists of what lies within a scope: most name a person, few an agent."""


def _words(*names: str, key: bool = False) -> list[Column[str]]:
    return [Column(name, Words, nullable=False, primary_key=key) for name in names]


def _numbers(*names: str) -> list[Column[int]]:
    return [Column(name, BigInteger, nullable=False) for name in names]


def _times(*names: str) -> list[Column[int]]:
    return [Column(name, BigInteger) for name in names]


def _searchable() -> list[Column[object]]:
    return [
        Column("revision", BigInteger, nullable=False),
        Column("terms", LargeBinary, nullable=False),
        Column("length", Integer, nullable=False),
        Column("question", Integer, nullable=False),
    ]


facts: Final = Table(
    "facts",
    metadata,
    *_words("org", "id", key=True),
    *_words("agent", "user", "session", "learned_in", "content", "category", "origin", "status", "reason"),
    *_words("supersedes", "superseded_by", "evidence", "metadata"),
    *(Column(name, Double, nullable=False) for name in ("confidence", "importance", "trust")),
    *_numbers("pinned", "version", "confirmations", "uses", "created_at", "updated_at"),
    *_times("last_used_at", "valid_from", "valid_until", "retired_at"),
    *_searchable(),
)
Index("facts_by_time", *(facts.c[n] for n in (*PLACE, "status", "created_at", "id")))
Index("facts_by_revision", *(facts.c[n] for n in (*PLACE, "revision")))

messages: Final = Table(
    "messages",
    metadata,
    *_words("org", "agent", "user", "id", "session", key=True),
    *_words("role", "content", "speaker", "origin", "signals", "metadata"),
    *_numbers("position", "created_at"),
    *_searchable(),
)
Index("messages_by_position", *(messages.c[n] for n in (*PLACE, "position")))
Index("messages_by_revision", *(messages.c[n] for n in ("org", "agent", "user", "revision")))
Index("messages_by_time", *(messages.c[n] for n in ("org", "agent", "user", "created_at", "position")))

sessions: Final = Table(
    "sessions",
    metadata,
    *_words(*PLACE, key=True),
    *_words("epoch"),
    *_numbers("created_at", "updated_at", "extracted"),
)

profiles: Final = Table(
    "profiles",
    metadata,
    *_words(*PLACE, key=True),
    *_words("sections", "attributes"),
    *_numbers("version"),
    *_times("updated_at"),
)

files: Final = Table(
    "files",
    metadata,
    *_words(*PLACE, "path", key=True),
    *_words("metadata"),
    *_numbers("version", "read_only", "created_at", "updated_at"),
    Column("content", LargeBinary, nullable=False),
)

passages: Final = Table(
    "passages",
    metadata,
    *_words(*PLACE, "path", key=True),
    *_words("pieces"),  # of one file in one row: rows that come and go would leave copies of others in SQLite's pages
    *_numbers("count", "revision"),
    Column("terms", LargeBinary, nullable=False),
)
Index("passages_by_revision", *(passages.c[n] for n in (*PLACE, "revision")))

vectors: Final = Table(
    "vectors",
    metadata,
    *_words("org", "kind", "agent", "user", "session", "id", "model", key=True),
    Column("pieces", Integer, nullable=False),
    Column("data", LargeBinary, nullable=False),
)

jobs: Final = Table(
    "jobs",
    metadata,
    *_words("org", "id", key=True),
    *_words("agent", "user", "session", "kind", "key", "state", "worker", "error", "payload"),
    *_numbers("run_after", "first_at", "attempts"),
    *_times("lease_until"),
)
Index(
    "jobs_one_waiting",
    *(jobs.c[n] for n in ("org", "kind", "key")),
    unique=True,
    sqlite_where=text("state = 'waiting'"),
    postgresql_where=text("state = 'waiting'"),
)
Index("jobs_by_time", *(jobs.c[n] for n in ("state", "kind", "run_after")))

journal: Final = Table(
    "journal",
    metadata,
    *_words("org", "id", key=True),
    *_words("agent", "user", "session", "by", "action", "kind", "target", "reason", "payload"),
    *_numbers("at"),
    *_times("before", "after"),
)
Index("journal_by_time", *(journal.c[n] for n in (*_WITHIN, "at", "id")))

chain: Final = Table(
    "chain",
    metadata,
    *_words("org", key=True),
    Column("number", BigInteger, primary_key=True, autoincrement=False),
    *_words("entry", "body", "hash", "erased"),
)

proposals: Final = Table(
    "proposals",
    metadata,
    *_words("org", "id", key=True),
    *_words("agent", "user", "session", "kind", "target", "reason", "by", "payload"),
    *_numbers("created_at"),
)
Index(
    "proposals_one_pending",
    *(proposals.c[n] for n in (*PLACE, "kind", "target")),
    unique=True,
    sqlite_where=text("kind <> 'call'"),
    postgresql_where=text("kind <> 'call'"),
)
Index("proposals_by_time", *(proposals.c[n] for n in (*_WITHIN, "created_at", "id")))

extractions: Final = Table(
    "extractions",
    metadata,
    *_words("org", "id", key=True),
    *_words("agent", "user", "session", "extractor", "prompt", "messages", "decisions", "skipped", "raw", "error"),
    *_numbers("at", "calls", "input_tokens", "output_tokens"),
    Column("milliseconds", Double, nullable=False),
)
Index("extractions_by_time", *(extractions.c[n] for n in (*_WITHIN, "at", "id")))
Index(
    "extractions_by_cost",  # holds all that a budget asks for, so that the sum never touches the records themselves
    *(extractions.c[n] for n in ("org", "at", *PLACE[1:], "calls", "input_tokens", "output_tokens")),
)

buckets: Final = Table(
    "buckets",
    metadata,
    *_words(*PLACE, "kind", key=True),
    *_words("epoch"),
    *_numbers("revision"),
    Column("waiting", BigInteger, nullable=False, server_default=text("0")),
)

revisions: Final = Table(
    "revisions",
    metadata,
    *_words("org", "kind", "agent", "user", "session", "id", key=True),
    Column("version", BigInteger, primary_key=True, autoincrement=False),
    *_numbers("at"),
    *_words("body"),
)
