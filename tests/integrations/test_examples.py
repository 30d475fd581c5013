"""Every example runs, with a scripted model in place of a service."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from pathlib import Path

from everlong.testing.fakes import ScriptedChatModel
from everlong.testing.model_server import ModelServer
from tests.integrations import hosts
from tests.integrations.scripted import Scripted, calls, system_text

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


def test_deepagents_scopes(capsys) -> None:
    short, haiku, refunds = "Likes short answers.", "Sign with a haiku.", "Refunds are fine."
    answers = [
        calls("write_file", file_path="/memories/AGENTS.md", content=short),
        "Noted.",
        calls("write_file", file_path="/agent/AGENTS.md", content=haiku),
        "Noted.",
        calls("write_file", file_path="/policies/compliance.md", content=refunds),
        "I may not change that.",
    ]
    model = Scripted(answers=answers)
    example("deepagents_scopes").main(model)
    to_ann, to_bob = system_text(model.seen[-2]), system_text(model.seen[-1])
    assert (short in to_ann, haiku in to_ann, short in to_bob, haiku in to_bob) == (True, False, False, True)
    assert all("Never promise a refund." in system_text(messages) for messages in model.seen)
    assert "permission_denied" in model.seen[5][-1].text
    assert "I may not change that." in capsys.readouterr().out


def test_deepagents_approval(capsys) -> None:
    write = calls("write_file", file_path="/policies/tone.md", content="We always answer in rhymes.")
    example("deepagents_approval").main(Scripted(answers=[write, "Written."]))
    waits = "waits: write_file /policies/tone.md: what all users see needs a person\n"
    assert capsys.readouterr().out == f"{waits}/policies/tone.md: We always answer in rhymes.\n"


def test_deepagents_consolidation(capsys) -> None:
    answers = [
        "Sorry to hear that.",
        calls("search_recent_conversations", query="blue bicycle"),
        calls("write_file", file_path="/memories/AGENTS.md", content="The blue bicycle had a flat tyre."),
        "Done.",
        calls("search_past_conversations", query="blue bicycle"),
        "A flat tyre.",
    ]
    model = Scripted(answers=answers)
    example("deepagents_consolidation").main(model)
    assert "My blue bicycle has a flat tyre." in model.seen[2][-1].text
    assert "The blue bicycle had a flat tyre." in system_text(model.seen[4])
    assert "My blue bicycle has a flat tyre." in model.seen[5][-1].text
    assert capsys.readouterr().out.endswith("[thursday] helper: A flat tyre.\n")


def test_langgraph_store(capsys) -> None:
    example("langgraph_store").main()
    tea, dog, none, erased = capsys.readouterr().out.splitlines()
    assert "I take my tea green." in tea
    assert "我的狗叫豆豆。" in dog
    assert "I never drink tea." in none
    assert erased == "after erasing ann: 0 of ann's, 1 of bob's"


def knows(capsys, seen: list[str]) -> bool:
    """What every recipe shows: the first call knows nothing, the second knows what was said in the first."""
    printed = capsys.readouterr().out
    assert printed.endswith("[thursday] cook: Not with peanuts.\n")
    assert "peanuts" not in seen[0]
    return "I'm allergic to peanuts" in seen[1]


def test_openai_loop(capsys) -> None:
    with ModelServer() as server:
        server.say("Noted.", "Not with peanuts.")
        example("openai_loop").main(hosts.openai_client(server))
        assert knows(capsys, [hosts.system_of(body) for _, body in server.requests])


def test_anthropic_loop(capsys) -> None:
    claude = hosts.Claude("Noted.", "Not with peanuts.")
    asyncio.run(example("anthropic_loop").main(claude.client()))
    assert knows(capsys, claude.systems)


def test_openai_agents_session(capsys) -> None:
    with ModelServer() as server:
        server.say("Noted.", "Not with peanuts.")
        asyncio.run(example("openai_agents_session").main(hosts.agents_model(server)))
        assert knows(capsys, [hosts.system_of(body) for _, body in server.requests])


def test_llamaindex_memory(capsys) -> None:
    llm = hosts.LlamaStub(answers=["Noted.", "Not with peanuts."])
    asyncio.run(example("llamaindex_memory").main(llm))
    assert knows(capsys, llm.systems)


def test_pydantic_ai_agent(capsys) -> None:
    stub = hosts.PydanticStub("Noted.", "Not with peanuts.")
    asyncio.run(example("pydantic_ai_agent").main(stub.model))
    assert knows(capsys, stub.systems)
