"""Memory files: read, written, edited, searched and brought back. The one implementation behind every face."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from time import monotonic
from typing import TYPE_CHECKING, Any, Final

import regex as patterns

from everlong.errors import AccessDenied, Conflict, InvalidInput, NotFound, TooLarge
from everlong.files.merge import Overlap, decode, difference, merge, replaced, split
from everlong.files.paths import PATTERN_SECONDS, check_path, check_prefix, glob_pattern
from everlong.records import Entry, FileInfo, FileLines, FileMatch, FileMatches, MemoryFile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from everlong.protocols import Clock, NewId, Store, Transaction
    from everlong.records import Principal, Scope

__all__ = ["FileLimits", "Keeper"]

_MAX_PATTERN: Final = 1000
_SHOWN: Final = 500
_BOM: Final = "\ufeff"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLimits:
    """Bounds that hold on every way in: bytes of one file, files kept at one scope, earlier versions of a file."""

    size: int = 1_048_576
    files: int = 1000
    versions: int = 100


class Keeper:
    """Memory files of every scope. Reads take the scope they are seen from, changes the scope they are kept at.

    ``redact`` takes secrets out of what an edit or a merge results in: they may stand in neither of its parts alone.
    """

    def __init__(
        self,
        *,
        store: Store,
        clock: Clock,
        new_id: NewId,
        limits: FileLimits,
        redact: Callable[[bytes], bytes],
        embed: Callable[[Transaction, Scope], None] | None = None,
    ) -> None:
        """``embed`` asks, in the transaction of a change, that what it wrote at a scope gets its vectors."""
        self._embed = embed
        self._store, self._clock, self._new_id, self._limits, self._redact = store, clock, new_id, limits, redact

    # ---------------------------------------------------------------------------------------------------- reading

    def read(self, scope: Scope, *, path: str, version: int | None = None) -> MemoryFile:
        """The file that is visible from ``scope``, or an earlier version of it."""
        _check_numbers(version=version)
        with self._store.read() as tx:
            found = tx.files.get(scope, check_path(path))
            return found if version is None else tx.files.version(found.scope, path, version)

    def lines(self, scope: Scope, *, path: str, offset: int, limit: int) -> FileLines:
        """``limit`` lines after the first ``offset``."""
        _check_numbers(offset=offset, limit=limit)
        file = self.read(scope, path=path)
        lines = [line.rstrip("\r\n") for line in split(decode(file.content, path).removeprefix(_BOM))]
        shown = tuple(lines[offset : offset + limit])
        return FileLines(path=path, version=file.version, lines=shown, offset=offset, total=len(lines))

    def list(self, scope: Scope, *, prefix: str = "/") -> tuple[FileInfo, ...]:
        """Files visible from ``scope`` below a folder."""
        with self._store.read() as tx:
            return tx.files.list(scope, prefix=check_prefix(prefix))

    def glob(self, scope: Scope, *, glob: str, prefix: str) -> tuple[FileInfo, ...]:
        """Those of them that a glob names."""
        return tuple(_named(self.list(scope, prefix=prefix), glob, _Deadline()))

    def grep(
        self, scope: Scope, *, pattern: str, glob: str | None, prefix: str, regex: bool, limit: int
    ) -> FileMatches:
        """Lines in which ``pattern`` stands, file by file."""
        _check_numbers(limit=limit)
        find = _finder(pattern, regex=regex)
        deadline = _Deadline()
        found: list[FileMatch] = []
        try:
            with self._store.read() as tx:
                listed = tx.files.list(scope, prefix=check_prefix(prefix))
                for info in listed if glob is None else _named(listed, glob, deadline):
                    for match in _matches(tx.files.get(info.scope, info.path), find, deadline):
                        if len(found) == limit:
                            return FileMatches(matches=tuple(found), stopped=f"limit of {limit} matches")
                        found.append(match)
        except TimeoutError:
            return FileMatches(matches=tuple(found), stopped=f"took longer than {PATTERN_SECONDS:g} s")
        return FileMatches(matches=tuple(found))

    def history(self, scope: Scope, *, path: str, limit: int) -> tuple[MemoryFile, ...]:
        """The versions kept at ``scope``, or of the file visible from there if there are none."""
        _check_numbers(limit=limit)
        with self._store.read() as tx:
            return self._history(tx, scope, check_path(path), limit)

    def _history(self, tx: Transaction, scope: Scope, path: str, limit: int) -> tuple[MemoryFile, ...]:
        versions = tx.files.history(scope, path, limit=limit)
        return versions or tx.files.history(tx.files.get(scope, path).scope, path, limit=limit)

    def diff(self, scope: Scope, *, path: str, before: int, after: int | None) -> str:
        """What changed from one version to another (default: the latest)."""
        _check_numbers(before=before, after=after)
        with self._store.read() as tx:
            latest = self._history(tx, scope, check_path(path), 1)[0]
            old = tx.files.version(latest.scope, path, before)
            new = latest if after is None else tx.files.version(latest.scope, path, after)
        names = (f"{path} version {old.version}", f"{path} version {new.version}")
        return difference(decode(old.content, path), decode(new.content, path), names=names)

    # --------------------------------------------------------------------------------------------------- changing

    def write(
        self,
        scope: Scope,
        *,
        by: Principal,
        path: str,
        content: str | bytes | Mapping[str, Any],
        expected: int = 0,
        read_only: bool | None = None,
    ) -> MemoryFile:
        """One new version; see :meth:`everlong.memory.files.Files.write`."""
        _check_numbers(expected=expected)
        data = self._sized(_bytes(content), check_path(path))
        if read_only is not None and not _is_operator(by):
            raise AccessDenied("write_file", scope, "only operators make files read-only")

        with self._store.write() as tx:
            present = self._open(tx, scope, by, "write_file", path)
            if present and present.content == data and read_only in {None, present.read_only}:
                return present
            if expected and present and present.version != expected:
                return self._merged(tx, by, "write_file", present, expected, data)
            made = self._made(scope, path, data, by, present, read_only=read_only)
            return self._put(tx, by, "write_file", made, expected)

    def edit(
        self, scope: Scope, *, by: Principal, path: str, old: str, new: str, replace_all: bool, expected: int | None
    ) -> MemoryFile:
        """One exact replacement; see :meth:`everlong.memory.files.Files.edit`."""
        _check_numbers(expected=expected)
        if not isinstance(old, str) or not isinstance(new, str):
            raise InvalidInput("an edit replaces text by text")

        def apply(content: bytes) -> bytes:
            text = replaced(decode(content, path), old, new, path=path, every=replace_all)
            return self._sized(self._redact(_bytes(text)), path)

        with self._store.write() as tx:
            present = self._open(tx, scope, by, "edit_file", check_path(path))
            source = present or tx.files.get(scope, path)
            if expected in {None, source.version}:
                made = self._made(scope, path, apply(source.content), by, present)
                return self._put(tx, by, "edit_file", made, present.version if present else 0)
            if not present or expected is None:
                raise Conflict(f"file {path}", expected=expected, actual=source.version)
            try:
                base = tx.files.version(scope, path, expected)
            except NotFound:
                raise Conflict(f"file {path}", expected=expected, actual=present.version) from None
            return self._merged(tx, by, "edit_file", present, expected, apply(base.content))

    def delete(self, scope: Scope, *, by: Principal, path: str, expected: int | None) -> None:
        """Removes the present version; earlier ones stay in history."""
        _check_numbers(expected=expected)
        with self._store.write() as tx:
            present = self._open(tx, scope, by, "delete_file", check_path(path))
            if present is None:
                raise NotFound(f"no file {path} is kept at {scope}")
            version = present.version if expected is None else expected
            tx.files.delete(scope, path, expected=version)
            self._journal(tx, by, "delete_file", present, before=version, after=None)

    def restore(self, scope: Scope, *, by: Principal, path: str, version: int) -> MemoryFile:
        """Writes an earlier version again, as a new one."""
        _check_numbers(version=version)
        with self._store.write() as tx:
            present = self._open(tx, scope, by, "restore_file", check_path(path))
            content = self._sized(tx.files.version(scope, path, version).content, path)
            if present and present.content == content:
                return present
            made = self._made(scope, path, content, by, present)
            reason = f"restored version {version}"
            return self._put(tx, by, "restore_file", made, present.version if present else 0, reason)

    def _open(self, tx: Transaction, scope: Scope, by: Principal, action: str, path: str) -> MemoryFile | None:
        """The file kept exactly at ``scope``, if any, once it is sure that ``by`` may change or hide what is there, and
        that nobody else changes it before this transaction ends."""
        tx.files.lock(scope)
        try:
            visible = tx.files.get(scope, path)
        except NotFound:
            return None
        if visible.read_only and not _is_operator(by):
            raise AccessDenied(action, scope, f"{path} is read-only")
        return visible if visible.scope == scope else None

    def _made(
        self,
        scope: Scope,
        path: str,
        content: bytes,
        by: Principal,
        present: MemoryFile | None,
        *,
        read_only: bool | None = None,
    ) -> MemoryFile:
        now = self._clock()
        metadata = {"by": f"{by.role}:{by.id}"}
        if present:
            kept = present.read_only if read_only is None else read_only
            return replace(present, content=content, updated_at=now, read_only=kept, metadata=metadata)
        return MemoryFile(
            scope=scope,
            path=path,
            content=content,
            created_at=now,
            updated_at=now,
            read_only=bool(read_only),
            metadata=metadata,
        )

    def _merged(
        self, tx: Transaction, by: Principal, action: str, present: MemoryFile, expected: int, ours: bytes
    ) -> MemoryFile:
        """Puts ``ours``, made of version ``expected``, together with what others wrote since.

        Raises:
            Conflict: both touched the same lines, it is no text, or version ``expected`` is kept no more.
        """
        what = f"file {present.path}"
        try:
            base = tx.files.version(present.scope, present.path, expected).content
            text = merge(*(decode(each, present.path) for each in (base, ours, present.content)))
        except Overlap as overlap:
            raise Conflict(f"{what}, {overlap},", expected=expected, actual=present.version) from None
        except (NotFound, InvalidInput):
            raise Conflict(what, expected=expected, actual=present.version) from None
        content = self._sized(self._redact(text.encode()), present.path)
        if content == present.content:
            return present
        made = self._made(present.scope, present.path, content, by, present)
        reason = f"merged a change to version {expected} with version {present.version}"
        return self._put(tx, by, action, made, present.version, reason)

    def _put(
        self, tx: Transaction, by: Principal, action: str, file: MemoryFile, expected: int, reason: str = ""
    ) -> MemoryFile:
        if not expected and tx.files.count(file.scope) >= self._limits.files:
            raise TooLarge(f"{file.scope} has {self._limits.files} files already (setting max_files)")
        stored = tx.files.put(file, expected=expected)
        tx.files.trim(file.scope, file.path, keep=self._limits.versions)
        self._journal(tx, by, action, stored, before=expected, after=stored.version, reason=reason)
        if self._embed is not None:
            self._embed(tx, stored.scope)
        return stored

    def _journal(
        self,
        tx: Transaction,
        by: Principal,
        action: str,
        file: MemoryFile,
        *,
        before: int,
        after: int | None,
        reason: str = "",
    ) -> None:
        entry = Entry(
            id=self._new_id("log"),
            at=self._clock(),
            scope=file.scope,
            by=f"{by.role}:{by.id}",
            action=action,
            kind="file",
            target=file.path,
            reason=reason,
            before=before,
            after=after,
        )
        tx.journal.append(entry)

    def _sized(self, content: bytes, path: str) -> bytes:
        if len(content) > self._limits.size:
            limit = f"{self._limits.size:,} at most (setting max_file_bytes)"
            raise TooLarge(f"file {path} would have {len(content):,} bytes; {limit}")
        return content


class _Deadline:
    """How many seconds of a search are left."""

    def __init__(self) -> None:
        self._end = monotonic() + PATTERN_SECONDS

    def left(self) -> float:
        """Seconds, above 0. Raises :class:`TimeoutError` when there are none."""
        left = self._end - monotonic()
        if left <= 0:
            raise TimeoutError
        return left


def _is_operator(by: Principal) -> bool:
    return by.role in {"operator", "system"}


def _check_numbers(**numbers: int | None) -> None:
    for name, number in numbers.items():
        if number is not None and (type(number) is not int or not 0 <= number < 2**63):
            raise InvalidInput(f"{name} is {number!r}; it must be a whole number from 0 on")


def _json(content: Mapping[str, Any]) -> bytes:
    """One line, so that of two that are written at once none is merged into the other."""
    try:
        return json.dumps(content, ensure_ascii=False).encode()
    except UnicodeEncodeError:  # a lone surrogate, which only an escape can write
        return json.dumps(content).encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(f"the content is not JSON: {error}") from None


def _bytes(content: str | bytes | Mapping[str, Any]) -> bytes:
    if isinstance(content, (bytes, bytearray, memoryview)):
        return bytes(content)
    if isinstance(content, Mapping):
        return _json(content)
    if not isinstance(content, str):
        raise InvalidInput(f"a file's content must be text or bytes, not {type(content).__name__}")
    try:
        return content.encode()
    except UnicodeEncodeError:
        raise InvalidInput("the text holds a lone surrogate, which UTF-8 cannot write") from None


def _named(listed: tuple[FileInfo, ...], glob: str, deadline: _Deadline) -> Iterator[FileInfo]:
    pattern = glob_pattern(glob)
    try:
        for info in listed:
            if pattern.fullmatch(info.path, timeout=deadline.left()):
                yield info
    except TimeoutError:
        raise InvalidInput(f"glob {glob[:80]!r} takes too long; use fewer wildcards") from None


def _finder(pattern: str, *, regex: bool) -> Callable[[str, float], bool]:
    if not isinstance(pattern, str) or not 0 < len(pattern) <= _MAX_PATTERN:
        raise InvalidInput(f"what is searched must be text of 1 to {_MAX_PATTERN} characters")
    if not regex:
        return lambda line, _: pattern in line
    try:
        compiled = patterns.compile(pattern)
    except patterns.error as error:
        raise InvalidInput(f"{pattern!r} is not a regular expression: {error}") from None
    return lambda line, left: compiled.search(line, timeout=left, concurrent=True) is not None


def _matches(file: MemoryFile, find: Callable[[str, float], bool], deadline: _Deadline) -> Iterator[FileMatch]:
    try:
        text = decode(file.content, file.path).removeprefix(_BOM)
    except InvalidInput:
        return
    for number, line in enumerate(split(text), 1):
        shown = line.rstrip("\r\n")
        if find(shown, deadline.left()):
            yield FileMatch(path=file.path, line=number, text=shown[:_SHOWN])
