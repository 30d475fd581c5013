"""C7: whoever names another's id touches their memory: mem0ai/mem0#6080, #4236, MemTensor/MemOS#2202, VoltAgent/voltagent#1315.
Here who asks comes from a credential and not from the scope that is named; ids of others are not there (see C1)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from everlong import Principal, Scope, open_memory
from everlong.errors import AccessDenied, NotFound
from everlong.memory import ScopedMemory

Call = Callable[[ScopedMemory, dict[str, str]], Any]
CALLS: dict[str, Call] = {
    "fact": lambda memory, ids: memory.fact(ids["fact"]),
    "history": lambda memory, ids: memory.history(ids["fact"]),
    "revise": lambda memory, ids: memory.revise(ids["fact"], content="taken over"),
    "forget": lambda memory, ids: memory.forget(ids["fact"]),
    "restore": lambda memory, ids: memory.restore(ids["fact"]),
    "retry": lambda memory, ids: memory.retry(ids["job"]),
    "extraction": lambda memory, ids: memory.extraction(ids["extraction"]),
    "explain": lambda memory, ids: memory.explain(ids["trace"]),
    "approve": lambda memory, ids: memory.inbox.approve(ids["proposal"]),
    "reject": lambda memory, ids: memory.inbox.reject(ids["proposal"]),
    "file": lambda memory, _: memory.files.read("/memories/a.md"),
    "edit": lambda memory, _: memory.files.edit("/memories/a.md", "tea", "rum"),
    "delete": lambda memory, _: memory.files.delete("/memories/a.md"),
}
LISTS: dict[str, Callable[[ScopedMemory], Any]] = {
    "facts": lambda memory: memory.facts(status=None).items,
    "messages": lambda memory: memory.messages(),
    "sessions": lambda memory: memory.sessions().items,
    "journal": lambda memory: [e for e in memory.journal().items if not e.action.startswith("denied:")],
    "jobs": lambda memory: memory.jobs(),
    "inbox": lambda memory: memory.inbox.list().items,
    "extractions": lambda memory: memory.extractions().items,
    "files": lambda memory: memory.files.list(),
    "traces": lambda memory: memory.traces(),
    "recall": lambda memory: memory.recall("tea 茶", min_score=0.0).hits,
}


@pytest.mark.parametrize(
    ("owner", "other"),
    [
        (Scope(user="ann"), Scope(user="bob")),
        (Scope(org="acme", user="安"), Scope(user="安")),
        (Scope(user="ann"), Scope(user="Ann")),
    ],
)
def test_no_id_of_another_is_there(owner: Scope, other: Scope) -> None:
    with open_memory("sqlite://", embedder="none", worker="none", review_categories=("goal",)) as memory:
        mine = memory.at(Scope(org=owner.org, user=owner.user, session="s"))
        fact = mine.remember("tea 茶").fact
        mine.add([("user", "I drink tea 我喝茶")])
        memory.drain()
        mine.remember("I want to plant tea", category="goal")
        mine.files.write("/memories/a.md", "tea")
        ids = {
            "fact": fact.id,
            "trace": mine.recall("tea").trace.id,
            "extraction": mine.extractions().items[0].id,
            "proposal": mine.inbox.list().items[0].id,
        }
        mine.add([("user", "More tea 再来点茶")])
        ids["job"] = mine.jobs()[0].id
        theirs = memory.at(other)
        for call in CALLS.values():
            with pytest.raises(NotFound):
                call(theirs, ids)
        for name, read in LISTS.items():
            assert not read(theirs), name
            assert read(mine), name
        assert mine.fact(fact.id) == fact
        assert mine.files.read("/memories/a.md").content == b"tea"


def test_naming_anothers_scope_is_refused_whatever_is_asked() -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        ann = memory.at(Scope(user="ann", session="s"))
        fact = ann.remember("tea 茶").fact
        ids = dict.fromkeys(("fact", "job", "extraction", "trace", "proposal"), fact.id)
        for by in (Principal(id="bob"), Principal(id="Ann"), Principal(id="ann "), Principal(id="", groups=("ann",))):
            bob = ann.as_seen_by(by)
            for call in (*CALLS.values(), *((lambda m, _, r=read: r(m)) for read in LISTS.values())):
                with pytest.raises(AccessDenied) as refusal:
                    call(bob, ids)
                assert "tea" not in str(refusal.value)
        assert ann.fact(fact.id) == fact
