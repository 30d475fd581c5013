"""Memory of a scope into a file, and out of one."""

from __future__ import annotations

import io
import os
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, BinaryIO, Final, Literal, cast

from everlong.errors import InvalidInput
from everlong.records import Entry, Job
from everlong.transfer import Loader, write
from everlong.write.apply import job_key, name_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.memory.scoped import ScopedMemory
    from everlong.protocols import Transaction
    from everlong.records import Exported, Transferred
    from everlong.transfer import Gate
    from everlong.transfer.load import Landed

__all__ = ["Place", "Transfer"]

Place = str | Path | IO[bytes]
"""A path, or a binary file that is open; one to read from must allow to go back to its beginning."""
Mode = Literal["merge", "replace"]

_PRIVATE: Final = 0o600
"""Rights of a file with memory in it: its owner's alone."""


class Transfer:
    """Everything kept at or within a scope (less its session) as a file, and such a file into memory.

    The format is JSON by lines, described in ``docs/export.md`` and by ``everlong.transfer.json_schema()``. Any operation
    may raise :class:`~everlong.errors.AccessDenied`, and :class:`~everlong.errors.InvalidInput` for a file that cannot be
    read or written.
    """

    def __init__(self, scoped: ScopedMemory) -> None:
        self._scope, self._by, self._run, self._parts = scoped.scope.home, scoped.by, scoped._run, scoped._memory.parts
        self._wake = scoped._memory.wake

    def export(self, file: Place, *, audit: bool = False) -> Exported:
        """Writes every record: profiles, conversations, facts, memory files, each with its history, and what waits for
        review; with ``audit`` also the journal and what extractions read, answered and cost. It is one state of the
        memory, others may go on writing. Ids, times, versions and links stay; vectors and jobs are left out.

        A file named by a path is put in place whole or not at all, and only its owner may read it.
        """
        return self._run("export", lambda: self._export(file, audit=audit), at=self._scope)

    def _export(self, file: Place, *, audit: bool) -> Exported:
        with self._parts.store.read() as tx, _writing(file) as out:
            return write(tx, self._scope, out, at=self._parts.clock(), audit=audit)

    def preview(self, file: Place) -> Transferred:
        """What a merge would do, by kind: how many records are new, the same, conflicting or invalid, with lines and
        reasons. Changes nothing.

        Raises:
            InvalidInput: the file is no export, of a newer format, or not whole.
        """
        return self._run("import_preview", lambda: self._preview(file), at=self._scope)

    def _preview(self, file: Place) -> Transferred:
        with self._parts.store.read() as tx, _reading(file) as lines:
            return Loader(lines, self._scope, self._gate).look(tx)

    def import_(self, file: Place, *, mode: Mode = "merge", backup: str | Path | None = None) -> Transferred:
        """Takes a file in, in one transaction or not at all. What is in it passes the same checks and the same redaction
        as what comes in by any other door.

        ``merge`` adds what is new and keeps ids; what is kept in the same state is skipped, what is kept in another stays
        and is reported. ``replace`` first writes what is here, with journal, to ``backup`` (default: beside the file,
        named by the time), then erases it, then takes the file in; importing the backup undoes it.

        Raises:
            InvalidInput: the file is no export, of a newer format, not whole, or holds an invalid record; to replace also
                when it holds nothing, is of another scope, or ``backup`` exists. Nothing was changed.
        """
        if mode not in ("merge", "replace"):
            raise InvalidInput(f"mode {mode!r} is neither merge nor replace")
        if mode == "merge":
            result = self._run("import", lambda: self._merge(file), at=self._scope)
        else:
            result = self._run("import_replace", lambda: self._replace(file, _beside(file, backup, self._stamp())))
        self._parts.store.notify()
        self._wake()
        return result

    def _merge(self, file: Place) -> Transferred:
        with _reading(file) as lines, self._parts.store.write() as tx:
            landed = Loader(lines, self._scope, self._gate).merge(tx)
            self._finish(tx, landed, "import")
        return landed.result

    def _replace(self, file: Place, backup: Path) -> Transferred:
        parts = self._parts
        with _reading(file) as lines:
            loader = Loader(lines, self._scope, self._gate)
            loader.check_replaces()
            with parts.store.write() as tx:
                with _writing(backup) as out:
                    write(tx, self._scope, out, at=parts.clock(), audit=True)
                tx.erase(self._scope)
                landed = loader.merge(tx)
                self._finish(tx, landed, "import_replace")
        parts.traces.erase(self._scope)
        parts.uses.forget(self._scope)
        parts.reader.forget(self._scope)
        parts.index.forget(self._scope)
        return replace(landed.result, backup=str(backup))

    @property
    def _gate(self) -> Gate:
        return replace(self._parts.gate, operator=self._by.role in {"operator", "system"})

    def _stamp(self) -> str:
        return f"{self._parts.clock():%Y%m%dT%H%M%S}"

    def _finish(self, tx: Transaction, landed: Landed, action: str) -> None:
        """Sees to it that texts get their vectors and what was said and not read yet is read; journals the import."""
        now, parts = self._parts.clock(), self._parts
        wanted = [("embed", place) for place in landed.places] if parts.embedder is not None else []
        wanted += [("extract", talk) for talk in landed.talks if tx.messages.backlog(talk).messages]
        for kind, scope in sorted(wanted):
            job = Job(id=parts.new_id("job"), kind=kind, key=job_key(scope), scope=scope, run_after=now, first_at=now)
            tx.jobs.put(job, latest=now)
        counts = {kind: tally.new for kind, tally in landed.result.tallies.items() if tally.new}
        if counts or action == "import_replace":
            entry = Entry(
                id=parts.new_id("log"),
                at=now,
                scope=self._scope,
                by=name_of(self._by),
                action=action,
                reason="imported from a file",
                payload={"new": counts},
            )
            tx.journal.append(entry)


def _beside(file: Place, backup: str | Path | None, stamp: str) -> Path:
    """Where what is there goes before it is replaced.

    Raises:
        InvalidInput: nothing tells where, or something is there.
    """
    if backup is None and not isinstance(file, (str, Path)):
        raise InvalidInput("to replace from an open file, say where what is here goes first: backup=path")
    found = Path(backup) if backup is not None else Path(cast("str", file)).with_suffix(f".replaced-{stamp}.jsonl")
    if found.exists():
        raise InvalidInput(f"{found} exists already: name another place for the backup")
    return found


@contextmanager
def _reading(file: Place) -> Iterator[BinaryIO]:
    if not isinstance(file, (str, Path)):
        yield cast("BinaryIO", file)
        return
    try:
        with Path(file).open("rb") as opened:
            yield opened
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}") from None


@contextmanager
def _writing(file: Place) -> Iterator[BinaryIO]:
    """A file that takes its name only when all of it is on the disk."""
    if not isinstance(file, (str, Path)):
        yield cast("BinaryIO", file)
        return
    path = Path(file)
    part = path.with_name(f"{path.name}.part")
    try:
        handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _PRIVATE)
    except OSError as error:
        raise InvalidInput(f"{part} cannot be written: {error.strerror}") from None
    try:
        with io.BufferedWriter(io.FileIO(handle, "wb")) as out:
            yield cast("BinaryIO", out)
            out.flush()
            os.fsync(out.fileno())
        part.replace(path)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}") from None
    finally:
        part.unlink(missing_ok=True)
