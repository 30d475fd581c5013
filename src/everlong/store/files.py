"""Memory files: the narrowest visible one counts, each written by compare and swap."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, func, select, update

from everlong.errors import Conflict, NotFound
from everlong.store import rows, sql
from everlong.store.schema import files, revisions

if TYPE_CHECKING:
    from everlong.protocols import Clock
    from everlong.records import MemoryFile, Scope
    from everlong.store.sql import Work

_KIND: Final = "file"
_COLUMNS: Final = rows.file_columns()
_PATH: Final = files.c.path == bindparam("w_path")
_VERSION: Final = files.c.version == bindparam("w_version")
_ADD: Final = sql.Insert(files).values({c.name: bindparam(c.name) for c in files.c}).on_conflict_do_nothing()
_PUT: Final = (
    update(files)
    .where(sql.exactly(files), _PATH, _VERSION)
    .values({n: bindparam(n) for n in ("content", "metadata", "version", "read_only", "created_at", "updated_at")})
)
_GET: Final = select(*_COLUMNS).where(sql.visible(files), _PATH)
_EXACT: Final = select(*_COLUMNS).where(sql.exactly(files), _PATH)
_BELOW: Final = select(*_COLUMNS).where(
    sql.visible(files), func.substr(files.c.path, 1, bindparam("length")) == bindparam("prefix")
)
_DELETE: Final = files.delete().where(sql.exactly(files), _PATH, _VERSION)
_FORGET: Final = revisions.delete().where(
    sql.exactly(revisions), revisions.c.kind == _KIND, revisions.c.id == bindparam("w_path")
)


class Files:
    """The shelf of memory files in one transaction."""

    def __init__(self, work: Work, clock: Clock) -> None:
        self._work = work
        self._clock = clock

    def get(self, scope: Scope, path: str) -> MemoryFile:
        found = [rows.to_file(row) for row in self._work.rows(_GET, **sql.place(scope), w_path=path)]
        if not found:
            raise NotFound(f"no file {path} is visible from {scope}")
        return max(found, key=sql.width)

    def put(self, file: MemoryFile, *, expected: int) -> MemoryFile:
        old = self._at(file.scope, file.path)
        made = replace(file, version=expected + 1)
        values = rows.from_file(made) | {"version": made.version}
        actual = old.version if old else 0
        if actual != expected or not self._write(file, expected, values):
            raise Conflict(f"file {file.path}", expected=expected, actual=self._version(file))
        if old:
            at = rows.to_micros(self._clock())
            sql.keep(self._work, file.scope, _KIND, file.path, expected, at, rows.file_body(old))
        return made

    def list(self, scope: Scope, *, prefix: str = "/") -> tuple[MemoryFile, ...]:
        found = self._work.rows(_BELOW, **sql.place(scope), prefix=prefix, length=len(prefix))
        by_path = {file.path: file for file in sorted(map(rows.to_file, found), key=sql.width)}
        return tuple(by_path[path] for path in sorted(by_path))

    def delete(self, scope: Scope, path: str, *, expected: int) -> None:
        where = {**sql.place(scope), "w_path": path}
        if not self._work.change(_DELETE, **where, w_version=expected):
            old = self._at(scope, path)
            if old is None:
                raise NotFound(f"no file {path} at {scope}")
            raise Conflict(f"file {path}", expected=expected, actual=old.version)
        self._work.change(_FORGET, **where)

    def _at(self, scope: Scope, path: str) -> MemoryFile | None:
        found = self._work.row(_EXACT, **sql.place(scope), w_path=path)
        return None if found is None else rows.to_file(found)

    def _version(self, file: MemoryFile) -> int:
        found = self._at(file.scope, file.path)
        return found.version if found else 0

    def _write(self, file: MemoryFile, expected: int, values: dict[str, object]) -> int:
        if not expected:
            return self._work.change(_ADD, **sql.columns(file.scope), **values)
        del values["path"]
        return self._work.change(_PUT, **sql.place(file.scope), w_path=file.path, w_version=expected, **values)
