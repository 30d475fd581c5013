"""The review inbox, the record of extractions, and a journal that is listed by person."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
NO_CALL = sa.text("kind <> 'call'")


def upgrade() -> None:
    op.create_table(
        "proposals",
        sa.Column("org", WORDS, nullable=False),
        sa.Column("id", WORDS, nullable=False),
        sa.Column("agent", WORDS, nullable=False),
        sa.Column("user", WORDS, nullable=False),
        sa.Column("session", WORDS, nullable=False),
        sa.Column("kind", WORDS, nullable=False),
        sa.Column("target", WORDS, nullable=False),
        sa.Column("reason", WORDS, nullable=False),
        sa.Column("by", WORDS, nullable=False),
        sa.Column("payload", WORDS, nullable=False),
        sa.Column("created_at", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("org", "id"),
    )
    op.create_index(
        "proposals_one_pending",
        "proposals",
        ["org", "agent", "user", "session", "kind", "target"],
        unique=True,
        sqlite_where=NO_CALL,
        postgresql_where=NO_CALL,
    )
    op.create_index("proposals_by_time", "proposals", ["org", "user", "agent", "session", "created_at", "id"])
    op.create_table(
        "extractions",
        sa.Column("org", WORDS, nullable=False),
        sa.Column("id", WORDS, nullable=False),
        sa.Column("agent", WORDS, nullable=False),
        sa.Column("user", WORDS, nullable=False),
        sa.Column("session", WORDS, nullable=False),
        sa.Column("extractor", WORDS, nullable=False),
        sa.Column("prompt", WORDS, nullable=False),
        sa.Column("messages", WORDS, nullable=False),
        sa.Column("decisions", WORDS, nullable=False),
        sa.Column("skipped", WORDS, nullable=False),
        sa.Column("raw", WORDS, nullable=False),
        sa.Column("error", WORDS, nullable=False),
        sa.Column("at", sa.BigInteger(), nullable=False),
        sa.Column("calls", sa.BigInteger(), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), nullable=False),
        sa.Column("milliseconds", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("org", "id"),
    )
    op.create_index("extractions_by_time", "extractions", ["org", "user", "agent", "session", "at", "id"])
    op.create_index(
        "extractions_by_cost",
        "extractions",
        ["org", "at", "agent", "user", "session", "calls", "input_tokens", "output_tokens"],
    )
    # Most lists are a person's, of any agent.
    op.drop_index("journal_by_time", "journal")
    op.create_index("journal_by_time", "journal", ["org", "user", "agent", "session", "at", "id"])
