"""J3 and J1, seen from the outside: vectors are missing and nothing says so: mem0ai/mem0#5245, mem0ai/mem0#5551,
codecoradev/uteke#1273, mem0ai/mem0#4985."""

from __future__ import annotations

import pytest

from everlong import Scope
from everlong.config import build, load_settings
from everlong.telemetry.doctor import Finding, examine
from everlong.testing.fakes import TableEmbedder

ANN = Scope(user="ann")


def _vectors(memory, model: str) -> Finding:
    with memory.parts.store.read() as tx:
        found = {each.check: each for each in examine(tx, ANN, model=model, now=memory.parts.clock())}
    return found["vectors"]


@pytest.mark.parametrize("said", ["I play the cello.", "我对花生过敏。"])
def test_after_another_embedder_the_doctor_counts_what_is_stale_until_it_is_made(tmp_path, said: str) -> None:
    settings = load_settings(url=f"sqlite:///{tmp_path}/m.db", worker="none")
    first, second = TableEmbedder({}, 16, model="small"), TableEmbedder({}, 32, model="large")
    with build(settings, embedder=first) as memory:
        memory.at(Scope(user="ann", session="s")).add([("user", said)])
        memory.drain()
        assert _vectors(memory, first.model).severity == "ok"
    with build(settings, embedder=second) as memory:
        stale = _vectors(memory, second.model)
        assert (stale.severity, stale.command) == ("problem", "everlong reembed")
        assert stale.said.startswith("2 texts in 1 places")
        memory.reembed()
        assert _vectors(memory, second.model).severity == "note", "it is being made"
        memory.drain()
        assert _vectors(memory, second.model).severity == "ok"
