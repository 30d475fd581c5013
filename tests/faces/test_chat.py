"""``everlong chat`` against a real HTTP endpoint: what was said in one run is in the prompt of the next."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from everlong.testing.model_server import ModelServer

from .test_cli import ok, run

if TYPE_CHECKING:
    from pathlib import Path


def test_the_second_conversation_knows_the_first(tmp_path: Path) -> None:
    with ModelServer() as server:
        env = {"EVERLONG_MODEL": "openai:test", "EVERLONG_BASE_URL": server.url, "EVERLONG_API_KEY": "k"}
        ok(tmp_path, "chat", "--json", stdin="I am allergic to peanuts.\n/quit\n", **env)
        second = ok(tmp_path, "chat", "--json", stdin="Am I allergic to peanuts?\n", **env)
    answer = json.loads(second.splitlines()[-1])
    assert "I am allergic to peanuts" in answer["memory"]


def test_a_model_that_is_away_loses_nothing(tmp_path: Path) -> None:
    env = {"EVERLONG_MODEL": "openai:test", "EVERLONG_BASE_URL": "http://127.0.0.1:9/v1", "EVERLONG_API_KEY": "k"}
    done = run(tmp_path, "chat", stdin="I have two dogs.\n", **env)
    assert done.returncode == 0
    assert "ModelError" in done.stderr
    assert "two dogs" in ok(tmp_path, "facts")
