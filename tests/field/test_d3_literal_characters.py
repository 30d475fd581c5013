"""D3: escaped characters in prompts and output: getzep/graphiti#804, awslabs/mcp#4372."""

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import pytest

from everlong import Scope
from everlong.config import Settings, build
from everlong.models import open_chat_model
from everlong.testing.fakes import FakeClock
from everlong.testing.model_server import ModelServer

SAID = ["지난주에 햄스트링을 다쳤어", "我上周在上海拉伤了腿", "I drink a 🍸 in Málaga"]
NOTHING = json.dumps({"user": {}, "history": {}, "newFacts": [], "factsToRemove": []})


def test_prompt_block_and_log_hold_the_characters_themselves(caplog: pytest.LogCaptureFixture) -> None:
    chosen = Settings(url="sqlite://", embedder="none", worker="none", extractor="llm")
    with ModelServer() as server:
        server.say(NOTHING)
        model = open_chat_model("openai:small", base_url=server.url, api_key="x")
        with build(chosen, chat_model=model, clock=FakeClock()) as memory:
            ann = memory.at(Scope(user="ann", session="t1"))
            for said in SAID:
                ann.remember(said)
            ann.add([("user", said) for said in SAID])
            memory.drain()
            asked = [body for path, body in server.requests if "chat" in path][-1]
            prompt = "\n".join(str(message["content"]) for message in asked["messages"])
            with caplog.at_level(logging.INFO, logger="everlong"):
                block = ann.context("上海 햄스트링 🍸", min_score=0).text
                ann.recall("上海 햄스트링 🍸")
            logged = " ".join(str(getattr(record, "query", "")) for record in caplog.records)
        for said in SAID:
            assert said in prompt and said in block
        assert "上海 햄스트링 🍸" in logged
        assert "\\u" not in prompt + block + logged


def test_output_of_commands_holds_them_too(tmp_path: Path) -> None:
    env = {k: v for k, v in os.environ.items() if not k.startswith("EVERLONG_")}
    env |= {"PYTHONUTF8": "1", "EVERLONG_EMBEDDER": "none"}

    def run(*command: str) -> str:
        done = [sys.executable, "-m", "everlong", *command]
        return subprocess.run(done, cwd=tmp_path, env=env, capture_output=True, encoding="utf-8", check=True).stdout

    run("add", "我在上海喝🍸")
    shown = run("recall", "上海", "--json")
    assert "我在上海喝🍸" in shown and "\\u" not in shown
