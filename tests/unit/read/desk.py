"""A reader over a real store, with vectors that the test chooses or none."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from everlong import text
from everlong.protocols import Indexed
from everlong.read.reader import Reader
from everlong.records import Fact, Message, Query, Recall, Scope
from everlong.search import BucketIndex
from everlong.store import open_store
from everlong.testing.fakes import CountingIds, FakeClock
from everlong.wording import lexical_text, vector_text

if TYPE_CHECKING:
    from everlong.protocols import Embedder

NOW = datetime(2026, 5, 20, 12, tzinfo=UTC)
ANN = Scope(user="ann")


@dataclass
class Desk:
    """What is told, known and asked; ``days`` count back from now."""

    embedder: Embedder | None = None
    clock: FakeClock = field(default_factory=lambda: FakeClock(NOW))
    ids: CountingIds = field(default_factory=CountingIds)

    def __post_init__(self) -> None:
        self.store = open_store("sqlite://", clock=self.clock, new_id=self.ids)
        model, width = (self.embedder.model, self.embedder.dimensions) if self.embedder else ("", 0)
        self.reader = Reader(
            store=self.store, index=BucketIndex(model=model, dimensions=width), embedder=self.embedder,
            counter=text.estimate_tokens, clock=self.clock, new_id=self.ids,
        )  # fmt: skip

    def indexed(self, words: str, meaning: str) -> Indexed:
        if self.embedder is None:
            return Indexed(terms=text.terms(words))
        return Indexed(terms=text.terms(words), model=self.embedder.model, vectors=self.embedder.embed([meaning]))

    def know(self, content: str, *, days: float = 1, scope: Scope = ANN, **fields: Any) -> Fact:
        at = self.clock() - timedelta(days=days)
        made = Fact(id=self.ids("fact"), scope=scope, content=content, created_at=at, updated_at=at, **fields)
        with self.store.write() as tx:
            return tx.facts.add(made, self.indexed(content, content))

    def say(self, content: str, *, days: float = 1, session: str = "t1", user: str = "ann", **fields: Any) -> Message:
        at = self.clock() - timedelta(days=days)
        made = Message(
            id=self.ids("msg"), scope=Scope(user=user), session=session, role=fields.pop("role", "user"),
            content=content, created_at=at, **fields,
        )  # fmt: skip
        words = lexical_text(content, speaker=made.speaker, created_at=at)
        with self.store.write() as tx:
            return tx.messages.append(
                Scope(user=user, session=session),
                [made],
                [self.indexed(words, vector_text(content, speaker=made.speaker))],
            )[0]

    def ask(self, question: str, *, scope: Scope = ANN, **filters: Any) -> Recall:
        return self.reader.recall(scope, Query(text=question, **filters))

    def found(self, question: str, **filters: Any) -> list[str]:
        return [hit.text for hit in self.ask(question, **filters).hits]
