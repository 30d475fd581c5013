"""The chain over the journal: a link for each entry, which no change, removal or reordering leaves whole."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

if TYPE_CHECKING:
    from everlong.records.kept import Entry

ERASING: Final = frozenset({"erase", "forget_topic", "import_replace", "purge"})
"""Actions that take earlier entries, or their words, out of the journal."""
LinkFault = Literal["changed", "removed", "moved", "erased by nobody"]

__all__ = ["ERASING", "AuditFinding", "AuditReport", "Link", "LinkFault", "body_digest", "link_hash"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """One link of an organisation's chain, numbered from 1. It holds no word of its entry: ``body`` is the digest of the
    entry's reason and payload, ``hash`` covers the hash before, all else of the entry, and ``body``.

    ``erased`` is empty, or the id of the entry that says by whose order the entry, or its words, were erased.
    """

    number: int
    entry: str
    body: str
    hash: str
    erased: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFinding:
    """What is wrong with one link."""

    number: int
    entry: str
    fault: LinkFault


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """``links`` were looked at, ``erased`` of them stand for what was erased, and ``head`` is the last hash: noted elsewhere,
    it also shows that nothing was cut off the end. ``findings`` is empty when the chain is whole."""

    org: str
    links: int
    erased: int
    head: str
    findings: tuple[AuditFinding, ...] = ()

    @property
    def whole(self) -> bool:
        return not self.findings


def body_digest(entry: Entry) -> str:
    """SHA-256 (hex) of what an erasure may take out of an entry."""
    return _sha256([entry.reason, entry.payload])


def link_hash(before: str, entry: Entry, body: str) -> str:
    """SHA-256 (hex) over the hash before, an entry less its words, and the digest of those."""
    told = [entry.id, entry.scope.parts, entry.at.isoformat(), entry.by, entry.action, entry.kind, entry.target]
    return _sha256([before, told, entry.before, entry.after, body])


def _sha256(told: Any) -> str:
    plain = json.dumps(told, sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=dict)
    return hashlib.sha256(plain.encode()).hexdigest()
