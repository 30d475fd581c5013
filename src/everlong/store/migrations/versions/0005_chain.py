"""A chain over the journal, by organisation; empty until the setting ``audit_chain`` is set."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    words = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
    op.create_table(
        "chain",
        sa.Column("org", words, nullable=False, primary_key=True),
        sa.Column("number", sa.BigInteger(), nullable=False, primary_key=True, autoincrement=False),
        *(sa.Column(name, words, nullable=False) for name in ("entry", "body", "hash", "erased")),
    )
