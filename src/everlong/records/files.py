"""What is said of memory files and skills: entries of a listing, lines, matches, steps of a synchronisation."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from everlong.records.kept import Scope

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class FileInfo:
    """A memory file without its content; ``size`` is in bytes."""

    scope: Scope
    path: str
    size: int
    version: int
    updated_at: datetime
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FileLines:
    """Some lines of a text file, without their endings and without a byte order mark.

    ``offset`` counts the lines left out before them, ``total`` all lines of the file; ``version`` is the one to name
    in an edit that must not miss what others wrote since.
    """

    path: str
    version: int
    lines: tuple[str, ...]
    offset: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMatch:
    """One line in which something was found; ``line`` counts from 1."""

    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FileMatches:
    """What a search through files found. ``stopped`` says why there may be more, and is empty when that was all."""

    matches: tuple[FileMatch, ...]
    stopped: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skill:
    """A procedure that an agent can load when it needs it: what its ``SKILL.md`` declares, and where it is kept.

    ``body`` and ``files`` (names of supporting files beside it) are empty in listings and filled when it is loaded.
    ``learned`` is true for one that an agent or user may rewrite, false for one that operators keep.
    """

    name: str
    description: str
    path: str
    scope: Scope
    version: int
    learned: bool
    license: str = ""
    compatibility: str = ""
    allowed_tools: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}), hash=False)
    body: str = ""
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenSkill:
    """A skill that cannot be used, and why: ``name`` is its folder's."""

    name: str
    path: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Skills:
    """The skills visible from a scope, by name, and those that are broken."""

    skills: tuple[Skill, ...] = ()
    broken: tuple[BrokenSkill, ...] = ()


SyncAction = Literal["add", "update", "delete", "merge", "conflict", "refuse"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SyncStep:
    """What a synchronisation did (or would do) with one file: ``path`` in memory, ``name`` in the folder.

    ``conflict`` and ``refuse`` changed nothing; ``reason`` says why.
    """

    action: SyncAction
    path: str
    name: str
    reason: str = ""
