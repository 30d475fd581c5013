"""Files of Deep Agents kept in a memory: :class:`EverlongBackend`."""

from __future__ import annotations

import base64
import json
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from langgraph.runtime import get_runtime

from everlong.errors import (
    AccessDenied,
    Conflict,
    EverlongError,
    InvalidPath,
    InvalidScope,
    MissingExtra,
    NotFound,
)
from everlong.files.paths import check_path, kept_at
from everlong.files.skills import parse
from everlong.integrations.identity import scope_of
from everlong.integrations.langchain_tools import with_approval
from everlong.records import Principal, Scope

try:
    from deepagents.backends.protocol import (
        BackendProtocol,
        DeleteResult,
        EditResult,
        FileData,
        FileDownloadResponse,
        FileInfo,
        FileUploadResponse,
        GlobResult,
        GrepResult,
        LsResult,
        ReadResult,
        WriteResult,
    )
    from deepagents.backends.utils import InvalidGlobPatternError, compile_grep_include_glob, slice_read_response
except ImportError as missing:  # pragma: no cover - the extra is installed where tests run
    raise MissingExtra("deepagents", "EverlongBackend") from missing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from deepagents.backends.protocol import FileOperationError

    from everlong.memory import Memory, ScopedMemory
    from everlong.memory.files import Files
    from everlong.records import FileInfo as Info
    from everlong.records import MemoryFile

__all__ = ["EverlongBackend"]

_ALL: Final = 2**31
_TRIES: Final = 20
_CODES: Final[tuple[tuple[type[EverlongError], FileOperationError], ...]] = (
    (NotFound, "file_not_found"),
    (InvalidPath, "invalid_path"),
    (AccessDenied, "permission_denied"),
    (InvalidScope, "permission_denied"),
)
"""Deep Agents' codes by error; ``is_directory`` has no error of its own."""


class EverlongBackend(BackendProtocol):
    """Deep Agents' file backend over memory files, for ``create_deep_agent(backend=…)`` or a ``CompositeBackend`` route.

    Paths say whose a file is: ``/memories/…`` the user's, ``/agent/…`` the agent's, ``/policies/…`` the
    organisation's, all else organisation, agent and user together. Whose run it is comes from the run, for each call.
    Files that belong to more than one user are read-only for the agent, but for its own ``/agent/``; what a rule wants
    a person to decide interrupts the run. Each change is a version, so nothing that is written over is lost; edits at
    once all hold, for each replaces its own text. Errors begin with Deep Agents' code where there is one.

    Args:
        memory: an open memory; it stays yours to close.
        root: the folder that is shown as ``/``. A ``CompositeBackend`` takes its route off a path, so give
            ``root="/memories"`` to the backend under ``"/memories/"``.
        scope: whose files these are, always. Default: the run's, by ``identify``.
        agent: the agent, for ``/agent/`` files and memory of its own.
        org: the organisation, when the run does not name one.
        identify: says whose run it is; default :func:`everlong.integrations.identity.scope_of`.
        by: who acts. Default: the agent, for the user of the run.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        root: str = "/",
        scope: Scope | None = None,
        agent: str = "",
        org: str = "",
        identify: Callable[[Any], Scope] | None = None,
        by: Principal | None = None,
    ) -> None:
        self._root = "" if root == "/" else check_path(root.rstrip("/"))
        self._memory, self._scope, self._agent, self._org = memory, scope, agent, org
        self._identify, self._by = identify, by

    # ---------------------------------------------------------------------------------------------------- reading

    def ls(self, path: str) -> LsResult:
        """Files and folders directly in a folder; an empty list if there is none."""
        result = LsResult()
        with _told(result):
            folder = _folder(path)
            result.entries = _entries(folder.rstrip("/") + "/", self._below(self._files, folder))
        return result

    def read(self, file_path: str, offset: int = 0, limit: int = 2000) -> ReadResult:
        """Lines of a text file; a file that is no UTF-8 text comes whole, in base64."""
        result = ReadResult()
        with _told(result):
            data = _data(_open(self._files, self._kept(file_path)))
            whole = data["encoding"] == "base64"
            return ReadResult(file_data=data) if whole else slice_read_response(data, offset, limit)
        return result

    def grep(
        self, pattern: str, path: str | None = None, glob: str | None = None, *, max_count: int | None = None
    ) -> GrepResult:
        """Lines of text files that hold ``pattern`` as it stands; for 2 seconds at most, then it is ``truncated``."""
        result = GrepResult()
        with _told(result):
            files, base = self._files, _folder(path)
            named = compile_grep_include_glob(glob) if glob else bool
            inside = {info.path for info in self._below(files, base) if named(_relative(info.path, base))}
            parent = base.rpartition("/")[0] if base in inside else base.rstrip("/")
            found = files.grep(pattern, prefix=self._root + parent or "/", limit=_ALL)
            lines = [match for match in found.matches if self._shown(match.path) in inside]
            most = len(lines) if max_count is None else max_count
            result.matches = [{"path": self._shown(m.path), "line": m.line, "text": m.text} for m in lines[:most]]
            result.truncated = bool(found.stopped) or len(lines) > most
        return result

    def glob(self, pattern: str, path: str | None = None) -> GlobResult:
        """Files that a glob names, the latest changed first."""
        result = GlobResult()
        with _told(result):
            base, named = _folder(path), compile_grep_include_glob(pattern)
            found = [info for info in self._below(self._files, base) if named(_relative(info.path, base))]
            result.matches = [_entry(info) for info in sorted(found, key=lambda i: i.updated_at, reverse=True)]
        return result

    def download_files(self, paths: list[str]) -> list[FileDownloadResponse]:
        """The bytes of files, each with its own error. Of a ``SKILL.md`` the header comes as every YAML parser reads it;
        one that is broken is an error, as in ``memory.skills``, so that it takes no run down."""
        return [self._download(path) for path in paths]

    def _download(self, path: str) -> FileDownloadResponse:
        try:
            file = _open(self._files, self._kept(path))
            content = _skill(file) if path.endswith("/SKILL.md") else file.content
            return FileDownloadResponse(path=path, content=content)
        except IsADirectoryError:
            return FileDownloadResponse(path=path, error="is_directory")
        except EverlongError as error:
            return FileDownloadResponse(path=path, error=_code(error) or str(error))

    # --------------------------------------------------------------------------------------------------- changing

    def write(self, file_path: str, content: str) -> WriteResult:
        """Writes a file, over what it held."""
        result = WriteResult()
        with _told(result):
            self._write(file_path, content)
            result.path = file_path
        return result

    def edit(self, file_path: str, old_string: str, new_string: str, replace_all: bool = False) -> EditResult:  # noqa: FBT001, FBT002 - Deep Agents' signature
        """Replaces text in a file; all else stays to the byte."""
        result = EditResult()
        with _told(result):
            scoped, path = self._scoped, self._kept(file_path)
            text = _open(scoped.files, path).content.decode(errors="replace")
            asked: dict[str, Any] = {"path": path, "old": old_string, "new": new_string, "replace_all": replace_all}
            self._change(scoped, "edit_file", lambda memory: memory.files.edit(**asked), asked)
            result.path = file_path
            result.occurrences = max(1, text.count(old_string)) if replace_all else 1
        return result

    def delete(self, file_path: str) -> DeleteResult:
        """Deletes a file, or all files of this scope below a folder; wider files stay."""
        result = DeleteResult()
        with _told(result):
            scoped, path = self._scoped, self._kept(file_path.rstrip("/"))
            below = [info for info in scoped.files.list(path) if info.scope == kept_at(scoped.scope.home, info.path)]
            for each in [info.path for info in below] or [path]:
                self._change(scoped, "delete_file", partial(_delete, path=each), {"path": each})
            result.path = file_path
        return result

    def upload_files(self, files: list[tuple[str, bytes]]) -> list[FileUploadResponse]:
        """Writes files, each with its own error."""
        return [self._upload(path, content) for path, content in files]

    def _upload(self, path: str, content: bytes) -> FileUploadResponse:
        try:
            self._write(path, content)
        except IsADirectoryError:
            return FileUploadResponse(path=path, error="is_directory")
        except EverlongError as error:
            return FileUploadResponse(path=path, error=_code(error) or str(error))
        return FileUploadResponse(path=path)

    # ------------------------------------------------------------------------------------------------------ steps

    @property
    def _scoped(self) -> ScopedMemory:
        scope = self._scope or self._of_run()
        return self._memory.at(scope, by=self._by or Principal(id=scope.agent or "agent", role="agent"))

    @property
    def _files(self) -> Files:
        return self._scoped.files

    def _of_run(self) -> Scope:
        try:
            runtime = get_runtime()
        except (RuntimeError, KeyError):
            msg = "outside of a run nobody is there whose files these are: pass scope to EverlongBackend"
            raise InvalidScope(msg) from None
        if self._identify is not None:
            return self._identify(runtime)
        return scope_of(runtime, org=self._org, agent=self._agent)

    def _kept(self, path: str) -> str:
        return self._root + check_path(path)

    def _shown(self, path: str) -> str:
        return path.removeprefix(self._root)

    def _below(self, files: Files, base: str) -> list[Info]:
        """What a folder holds, however deep, by the paths that are shown; or the one file of that path."""
        real = self._root + base.rstrip("/")
        found = files.list(real or "/") or [i for i in files.list(real.rpartition("/")[0] or "/") if i.path == real]
        return [replace(info, path=self._shown(info.path)) for info in found]

    def _write(self, shown: str, content: str | bytes) -> None:
        """The last to write wins; what others wrote just before stays in history."""
        scoped, path = self._scoped, self._kept(shown)
        expected = _version(scoped, path)
        if not expected and scoped.files.list(path):
            raise IsADirectoryError
        for _ in range(_TRIES):
            asked = {"path": path, "content": content, "expected": expected}
            try:
                self._change(scoped, "write_file", partial(_put, asked=asked), asked)
            except Conflict as conflict:  # it knows of versions that no reader sees before they are on the disk
                expected = conflict.actual if isinstance(conflict.actual, int) else 0
            else:
                return
        raise Conflict(f"file {path}", expected=expected, actual="another version each time")

    def _change(
        self, scoped: ScopedMemory, action: str, call: Callable[[ScopedMemory], Any], asked: dict[str, Any]
    ) -> None:
        kept = kept_at(scoped.scope, asked["path"])
        with_approval(scoped, call, action, asked, judge=lambda person: self._memory.at(kept, by=person))


def _put(scoped: ScopedMemory, *, asked: dict[str, Any]) -> None:
    scoped.files.write(**asked)


def _delete(scoped: ScopedMemory, *, path: str) -> None:
    scoped.files.delete(path)


def _open(files: Files, path: str) -> MemoryFile:
    try:
        return files.read(path)
    except NotFound:
        if files.list(path):
            raise IsADirectoryError from None
        raise


def _version(scoped: ScopedMemory, path: str) -> int:
    """Of the file that a write from here changes; 0 if it makes a new one."""
    try:
        file = scoped.files.read(path)
    except NotFound:
        return 0
    return file.version if file.scope == kept_at(scoped.scope, path) else 0


def _skill(file: MemoryFile) -> bytes:
    """A skill with its header written plainly: Deep Agents' parser knows no byte order mark, no unquoted colon and no
    text that looks like a date or a truth value, and falls into endless depths.

    Raises:
        InvalidInput: the skill is broken; the message says how.
    """
    skill = parse(file)
    header = {
        "name": skill.name,
        "description": skill.description,
        "license": skill.license,
        "compatibility": skill.compatibility,
        "allowed-tools": " ".join(skill.allowed_tools),
        "metadata": dict(skill.metadata),
    }
    lines = (f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in header.items() if value)
    return f"---\n{''.join(lines)}---\n\n{skill.body}".encode()


@contextmanager
def _told(result: Any) -> Iterator[None]:
    """What goes wrong is said in the result, beginning with Deep Agents' code for it if there is one."""
    try:
        yield
    except IsADirectoryError:
        result.error = "is_directory: the path is a folder"
    except InvalidGlobPatternError as error:
        result.error = str(error)
    except EverlongError as error:
        code = _code(error)
        result.error = f"{code}: {error}" if code else str(error)


def _code(error: EverlongError) -> FileOperationError | None:
    return next((code for kind, code in _CODES if isinstance(error, kind)), None)


def _folder(path: str | None) -> str:
    """A folder without its last ``/``, or ``/``; relative ones start there."""
    bare = (path or "/").strip("/")
    return check_path("/" + bare) if bare else "/"


def _relative(path: str, base: str) -> str:
    return path.rpartition("/")[2] if path == base else path.removeprefix(base).lstrip("/")


def _entry(info: Info) -> FileInfo:
    return FileInfo(path=info.path, is_dir=False, size=info.size, modified_at=info.updated_at.isoformat())


def _entries(folder: str, found: list[Info]) -> list[FileInfo]:
    inside = [info for info in found if info.path.startswith(folder)]
    files = [_entry(info) for info in inside if "/" not in info.path[len(folder) :]]
    names = {info.path[len(folder) :].split("/")[0] for info in inside if "/" in info.path[len(folder) :]}
    folders = [FileInfo(path=f"{folder}{name}/", is_dir=True, size=0, modified_at="") for name in names]
    return sorted([*files, *folders], key=lambda entry: entry["path"])


def _data(file: MemoryFile) -> FileData:
    try:
        text, encoding = file.content.decode(), "utf-8"
    except UnicodeDecodeError:
        text, encoding = base64.b64encode(file.content).decode(), "base64"
    made, changed = file.created_at.isoformat(), file.updated_at.isoformat()
    return FileData(content=text, encoding=encoding, created_at=made, modified_at=changed)
