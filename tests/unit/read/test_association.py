"""What was learned in one conversation is recalled together, and nothing is for another matter."""

from __future__ import annotations

from datetime import timedelta

import pytest

from everlong import text
from everlong.models.use import UniversalSentenceEncoder
from everlong.protocols import Indexed
from everlong.read.reader import Reader
from everlong.records import Fact, Query, Scope
from everlong.search import BucketIndex
from everlong.store import open_store
from everlong.testing.fakes import CountingIds, FakeClock
from tests.unit.read.desk import Desk

USE = UniversalSentenceEncoder()
ZH = ["我在用 ESP32 做一个智能浇花系统", "我用的是电容式传感器", "采样间隔设成 1 秒"]
EN = ["I'm building an automatic plant watering system with an ESP32", "I'm using a capacitive sensor",
      "I set the sampling interval to 1 second"]  # fmt: skip


def ask(facts: list[str], question: str) -> set[str]:
    clock, ids, scope = FakeClock(), CountingIds(), Scope(user="ann")
    store = open_store("sqlite://", clock=clock, new_id=ids)
    index = BucketIndex(model=USE.model, dimensions=USE.dimensions)
    now = clock() - timedelta(days=3)
    with store.write() as tx:
        for number, content in enumerate(facts):
            fact = Fact(id=f"f{number}", scope=scope, content=content, created_at=now, updated_at=now, session="s1")
            tx.facts.add(fact, Indexed(terms=text.terms(content), model=USE.model, vectors=USE.embed([content])))
    reader = Reader(store=store, index=index, embedder=USE, counter=text.estimate_tokens, clock=clock, new_id=ids)
    found = {hit.text for hit in reader.recall(scope, Query(text=question)).hits}
    store.close()
    return found


@pytest.mark.parametrize(
    ("facts", "question", "other"),
    [
        (ZH, "我那套浇花系统现在想加个远程查看功能用什么方案好", "今天天气怎么样"),
        (
            EN,
            "I want to add remote monitoring to my watering system, what should I use?",
            "What's the weather like today?",
        ),
    ],
)
def test_one_conversation_is_recalled_together(facts: list[str], question: str, other: str) -> None:
    assert ask(facts, question) == set(facts)
    assert ask(facts, other) == set()


@pytest.mark.parametrize(
    ("facts", "question"),
    [
        (["我在腾讯云上部署了服务", "我喜欢喝拿铁", "我家的猫叫年糕", "周末常去爬山", "女儿在学钢琴"], "腾讯云"),
        (
            ["My service runs on Hetzner", "I like latte", "My cat is called Mochi", "I hike at weekends",
             "My daughter learns the piano"],
            "Hetzner",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("embedder", [USE, None])
def test_what_was_told_in_a_row_about_other_things_stays_away(
    facts: list[str], question: str, embedder: UniversalSentenceEncoder | None
) -> None:
    desk = Desk(embedder)
    for fact in facts:
        desk.know(fact, session="s1")
    assert desk.found(question) == facts[:1]
    scores = [hit.score for hit in desk.ask(question, min_score=0.0).hits]
    assert scores == sorted(scores, reverse=True)
    assert desk.found("明天会下雨吗？") == desk.found("Will it rain tomorrow?") == []


@pytest.mark.parametrize("question", ['"', "AND", "*", "NEAR(a b)", "'; DROP TABLE facts; --", "word " * 10_000])
def test_no_question_raises(question: str) -> None:
    ask(EN, question)
