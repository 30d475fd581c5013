"""The text of memory files in pieces, for search; files that are there already are cut too."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from everlong.store.passages import cut, packed

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

WORDS = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
PLACE = ("org", "agent", "user", "session")


def upgrade() -> None:
    table = op.create_table(
        "passages",
        sa.Column("org", WORDS, nullable=False),
        sa.Column("agent", WORDS, nullable=False),
        sa.Column("user", WORDS, nullable=False),
        sa.Column("session", WORDS, nullable=False),
        sa.Column("path", WORDS, nullable=False),
        sa.Column("pieces", WORDS, nullable=False),
        sa.Column("count", sa.BigInteger(), nullable=False),
        sa.Column("revision", sa.BigInteger(), nullable=False),
        sa.Column("terms", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("org", "agent", "user", "session", "path"),
    )
    op.create_index("passages_by_revision", "passages", ["org", "agent", "user", "session", "revision"])
    _fill(op.get_bind(), table)


def _fill(bind: sa.Connection, table: sa.Table) -> None:
    names = (*PLACE, "path", "content", "updated_at")
    files = sa.table("files", *(sa.column(name) for name in names))
    buckets = sa.table("buckets", *(sa.column(name) for name in (*PLACE, "kind", "epoch", "revision")))
    known = {
        tuple(row) for row in bind.execute(sa.select(*(buckets.c[n] for n in PLACE)).where(buckets.c.kind == "file"))
    }
    for *place, path, content, written in bind.execute(sa.select(*(files.c[name] for name in names))).fetchall():
        where = dict(zip(PLACE, place, strict=True))
        if tuple(place) not in known:
            bind.execute(sa.insert(buckets).values(**where, kind="file", epoch="0003", revision=1))
            known.add(tuple(place))
        row = packed(path, [(text, written) for text in cut(bytes(content))])
        bind.execute(sa.insert(table).values(**where, path=path, revision=1, **row))
