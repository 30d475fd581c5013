"""Memory files and skills as seen from a scope."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from everlong.files.paths import check_path, kept_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from everlong.memory.scoped import ScopedMemory
    from everlong.records import FileInfo, FileLines, FileMatches, MemoryFile

__all__ = ["Files"]

T = TypeVar("T")


class Files:
    """Versioned files under virtual paths.

    ``/memories/…`` is kept for the user, ``/agent/…`` for the agent, ``/policies/…`` for the organisation, all else
    for organisation, agent and user together; a narrower file hides a wider one of the same path. Text and bytes are
    kept as they are given. Any operation may raise :class:`~everlong.errors.InvalidPath` and
    :class:`~everlong.errors.AccessDenied`: what belongs to more than one user is written by operators (and ``/agent/``
    by that agent), a read-only file by operators only.
    """

    def __init__(self, scoped: ScopedMemory) -> None:
        self._scope, self._by, self._run = scoped.scope.home, scoped.by, scoped._run
        self._keeper = scoped._memory.parts.files

    def _change(self, action: str, operation: Callable[..., T], path: str, **arguments: Any) -> T:
        """Runs a change at the scope where the file is kept: the policy is asked about that one."""
        kept = kept_at(self._scope, check_path(path))
        return self._run(action, partial(operation, kept, by=self._by), at=kept, path=path, **arguments)

    def read(self, path: str, *, version: int | None = None) -> MemoryFile:
        """The file at ``path``, or one of its earlier versions. Raises :class:`~everlong.errors.NotFound`."""
        return self._run("file", partial(self._keeper.read, self._scope), path=path, version=version)

    def lines(self, path: str, *, offset: int = 0, limit: int = 2000) -> FileLines:
        """``limit`` lines of a text file after the first ``offset``.

        Raises:
            NotFound: there is no such file. InvalidInput: it is not UTF-8 text.
        """
        return self._run("file", partial(self._keeper.lines, self._scope), path=path, offset=offset, limit=limit)

    def list(self, prefix: str = "/") -> tuple[FileInfo, ...]:
        """Files visible from here below the folder ``prefix``, by path."""
        return self._run("files", partial(self._keeper.list, self._scope), prefix=prefix)

    def glob(self, glob: str, *, prefix: str = "/") -> tuple[FileInfo, ...]:
        """Files whose path a glob names: ``*`` and ``?`` within a part, ``**`` over parts, ``[a-z]``, ``{md,txt}``.

        Raises:
            InvalidInput: it is not a glob.
        """
        return self._run("files", partial(self._keeper.glob, self._scope), glob=glob, prefix=prefix)

    def grep(
        self, pattern: str, *, glob: str | None = None, prefix: str = "/", regex: bool = False, limit: int = 100
    ) -> FileMatches:
        """Lines of text files that hold ``pattern``, as it stands or as a regular expression; ``limit`` at most, and
        for 2 seconds at most: ``stopped`` says so.

        Raises:
            InvalidInput: it is empty, over 1,000 characters, or not a regular expression.
        """
        grep = partial(self._keeper.grep, self._scope)
        return self._run("files", grep, pattern=pattern, glob=glob, prefix=prefix, regex=regex, limit=limit)

    def write(
        self,
        path: str,
        content: str | bytes | Mapping[str, Any],
        *,
        expected: int = 0,
        read_only: bool | None = None,
    ) -> MemoryFile:
        """Writes a file over its version ``expected`` (0: a new file). If others wrote since, and elsewhere in the
        text, both changes are kept. ``read_only`` lets or forbids others than operators to change it. A mapping is
        written as one line of JSON; secrets are taken out of its values one by one, so that it stays JSON.

        Raises:
            InvalidInput: the content holds a lone surrogate, or a value that is no JSON.
            Conflict: others changed the same lines since, or the file exists (or is gone) already; nothing was changed.
            TooLarge: over the setting ``max_file_bytes`` (1 MiB) or ``max_files`` (1,000 at one scope).
        """
        write = self._keeper.write
        return self._change("write_file", write, path, content=content, expected=expected, read_only=read_only)

    def edit(
        self, path: str, old: str, new: str, *, replace_all: bool = False, expected: int | None = None
    ) -> MemoryFile:
        """Replaces ``old`` by ``new`` in a text file; all else stays to the byte. Of a wider file, this makes a
        narrower one that hides it. ``expected`` is the version that was read: what others wrote since is merged.

        Raises:
            NotFound: there is no such file.
            InvalidInput: ``old`` is empty, is not there, or there more than once without ``replace_all``.
            Conflict: others changed the same lines since ``expected``. TooLarge: the result is over the limit.
        """
        edit = self._keeper.edit
        return self._change("edit_file", edit, path, old=old, new=new, replace_all=replace_all, expected=expected)

    def delete(self, path: str, *, expected: int | None = None) -> None:
        """Removes a file; its versions stay in history until they are erased.

        Raises:
            NotFound: none is kept there. Conflict: its version is not ``expected``.
        """
        self._change("delete_file", self._keeper.delete, path, expected=expected)

    def history(self, path: str, *, limit: int = 20) -> tuple[MemoryFile, ...]:
        """The latest versions of a file, newest first, also of one that was deleted; ``metadata["by"]`` says who
        wrote each. Raises :class:`~everlong.errors.NotFound`."""
        kept = kept_at(self._scope, check_path(path))
        return self._run("file", partial(self._keeper.history, kept), path=path, limit=limit)

    def diff(self, path: str, before: int, after: int | None = None) -> str:
        """What changed from version ``before`` to ``after`` (default: the latest), as a unified diff.

        Raises:
            NotFound: no such version. InvalidInput: it is not UTF-8 text.
        """
        kept = kept_at(self._scope, check_path(path))
        return self._run("file", partial(self._keeper.diff, kept), path=path, before=before, after=after)

    def restore(self, path: str, version: int) -> MemoryFile:
        """Writes an earlier version again, as a new one; also of a file that was deleted.

        Raises:
            NotFound: no such version.
        """
        return self._change("restore_file", self._keeper.restore, path, version=version)
