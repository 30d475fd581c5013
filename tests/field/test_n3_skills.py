"""N3: skill files that do not parse (QwenLM/qwen-code#1512, cline/cline#12151, langchain-ai/deepagents#657 and #5339).

One odd file made a skill vanish silently, or put its raw header into the prompt. Here what can be read is read, what
cannot is reported by name and reason, and the skills beside it are always listed.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from everlong import Memory, Scope, open_memory
from everlong.errors import EverlongError
from everlong.memory import ScopedMemory

GOOD = "---\nname: good\ndescription: Pours tea.\n---\n\nPour.\n"

READ = {
    "crlf": (b"---\r\nname: crlf\r\ndescription: Reads CRLF.\r\n---\r\n\r\nBody\r\n", "Reads CRLF."),
    "bom": (b"\xef\xbb\xbf---\nname: bom\ndescription: Has a mark.\n---\nBody\n", "Has a mark."),
    "no-newline": (b"---\nname: no-newline\ndescription: Ends early.\n---", "Ends early."),
    "colon": (
        b"---\nname: colon\ndescription: Use this skill when the user asks to: create X\n---\nBody\n",
        "Use this skill when the user asks to: create X",
    ),
    "2024-01-01": (b"---\nname: 2024-01-01\ndescription: A date.\n---\nBody\n", "A date."),
    "boolean": (b"---\nname: boolean\ndescription: yes\n---\nBody\n", "yes"),
    "list": (b"---\nname: list\ndescription: Lists tools.\nallowed-tools: [read, write]\n---\nBody\n", "Lists tools."),
    "周报": (
        "---\nname: 周报\ndescription: 用户要求时：写周报，格式: 表格\n---\n\n先列要点。\n".encode(),
        "用户要求时：写周报，格式: 表格",
    ),
    "both": (b"\xef\xbb\xbf---\r\nname: both\r\ndescription: [draft] does: things\r\n---", "[draft] does: things"),
    "quoted": (b"---\nname: quoted\ndescription: *bold* and @at\nmetadata:\n  v: 1.0\n---\n", "*bold* and @at"),
    "number": (b"---\nname: number\ndescription: 1e3\nlicense: null\n---\nx", "1e3"),
}

BROKEN = {
    "latin": ("---\nname: latin\ndescription: caf\xe9\n---\nBody\n".encode("latin-1"), "UTF-8"),
    "unclosed": (b"---\nname: unclosed\ndescription: x\n", "never closed"),
    "no-header": ("# 只有正文\n".encode(), "no header"),
    "empty": (b"", "no header"),
    "elsewhere": (b"---\nname: other\ndescription: x\n---\nBody\n", "folder"),
    "no-name": (b"---\ndescription: x\n---\nBody\n", "no name"),
    "no-description": (b"---\nname: no-description\ndescription:\n---\nBody\n", "no description"),
    "listed": (b"---\nname: listed\ndescription: [a, b]\n---\nBody\n", "not text"),
    "scalar": (b"---\njust text\n---\nBody\n", "name: value"),
    "tabs": (b"---\nname: tabs\n\tdescription: x\n---\nBody\n", "not YAML"),
    "deep": (b"---\nname: deep\ndescription: x\nmetadata: " + b"[" * 20_000 + b"\n---\n", "deep"),
    "long": (b"---\nname: long\ndescription: " + b"x" * 1025 + b"\n---\n", "1,024"),
    "Upper": (b"---\nname: Upper\ndescription: x\n---\n", "small letters"),
    "huge": (b"---\nname: huge\nx: " + b"y" * 70_000 + b"\n---\n", "65,536"),
}


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", embedder="none", worker="none") as opened:
        yield opened


@pytest.fixture
def ann(memory: Memory) -> ScopedMemory:
    return memory.at(Scope(user="ann"))


@pytest.mark.parametrize("name", READ)
def test_odd_files_are_read(ann: ScopedMemory, name: str) -> None:
    content, description = READ[name]
    ann.files.write("/skills/good/SKILL.md", GOOD)
    ann.files.write(f"/skills/{name}/SKILL.md", content)
    listed = ann.skills.list()
    assert not listed.broken
    assert {s.name: s.description for s in listed.skills} == {"good": "Pours tea.", name: description}
    assert "---" not in ann.skills.block()
    assert "description:" not in ann.skills.load(name).body


@pytest.mark.parametrize("name", BROKEN)
def test_broken_files_are_named_with_the_reason(ann: ScopedMemory, name: str) -> None:
    content, reason = BROKEN[name]
    ann.files.write("/skills/good/SKILL.md", GOOD)
    ann.files.write(f"/skills/{name}/SKILL.md", content)
    listed = ann.skills.list()
    assert [s.name for s in listed.skills] == ["good"]
    assert [(b.name, b.path) for b in listed.broken] == [(name, f"/skills/{name}/SKILL.md")]
    assert reason in listed.broken[0].reason
    with pytest.raises(EverlongError, match="broken"):
        ann.skills.load(name)
    assert name not in ann.skills.block().replace("good", "")


def test_all_at_once(ann: ScopedMemory) -> None:
    for name, (content, _) in {**READ, **BROKEN}.items():
        ann.files.write(f"/skills/{name}/SKILL.md", content)
    listed = ann.skills.list()
    assert [s.name for s in listed.skills] == sorted(READ)
    assert sorted(b.name for b in listed.broken) == sorted(BROKEN)
