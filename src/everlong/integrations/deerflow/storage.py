"""DeerFlow's storage contract, and its plain JSON files: one document for each user and agent."""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
import threading
from abc import ABC, abstractmethod
from contextlib import contextmanager, suppress
from copy import deepcopy
from hashlib import sha256
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final

from everlong.errors import InvalidInput, StoreUnavailable
from everlong.integrations.deerflow.document import create_empty_memory
from everlong.text import safe_name

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

__all__ = ["AGENT_NAME_PATTERN", "FileMemoryStorage", "MemoryStorage"]

AGENT_NAME_PATTERN: Final = re.compile(r"^[A-Za-z0-9-]+$")
"""What an agent may be called: its name is a folder."""
_log = logging.getLogger("everlong.deerflow")
_WAIT: Final = 0.02


class MemoryStorage(ABC):
    """Where documents are kept. ``agent_name`` and ``user_id`` say whose; both, one, or none (the global one)."""

    @abstractmethod
    def load(self, agent_name: str | None = None, *, user_id: str | None = None) -> dict[str, Any]:
        """The document, or an empty one."""

    @abstractmethod
    def reload(self, agent_name: str | None = None, *, user_id: str | None = None) -> dict[str, Any]:
        """The document as it is now, past any cache."""

    @abstractmethod
    def save(self, memory_data: dict[str, Any], agent_name: str | None = None, *, user_id: str | None = None) -> bool:
        """Keeps the document; false if that failed."""


class FileMemoryStorage(MemoryStorage):
    """JSON files below ``base_dir``, in DeerFlow's layout.

    ========================  ==================================================
    user and agent            ``users/{user}/agents/{agent}/memory.json``
    user                      ``users/{user}/memory.json``
    agent                     ``agents/{agent}/memory.json``
    neither                   ``storage_path`` (absolute, or below ``base_dir``), or ``memory.json``
    ========================  ==================================================

    A file is replaced as a whole or not at all. What was read is known again by its content, so a change within one tick
    of the file's clock is seen. Writers of all processes wait for each other.

    Args:
        base_dir: DeerFlow's home.
        storage_path: the global file.
        lock_timeout: seconds to wait for another writer (DeerFlow: 10, 1 to 120).
        clock: the time of a new empty document.
    """

    def __init__(
        self,
        base_dir: str | Path,
        *,
        storage_path: str | Path = "",
        lock_timeout: float = 10.0,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._base, self._global = Path(base_dir), storage_path
        self._timeout, self._clock = lock_timeout, clock
        self._lock, self._own = threading.Lock(), threading.local()
        self._cache: dict[Path, tuple[str, dict[str, Any]]] = {}

    def path(self, agent_name: str | None = None, *, user_id: str | None = None) -> Path:
        """The file of a document.

        Raises:
            InvalidInput: the agent's name is no safe name of a folder.
        """
        if agent_name is not None and not AGENT_NAME_PATTERN.fullmatch(agent_name):
            raise InvalidInput(f"agent name {agent_name!r} is not of letters, digits and hyphens")
        if user_id is None and agent_name is None:
            path = self._base / (self._global or "memory.json")
            return path / "memory.json" if path.is_dir() else path
        folder = self._base
        if user_id is not None:
            folder = folder / "users" / _folder(user_id)
        if agent_name is not None:
            folder = folder / "agents" / agent_name.lower()
        return folder / "memory.json"

    def load(self, agent_name: str | None = None, *, user_id: str | None = None) -> dict[str, Any]:
        """The document, or an empty one where there is no file.

        Raises:
            InvalidInput: the file is no JSON object. It stays as it is.
        """
        path = self.path(agent_name, user_id=user_id)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            self._point_out(path)
            return create_empty_memory(self._clock() if self._clock else None)
        mark = sha256(content).hexdigest()
        with self._lock:
            known = self._cache.get(path)
        if known is None or known[0] != mark:
            known = (mark, _parsed(content, path))
            with self._lock:
                self._cache[path] = known
        return deepcopy(known[1])

    def _point_out(self, path: Path) -> None:
        """Says where memory of an older layout lies, which would seem lost."""
        old = self.path()
        if old != path and old.is_file():
            _log.warning(
                "%s is not there yet, but %s of the layout without users is: save that for its user", path, old
            )

    def reload(self, agent_name: str | None = None, *, user_id: str | None = None) -> dict[str, Any]:
        """:meth:`load` past the cache."""
        with self._lock:
            self._cache.pop(self.path(agent_name, user_id=user_id), None)
        return self.load(agent_name, user_id=user_id)

    def save(self, memory_data: dict[str, Any], agent_name: str | None = None, *, user_id: str | None = None) -> bool:
        """Replaces the file; false if the system refused. Raises what :meth:`path` and :meth:`locked` raise."""
        path = self.path(agent_name, user_id=user_id)
        content = json.dumps(memory_data, ensure_ascii=False, indent=2).encode("utf-8", "surrogatepass")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._held(path):
                _replace(path, content)
        except OSError:
            return False
        return True

    @contextmanager
    def locked(self, agent_name: str | None = None, *, user_id: str | None = None) -> Iterator[None]:
        """Keeps every other writer of the document out, also of other processes, to read, change and save it.

        Raises:
            StoreUnavailable: another one held it for longer than ``lock_timeout``.
        """
        path = self.path(agent_name, user_id=user_id)
        path.parent.mkdir(parents=True, exist_ok=True)
        with self._held(path):
            yield

    @contextmanager
    def _held(self, path: Path) -> Iterator[None]:
        import fcntl

        held: set[Path] = self._own.__dict__.setdefault("paths", set())
        if path in held:  # this thread saves inside of locked()
            yield
            return
        until = monotonic() + self._timeout
        with path.with_name(f".{path.name}.lock").open("a") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if monotonic() > until:
                        raise StoreUnavailable(f"another writer held {path} for {self._timeout:g} s") from None
                    sleep(_WAIT)
            held.add(path)
            try:
                yield
            finally:
                held.discard(path)


def _folder(user_id: str) -> str:
    """A folder for any user id; plain ids are the folder's name as they are."""
    plain = re.fullmatch(r"[A-Za-z0-9_-]+", user_id)
    return user_id if plain else safe_name(user_id)


def _parsed(content: bytes, path: Path) -> dict[str, Any]:
    try:
        found = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{path} is no JSON: {error}; it was left as it is") from None
    if not isinstance(found, dict):
        raise InvalidInput(f"{path} holds no JSON object; it was left as it is")
    return found


def _replace(path: Path, content: bytes) -> None:
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except BaseException:
        with suppress(OSError):
            Path(name).unlink()
        raise
