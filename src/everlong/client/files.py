"""Memory files and skills behind a server."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from everlong.records import FileInfo, FileLines, FileMatches, MemoryFile, Skill, Skills

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["RemoteFiles", "RemoteSkills"]


class RemoteFiles:
    """Each operation means what its namesake of :class:`~everlong.memory.Files` means."""

    def __init__(self, call: Callable[..., Any], items: Callable[..., Any]) -> None:
        self._call, self._items = call, items

    def read(self, path: str, *, version: int | None = None) -> MemoryFile:
        """The file, or one of its earlier versions."""
        return self._file("GET", "/files/content", query={"path": path, "version": version})

    def _file(self, method: str, path: str, **given: Any) -> MemoryFile:
        file: MemoryFile = self._call(MemoryFile, method, path, **given)
        return file

    def lines(self, path: str, *, offset: int = 0, limit: int = 2000) -> FileLines:
        """Some lines of a text file."""
        query = {"path": path, "offset": offset, "limit": limit}
        lines: FileLines = self._call(FileLines, "GET", "/files/lines", query=query)
        return lines

    def list(self, prefix: str = "/") -> tuple[FileInfo, ...]:
        """Files visible from here below a folder."""
        found: tuple[FileInfo, ...] = self._items(FileInfo, "/files", prefix=prefix)
        return found

    def glob(self, glob: str, *, prefix: str = "/") -> tuple[FileInfo, ...]:
        """Files whose path a glob names."""
        found: tuple[FileInfo, ...] = self._items(FileInfo, "/files", prefix=prefix, glob=glob)
        return found

    def grep(
        self, pattern: str, *, glob: str | None = None, prefix: str = "/", regex: bool = False, limit: int = 100
    ) -> FileMatches:
        """Lines of text files that hold a pattern."""
        query = {"pattern": pattern, "glob": glob, "prefix": prefix, "regex": regex, "limit": limit}
        found: FileMatches = self._call(FileMatches, "GET", "/files/grep", query=query)
        return found

    def write(self, path: str, content: str | bytes, *, expected: int = 0, read_only: bool | None = None) -> MemoryFile:
        """Writes a file over a version."""
        text = {"text": content} if isinstance(content, str) else {"base64": base64.b64encode(content).decode("ascii")}
        body = {"path": path, **text, "expected_version": expected, "read_only": read_only}
        return self._file("PUT", "/files/content", body=body)

    def edit(
        self, path: str, old: str, new: str, *, replace_all: bool = False, expected: int | None = None
    ) -> MemoryFile:
        """Replaces words of a text file."""
        body = {"path": path, "old": old, "new": new, "replace_all": replace_all, "expected_version": expected}
        return self._file("POST", "/files/edit", body=body)

    def delete(self, path: str, *, expected: int | None = None) -> None:
        """Removes a file."""
        self._call(None, "DELETE", "/files/content", query={"path": path, "expected_version": expected})

    def history(self, path: str, *, limit: int = 20) -> tuple[MemoryFile, ...]:
        """The latest versions of a file, newest first."""
        found: tuple[MemoryFile, ...] = self._items(MemoryFile, "/files/history", path=path, limit=limit)
        return found

    def diff(self, path: str, before: int, after: int | None = None) -> str:
        """What changed between two versions."""
        told = self._call(dict, "GET", "/files/diff", query={"path": path, "before": before, "after": after})
        return str(told["diff"])

    def restore(self, path: str, version: int) -> MemoryFile:
        """Writes an earlier version again."""
        return self._file("POST", "/files/restore", body={"path": path, "version": version})


class RemoteSkills:
    """Each operation means what its namesake of :class:`~everlong.memory.SkillShelf` means."""

    def __init__(self, call: Callable[..., Any]) -> None:
        self._call = call

    def list(self) -> Skills:
        """Every skill visible from here, and which are broken."""
        found: Skills = self._call(Skills, "GET", "/skills")
        return found

    def load(self, name: str) -> Skill:
        """One skill in full."""
        skill: Skill = self._call(Skill, "GET", f"/skills/{quote(name, safe='')}")
        return skill

    def write(self, name: str, *, description: str, body: str, expected: int = 0, folder: str = "/skills/") -> Skill:
        """Writes a skill over a version."""
        text = {"description": description, "body": body, "expected_version": expected, "folder": folder}
        skill: Skill = self._call(Skill, "PUT", f"/skills/{quote(name, safe='')}", body=text)
        return skill

    def block(self, *, budget: int = 1000) -> str:
        """The list of skills as a block for a prompt."""
        return str(self._call(dict, "GET", "/skill-block", query={"budget": budget})["block"])
