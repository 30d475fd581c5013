"""I4: editing a fact loses or resets its other fields: mem0ai/mem0#5160, mem0ai/mem0#3966."""

from __future__ import annotations

from dataclasses import replace

import pytest

from everlong import Scope, open_memory

ANN = Scope(user="ann")


@pytest.mark.parametrize(("old", "new"), [("Ann drinks tea", "Ann drinks cocoa"), ("安喝绿茶", "安喝可可")])
def test_a_change_changes_what_it_names_and_nothing_else(old: str, new: str) -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        ann = memory.at(ANN)
        made = ann.remember(old, category="preference", pinned=True).fact
        assert made is not None
        first = ann.revise(made.id, metadata={"project": "x", "n": 3})
        second = ann.revise(made.id, content=new)
        assert second.updated_at >= first.updated_at and second.version == first.version + 1
        assert replace(second, content=old, version=first.version, updated_at=first.updated_at) == first
        third = ann.revise(made.id, metadata={"n": 4})
        assert (third.content, third.metadata) == (new, {"n": 4})
        assert third.created_at == made.created_at and third.pinned and third.category == "preference"
        assert [hit.text for hit in ann.recall(new, metadata={"n": 4}).hits] == [new]
        assert old in [one.content for one in ann.history(made.id)]
