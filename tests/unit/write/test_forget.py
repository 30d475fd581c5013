"""Forgetting a topic on both stores: nothing in any byte, nothing lands later, nobody's else is touched."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from everlong import Principal, Scope, open_memory
from everlong.config import build, load_settings
from everlong.records import Candidate, Extraction
from everlong.write.topic import about, cut, telling

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from everlong.memory import Memory
    from everlong.records import Batch

ANN = Scope(org="acme", user="ann")
TALK = Scope(org="acme", user="ann", session="s1")
WORDS = [("Zanzibar", "I travel to Zanzibar soon"), ("桑给巴尔", "我很快去桑给巴尔")]


class Meanwhile:
    """An extractor that takes all for facts; while it works, something else happens, once."""

    name = "meanwhile"

    def __init__(self) -> None:
        self.happens: Callable[[], Any] | None = None

    def extract(self, batch: Batch) -> Extraction:
        happens, self.happens = self.happens, None
        if happens is not None:
            happens()
        found = tuple(Candidate(content=message.content, confidence=0.9) for message in batch.messages)
        return Extraction(candidates=found, extractor=self.name, raw=str([m.content for m in batch.messages]))


@pytest.fixture(params=["sqlite", "postgres"])
def url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue(f"{request.param}_url"))


def forget(memory: Memory, topic: str, *, erase: bool = True) -> None:
    ann = memory.at(ANN)
    ann.forget_topic(topic, ann.forget_preview(topic).refs, erase=erase)


@pytest.mark.parametrize(("topic", "said"), WORDS, ids=["en", "zh"])
def test_work_in_flight_cannot_land(url: str, topic: str, said: str) -> None:
    extractor = Meanwhile()
    with build(load_settings(url=url, embedder="none", worker="none"), extractor=extractor) as memory:
        memory.at(TALK).add([("user", said), ("user", "I like tea 喝茶")])
        extractor.happens = lambda: forget(memory, topic)
        memory.drain()
        ann = memory.at(ANN)
        assert {fact.content for fact in ann.facts(status=None).items} == {"I like tea 喝茶"}
        assert topic not in str(ann.extractions().items)
        assert topic not in str(ann.journal(limit=500).items)


@pytest.mark.parametrize(("topic", "said"), WORDS, ids=["en", "zh"])
def test_on_both_stores_all_kinds_lose_it_and_another_user_keeps_it(url: str, topic: str, said: str) -> None:
    with open_memory(url, embedder="none", worker="none") as memory:
        for user in ("ann", "bob"):
            home = memory.at(Scope(org="acme", user=user))
            home.remember(said)
            home.update_profile(sections={"topOfMind": f"{said}. Likes tea."})
            memory.at(Scope(org="acme", user=user, session="s1")).add([("user", said)])
        memory.drain()
        forget(memory, topic)
        ann, bob = memory.at(ANN), memory.at(Scope(org="acme", user="bob"))
        assert ann.forget_preview(topic).mentions == ()
        assert ann.profile().sections["topOfMind"].summary == "Likes tea."
        assert [message.content for message in memory.at(TALK).messages()] == ["[forgotten]"]
        assert len(bob.forget_preview(topic).mentions) >= 3


def test_no_byte_of_it_is_left_in_any_file(tmp_path: Path) -> None:
    memory = open_memory(f"sqlite:///{tmp_path}/m.db", worker="none")
    ann = memory.at(ANN)
    for number in range(40):
        ann.remember(f"User owns item {number} of the collection {number * 7}")
    for topic, said in WORDS:
        ann.remember(said)
        memory.at(TALK).add([("user", said), ("assistant", f"{topic}!")])
        ann.update_profile(sections={"topOfMind": said}, attributes={topic: topic})
    memory.drain()
    for topic, said in WORDS:
        ann.recall(said, trace=True)
        forget(memory, topic)
    memory.close()
    for topic, _ in WORDS:
        assert not [path.name for path in tmp_path.iterdir() if topic.encode() in path.read_bytes()]


def test_what_is_kept_for_all_is_neither_listed_nor_touched() -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        root = Principal(id="root", role="operator")
        memory.at(Scope(org="acme"), by=root).remember("Zanzibar is where the office is")
        memory.at(ANN).remember("User flies to Zanzibar")
        assert [each.text for each in memory.at(ANN).forget_preview("Zanzibar").mentions] == ["User flies to Zanzibar"]
        forget(memory, "Zanzibar")
        assert [fact.content for fact in memory.at(ANN).facts().items] == ["Zanzibar is where the office is"]


@pytest.mark.parametrize(
    ("topic", "text", "named"),
    [
        ("Acme", "ACME's office", True),
        ("acme", "Ａｃｍｅ", True),
        ("Acme", "Acmeist poetry", False),
        ("cat", "two cats", True),
        ("cat", "concatenate", False),
        ("C++", "likes C++ and Go", True),
        ("red car", "The car is red", True),
        ("red car", "A red house, a blue car", False),
        ("安科", "在安科公司", True),
        ("安科公司", "安全科技公司", False),
        ("2027-03-01", "due 2027-03-01", True),
    ],
)
def test_what_names_a_topic(topic: str, text: str, named: bool) -> None:
    assert about(topic)(text) is named


@pytest.mark.parametrize(
    ("summary", "left"),
    [
        ("Engineer at Acme, likes Go", "likes Go"),
        ("Likes Go, works at Acme.", "Likes Go"),
        ("Likes Go. Works at Acme. Has cats.", "Likes Go. Has cats."),
        ("安科：Acme 的工程师，喜欢 Go。养猫。", "喜欢 Go。养猫。"),
        ("Acme", ""),
        ("Pays 1,000 a month, likes Go", "Pays 1,000 a month, likes Go"),
    ],
)
def test_a_summary_loses_the_clauses_that_name_it(summary: str, left: str) -> None:
    assert cut(summary, about("Acme")) == left


def test_what_may_tell_the_same_as_a_fact() -> None:
    told = telling("User works at Acme in Berlin")
    assert told("Acme is large")
    assert told("Has a flat in Berlin")
    assert not told("User likes tea")
    assert telling("用户在安科公司工作")("安科公司的工程师")
    assert not telling("用户在安科公司工作")("用户喜欢喝茶")


def test_forgotten_turns_are_never_waited_for_by_embedding() -> None:
    with open_memory("sqlite://", worker="none") as memory:
        ann = memory.at(Scope(user="ann", session="s"))
        ann.add([("user", "My neighbour's parrot is called Otto.")])
        memory.drain()
        topic = ann.forget_preview("parrot Otto")
        ann.forget_topic("parrot Otto", topic.refs, erase=True)
        ann.add([("user", "Tomorrow I plant the tomatoes.")])
        assert memory.drain() < 10
        with memory.parts.store.read() as tx:
            assert not tx.messages.unembedded(ann.scope.home, memory.parts.embedder.model, limit=1)
