"""What every list in pages promises: each row once, whatever is written meanwhile, and no cursor from elsewhere."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from everlong.errors import InvalidInput
from everlong.records import Scope
from everlong.testing.samples import ANN, TALK, add_fact, entry, extraction, proposal, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from everlong.protocols import Store, Transaction
    from everlong.records import Page

ORGS = ("", "acme", "umbrella")
LISTS = ("facts", "sessions", "journal", "proposals", "extractions")
EVERYWHERE = Scope()
"""From here a question reaches *within* every org: ids that two of them share must both come."""


def add(tx: Transaction, shelf: str, name: str, scope: Scope) -> None:
    """One row of ``shelf``, all of them of one time."""
    makers: dict[str, Callable[[], object]] = {
        "facts": lambda: add_fact(tx, name, scope),
        "sessions": lambda: say(tx, f"m-{name}", session=replace(scope, session=name)),
        "journal": lambda: tx.journal.append(entry(name, scope)),
        "proposals": lambda: tx.proposals.put(proposal(name, scope)),
        "extractions": lambda: tx.extractions.append(extraction(name, scope)),
    }
    makers[shelf]()


def row_of(record: Any) -> tuple[str, ...]:
    """What tells a record from every other of its list."""
    return (*record.scope.parts, getattr(record, "id", ""))


def listed(tx: Transaction, shelf: str, scope: Scope, limit: int, cursor: str = "") -> Page[Any]:
    """A page of ``shelf``."""
    page: Page[Any] = getattr(tx, shelf).list(scope, limit=limit, cursor=cursor)
    return page


def every(tx: Transaction, shelf: str, scope: Scope, limit: int) -> list[tuple[str, ...]]:
    """All rows of ``shelf``, page by page."""
    page = listed(tx, shelf, scope, limit)
    seen = [row_of(one) for one in page.items]
    while page.next:
        page = listed(tx, shelf, scope, limit, page.next)
        assert len(page.items) <= limit
        seen += [row_of(one) for one in page.items]
    return seen


class PagingTests:
    """Lists of facts, sessions, journal, proposals and extractions."""

    @pytest.mark.parametrize("limit", [1, 2, 3])
    @pytest.mark.parametrize("shelf", LISTS)
    def test_rows_of_one_time_and_one_name_all_come(self, store: Store, shelf: str, limit: int) -> None:
        """The same session, and the same id, in every place that the question can see."""
        homes = [Scope(org=o, agent=a, user=u) for o in ("", "acme") for a in ("", "coder") for u in ("", "ann")]
        asked = Scope(org="acme", agent="coder", user="ann")
        with store.write() as tx:
            for i, home in enumerate(homes):
                # Ids are one org's; a session's name may stand in every home.
                name = "same" if shelf == "sessions" or home in {Scope(), Scope(org="acme")} else f"r{i}"
                add(tx, shelf, name, home)
        scope = asked if shelf in {"facts", "sessions"} else EVERYWHERE
        with store.read() as tx:
            seen = every(tx, shelf, scope, limit)
            assert listed(tx, shelf, scope, 99).total == len(homes)
        assert max(Counter(seen).values()) == 1
        assert len(seen) == len(homes)

    @pytest.mark.parametrize("shelf", LISTS)
    def test_what_is_written_meanwhile_moves_nothing(self, store: Store, shelf: str) -> None:
        with store.write() as tx:
            for i in range(6):
                add(tx, shelf, f"r{i}", ANN)
        with store.read() as tx:
            page = listed(tx, shelf, ANN, 2)
            whole = [row_of(one) for one in listed(tx, shelf, ANN, 99).items]
        seen = [row_of(one) for one in page.items]
        while page.next:
            with store.write() as tx:
                add(tx, shelf, f"z{len(seen)}", ANN)
            with store.read() as tx:
                page = listed(tx, shelf, ANN, 2, page.next)
            seen += [row_of(one) for one in page.items]
        assert seen == whole

    @pytest.mark.parametrize("shelf", LISTS)
    @pytest.mark.parametrize(
        "cursor", ["nonsense", "12:f1", "安", "W10=", "bnVsbA==", "WzEsMl0=", "WyIxIiwiYSIsImIiXQ=="]
    )
    def test_a_cursor_from_elsewhere_is_refused(self, store: Store, shelf: str, cursor: str) -> None:
        with store.read() as tx, pytest.raises(InvalidInput, match="begin without one"):
            listed(tx, shelf, TALK, 2, cursor)

    def test_a_cursor_can_stand_in_an_address(self, store: Store) -> None:
        with store.write() as tx:
            for i in range(3):
                tx.journal.append(entry(f"安 ?&#/+{i}\x7f", ANN))
        with store.read() as tx:
            cursor = listed(tx, "journal", ANN, 1).next
        assert cursor.isascii()
        assert not set(cursor) & set(" ?&#/+%")
