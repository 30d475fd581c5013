"""A small index shelf that keeps rows in a dict: enough of a transaction to drive the cache by hand."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from math import inf
from typing import TYPE_CHECKING, Any

import pytest

from everlong.protocols import IndexRows, Revision
from everlong.records import Scope
from everlong.text import pack_terms, terms

if TYPE_CHECKING:
    from collections.abc import Sequence

    from everlong.records import Kind

START = datetime(2026, 1, 1, tzinfo=UTC)


def row(identifier: str, text: str, **given: Any) -> dict[str, Any]:
    """One row of :class:`IndexRows` by column, made of a text."""
    made: dict[str, Any] = {
        "ids": identifier,
        "live": True,
        "terms": pack_terms(terms(text)),
        "vectors": None,
        "session": "",
        "speaker": "",
        "role": "user",
        "category": "",
        "created_at": START,
        "position": 0,
        "length": len(text),
        "question": text.endswith("?"),
        "confidence": 0.5,
        "origin": "user",
        "trust": 0.9,
        "valid_from": -inf,
        "valid_until": inf,
    }
    return made | given


def columns(rows: Sequence[dict[str, Any]]) -> IndexRows:
    """Rows turned into columns."""
    ordered = sorted(rows, key=lambda each: each.get("revision", 0))
    made = {f.name: [each.get(f.name, 0) for each in ordered] for f in fields(IndexRows)}
    return IndexRows(**made | {"created_at": [at.timestamp() for at in made["created_at"]]})


@dataclass
class Shelf:
    """Rows by bucket; ``loads`` records every ``rows`` call as (bucket, after), ``leaky`` shows every bucket."""

    kept: dict[tuple[Scope, Kind], dict[str, dict[str, Any]]] = field(default_factory=dict)
    states: dict[tuple[Scope, Kind], Revision] = field(default_factory=dict)
    loads: list[tuple[Scope, int]] = field(default_factory=list)
    leaky: bool = False

    @property
    def index(self) -> Shelf:
        """The shelf is its own transaction."""
        return self

    def put(self, scope: Scope, identifier: str, text: str, kind: Kind = "fact", **given: Any) -> None:
        """Writes one row as a new revision."""
        state = self.states.get((scope, kind), Revision(epoch="a", number=0))
        self.states[scope, kind] = Revision(epoch=state.epoch, number=state.number + 1)
        given.setdefault("created_at", START + timedelta(seconds=state.number))
        made = row(identifier, text, **given) | {"revision": state.number + 1}
        self.kept.setdefault((scope, kind), {})[identifier] = made

    def erase(self, scope: Scope, identifier: str, kind: Kind = "fact") -> None:
        """Removes one row for good, which makes a new epoch."""
        del self.kept[scope, kind][identifier]
        state = self.states[scope, kind]
        self.states[scope, kind] = Revision(epoch=state.epoch + "x", number=state.number + 1)

    def revisions(self, scope: Scope, kinds: Sequence[Kind]) -> dict[tuple[Scope, Kind], Revision]:
        """As :class:`everlong.protocols.IndexShelf`."""
        return {key: state for key, state in self.states.items() if key[1] in kinds and self._sees(key[0], scope)}

    def _sees(self, kept: Scope, asking: Scope) -> bool:
        return self.leaky or kept.covers(asking)

    def rows(self, bucket: Scope, kind: Kind, *, model: str, after: int = 0) -> IndexRows:
        """As :class:`everlong.protocols.IndexShelf`; vectors are kept as {model: bytes}."""
        self.loads.append((bucket, after))
        found = [each for each in tuple(self.kept.get((bucket, kind), {}).values()) if each["revision"] > after]
        return columns([each | {"vectors": (each["vectors"] or {}).get(model)} for each in found])


@pytest.fixture
def shelf() -> Shelf:
    """An empty index shelf."""
    return Shelf()
