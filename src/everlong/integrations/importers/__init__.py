"""Memory that other programs kept, brought over: each dialect is read into records, and those pass the same import as an
export of our own does. What is brought in is marked by the origin ``import`` and keeps its times; doing it again adds
nothing. A file of which a part cannot be read is not taken in at all; a preview names every such part."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, BinaryIO, Final, Self, cast

from everlong.errors import InvalidInput
from everlong.integrations.importers.chats import chatgpt, claude
from everlong.integrations.importers.deerflow import deerflow
from everlong.integrations.importers.items import langgraph, mem0
from everlong.integrations.importers.plain import agents_md, jsonl
from everlong.integrations.importers.target import Target, written_at
from everlong.records import Fault, Tally, Transferred
from everlong.transfer.export import write_lines
from everlong.transfer.format import kind_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from everlong.integrations.importers.target import Dialect
    from everlong.memory import ScopedMemory
    from everlong.records import CopyKind, Kept

__all__ = ["DIALECTS", "bring", "look"]

DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType(
    {
        "deerflow": deerflow,
        "mem0": mem0,
        "langgraph": langgraph,
        "agents-md": agents_md,
        "chatgpt": chatgpt,
        "claude": claude,
        "jsonl": jsonl,
    }
)
"""What can be brought over: ``deerflow`` (its JSON document, or a folder of Markdown facts), ``mem0`` (JSON), ``langgraph``
(the SQLite file or PostgreSQL URL of a store), ``agents-md`` (AGENTS.md, CLAUDE.md), ``chatgpt`` and ``claude``
(``conversations.json``), ``jsonl`` (lines with ``content``)."""

_IN_MEMORY: Final = 8 * 1024 * 1024
"""Bytes of records up to which no file on the disk is needed."""


class _Reading:
    """One source, read into records of our own format."""

    def __init__(self, scoped: ScopedMemory, dialect: str, source: str | Path, *, only: str, facts: bool) -> None:
        if dialect not in DIALECTS:
            raise InvalidInput(f"dialect {dialect!r} is none of {', '.join(DIALECTS)}")
        self._read, self._source = DIALECTS[dialect], str(source)
        now = scoped._memory.parts.clock()
        self._target = Target(
            scope=scoped.scope.home,
            dialect=dialect,
            now=written_at(Path(source), now),
            categories=scoped._memory.parts.gate.categories,
            only=only,
            facts=facts,
        )
        self.faults: list[Fault] = []
        self._places: list[int] = []
        self.lines = cast("BinaryIO", tempfile.SpooledTemporaryFile(max_size=_IN_MEMORY))  # noqa: SIM115 (closed below)
        self._total = write_lines(self._records(), self._target.scope, self.lines, at=now).total

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.lines.close()

    def _records(self) -> Iterator[tuple[CopyKind, Kept]]:
        for place, found in self._read(self._source, self._target):
            if isinstance(found, Fault):
                self.faults.append(found)
            else:
                self._places.append(place)
                yield kind_of(found), found

    def told(self, result: Transferred) -> Transferred:
        """The result with faults named by their place in the source, and with the parts that are no records."""
        faults = [replace(each, line=self._places[each.line - 2]) for each in result.faults]
        tallies = dict(result.tallies)
        if self.faults:
            tallies["unknown"] = Tally(invalid=len(self.faults))
        return replace(result, tallies=tallies, faults=(*self.faults, *faults))

    def check(self, result: Transferred) -> None:
        """Raises :class:`InvalidInput` unless all of the source can be taken in."""
        bad = result.count("invalid")
        if bad:
            first = next(fault for fault in result.faults if fault.fate == "invalid")
            raise InvalidInput(
                f"{bad} parts of {self._source} cannot be taken in, the first at {first.line}: {first.reason}. "
                "Nothing was changed; a preview lists all of them"
            )
        if not self._total:
            raise InvalidInput(f"{self._source} holds nothing to bring over")


def look(scoped: ScopedMemory, dialect: str, source: str | Path, *, only: str = "", facts: bool = False) -> Transferred:
    """What :func:`bring` would do; ``line`` of a fault is the line, or the number of the item, in the source."""
    with _Reading(scoped, dialect, source, only=only, facts=facts) as reading:
        return reading.told(scoped.transfer.preview(reading.lines))


def bring(
    scoped: ScopedMemory, dialect: str, source: str | Path, *, only: str = "", facts: bool = False
) -> Transferred:
    """Takes ``source`` into the memory of ``scoped``, all of it or nothing.

    Args:
        scoped: whose memory it becomes.
        dialect: one of :data:`DIALECTS`.
        source: a file, a folder for ``deerflow``, or a PostgreSQL URL for ``langgraph``.
        only: of a source that holds memory of several users, the one to take (mem0: ``user_id``; LangGraph: a part of the
            namespace). Without it such a source is refused, so that nobody gets what is another's.
        facts: of AGENTS.md, make each bullet a fact too.

    Raises:
        InvalidInput: some part cannot be read or stored; nothing was changed.
    """
    with _Reading(scoped, dialect, source, only=only, facts=facts) as reading:
        reading.check(reading.told(scoped.transfer.preview(reading.lines)))
        return reading.told(scoped.transfer.import_(reading.lines))
