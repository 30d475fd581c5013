"""What was turned away is journalled in the conversation where it was said, and goes with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from everlong import Scope, open_memory
from everlong.records import Candidate, Change, ChangeSet, Profile

if TYPE_CHECKING:
    from everlong.memory import Memory

ANN, TALK = Scope(user="ann"), Scope(user="ann", session="talk")


def turned_away(memory: Memory, content: str) -> None:
    """Lands an extraction of the conversation whose only candidate comes to nothing."""
    change = Change(kind="reject", reason="not worth keeping", candidate=Candidate(content=content))
    with memory.parts.store.write() as tx:
        applier = memory.parts.writer._applier
        applier.apply(tx, ChangeSet(changes=(change,)), {}, Profile(scope=ANN), by="extractor:test", talk=TALK)


@pytest.mark.parametrize("content", ["The user's PIN is written under the blue vase.", "用户的暗号写在蓝色花瓶下面。"])
def test_erasing_a_conversation_takes_what_was_turned_away_in_it(content: str) -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        turned_away(memory, content)
        home = memory.at(ANN)
        found = home.journal(action="reject").items
        assert [entry.payload["content"] for entry in found] == [content]
        assert [entry.scope for entry in home.journal(target=found[0].target, action="reject").items] == [TALK]
        memory.at(TALK).erase()
        assert not home.journal(action="reject").items
