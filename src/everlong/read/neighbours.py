"""The records behind the rows of a search, and the turns beside those that were found."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from everlong.records import Message

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from everlong.protocols import Corpus, Transaction
    from everlong.records import Fact, Hit, Kind, Passage, Query, Scope

__all__ = ["Shelves", "with_neighbours"]


@dataclass(slots=True)
class Shelves:
    """Where one question finds records: as they are now, or facts as they were known at ``query.as_of``."""

    tx: Transaction
    scope: Scope
    query: Query
    _past: dict[str, Fact] | None = field(default=None)

    def many(self, kind: Kind, ids: Sequence[str]) -> Mapping[str, Fact | Message | Passage]:
        """Records of ``kind`` by id; those that are gone are not there."""
        if kind == "message":
            return self.tx.messages.many(self.scope, ids)
        if kind == "file":
            return self.tx.passages.many(self.scope, ids)
        return self.tx.facts.many(self.scope, ids) if self.query.as_of is None else self._known_then()

    def told(self, kind: Kind, corpus: Corpus) -> Sequence[Mapping[str, Any]] | None:
        """Metadata of every row of ``corpus``, if the question has conditions on it."""
        if not self.query.metadata:
            return None
        if kind == "fact" and self.query.as_of is not None:
            known = self._known_then()
            return [known[name].metadata if name in known else {} for name in corpus.ids]
        return corpus.metadata

    def _known_then(self) -> dict[str, Fact]:
        if self._past is None and self.query.as_of is not None:
            self._past = {fact.id: fact for fact in self.tx.facts.as_of(self.scope, self.query.as_of)}
        return self._past or {}


def with_neighbours(tx: Transaction, query: Query, hits: list[Hit]) -> list[Hit]:
    """Hits on turns with those before and after, so that a short answer is seen with its question."""
    turns = [hit.record for hit in hits if isinstance(hit.record, Message)]
    if len(turns) != len(hits) or not turns:
        return hits
    windows = tx.messages.windows(turns, before=query.before, after=query.after, until=query.as_of)
    return [replace(hit, window=window) for hit, window in zip(hits, windows, strict=True)]
