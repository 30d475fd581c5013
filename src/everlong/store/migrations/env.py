"""Runs the revisions on the connection, and in the transaction, that the store has open."""

from __future__ import annotations

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=None,
    transactional_ddl=False,  # the transaction belongs to the store
)
context.run_migrations()
