"""Every example runs, with a scripted model in place of a service."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

from everlong.testing.fakes import ScriptedChatModel
from tests.integrations.scripted import Scripted, system_text

EXAMPLES = Path(__file__).parents[2] / "examples"


def example(name: str):
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses look for the names of their module
    spec.loader.exec_module(module)
    return module


def test_no_example_is_forgotten() -> None:
    tested = {name.removeprefix("test_") for name in globals() if name.startswith("test_")}
    assert {path.stem for path in EXAMPLES.glob("*.py")} <= tested


def test_langchain_agent(capsys) -> None:
    model = Scripted(answers=["Noted.", "Sesame paste."])
    example("langchain_agent").main(model)
    assert "I'm allergic to peanuts (user" in system_text(model.seen[1])
    assert capsys.readouterr().out.endswith("[thursday] agent: Sesame paste.\n")


def test_deerflow_memory(capsys) -> None:
    fact = {"content": "Ann wants answers in Chinese.", "category": "preference", "confidence": 0.95}
    model = ScriptedChatModel([json.dumps({"newFacts": [fact], "factsToRemove": []})])
    example("deerflow_memory").main(model)
    printed = capsys.readouterr().out
    assert "[preference | 0.95] Ann wants answers in Chinese" in printed
    assert printed.endswith("monday: Ann wants answers in Chinese.\n")
