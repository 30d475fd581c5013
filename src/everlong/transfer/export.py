"""Memory out: every record within a scope as lines, from one state of the store, a portion in memory at a time."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Final

from everlong.records import COPY_KINDS, CopyKind, Exported, Scope
from everlong.transfer.format import FORMAT, VERSION, dumped, encode, place

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from typing import BinaryIO

    from everlong.protocols import Transaction
    from everlong.records import Kept

__all__ = ["AUDIT", "write", "write_lines"]

AUDIT: Final[tuple[CopyKind, ...]] = ("entry", "extraction")
"""What tells how memory came to be; left out of an export unless it is asked for."""
_NEVER: Final = ("vectors", "jobs", "times at which the pieces of a file's text came to read as they do")


def write(tx: Transaction, scope: Scope, out: BinaryIO, *, at: datetime, audit: bool) -> Exported:
    """Writes everything kept at or within ``scope`` to ``out``; with ``audit`` the journal and extraction records too.

    Vectors are left out, for they are made anew by whatever embedder the reader has.
    """
    kinds = tuple(kind for kind in COPY_KINDS if audit or kind not in AUDIT)
    records = ((kind, record) for kind in kinds for record in tx.copies.each(kind, scope))
    return write_lines(records, scope, out, at=at, kinds=kinds)


def write_lines(
    records: Iterable[tuple[CopyKind, Kept]],
    scope: Scope,
    out: BinaryIO,
    *,
    at: datetime,
    kinds: tuple[CopyKind, ...] = COPY_KINDS,
) -> Exported:
    """Writes ``records`` between a header and a trailer."""
    left = (*(kind for kind in COPY_KINDS if kind not in kinds), *_NEVER)
    head = {"format": FORMAT, "version": VERSION, "scope": place(scope), "at": at.isoformat(), "kinds": kinds}
    out.write(dumped({**head, "left_out": left}))
    counts: dict[str, int] = {}
    digest = sha256()
    for kind, record in records:
        line = dumped(encode(kind, record))
        digest.update(line)
        out.write(line)
        counts[kind] = counts.get(kind, 0) + 1
    out.write(dumped({"type": "end", "records": counts, "sha256": digest.hexdigest()}))
    return Exported(records=counts, sha256=digest.hexdigest())
