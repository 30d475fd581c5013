"""A copy of a live SQLite store in one file, and back: while others go on writing, whole or not at all."""

from __future__ import annotations

import os
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final

from everlong.errors import InvalidInput, StoreUnavailable
from everlong.store import _file, _path
from everlong.store.sqlite import _module, translate

__all__ = ["backup", "is_backup", "path_of", "restore"]

_MAGIC: Final = b"SQLite format 3\0"
"""How every SQLite file begins."""

_PAGES: Final = 256
"""Pages copied at a time (1 MiB), between which writers get their turn."""
_PRIVATE: Final = 0o600


def backup(source: Path, target: Path) -> int:
    """Copies the store at ``source`` to the new file ``target``, as it is at one moment; returns its size in bytes. The
    copy is examined before it takes its name.

    Raises:
        InvalidInput: ``target`` exists, or ``source`` does not. StoreUnavailable: it cannot be read or written, or is
            damaged.
    """
    if not source.is_file():
        raise InvalidInput(f"there is no store {source}")
    if target.exists():
        raise InvalidInput(f"{target} exists already: name another file")
    part = target.with_name(f"{target.name}.part")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE))
        _copy(source, part)
        _examine(part)
        part.replace(target)
        _settle(target.parent)
    except OSError as error:
        raise StoreUnavailable(f"{target} cannot be written: {error.strerror}") from None
    finally:
        for left in (part, Path(f"{part}-wal"), Path(f"{part}-shm"), Path(f"{part}-journal")):
            left.unlink(missing_ok=True)
    return target.stat().st_size


def restore(source: Path, target: Path) -> int:
    """Makes the new store ``target`` what the backup ``source`` holds; returns its size in bytes.

    Raises:
        InvalidInput: ``target`` exists: nothing is ever written over, move it away first. StoreUnavailable: the backup is
            damaged.
    """
    return backup(source, target)


def path_of(url: str) -> Path | None:
    """The file that holds the store at ``url``; ``None`` if it is in memory or in PostgreSQL."""
    scheme, found, rest = url.partition("://")
    if found and scheme != "sqlite":
        return None
    return _file(rest) if found else _path(url)


def is_backup(file: Path) -> bool:
    """Whether this is a SQLite file, by how it begins. Raises :class:`InvalidInput` if it cannot be read."""
    try:
        with file.open("rb") as opened:
            return opened.read(len(_MAGIC)) == _MAGIC
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}") from None


def _copy(source: Path, part: Path) -> None:
    module = _module()
    try:
        with (
            closing(module.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as kept,
            closing(module.connect(part)) as copy,
        ):
            kept.backup(copy, pages=_PAGES)
            # One file is all there is: a backup is carried about without what lies beside it.
            copy.execute("PRAGMA journal_mode=DELETE")
    except module.Error as error:
        raise translate(error) from error


def _examine(part: Path) -> None:
    module = _module()
    found: Any = None
    with suppress(module.Error), closing(module.connect(f"{part.absolute().as_uri()}?mode=ro", uri=True)) as copy:
        found = copy.execute("PRAGMA integrity_check").fetchone()[0]
        copy.execute("SELECT version_num FROM alembic_version").fetchone()
        if found == "ok":
            return
    raise StoreUnavailable(
        f"the copy is damaged or is no store of everlong ({found or 'unreadable'}); nothing was kept"
    )


def _settle(folder: Path) -> None:
    """Sees to it that the name outlives a power failure."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
