"""The eight defects for which file-like agent memory is criticised, each as somebody meets it, with what answers it.

``docs/defects.md`` names for each the design that solves it and the test here. English and Chinese alike.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from everlong import Principal, Scope, open_memory
from everlong.config import build, load_settings
from everlong.errors import AccessDenied, Conflict, InvalidPath, NotFound
from everlong.testing.fakes import FakeClock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from everlong.memory import Memory

ANN, BOB = Scope(org="acme", user="ann"), Scope(org="acme", user="bob")
CODER = Principal(id="coder", role="agent")
DAY = 24 * 3600


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(datetime(2026, 3, 2, 9, tzinfo=UTC))


@pytest.fixture
def memory(clock: FakeClock) -> Iterator[Memory]:
    settings = load_settings(url="sqlite://", worker="none", message_days=30)
    with build(settings, clock=clock) as opened:
        yield opened


def test_1_file_semantics_where_facts_are_meant(memory: Memory) -> None:
    """Memory is a text that is rewritten as a whole: a small change loses the rest, two writers lose one another."""
    ann = memory.at(ANN)
    first = ann.remember("User lives in Berlin").fact
    ann.remember("用户对花生过敏")
    assert first is not None
    ann.revise(first.id, content="User lives in Paris")
    assert {fact.content for fact in ann.facts().items} == {"User lives in Paris", "用户对花生过敏"}
    assert [fact.content for fact in ann.history(first.id)] == ["User lives in Berlin", "User lives in Paris"]
    with pytest.raises(Conflict):
        ann.revise(first.id, expected=1, content="User lives in Rome")
    # Files that are meant as files keep both writers' changes.
    ann.files.write("/memories/plan.md", "one\ntwo\nthree\n")
    ann.files.write("/memories/plan.md", "ONE\ntwo\nthree\n", expected=1)
    ann.files.write("/memories/plan.md", "one\ntwo\n三\n", expected=1)
    assert ann.files.read("/memories/plan.md").content.decode() == "ONE\ntwo\n三\n"


def test_2_chaos_of_namespaces(memory: Memory) -> None:
    """Whose memory it is hangs on strings that everyone joins in another way: users see one another, paths leave theirs."""
    memory.at(ANN).remember("Ann's secret is 芝麻开门")
    near = [Scope(org="acme", user=name) for name in ("an", "ann2", "Ann", "ann/", "ann_", "ann%", "a", "安")]
    for other in [BOB, Scope(org="umbrella", user="ann"), Scope(user="ann"), *near]:
        assert memory.at(other).recall("secret 芝麻", min_score=0.0).hits == ()
        assert memory.at(other).facts().items == ()
    memory.at(ANN).files.write("/memories/a.md", "ann's 安的")
    for path in ("/memories/../bob/a.md", "memories/a.md", "/memories/%2e%2e/a.md\x00"):
        with pytest.raises((InvalidPath, NotFound)):
            memory.at(BOB).files.read(path)
    with pytest.raises(NotFound):
        memory.at(BOB).files.read("/memories/a.md")


@pytest.mark.parametrize(
    ("said", "question"),
    [
        (["I travel to Lisbon in May.", "I really enjoy rock climbing.", "My invoice number is INV-2209."], "climbing"),
        (["我五月去里斯本旅行。", "我很喜欢攀岩。", "我的发票号是 INV-2209。"], "攀岩"),
    ],
    ids=["en", "zh"],
)
def test_3_weak_search(memory: Memory, clock: FakeClock, said: list[str], question: str) -> None:
    """Search by similarity alone: no time, no user, no topic, no importance."""
    for number, turn in enumerate(said):
        memory.at(Scope(org="acme", user="ann", session=f"s{number}")).add([("user", turn)])
        clock.advance(10 * DAY)
    memory.at(Scope(org="acme", user="bob", session="s")).add([("user", said[1])])
    memory.drain()
    ann = memory.at(ANN)
    turns = ann.recall(question, kinds=("message",)).hits
    assert turns[0].text == said[1]
    assert all(hit.record.scope.user == "ann" for hit in turns)
    assert ann.recall("INV-2209", kinds=("message",)).hits[0].text == said[2]
    late = datetime(2026, 3, 17, tzinfo=UTC)
    dated = ann.recall(f"{question} INV-2209", kinds=("message",), since=late, min_score=0.0)
    assert [hit.text for hit in dated.hits] == [said[2]]
    ann.remember("User must never eat peanuts 花生", category="correction")
    ann.remember("User once tasted peanuts 花生", category="context", confidence=0.7)
    found = ann.recall("peanuts 花生", kinds=("fact",), categories=("correction",)).hits
    assert [hit.record.category for hit in found if hasattr(hit.record, "category")] == ["correction"]
    assert {"importance", "recency"} & set(found[0].parts) or found[0].parts


def test_4_no_permissions(memory: Memory) -> None:
    """Whoever can call can read and write everything."""
    fact = memory.at(ANN).remember("User's doctor is Dr Lee 李医生").fact
    assert fact is not None
    with pytest.raises(AccessDenied):
        memory.at(ANN, by=Principal(id="bob")).facts()
    with pytest.raises(AccessDenied):
        memory.at(Scope(org="acme", agent="writer", user="ann"), by=CODER).remember("Not mine to write")
    with pytest.raises(NotFound):
        memory.at(BOB).fact(fact.id)
    memory.at(Scope(org="acme"), by=Principal(id="root", role="operator")).files.write("/policies/rules.md", "Be kind.")
    with pytest.raises(AccessDenied):
        memory.at(ANN).files.write("/policies/rules.md", "Be rude.", expected=1)
    refused = memory.at(ANN).journal(action="denied:facts").items
    assert [entry.by for entry in refused] == ["user:bob"]


def test_5_no_cleanup(memory: Memory, clock: FakeClock) -> None:
    """Memory only grows: old turns, ended facts and what a user wants gone stay for ever."""
    talk = memory.at(Scope(org="acme", user="ann", session="s1"))
    talk.add([("user", "I work at Zanzibar Tours. 我在桑给巴尔旅行社工作。")])
    memory.drain()
    ann = memory.at(ANN)
    trip = ann.remember("User is on holiday 度假中").fact
    assert trip is not None
    ann.revise(trip.id, valid_until=clock() + timedelta(days=1))
    clock.advance(400 * DAY)
    assert ann.upkeep.preview().steps
    assert talk.messages(), "a look changes nothing"
    ann.upkeep.run()
    assert talk.messages() == ()
    assert ann.fact(trip.id).status == "retired"
    for topic in ("Zanzibar", "桑给巴尔"):
        ann.forget_topic(topic, ann.forget_preview(topic).refs, erase=True)
        assert topic not in ann.context("work 工作").text
    assert ann.erase().counts["facts"] >= 1
    assert ann.facts(status=None).items == ()


def test_6_no_monitoring() -> None:
    """Nobody sees how often memory is asked, whether it answers, what it costs and whether work piles up."""
    with open_memory("sqlite://", embedder="none", worker="none", metrics=True) as memory:
        memory.at(Scope(user="ann", session="s")).add([("user", "I like tea. 我喜欢喝茶。")])
        assert memory.status().waiting == 1
        memory.drain()
        memory.at(Scope(user="ann")).recall("tea 茶")
        assert memory.parts.instruments is not None
        told = memory.parts.instruments.exposition()
    for series in (
        'everlong_recalls_total{outcome="hit"} 1.0',
        'everlong_extractions_total{outcome="ok"} 1.0',
        'everlong_captured_messages_total{outcome="stored"} 1.0',
        'everlong_jobs{state="waiting"} 0.0',
        'everlong_operation_seconds_count{action="recall"} 1.0',
    ):
        assert series in told


@pytest.mark.parametrize(
    ("held", "question"), [("User's dog is called Rex", "Rex"), ("用户的狗叫豆豆", "豆豆")], ids=["en", "zh"]
)
def test_7_no_tools_for_debugging(memory: Memory, held: str, question: str) -> None:
    """Nobody can say why something was remembered, recalled or not."""
    ann = memory.at(ANN)
    fact = ann.remember(held).fact
    assert fact is not None
    found = ann.recall(question, trace=True)
    explained = ann.explain(found.trace.id)
    ours = next(each for each in explained.considered if each.id == fact.id)
    assert ours.kept
    assert ours.parts
    missed = ann.recall(question, min_score=1.0)
    dropped = next(each for each in ann.explain(missed.trace.id).considered if each.id == fact.id)
    assert not dropped.kept
    assert dropped.reason
    assert ann.replay(missed.trace.id, min_score=0.0).after.considered[0].kept
    assert ann.journal(target=fact.id).items[0].reason


@pytest.mark.parametrize("embedder", ["use", "none"])
def test_8_hard_storage_migration(tmp_path: Path, postgres_url: str, embedder: str) -> None:
    """What is stored is bound to the store, and to the embedder, that it was first put into."""
    urls = [f"sqlite:///{tmp_path}/m.db", postgres_url, "sqlite://"]
    said = ["User lives in Berlin", "用户对花生过敏"]
    export = tmp_path / "ann.jsonl"
    seen: list[list[tuple[str, str, int]]] = []
    for number, url in enumerate(urls):
        with open_memory(url, embedder=embedder if number % 2 == 0 else "none", worker="none") as memory:
            ann = memory.at(ANN)
            if number == 0:
                for each in said:
                    ann.remember(each)
            else:
                ann.transfer.import_(export)
            memory.reembed()
            memory.drain()
            assert ann.recall("花生过敏", kinds=("fact",)).hits[0].text == said[1]
            seen.append(sorted((fact.id, fact.content, fact.version) for fact in ann.facts().items))
            ann.transfer.export(export)
    assert seen[0] == seen[1] == seen[2]
