"""How many messages wait to be extracted, kept with the bucket that holds them; those that wait already are counted."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

PLACE = ("org", "agent", "user", "session")


def upgrade() -> None:
    op.add_column("buckets", sa.Column("waiting", sa.BigInteger(), nullable=False, server_default=sa.text("0")))
    buckets = sa.table("buckets", *(sa.column(name) for name in (*PLACE, "kind", "waiting")))
    messages = sa.table("messages", *(sa.column(name) for name in (*PLACE, "position")))
    sessions = sa.table("sessions", *(sa.column(name) for name in (*PLACE, "extracted")))
    same = sa.and_(*(messages.c[name] == sessions.c[name] for name in PLACE))
    homes = [sessions.c[name] for name in PLACE[:3]]
    waiting = (
        sa.select(*homes, sa.func.count())
        .select_from(sessions.join(messages, sa.and_(same, sessions.c.extracted < messages.c.position)))
        .group_by(*homes)
    )
    bind = op.get_bind()
    for *home, count in bind.execute(waiting).fetchall():
        key = dict(zip((*PLACE, "kind"), (*home, "", "message"), strict=True))
        where = [buckets.c[name] == value for name, value in key.items()]
        bind.execute(sa.update(buckets).where(*where).values(waiting=count))
