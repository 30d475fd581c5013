"""Memory files in step with a real folder: pull, push, and neither ever overwrites what the other side changed."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Final, Protocol

from everlong.errors import Conflict, EverlongError, InvalidInput
from everlong.files.disk import Disk, digest, folded, name_of, part_of
from everlong.files.paths import check_path, check_prefix, kept_at
from everlong.records import SyncStep

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from everlong.files.disk import Found, Scan
    from everlong.records import FileInfo, MemoryFile, Scope, SyncAction

__all__ = ["Folder", "MemoryFiles"]

_STATE: Final = ".everlong-files.json"


class MemoryFiles(Protocol):
    """What a folder is kept in step with: :class:`everlong.memory.Files`."""

    def list(self, prefix: str = "/") -> tuple[FileInfo, ...]: ...
    def read(self, path: str) -> MemoryFile: ...
    def write(self, path: str, content: bytes, *, expected: int = 0) -> MemoryFile: ...
    def delete(self, path: str, *, expected: int | None = None) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class _Synced:
    """What both sides had in common last: ``name`` and ``digest`` in the folder, ``version`` at ``scope`` in memory."""

    name: str
    digest: str
    version: int
    scope: str

    def agrees(self, info: FileInfo) -> bool:
        """Whether memory has still the same."""
        return (self.version, self.scope) == (info.version, str(info.scope))


class Folder:
    """The files below ``prefix`` as seen from ``scope``, in step with a folder.

    What both sides had in common last stands in a hidden file in the folder, so that a change is known from a
    difference. One folder belongs to one scope and prefix.

    Raises:
        InvalidInput: the folder is a link, or belongs to another scope or prefix.
    """

    def __init__(self, root: Path, files: MemoryFiles, *, scope: Scope, prefix: str = "/") -> None:
        if root.is_symlink() or (root.exists() and not root.is_dir()):
            raise InvalidInput(f"{root} is a link or no folder")
        self._disk, self._files, self._scope = Disk(root), files, scope.home
        self._prefix = check_prefix(prefix)
        self._state = self._load()

    def pull(self, *, dry_run: bool = False) -> tuple[SyncStep, ...]:
        """Brings what changed in memory into the folder; returns what was done, or with ``dry_run`` would be."""
        return self._done(self._pull(dry_run=dry_run), dry_run=dry_run)

    def push(self, *, dry_run: bool = False) -> tuple[SyncStep, ...]:
        """Brings what changed in the folder into memory, merging what changed on both sides in different lines."""
        return self._done(self._push(dry_run=dry_run), dry_run=dry_run)

    def _done(self, steps: Iterator[SyncStep | None], *, dry_run: bool) -> tuple[SyncStep, ...]:
        try:
            return tuple(step for step in steps if step)
        finally:
            if not dry_run:
                self._save()

    def _listed(self) -> dict[str, FileInfo]:
        return {info.path: info for info in self._files.list(self._prefix)}

    # ----------------------------------------------------------------------------------------------------------- pull

    def _pull(self, *, dry_run: bool) -> Iterator[SyncStep | None]:
        scan, there = self._disk.scan(), self._listed()
        taken = {folded(known.name) for known in self._state.values()}
        for path in sorted({*there, *self._state}):
            known = self._state.get(path)
            name = known.name if known else name_of(path[len(self._prefix) :], taken)
            if name is None:
                yield _step("refuse", path, "", "its name is another's on systems where case does not count")
                continue
            taken.add(folded(name))
            if scan.hides(name):
                yield _step("refuse", path, name, f"what is in its place {scan.reason(name)}")
                continue
            try:
                yield self._pull_one(path, name, scan.files.get(name), there.get(path), dry_run=dry_run)
            except (EverlongError, OSError) as error:
                yield _step("refuse", path, name, str(error))

    def _pull_one(
        self, path: str, name: str, here: Found | None, info: FileInfo | None, *, dry_run: bool
    ) -> SyncStep | None:
        known = self._state.get(path)
        if info is None:
            return self._pull_gone(path, known, here, dry_run=dry_run) if known else None
        if known and known.agrees(info):
            return None
        file = self._files.read(path)
        if here and here.digest == digest(file.content):
            return self._noted(None, name, file, here.digest, dry_run=dry_run)
        if here and (known is None or here.digest != known.digest):
            return _step("conflict", path, name, "changed here and in memory; push merges it, or move it away and pull")
        step = _step("update" if here else "add", path, name)
        if not dry_run and not self._disk.write(name, file.content, over=here.digest if here else None):
            return _step("conflict", path, name, "changed here just now; nothing was overwritten")
        return self._noted(step, name, file, digest(file.content), dry_run=dry_run)

    def _pull_gone(self, path: str, known: _Synced, here: Found | None, *, dry_run: bool) -> SyncStep | None:
        if here and here.digest != known.digest:
            return _step("conflict", path, known.name, "deleted in memory, changed here; push writes it anew")
        if not dry_run:
            if here and not self._disk.delete(known.name, over=known.digest):
                return _step("conflict", path, known.name, "changed here just now; it was not deleted")
            del self._state[path]
        return _step("delete", path, known.name) if here else None

    # ----------------------------------------------------------------------------------------------------------- push

    def _push(self, *, dry_run: bool) -> Iterator[SyncStep | None]:
        scan, there = self._disk.scan(), self._listed()
        yield from (_step("refuse", "", name, reason) for name, reason in scan.refused.items())
        found: dict[str, Found] = {}
        for name, path, problem in self._paths(scan):
            if problem or path in found:
                yield _step("refuse", path, name, problem or "another file here stands for the same path")
            else:
                found[path] = scan.files[name]
        for path in sorted({*found, *self._state}):
            here = found.get(path)
            if here is None and scan.hides(self._state[path].name):
                continue
            try:
                yield self._push_one(path, here, there.get(path), dry_run=dry_run)
            except Conflict as conflict:
                yield _step("conflict", path, here.name if here else "", str(conflict))
            except (EverlongError, OSError) as error:
                yield _step("refuse", path, here.name if here else "", str(error))

    def _paths(self, scan: Scan) -> Iterator[tuple[str, str, str]]:
        """Each name with the path that it stands for, or why there is none; names that are known come first."""
        names = {known.name: path for path, known in self._state.items()}
        for name in sorted(scan.files, key=lambda name: (name not in names, name)):
            try:
                path = names.get(name) or self._prefix + "/".join(map(part_of, name.split("/")))
                yield name, check_path(path), ""
            except InvalidInput as error:
                yield name, "", str(error)

    def _push_one(self, path: str, here: Found | None, info: FileInfo | None, *, dry_run: bool) -> SyncStep | None:
        known = self._state.get(path)
        if here is None:
            return self._push_gone(path, known, info, dry_run=dry_run) if known else None
        if known and here.digest == known.digest:
            return None
        own = info is not None and info.scope == kept_at(self._scope, path)
        if info and (known is None or not (own or known.agrees(info))):
            file = self._files.read(path)
            if digest(file.content) == here.digest:
                return self._noted(None, here.name, file, here.digest, dry_run=dry_run)
            return _step(
                "conflict", path, here.name, "memory has another file of this path; move this one away and pull"
            )
        if dry_run:
            return _step("update" if info else "add", path, here.name)
        return self._sent(path, here, known.version if known and own else 0, new=info is None)

    def _sent(self, path: str, here: Found, expected: int, *, new: bool) -> SyncStep | None:
        content = self._disk.read(here.name)
        stored = self._files.write(path, content, expected=expected)
        if stored.content == content:
            return self._noted(_step("add" if new else "update", path, here.name), here.name, stored, digest(content))
        if not expected or stored.version == expected + 1:
            step = _step("add" if new else "update", path, here.name, "kept in memory with secrets taken out")
            return self._noted(step, here.name, stored, digest(content))
        step = _step("merge", path, here.name, "with what changed in memory")
        if not self._disk.write(here.name, stored.content, over=digest(content)):
            return step  # it changed once more: the next push merges again, from the version known before
        return self._noted(step, here.name, stored, digest(stored.content))

    def _push_gone(self, path: str, known: _Synced, info: FileInfo | None, *, dry_run: bool) -> SyncStep | None:
        if info and not known.agrees(info):
            return _step("conflict", path, known.name, "deleted here, changed in memory; pull brings it back")
        if info and info.scope != kept_at(self._scope, path):
            return _step(
                "refuse", path, known.name, f"deleted here, but kept for {info.scope}; pull does not bring it back"
            )
        if not dry_run:
            if info:
                self._files.delete(path, expected=known.version)
            del self._state[path]
        return _step("delete", path, known.name) if info else None

    # ---------------------------------------------------------------------------------------------------------- state

    def _noted(
        self, step: SyncStep | None, name: str, file: MemoryFile, known: str, *, dry_run: bool = False
    ) -> SyncStep | None:
        """Remembers what both sides have in common now."""
        if not dry_run:
            self._state[file.path] = _Synced(name=name, digest=known, version=file.version, scope=str(file.scope))
        return step

    def _load(self) -> dict[str, _Synced]:
        try:
            data = json.loads(self._disk.read(_STATE))
            owner, files = (data["scope"], data["prefix"]), data["files"]
            found = {check_path(path): _synced(**known) for path, known in files.items()}
        except FileNotFoundError:
            return {}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InvalidInput(
                f"{self._disk.root / _STATE} cannot be read ({error}); delete it to start anew"
            ) from None
        if owner != (str(self._scope), self._prefix):
            raise InvalidInput(f"{self._disk.root} belongs to {owner[1]} of {owner[0]}; use another folder")
        return found

    def _save(self) -> None:
        files = {path: asdict(known) for path, known in sorted(self._state.items())}
        state = {"scope": str(self._scope), "prefix": self._prefix, "files": files}
        content = json.dumps(state, ensure_ascii=False, indent=1).encode()
        try:
            before = digest(self._disk.read(_STATE))
        except FileNotFoundError:
            before = None
        if before != digest(content) and (files or before):
            self._disk.write(_STATE, content, over=before)


def _synced(*, name: object, digest: object, version: object, scope: object) -> _Synced:
    if isinstance(name, str) and isinstance(digest, str) and isinstance(version, int) and isinstance(scope, str):
        return _Synced(name=name, digest=digest, version=version, scope=scope)
    raise ValueError("an entry has the wrong types")


def _step(action: SyncAction, path: str, name: str, reason: str = "") -> SyncStep:
    return SyncStep(action=action, path=path, name=name, reason=reason)
