"""R2: memory on the hot path, and calls for nothing: mem0ai/mem0#2813, #3097, bytedance/deer-flow#4447."""

import json
import re
import time

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.models.openai import OpenAIChat
from everlong.testing.fakes import CountingIds, FakeClock
from everlong.testing.model_server import Fault, ModelServer

SESSION = Scope(user="ann", session="s1")
TURNS = {
    "en": lambda n: (
        f"My friend {chr(65 + n % 26)}{chr(97 + n // 26)}xo works in town number {n} and repairs clocks there"
    ),
    "zh": lambda n: f"我的朋友{chr(0x4E00 + 37 * n)}{chr(0x5E00 + n)}在{n}号镇工作，专修钟表，手艺很好",
}
ANSWER = {"en": "That is a fine trade.", "zh": "这门手艺不错。"}


def echo(body):
    """A fact for every line that the user said in the conversation part of the prompt."""
    part = re.search(r"<conversation>\n(.*)\n</conversation>", body["messages"][-1]["content"], re.DOTALL)
    lines = re.findall(r"^(m\d+) \[user, [^\]]*\] (.*)$", part[1], re.MULTILINE)
    facts = [{"content": said, "quote": said, "message": alias, "confidence": 0.9} for alias, said in lines]
    return json.dumps({"newFacts": facts}, ensure_ascii=False)


def talk(language, turns, per_batch):
    """Characters sent, calls made and tokens counted for a conversation of so many turns."""
    with ModelServer() as server:
        server.rules.append(echo)
        model = OpenAIChat("stub", base_url=server.url, api_key="none")
        chosen = Settings(url="sqlite://", embedder="none", worker="none", extractor="llm", max_facts=500)
        with build(chosen, chat_model=model, clock=FakeClock(tick=0.001), new_id=CountingIds()) as memory:
            ann = memory.at(SESSION)
            for n in range(turns):
                ann.add([("user", TURNS[language](n)), ("assistant", ANSWER[language])])
                if n % per_batch == per_batch - 1:
                    memory.drain()
            memory.drain()
            assert len(ann.facts(limit=500).items) == turns
            usage = [record.usage for record in ann.extractions(limit=500).items]
        sent = sum(len(turn["content"]) for _, body in server.requests for turn in body["messages"])
        assert sum(u.calls for u in usage) == len(server.requests) and sum(u.input_tokens for u in usage) > 0
        return sent, len(server.requests)


@pytest.mark.parametrize("language", TURNS)
def test_what_is_sent_grows_with_the_new_text_only(language):
    short, few = talk(language, 50, 5)
    long, many = talk(language, 150, 5)
    assert (few, many) == (10, 30)
    assert long < 3.6 * short  # three times the turns, once thirty facts are known; the square would be nine


@pytest.mark.parametrize("language", TURNS)
def test_even_a_call_for_each_turn_is_bounded(language):
    """Beyond the rules, a call holds its turn, four messages before it and thirty facts, however long the talk is."""
    short, few = talk(language, 40, 1)
    long, many = talk(language, 80, 1)
    assert (few, many) == (40, 80) and long < 2.5 * short


@pytest.mark.parametrize("words", [["ok"] * 20, ["好的", "嗯嗯", "谢谢"] * 7, ["👍", "thanks!", "哈哈哈", "OK."] * 5])
def test_small_talk_costs_no_call(words):
    with ModelServer() as server:
        model = OpenAIChat("stub", base_url=server.url, api_key="none")
        chosen = Settings(url="sqlite://", embedder="none", worker="none", extractor="llm")
        with build(chosen, chat_model=model, clock=FakeClock(tick=0.001)) as memory:
            ann = memory.at(SESSION)
            for word in words:
                ann.add([("user", word), ("assistant", "好")])
            memory.drain()
            assert not ann.jobs()
        assert not server.requests


def test_a_turn_never_waits_for_the_model():
    with ModelServer() as server:
        server.fail(*[Fault(delay=2)] * 50)
        model = OpenAIChat("stub", base_url=server.url, api_key="none", max_retries=0, timeout=3)
        chosen = Settings(url="sqlite://", embedder="none", extractor="llm", batch_messages=1)
        memory = build(chosen, chat_model=model)
        try:
            ann = memory.at(SESSION)
            ann.add([("user", "我住在杭州")])  # the first opens threads and caches
            took = []
            for n in range(10):
                begun = time.perf_counter()
                ann.add([("user", TURNS["en"](n))])
                ann.context("where?")
                took.append(time.perf_counter() - begun)
            assert sorted(took)[len(took) // 2] < 0.1
        finally:
            memory.close(timeout=0.1)
