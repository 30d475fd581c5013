"""N4: a memory folder shadows the agent's configuration (bytedance/deer-flow#3390).

The first memory that was written made a folder, and from then on the agent was "found" there, without its
configuration. Here a folder is nothing but the beginning of paths: only a file of the same path hides another.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from everlong import Principal, Scope, open_memory
from everlong.errors import NotFound
from everlong.files.folder import Folder

ROOT = Principal(id="root", role="operator")


@pytest.mark.parametrize(
    ("agent", "user", "text"), [("coder", "u", "You write code."), ("编码", "用户甲", "你写代码。")]
)
def test_memory_does_not_hide_a_shared_definition(agent: str, user: str, text: str, tmp_path: Path) -> None:
    config, notes = f"/agents/{agent}/AGENTS.md", f"/agents/{agent}/notes.md"
    skill = f"---\nname: tea\ndescription: {text}\n---\n{text}\n"
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        shared = memory.at(Scope(org="acme"), by=ROOT).files
        shared.write(config, text)
        shared.write("/skills/tea/SKILL.md", skill)
        scope = Scope(org="acme", agent=agent, user=user)
        mine = memory.at(scope)

        mine.files.write(notes, "one")
        mine.files.write("/skills/tea/notes.md", "mine, and not the skill's")
        assert mine.files.read(config).content.decode() == text
        assert [info.path for info in mine.files.list(f"/agents/{agent}")] == sorted([config, notes])
        assert mine.skills.load("tea").body.strip() == text
        assert mine.skills.load("tea").files == ()

        folder = Folder(tmp_path / "copy", mine.files, scope=scope)
        folder.pull()
        mine.files.delete(notes)
        folder.pull()
        assert mine.files.read(config).content.decode() == text
        assert [p.read_text("utf-8") for p in (tmp_path / "copy" / "agents").rglob("*.md")] == [text]
        with pytest.raises(NotFound):
            mine.files.read(notes)
        assert folder.push() == ()
        assert shared.read(config).version == 1
