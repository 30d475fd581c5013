"""A real folder, touched with care: names valid on every system, no links followed, nothing half written."""

from __future__ import annotations

import os
import re
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final
from unicodedata import normalize

from everlong.errors import InvalidInput
from everlong.text import from_safe_name, safe_name

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["Disk", "Found", "Scan", "digest", "name_of", "part_of"]

_FORBIDDEN: Final = frozenset('<>:"/\\|?*%')
_RESERVED: Final = re.compile(r"(?i)(con|prn|aux|nul|conin\$|conout\$|com[0-9¹²³]|lpt[0-9¹²³])(\..*)?")
_LONGEST: Final = 200
_BIGGEST: Final = 64 * 1024 * 1024


def digest(content: bytes) -> str:
    """What tells whether two contents are the same."""
    return sha256(content).hexdigest()


def name_of(path: str, taken: Collection[str]) -> str | None:
    """The name in a folder for a relative memory path: the same where every system allows it, else with ``%xx`` for
    what it does not. ``taken`` are folded names (:func:`folded`); ``None`` if there is no free one."""
    parts = path.split("/")
    plain = [part if _is_plain(part) else safe_name(part) for part in parts]
    for name in (plain, [*plain[:-1], safe_name(parts[-1])], [safe_name(part) for part in parts]):
        joined = "/".join(name)
        if folded(joined) not in taken:
            return joined
    return None


def folded(name: str) -> str:
    """Equal for names that some file system takes for the same."""
    return normalize("NFC", normalize("NFC", name).casefold())


def part_of(name: str) -> str:
    """The part of a memory path that a name in a folder stands for.

    Raises:
        InvalidInput: it was shortened, so that only a pull knows what it stands for.
    """
    if "%-" in name:
        raise InvalidInput("its name was shortened; pull first")
    with suppress(InvalidInput):
        return from_safe_name(name) if "%" in name else normalize("NFC", name)
    return normalize("NFC", name)


def _is_plain(part: str) -> bool:
    return (
        not _FORBIDDEN & set(part)
        and part.isprintable()
        and part == normalize("NFC", part)
        and part[0] not in ". "
        and part[-1] not in ". "
        and not _RESERVED.fullmatch(part)
        and len(part.encode()) <= _LONGEST
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A regular file below a folder: its name with ``/`` and its content's digest."""

    name: str
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scan:
    """What a folder holds: files by name, and what was left alone, by name with the reason."""

    files: dict[str, Found]
    refused: dict[str, str]

    def hides(self, name: str) -> bool:
        """Whether ``name`` is, or lies below, something that was left alone."""
        return bool(self.reason(name))

    def reason(self, name: str) -> str:
        """Why ``name``, or a folder above it, was left alone; empty if it was not."""
        parts = name.split("/")
        above = ("/".join(parts[:length]) for length in range(1, len(parts) + 1))
        return next((self.refused[each] for each in above if each in self.refused), "")


class Disk:
    """The files below ``root``. Names that begin with a dot are no part of it."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def scan(self) -> Scan:
        """Every regular file. Links are never followed: what one points at is not below the folder."""
        found = Scan(files={}, refused={})
        if self.root.is_dir():
            self._scan(self.root, "", found)
        return found

    def _scan(self, folder: Path, above: str, found: Scan) -> None:
        for entry in sorted(os.scandir(folder), key=lambda entry: entry.name):
            name = above + entry.name
            if entry.name.startswith("."):
                continue
            if entry.is_symlink():
                found.refused[name] = "is a link"
            elif entry.is_dir(follow_symlinks=False):
                self._scan(Path(entry.path), f"{name}/", found)
            elif not entry.is_file(follow_symlinks=False):
                found.refused[name] = "is not a regular file"
            else:
                self._take(name, found)

    def _take(self, name: str, found: Scan) -> None:
        try:
            name.encode()
            found.files[name] = Found(name=name, digest=digest(self.read(name)))
        except UnicodeEncodeError:
            found.refused[name] = "has a name that is not UTF-8"
        except OSError as error:
            found.refused[name] = f"cannot be read: {error.strerror}"
        except InvalidInput as error:
            found.refused[name] = str(error)

    def read(self, name: str) -> bytes:
        """The content of a regular file.

        Raises:
            InvalidInput: it lies behind a link, is not a regular file, or has over 64 MiB.
            OSError: it cannot be read.
        """
        flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
        with os.fdopen(os.open(self._inside(name), flags), "rb") as file:
            about = os.fstat(file.fileno())
            if not stat.S_ISREG(about.st_mode):
                raise InvalidInput("is not a regular file")
            if about.st_size > _BIGGEST:
                raise InvalidInput(f"has {about.st_size:,} bytes; {_BIGGEST:,} at most")
            return file.read(_BIGGEST + 1)

    def write(self, name: str, content: bytes, *, over: str | None) -> bool:
        """Writes a file, all of it or nothing, if its digest is still ``over`` (``None``: if it is not there).

        Raises:
            InvalidInput: a folder above it is a link or no folder.
            OSError: it cannot be written.
        """
        target = self._inside(name)
        if self._digest(name) != over:
            return False
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=".everlong-")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
        return True

    def delete(self, name: str, *, over: str) -> bool:
        """Removes a file if its digest is still ``over``, and the folders that it leaves empty."""
        target = self._inside(name)
        if self._digest(name) != over:
            return False
        target.unlink()
        for folder in target.parents:
            if folder == self.root:
                break
            try:
                folder.rmdir()
            except OSError:
                break
        return True

    def _digest(self, name: str) -> str | None:
        try:
            return digest(self.read(name))
        except FileNotFoundError:
            return None

    def _inside(self, name: str) -> Path:
        """Where ``name`` is, when nothing on the way there is a link."""
        parts = name.split("/")
        if any(part in {"", ".", ".."} or "\\" in part or "\0" in part for part in parts) or Path(name).is_absolute():
            raise InvalidInput("would lie outside of the folder")
        at = self.root
        for part in parts[:-1]:
            at /= part
            if at.is_symlink() or (at.exists() and not at.is_dir()):
                raise InvalidInput(f"{part} above it is a link or no folder")
        target = at / parts[-1]
        if target.is_symlink():
            raise InvalidInput("is a link")
        return target
