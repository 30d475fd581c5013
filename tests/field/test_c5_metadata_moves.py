"""C5: an update of metadata moves a record to another tenant: mem0ai/mem0#6277."""

from __future__ import annotations

import pytest

from everlong import Scope, open_memory
from everlong.errors import InvalidInput

ANN, BOB = Scope(user="ann"), Scope(user="bob")
METADATA = {"user_id": "bob", "user": "bob", "org": "else", "agent_id": "writer", "scope": {"user": "bob"}, "备注": "x"}


@pytest.mark.parametrize("content", ["Ann keeps bees", "安养蜜蜂"])
def test_metadata_is_data_and_moves_nothing(content: str) -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        ann = memory.at(ANN)
        fact = ann.remember(content).fact
        assert fact is not None
        changed = ann.revise(fact.id, metadata=METADATA)
        assert changed.scope == ANN and changed.metadata == METADATA
        assert not memory.at(BOB).facts().items and not memory.at(BOB).recall(content, min_score=0.0).hits
        assert [hit.id for hit in ann.recall(content, metadata={"备注": "x"}).hits] == [fact.id]
        for field in ("scope", "id", "session", "origin", "trust"):
            with pytest.raises(InvalidInput):
                ann.revise(fact.id, **{field: "bob"})
