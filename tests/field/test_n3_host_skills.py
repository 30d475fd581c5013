"""N3 and N4 in Deep Agents: skill files that do not parse (QwenLM/qwen-code#1512, langchain-ai/deepagents#657 and #5339), and
a memory folder that shadows an agent's configuration (bytedance/deer-flow#3390).

Deep Agents reads skills and memory through the file backend. Its own parser passes over what this one reads, and one skill
nested deeply took every run down; here all that can be read is listed, what cannot is passed over with its reason, and a
folder that holds memory hides no shared file.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from deepagents import create_deep_agent

from everlong import Memory, Principal, Scope, open_memory
from everlong.integrations.deepagents import EverlongBackend
from tests.field.test_n3_skills import BROKEN, READ
from tests.integrations.scripted import Scripted, calls, system_text

ROOT = Principal(id="root", role="operator")
GOOD = "---\nname: good\ndescription: Pours tea 泡茶.\n---\n\nPour.\n"


@dataclass
class Who:
    user_id: str
    org: str = "acme"


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", embedder="none", worker="none") as opened:
        yield opened


def test_what_can_be_read_is_listed_whatever_stands_beside_it(memory: Memory, caplog: pytest.LogCaptureFixture) -> None:
    ann = memory.at(Scope(org="acme", user="ann"))
    for name, content in {name: content for name, (content, _) in {**READ, **BROKEN}.items()}.items():
        ann.files.write(f"/skills/{name}/SKILL.md", content)
    ann.files.write("/skills/good/SKILL.md", GOOD)
    model = Scripted()
    agent = create_deep_agent(model, skills=["/skills/"], backend=EverlongBackend(memory), context_schema=Who)
    agent.invoke({"messages": [("user", "Hi")]}, context=Who("ann"))
    prompt = system_text(model.seen[0])
    assert "Pours tea 泡茶." in prompt
    for name, (_, description) in READ.items():
        assert f"**{name}**: {description}" in prompt
    for name in BROKEN:
        assert f"**{name}**" not in prompt
    assert "nested too deeply" in caplog.text
    backend = EverlongBackend(memory, scope=Scope(org="acme", user="ann"))
    for name, (_, reason) in BROKEN.items():
        assert reason in (backend.download_files([f"/skills/{name}/SKILL.md"])[0].error or "")
    assert ann.files.read("/skills/bom/SKILL.md").content == READ["bom"][0]


@pytest.mark.parametrize(("agent", "text"), [("coder", "You write code."), ("coder", "你写代码。")])
def test_the_second_turn_finds_the_shared_definition_and_the_users_memory(
    memory: Memory, agent: str, text: str
) -> None:
    config, notes = f"/agents/{agent}/AGENTS.md", f"/agents/{agent}/notes.md"
    memory.at(Scope(org="acme"), by=ROOT).files.write(config, text)
    model = Scripted(answers=[calls("write_file", file_path=notes, content="喜欢茶 likes tea"), "Noted.", "Hi.", "Hi."])
    backend = EverlongBackend(memory, agent=agent)
    made = create_deep_agent(model, memory=[config, notes], backend=backend, context_schema=Who)
    for _ in range(2):
        made.invoke({"messages": [("user", "Hello")]}, context=Who("ann"))
    assert text in system_text(model.seen[0])
    assert text in system_text(model.seen[2])
    assert "喜欢茶 likes tea" in system_text(model.seen[2])
    mine = EverlongBackend(memory, scope=Scope(org="acme", agent=agent, user="ann"))
    assert mine.delete(f"/agents/{agent}").error is None
    made.invoke({"messages": [("user", "Hello")]}, context=Who("ann"))
    assert text in system_text(model.seen[-1])
    assert "likes tea" not in system_text(model.seen[-1])
