"""The schema's versions: a store that is new or older is brought to the present one, in one transaction."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import inspect, text

from everlong.errors import SchemaMismatch
from everlong.store import schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from sqlalchemy import Connection
    from sqlalchemy.exc import SQLAlchemyError

_SCRIPTS: Final = Path(__file__).parent / "migrations"


def prepare(connection: Connection) -> None:
    """Brings the store to :data:`schema.HEAD` inside the transaction that the caller has open.

    Raises:
        SchemaMismatch: it holds a schema that this version does not know.
    """
    found = _stamp(connection)
    if found != schema.HEAD:
        _upgrade(connection, found)


def _stamp(connection: Connection) -> str:
    if not inspect(connection).has_table("alembic_version"):
        return ""
    found = connection.execute(text("SELECT version_num FROM alembic_version")).scalar()
    return str(found or "")


def _upgrade(connection: Connection, found: str) -> None:
    # Alembic costs 60 ms to import: only a store that is not up to date pays.
    from alembic import command
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(_SCRIPTS).replace("%", "%%"))
    config.attributes["connection"] = connection
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found and found not in known:
        raise SchemaMismatch(
            f"the store has schema {found}, this version of everlong knows up to {schema.HEAD}: "
            "upgrade everlong, or open another store"
        )
    command.upgrade(config, "head")


def ours(error: SQLAlchemyError, translate: Callable[[Exception], Exception]) -> Exception:
    """The driver's error inside one of SQLAlchemy's, as ours."""
    inner = getattr(error, "orig", None)
    return translate(inner if isinstance(inner, Exception) else error)
