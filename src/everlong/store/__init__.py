"""The system of record: one SQL body on SQLite and PostgreSQL."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from everlong.errors import ConfigError
from everlong.store.engine import SqlStore

if TYPE_CHECKING:
    from everlong.protocols import Clock, NewId, Store

__all__ = ["open_store"]


def open_store(url: str, *, clock: Clock, new_id: NewId, chain: bool = False) -> Store:
    """Opens the store at ``url`` and brings its schema up to date; a new store is made.

    ``sqlite:///memory.db`` (relative), ``sqlite:////var/lib/memory.db`` (absolute) or a bare path is a file;
    ``sqlite://`` lives in memory as long as the store is open; ``postgresql://user@host/database`` needs the
    extra ``postgres``. With ``chain`` each journal entry becomes a link of its organisation's chain.

    Raises:
        ConfigError: the url is not one of these, or names an impossible place.
        StoreUnavailable: the database cannot be opened or does not answer.
        SchemaMismatch: a newer version of everlong wrote it.
    """
    scheme, found, rest = url.partition("://")
    if not url or (found and scheme not in {"sqlite", "postgresql", "postgres"}):
        raise ConfigError(
            f"cannot open a store at {url.rsplit('@', maxsplit=1)[-1]!r}: use sqlite:///file, sqlite:// or postgresql://…"
        )
    if not found or scheme == "sqlite":
        from everlong.store.sqlite import Sqlite

        return SqlStore(Sqlite(_file(rest) if found else _path(url)), clock=clock, new_id=new_id, chain=chain)
    from everlong.store.postgres import Postgres

    return SqlStore(Postgres(url), clock=clock, new_id=new_id, chain=chain)


def _file(rest: str) -> Path | None:
    if rest in {"", "/", "/:memory:"}:
        return None
    if not rest.startswith("/"):
        raise ConfigError(f"sqlite://{rest} names a host: write sqlite:///{rest} for a file")
    return _path(rest[1:])


def _path(text: str) -> Path:
    return Path(text).expanduser().absolute()
