"""The first schema."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "buckets",
        sa.Column("org", WORDS, nullable=False),
        sa.Column("agent", WORDS, nullable=False),
        sa.Column("user", WORDS, nullable=False),
        sa.Column("session", WORDS, nullable=False),
        sa.Column("kind", WORDS, nullable=False),
        sa.Column("epoch", WORDS, nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("org", "agent", "user", "session", "kind"),
    )
    op.create_table(
        "facts",
        sa.Column("org", WORDS, nullable=False),
        sa.Column("id", WORDS, nullable=False),
        sa.Column("agent", WORDS, nullable=False),
        sa.Column("user", WORDS, nullable=False),
        sa.Column("session", WORDS, nullable=False),
        sa.Column("learned_in", WORDS, nullable=False),
        sa.Column("content", WORDS, nullable=False),
        sa.Column("category", WORDS, nullable=False),
        sa.Column("origin", WORDS, nullable=False),
        sa.Column("status", WORDS, nullable=False),
        sa.Column("reason", WORDS, nullable=False),
        sa.Column("supersedes", WORDS, nullable=False),
        sa.Column("superseded_by", WORDS, nullable=False),
        sa.Column("evidence", WORDS, nullable=False),
        sa.Column("metadata", WORDS, nullable=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("importance", sa.Double(), nullable=False),
        sa.Column("trust", sa.Double(), nullable=False),
        sa.Column("pinned", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("confirmations", sa.BigInteger(), nullable=False),
        sa.Column("uses", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("last_used_at", sa.BigInteger(), nullable=True),
        sa.Column("valid_from", sa.BigInteger(), nullable=True),
        sa.Column("valid_until", sa.BigInteger(), nullable=True),
        sa.Column("retired_at", sa.BigInteger(), nullable=True),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("terms", sa.LargeBinary(), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("question", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("org", "id"),
    )
    op.create_index("facts_by_revision", "facts", ["org", "agent", "user", "session", "revision"], unique=False)
    op.create_index(
        "facts_by_time", "facts", ["org", "agent", "user", "session", "status", "created_at", "id"], unique=False
    )
    op.create_table(
        "files",
        sa.Column("org", WORDS, nullable=False),
        sa.Column("agent", WORDS, nullable=False),
        sa.Column("user", WORDS, nullable=False),
        sa.Column("session", WORDS, nullable=False),
        sa.Column("path", WORDS, nullable=False),
        sa.Column("metadata", WORDS, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("read_only", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("org", "agent", "user", "session", "path"),
    )
    op.create_table(
        "jobs",
        sa.Column("org", WORDS, nullable=False),
        sa.Column("id", WORDS, nullable=False),
        sa.Column("agent", WORDS, nullable=False),
        sa.Column("user", WORDS, nullable=False),
        sa.Column("session", WORDS, nullable=False),
        sa.Column("kind", WORDS, nullable=False),
        sa.Column("key", WORDS, nullable=False),
        sa.Column("state", WORDS, nullable=False),
        sa.Column("worker", WORDS, nullable=False),
        sa.Column("error", WORDS, nullable=False),
        sa.Column("payload", WORDS, nullable=False),
        sa.Column("run_after", sa.BigInteger(), nullable=False),
        sa.Column("first_at", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.BigInteger(), nullable=False),
        sa.Column("lease_until", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("org", "id"),
    )
    op.create_index("jobs_by_time", "jobs", ["state", "kind", "run_after"], unique=False)
    op.create_index(
        "jobs_one_waiting",
        "jobs",
        ["org", "kind", "key"],
        unique=True,
        sqlite_where=sa.text("state = 'waiting'"),
        postgresql_where=sa.text("state = 'waiting'"),
    )
    op.create_table(
        "journal",
        sa.Column("org", WORDS, nullable=False),
        sa.Column("id", WORDS, nullable=False),
        sa.Column("agent", WORDS, nullable=False),
        sa.Column("user", WORDS, nullable=False),
        sa.Column("session", WORDS, nullable=False),
        sa.Column("by", WORDS, nullable=False),
        sa.Column("action", WORDS, nullable=False),
        sa.Column("kind", WORDS, nullable=False),
        sa.Column("target", WORDS, nullable=False),
        sa.Column("reason", WORDS, nullable=False),
        sa.Column("payload", WORDS, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("before", sa.BigInteger(), nullable=True),
        sa.Column("after", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("org", "id"),
    )
    op.create_index("journal_by_time", "journal", ["org", "agent", "user", "session", "at", "id"], unique=False)
    op.create_table(
        "messages",
        sa.Column("org", WORDS, nullable=False),
        sa.Column("agent", WORDS, nullable=False),
        sa.Column("user", WORDS, nullable=False),
        sa.Column("id", WORDS, nullable=False),
        sa.Column("session", WORDS, nullable=False),
        sa.Column("role", WORDS, nullable=False),
        sa.Column("content", WORDS, nullable=False),
        sa.Column("speaker", WORDS, nullable=False),
        sa.Column("origin", WORDS, nullable=False),
        sa.Column("signals", WORDS, nullable=False),
        sa.Column("metadata", WORDS, nullable=False),
        sa.Column("position", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("terms", sa.LargeBinary(), nullable=False),
        sa.Column("length", sa.Integer(), nullable=False),
        sa.Column("question", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("org", "agent", "user", "id", "session"),
    )
    op.create_index("messages_by_position", "messages", ["org", "agent", "user", "session", "position"], unique=False)
    op.create_index("messages_by_revision", "messages", ["org", "agent", "user", "revision"], unique=False)
    op.create_index("messages_by_time", "messages", ["org", "agent", "user", "created_at", "position"], unique=False)
    op.create_table(
        "profiles",
        sa.Column("org", WORDS, nullable=False),
        sa.Column("agent", WORDS, nullable=False),
        sa.Column("user", WORDS, nullable=False),
        sa.Column("session", WORDS, nullable=False),
        sa.Column("sections", WORDS, nullable=False),
        sa.Column("attributes", WORDS, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("org", "agent", "user", "session"),
    )
    op.create_table(
        "revisions",
        sa.Column("org", WORDS, nullable=False),
        sa.Column("kind", WORDS, nullable=False),
        sa.Column("agent", WORDS, nullable=False),
        sa.Column("user", WORDS, nullable=False),
        sa.Column("session", WORDS, nullable=False),
        sa.Column("id", WORDS, nullable=False),
        sa.Column("version", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("body", WORDS, nullable=False),
        sa.PrimaryKeyConstraint("org", "kind", "agent", "user", "session", "id", "version"),
    )
    op.create_table(
        "sessions",
        sa.Column("org", WORDS, nullable=False),
        sa.Column("agent", WORDS, nullable=False),
        sa.Column("user", WORDS, nullable=False),
        sa.Column("session", WORDS, nullable=False),
        sa.Column("epoch", WORDS, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.Column("updated_at", sa.BigInteger(), nullable=False),
        sa.Column("extracted", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("org", "agent", "user", "session"),
    )
    op.create_table(
        "vectors",
        sa.Column("org", WORDS, nullable=False),
        sa.Column("kind", WORDS, nullable=False),
        sa.Column("agent", WORDS, nullable=False),
        sa.Column("user", WORDS, nullable=False),
        sa.Column("session", WORDS, nullable=False),
        sa.Column("id", WORDS, nullable=False),
        sa.Column("model", WORDS, nullable=False),
        sa.Column("pieces", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("org", "kind", "agent", "user", "session", "id", "model"),
    )
    if op.get_bind().dialect.name == "postgresql":
        # A vector of 512 numbers stays inside its row, whole: read in one go, and no time lost on packing noise.
        op.execute("ALTER TABLE vectors ALTER COLUMN data SET STORAGE EXTERNAL")
        op.execute("ALTER TABLE vectors SET (toast_tuple_target = 8160)")
