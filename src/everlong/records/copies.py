"""What leaves a memory and comes into one as whole records: earlier versions, and the tally of a transfer."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Final, Literal

from everlong.records.changes import ExtractionRecord
from everlong.records.kept import Entry, Fact, MemoryFile, Message, Profile, Proposal, Session

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True, kw_only=True)
class Earlier:
    """An earlier version of a fact, profile or file, and when it ``ended``, which is when the next one began."""

    record: Fact | Profile | MemoryFile
    ended: datetime


Kept = Profile | Session | Message | Fact | MemoryFile | Proposal | Entry | ExtractionRecord | Earlier
"""Anything that is kept as a row of its own."""

CopyKind = Literal[
    "profile",
    "profile_version",
    "session",
    "message",
    "fact",
    "fact_version",
    "file",
    "file_version",
    "proposal",
    "entry",
    "extraction",
]
COPY_KINDS: Final[tuple[CopyKind, ...]] = (
    "profile",
    "profile_version",
    "session",
    "message",
    "fact",
    "fact_version",
    "file",
    "file_version",
    "proposal",
    "entry",
    "extraction",
)
"""Every kind of record that can be copied, in the order in which an export holds them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One line that was not taken: ``line`` counts from 1, ``id`` is the record's where it can be told. A conflict leaves
    what is kept as it is; an invalid line keeps all of the file out."""

    line: int
    reason: str
    kind: str = ""
    id: str = ""
    fate: Literal["conflicting", "invalid"] = "invalid"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Records of one kind in an import: ``new`` ones, those kept already in the ``same`` state, ``conflicting`` ones (kept
    in another state, which stays), ``invalid`` ones, and those ``left_out`` because only an operator may bring them."""

    new: int = 0
    same: int = 0
    conflicting: int = 0
    invalid: int = 0
    left_out: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What an export wrote: how many records of each kind, and the SHA-256 of their lines."""

    records: Mapping[str, int]
    sha256: str

    @property
    def total(self) -> int:
        """All records."""
        return sum(self.records.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Transferred:
    """What an import did, or by a preview would do, by kind. ``faults`` names the first 1,000 lines that conflict or are
    invalid; the tallies count all. ``backup`` is where what stood there before was written, after a replacement."""

    tallies: Mapping[str, Tally] = field(default_factory=dict)
    faults: tuple[Fault, ...] = ()
    backup: str = ""

    def count(self, fate: Literal["new", "same", "conflicting", "invalid", "left_out"]) -> int:
        """All records of this fate."""
        return sum(getattr(tally, fate) for tally in self.tallies.values())
