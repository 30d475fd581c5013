"""M3: names as paths (aliyun/iac-code#37, alioshr/memory-bank-mcp#36, zhayujie/CowAgent#2734, jaylfc/taOS#2352,
getzep/graphiti#1465 and #1319).

A memory's or agent's name wrote outside of the root; elsewhere ordinary ids were refused. Here a path is refused when
it is none, is only ever a name in the store, and lands inside the folder when it is brought to a disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from everlong import Memory, Scope, open_memory
from everlong.cli.app import app
from everlong.errors import EverlongError, InvalidInput, InvalidPath, NotFound
from everlong.files.folder import Folder

REFUSED = [
    "../escape",
    "/../escape",
    "..\\..\\x",
    "/..\\..\\x",
    "a/../../b",
    "/a/../../b",
    "C:\\x",
    "/C:\\x",
    "C:/x",
    "coder/../writer",
    "/coder/../writer",
    ".",
    "..",
    "/.",
    "/..",
    "",
    "/",
    "//etc/passwd",
    "/a//b",
    "/a/",
    "/x\x00.md",
    "/x\n.md",
    "/a\u202eb",
    "/\ud800",
    "/" + "x" * 300,
    "/a" * 600,
]
CONTAINED = ["/etc/passwd", "/%2e%2e%2fx", "/%2e%2e/x", "/CON", "/coder.", "/...", "/~/x", "/-rf", "/a:b", "/LPT1.txt"]
IDS = ["alice@example.com", "org:team:42", "用户甲", "a.b", "agent_1", "__default__", "..", "a/b", "CON", "Ünï"]


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_memory(f"sqlite:///{tmp_path / 'memory.db'}", embedder="none", worker="none") as opened:
        yield opened


@pytest.mark.parametrize("path", REFUSED)
def test_what_is_no_path_is_refused_everywhere(memory: Memory, path: str) -> None:
    files = memory.at(Scope(user="ann")).files
    for operation in (
        lambda: files.read(path),
        lambda: files.lines(path),
        lambda: files.write(path, "x"),
        lambda: files.edit(path, "a", "b"),
        lambda: files.delete(path),
        lambda: files.history(path),
        lambda: files.diff(path, 1),
        lambda: files.restore(path, 1),
    ):
        with pytest.raises(InvalidPath):
            operation()
    with pytest.raises(InvalidInput):
        memory.at(Scope(user="ann")).skills.write(path, description="x", body="x")
    assert not files.list()


@pytest.mark.parametrize("path", CONTAINED)
def test_what_looks_dangerous_is_only_a_name(memory: Memory, path: str, tmp_path: Path) -> None:
    files = memory.at(Scope(user="ann")).files
    files.write(path, "拿来\n")
    assert [info.path for info in files.list()] == [path]
    root = tmp_path / "root" / "folder"
    for _ in range(2):
        Folder(root, files, scope=Scope(user="ann")).pull()
    written = [p for p in (tmp_path / "root").rglob("*") if p.is_file() and not p.name.startswith(".everlong")]
    assert [p.read_text("utf-8") for p in written] == ["拿来\n"]
    assert all(p.resolve().is_relative_to(root) for p in written)
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_dir()) == ["root"]
    assert Folder(root, files, scope=Scope(user="ann")).push() == ()
    files.delete(path)
    assert not files.list()


@pytest.mark.parametrize("name", IDS)
def test_ordinary_ids_come_back_exactly(memory: Memory, name: str) -> None:
    scope = Scope(org=name, agent=name, user=name, session=name)
    for path in ("/memories/a.md", "/notes.md"):
        memory.at(scope).files.write(path, name)
    mine = memory.at(Scope(org=name, agent=name, user=name)).files
    assert [(i.path, i.scope.user) for i in mine.list()] == [("/memories/a.md", name), ("/notes.md", name)]
    assert mine.read("/notes.md").content.decode() == name
    for other in ("", f"{name}x", name.swapcase() if name.swapcase() != name else "z"):
        assert not memory.at(Scope(org=name, agent=name, user=other or "someone")).files.list()
    if "/" not in name and name != "..":
        assert mine.write(f"/memories/{name}", "x").path == f"/memories/{name}"


@pytest.mark.parametrize("path", [path for path in REFUSED if "\x00" not in path and "\ud800" not in path])
def test_the_command_line_refuses_them_too(path: str, tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'memory.db'}"
    result = CliRunner().invoke(app, ["files", "show", "--url", url, "--", path])
    assert isinstance(result.exception, InvalidPath)


def test_a_link_that_points_out_is_not_followed(memory: Memory, tmp_path: Path) -> None:
    files = memory.at(Scope(user="ann")).files
    (tmp_path / "secret.md").write_text("秘密")
    root = tmp_path / "folder"
    root.mkdir()
    (root / "innocent.md").symlink_to(tmp_path / "secret.md")
    (root / "up").symlink_to(tmp_path)
    done = Folder(root, files, scope=Scope(user="ann")).push()
    assert [(step.action, step.name) for step in done] == [("refuse", "innocent.md"), ("refuse", "up")]
    assert not files.list()
    files.write("/up/x.md", "x")
    files.write("/innocent.md", "x")
    assert {step.action for step in Folder(root, files, scope=Scope(user="ann")).pull()} == {"refuse"}
    assert (tmp_path / "secret.md").read_text() == "秘密"
    assert not (tmp_path / "x.md").exists()


def test_a_name_of_another_user_finds_nothing(memory: Memory) -> None:
    memory.at(Scope(user="bob")).files.write("/memories/a.md", "bob's")
    ann = memory.at(Scope(user="ann")).files
    for path in ("/memories/a.md", "/memories/bob/a.md", "/bob/memories/a.md"):
        with pytest.raises(NotFound):
            ann.read(path)
    with pytest.raises(EverlongError):
        ann.read("/memories/../bob/memories/a.md")
