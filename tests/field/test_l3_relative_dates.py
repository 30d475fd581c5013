"""L3: "tomorrow" is kept as said or read from today, and comparing times crashes: vectorize-io/hindsight#2974,
lxfight-s-Astrbot-Plugins/astrbot_plugin_livingmemory#74, mem0ai/mem0#4963, getzep/graphiti#920, mnemosyne-oss/mnemosyne#156."""

import json
from datetime import UTC, datetime

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.records import Query
from everlong.testing.fakes import FakeClock, ScriptedChatModel

SESSION = Scope(user="ann", session="s")
SAID_AT = "2025-11-19T10:00:00Z"  # a Wednesday
IMPORTED = datetime(2025, 12, 5, tzinfo=UTC)
SAID = [
    ("I have a meeting tomorrow at 3pm", "2025-11-20"),
    ("我明天下午三点开会", "2025-11-20"),
    ("I have a meeting next Wednesday", "2025-11-26"),
    ("我下周三交稿", "2025-11-26"),
    ("last week I moved to Lyon", "2025-11-10"),
    ("我上周搬到了里昂", "2025-11-10"),
]
SAME = ["2025-06-10T14:20:00Z", "2025-06-10T22:20:00+08:00", "2025-06-10T14:20:00"]


def opened(model=None, *, zone="UTC"):
    extractor = "llm" if model else "builtin"
    chosen = Settings(url="sqlite://", embedder="none", worker="none", extractor=extractor, zone=zone)
    return build(chosen, chat_model=model, clock=FakeClock(IMPORTED, tick=1.0))


def turn(content, at):
    return {"role": "user", "content": content, "created_at": at}


@pytest.mark.parametrize(("content", "day"), SAID)
def test_relative_dates_are_read_from_when_it_was_said(content, day):
    with opened() as memory:
        ann = memory.at(SESSION)
        ann.add([turn(content, SAID_AT)])
        memory.drain()
        (fact,) = ann.facts().items
        assert fact.valid_from == datetime.fromisoformat(day).replace(tzinfo=UTC)
        assert fact.evidence[0].quote in content and ann.messages()[0].created_at.day == 19


@pytest.mark.parametrize(("given", "start"), [
    ("2025-11-20", "2025-11-19T16:00Z"), ("2025-11-20T15:00", "2025-11-20T07:00Z"),
    ("2025-11-20T15:00+01:00", "2025-11-20T14:00Z"), ("2025-11-20T15:00Z", "2025-11-20T15:00Z"),
    ("", None), ("not a date", None), (None, None), (7, None), ("2025-13-45", None),
])  # fmt: skip
def test_a_models_dates_are_read_in_the_users_zone_and_bad_ones_are_left_out(given, start):
    fact = {"content": "用户要开会", "category": "context", "confidence": 0.9, "message": "m1", "quote": "我要开会",
            "valid_from": given}  # fmt: skip
    with opened(ScriptedChatModel([json.dumps({"newFacts": [fact]})]), zone="Asia/Shanghai") as memory:
        ann = memory.at(SESSION)
        ann.add([turn("我要开会", SAID_AT)])
        memory.drain()
        (stored,) = ann.facts().items
        assert stored.valid_from == (start and datetime.fromisoformat(start))


def test_stamps_of_three_forms_are_one_instant_and_bad_ones_never_raise():
    with opened() as memory:
        ann = memory.at(SESSION)
        ann.add([turn(f"I own boat number {n}", at) for n, at in enumerate(SAME)])
        stamps = {message.created_at for message in ann.messages()}
        assert stamps == {datetime(2025, 6, 10, 14, 20, tzinfo=UTC)}
        memory.drain()
        hits = ann.recall(
            Query(
                text="boat",
                kinds=("message",),
                since=datetime(2025, 6, 10, tzinfo=UTC),
                until=datetime(2025, 6, 11, tzinfo=UTC),
                min_score=0,
            )
        ).hits
        assert len(hits) == len(SAME)
