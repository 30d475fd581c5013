"""D4: one character no store can keep aborts the update: vectorize-io/hindsight#4, MemTensor/MemOS#1048, khora#1528."""

import json
from collections.abc import Iterator

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.memory import Memory
from everlong.models import open_chat_model
from everlong.testing.fakes import FakeClock
from everlong.testing.model_server import ModelServer

BROKEN = [r'"ok \ud83d broken"', r'"坏 \udc00 字符"', r'"a\u0000b here"', r'"\ud83d\u0000"', r'"tab\u0007bell"']
HEALTHY = ["I live in Lisbon", "我对花生过敏"]


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return "sqlite://" if request.param == "sqlite" else str(request.getfixturevalue("postgres_url"))


@pytest.fixture
def opened(url: str) -> Iterator[tuple[Memory, ModelServer]]:
    with ModelServer() as server:
        model = open_chat_model("openai:small", base_url=server.url, api_key="x")
        chosen = Settings(url=url, embedder="use", worker="none", extractor="llm")
        with build(chosen, chat_model=model, clock=FakeClock()) as memory:
            yield memory, server


def test_the_healthy_rest_is_stored_and_readable(opened: tuple[Memory, ModelServer]) -> None:
    for raw in BROKEN:
        learn(*opened, raw)


def learn(memory: Memory, server: ModelServer, raw: str) -> None:
    bad = json.loads(raw)
    facts = [
        {"content": c, "category": "context", "confidence": 0.95, "message": "m1", "quote": c} for c in (bad, *HEALTHY)
    ]
    server.say(json.dumps({"user": {}, "history": {}, "newFacts": facts, "factsToRemove": []}))
    ann = memory.at(Scope(user=f"ann {BROKEN.index(raw)}", session="t1"))
    ann.add([("user", bad), *(("user", said) for said in HEALTHY)])
    memory.drain()
    kept = {fact.content for fact in ann.facts(status=None).items}
    assert set(HEALTHY) <= kept
    everything = "".join((*kept, *(m.content for m in ann.messages()), repr(ann.journal().items)))
    everything.encode("utf-8")
    assert "\x00" not in everything
    assert [m.content for m in ann.messages()][-2:] == HEALTHY


def test_other_doors_clean_them_too(opened: tuple[Memory, ModelServer]) -> None:
    for raw in BROKEN:
        give(opened[0], raw)


def give(memory: Memory, raw: str) -> None:
    text = f"note: {json.loads(raw)} end"
    ann = memory.at(Scope(user=f"bob {BROKEN.index(raw)}", session="t1"))
    fact = ann.remember(text).fact
    assert fact is not None
    for stored in (fact.content, ann.update_profile(sections={"topOfMind": text}).sections["topOfMind"].summary):
        assert stored.startswith("note: ") and stored.endswith(" end") and "\x00" not in stored
    ann.recall(text)
