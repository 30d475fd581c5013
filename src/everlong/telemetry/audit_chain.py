"""Verifying the chain over the journal."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import TYPE_CHECKING, Final, Literal

from everlong.errors import NotFound
from everlong.records import ERASING, AuditFinding, AuditReport, Link, LinkFault, Scope, body_digest, link_hash
from everlong.records.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.protocols import Transaction
    from everlong.records import Entry

__all__ = ["lines", "verify"]

_BATCH: Final = 1000


def lines(tx: Transaction, scope: Scope) -> str:
    """The journal within ``scope`` as lines of JSON, oldest first."""
    found: list[Entry] = []
    cursor = ""
    while True:
        page = tx.journal.list(scope, cursor=cursor, limit=_BATCH)
        found += page.items
        cursor = page.next
        if not cursor:
            return "".join(json.dumps(plain(entry), ensure_ascii=False) + "\n" for entry in reversed(found))


def verify(tx: Transaction, org: str) -> AuditReport:
    """Goes over every link of the organisation ``org``. An entry that was erased, or whose words were, is in order when
    its link names an entry that says so; the numbers and hashes hold all the same."""
    findings: list[AuditFinding] = []
    count, erased, head = 0, 0, ""
    for link in _links(tx, org):
        count += 1
        fault: LinkFault | Literal[""] = "moved" if link.number != count else _fault(tx, org, head, link)
        if fault:
            findings.append(AuditFinding(number=link.number, entry=link.entry, fault=fault))
        erased += bool(link.erased)
        count, head = link.number, link.hash
    return AuditReport(org=org, links=count, erased=erased, head=head, findings=tuple(findings))


def _fault(tx: Transaction, org: str, before: str, link: Link) -> LinkFault | Literal[""]:
    entry = _entry(tx, org, link.entry)
    if link.erased and not _ordered(tx, org, link.erased):
        return "erased by nobody"
    if entry is None:
        return "" if link.erased else "removed"
    if link_hash(before, entry, link.body) != link.hash:
        return "changed"
    return "" if link.erased or body_digest(entry) == link.body else "changed"


def _ordered(tx: Transaction, org: str, entry_id: str) -> bool:
    """Whether that entry is a chained order to erase, or was one that was erased since."""
    entry = _entry(tx, org, entry_id) or _entry(tx, "", entry_id)
    if entry is not None:
        return entry.action in ERASING
    return any(link.entry == entry_id and link.erased for link in _links(tx, org))


def _entry(tx: Transaction, org: str, entry_id: str) -> Entry | None:
    with suppress(NotFound):
        return tx.journal.get(Scope(org=org), entry_id)
    return None


def _links(tx: Transaction, org: str) -> Iterator[Link]:
    after = 0
    while True:
        found = tx.journal.links(org, after=after, limit=_BATCH)
        yield from found
        if len(found) < _BATCH:
            return
        after = found[-1].number
