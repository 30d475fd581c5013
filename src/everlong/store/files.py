"""Memory files: the narrowest visible one counts, each written by compare and swap, every version kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from sqlalchemy import bindparam, func, select, update

from everlong.errors import Conflict, NotFound
from everlong.store import rows, sql
from everlong.store.passages import drop_file, index_file
from everlong.store.schema import files, revisions

if TYPE_CHECKING:
    from everlong.protocols import Clock, NewId, Rights
    from everlong.records import FileInfo, MemoryFile, Scope
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
_BELOW: Final = select(*rows.file_info_columns()).where(
    sql.visible(files), func.substr(files.c.path, 1, bindparam("length")) == bindparam("prefix")
)
_COUNT: Final = select(func.count()).where(sql.exactly(files))
_DELETE: Final = files.delete().where(sql.exactly(files), _PATH, _VERSION)
_EARLIER: Final = (sql.exactly(revisions), revisions.c.kind == _KIND, revisions.c.id == bindparam("w_path"))
_LATEST: Final = (
    select(revisions.c.version, revisions.c.body)
    .where(*_EARLIER)
    .order_by(revisions.c.version.desc())
    .limit(bindparam("most"))
)
_OLD: Final = select(revisions.c.body).where(*_EARLIER, revisions.c.version == bindparam("w_version"))
_HIGHEST: Final = select(func.max(revisions.c.version)).where(*_EARLIER)
_TRIM: Final = revisions.delete().where(*_EARLIER, revisions.c.version <= bindparam("w_version"))


class Files:
    """The shelf of memory files in one transaction."""

    def __init__(self, work: Work, clock: Clock, new_id: NewId, rights: Rights | None = None) -> None:
        self._work = work
        self._rights = rights
        self._clock = clock
        self._new_id = new_id

    def lock(self, scope: Scope) -> None:
        # The bucket's row, as every other writer takes it, so that an erasure waits too and none in a circle.
        sql.bump(self._work, scope, _KIND, self._new_id("epoch"))

    def get(self, scope: Scope, path: str) -> MemoryFile:
        found = [rows.to_file(row) for row in self._work.rows(_GET, **sql.place(scope), w_path=path)]
        found = [file for file in found if not self._hides(file.scope, path)]
        if not found:
            raise NotFound(f"no file {path} is visible from {scope}")
        return max(found, key=sql.width)

    def put(self, file: MemoryFile, *, expected: int) -> MemoryFile:
        old = self._at(file.scope, file.path)
        made = replace(file, version=(expected or self._highest(file.scope, file.path)) + 1)
        values = rows.from_file(made) | {"version": made.version}
        actual = old.version if old else 0
        if actual != expected or not self._write(file, expected, values):
            found = self._at(file.scope, file.path)
            raise Conflict(f"file {file.path}", expected=expected, actual=found.version if found else 0)
        if old:
            self._keep(old)
        index_file(self._work, made, self._new_id)
        return made

    def list(self, scope: Scope, *, prefix: str = "/") -> tuple[FileInfo, ...]:
        found = self._work.rows(_BELOW, **sql.place(scope), prefix=prefix, length=len(prefix))
        read = [one for one in map(rows.to_file_info, found) if not self._hides(one.scope, one.path)]
        by_path = {file.path: file for file in sorted(read, key=sql.width)}
        return tuple(by_path[path] for path in sorted(by_path))

    def count(self, scope: Scope) -> int:
        found = self._work.row(_COUNT, **sql.place(scope))
        return int(found[0]) if found else 0

    def delete(self, scope: Scope, path: str, *, expected: int) -> None:
        old = self._at(scope, path)
        if old is None:
            raise NotFound(f"no file {path} at {scope}")
        if not self._work.change(_DELETE, **sql.place(scope), w_path=path, w_version=expected):
            raise Conflict(f"file {path}", expected=expected, actual=old.version)
        self._keep(old)
        drop_file(self._work, scope, path, self._new_id)

    def history(self, scope: Scope, path: str, *, limit: int = 20) -> tuple[MemoryFile, ...]:
        if self._hides(scope, path):
            return ()
        present = self._at(scope, path)
        earlier = self._work.rows(_LATEST, **sql.place(scope), w_path=path, most=limit)
        found = [rows.file_of_body(scope, number, body) for number, body in earlier]
        return tuple([present, *found] if present else found)[:limit]

    def version(self, scope: Scope, path: str, number: int) -> MemoryFile:
        present = self._at(scope, path)
        if present and present.version == number and not self._hides(scope, path):
            return present
        found = self._work.row(_OLD, **sql.place(scope), w_path=path, w_version=number)
        if found is None or self._hides(scope, path):
            raise NotFound(f"no version {number} of file {path} is kept at {scope}")
        return rows.file_of_body(scope, number, found[0])

    def trim(self, scope: Scope, path: str, *, keep: int) -> int:
        last = self._highest(scope, path) - keep
        return self._work.change(_TRIM, **sql.place(scope), w_path=path, w_version=last) if last > 0 else 0

    def _hides(self, scope: Scope, path: str) -> bool:
        return self._rights is not None and not self._rights.sees(_KIND, scope, path)

    def _at(self, scope: Scope, path: str) -> MemoryFile | None:
        found = self._work.row(_EXACT, **sql.place(scope), w_path=path)
        return None if found is None else rows.to_file(found)

    def _highest(self, scope: Scope, path: str) -> int:
        """The number of the last version that is kept of those before the present one; 0 if there is none."""
        found = self._work.row(_HIGHEST, **sql.place(scope), w_path=path)
        return int(found[0] or 0) if found else 0

    def _keep(self, old: MemoryFile) -> None:
        at = rows.to_micros(self._clock())
        sql.keep(self._work, old.scope, _KIND, old.path, old.version, at, rows.file_body(old))

    def _write(self, file: MemoryFile, expected: int, values: dict[str, object]) -> int:
        if not expected:
            return self._work.change(_ADD, **sql.columns(file.scope), **values)
        del values["path"]
        return self._work.change(_PUT, **sql.place(file.scope), w_path=file.path, w_version=expected, **values)
