"""A folder in step with memory files: nothing that either side changed is ever lost."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from everlong import Memory, Principal, Scope, open_memory
from everlong.errors import InvalidInput, NotFound
from everlong.files.disk import Disk, digest, folded, name_of, part_of
from everlong.files.folder import Folder
from everlong.memory import Files

ANN = Scope(org="acme", agent="coder", user="ann")
STATE = ".everlong-files.json"


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", embedder="none", worker="none", max_file_bytes=5000) as opened:
        yield opened


@pytest.fixture
def ann(memory: Memory) -> Files:
    return memory.at(ANN).files


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "记忆"


def folder(root: Path, ann: Files, prefix: str = "/memories/") -> Folder:
    return Folder(root, ann, scope=ANN, prefix=prefix)


def steps(done) -> list[tuple[str, str]]:
    return [(step.action, step.path or step.name) for step in done]


def test_there_and_back(root: Path, ann: Files) -> None:
    ann.write("/memories/AGENTS.md", "\ufeff规则\r\n")
    ann.write("/memories/日志/2026.md", "x")
    assert steps(folder(root, ann).pull()) == [("add", "/memories/AGENTS.md"), ("add", "/memories/日志/2026.md")]
    assert (root / "AGENTS.md").read_bytes() == "\ufeff规则\r\n".encode()
    (root / "日志" / "2026.md").write_text("y")
    (root / "new.bin").write_bytes(b"\xff\x00")
    (root / "AGENTS.md").unlink()
    assert steps(folder(root, ann).push()) == [
        ("delete", "/memories/AGENTS.md"),
        ("add", "/memories/new.bin"),
        ("update", "/memories/日志/2026.md"),
    ]
    assert {i.path: ann.read(i.path).content for i in ann.list()} == {
        "/memories/new.bin": b"\xff\x00",
        "/memories/日志/2026.md": b"y",
    }
    assert folder(root, ann).pull() == folder(root, ann).push() == ()
    ann.delete("/memories/日志/2026.md")
    ann.write("/memories/new.md", "n")
    assert steps(folder(root, ann).pull()) == [("add", "/memories/new.md"), ("delete", "/memories/日志/2026.md")]
    assert not (root / "日志").exists()


def test_a_dry_run_changes_nothing(root: Path, ann: Files) -> None:
    ann.write("/memories/a.md", "a")
    assert steps(folder(root, ann).pull(dry_run=True)) == [("add", "/memories/a.md")]
    assert not root.exists()
    folder(root, ann).pull()
    before = (root / STATE).read_bytes()
    (root / "a.md").write_text("b")
    (root / "c.md").write_text("c")
    assert steps(folder(root, ann).push(dry_run=True)) == [("update", "/memories/a.md"), ("add", "/memories/c.md")]
    assert ann.read("/memories/a.md").version == 1
    assert (root / STATE).read_bytes() == before


def test_changes_on_both_sides_are_merged(root: Path, ann: Files) -> None:
    ann.write("/memories/a.md", "1\n2\n3\n")
    folder(root, ann).pull()
    (root / "a.md").write_text("1\n2\n三\n")
    ann.edit("/memories/a.md", "1", "一")
    assert steps(folder(root, ann).pull()) == [("conflict", "/memories/a.md")]
    assert (root / "a.md").read_text() == "1\n2\n三\n"
    assert steps(folder(root, ann).push()) == [("merge", "/memories/a.md")]
    assert (root / "a.md").read_text() == ann.read("/memories/a.md").content.decode() == "一\n2\n三\n"
    assert folder(root, ann).push() == folder(root, ann).pull() == ()


def test_a_real_conflict_is_reported_and_leaves_both(root: Path, ann: Files) -> None:
    ann.write("/memories/a.md", "1\n")
    folder(root, ann).pull()
    (root / "a.md").write_text("mine\n")
    ann.edit("/memories/a.md", "1", "theirs")
    for done in (folder(root, ann).push(), folder(root, ann).pull(), folder(root, ann).push()):
        assert steps(done) == [("conflict", "/memories/a.md")]
        assert done[0].reason
    assert (root / "a.md").read_text() == "mine\n"
    assert ann.read("/memories/a.md").content == b"theirs\n"
    (root / "a.md").rename(root / "mine.md")
    assert steps(folder(root, ann).pull()) == [("add", "/memories/a.md")]
    assert (root / "a.md").read_text() == "theirs\n"


def test_deletions_never_take_what_the_other_side_changed(root: Path, ann: Files) -> None:
    ann.write("/memories/a.md", "a")
    ann.write("/memories/b.md", "b")
    folder(root, ann).pull()
    (root / "a.md").unlink()
    ann.edit("/memories/a.md", "a", "a2")
    (root / "b.md").write_text("b2")
    ann.delete("/memories/b.md")
    assert steps(folder(root, ann).push()) == [("conflict", "/memories/a.md"), ("add", "/memories/b.md")]
    assert steps(folder(root, ann).pull()) == [("add", "/memories/a.md")]
    assert ann.read("/memories/b.md").content == b"b2"


def test_a_lost_folder_deletes_nothing_in_memory(root: Path, ann: Files) -> None:
    ann.write("/memories/a.md", "a")
    folder(root, ann).pull()
    for path in root.iterdir():
        path.unlink()
    root.rmdir()
    assert folder(root, ann).push() == ()
    assert ann.read("/memories/a.md").content == b"a"


def test_without_its_state_equal_files_are_known_again(root: Path, ann: Files) -> None:
    ann.write("/memories/a.md", "a")
    ann.write("/memories/b.md", "b")
    folder(root, ann).pull()
    (root / STATE).unlink()
    (root / "b.md").write_text("b2")
    assert steps(folder(root, ann).push()) == [("conflict", "/memories/b.md")]
    assert ann.read("/memories/b.md").content == b"b"


def test_links_are_not_followed(root: Path, tmp_path: Path, ann: Files) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.txt").write_text("secret")
    ann.write("/memories/sub/a.md", "a")
    ann.write("/memories/b.md", "b")
    ann.write("/memories/c/d.md", "d")
    folder(root, ann).pull()
    (root / "link.txt").symlink_to(outside / "secret.txt")
    (root / "b.md").unlink()
    (root / "b.md").symlink_to(outside / "secret.txt")
    (root / "sub" / "a.md").unlink()
    (root / "sub").rmdir()
    (root / "sub").symlink_to(outside)
    (root / "loop").symlink_to(root)
    os.mkfifo(root / "pipe")
    done = folder(root, ann).push()
    assert steps(done) == [("refuse", name) for name in ("b.md", "link.txt", "loop", "pipe", "sub")]
    ann.edit("/memories/b.md", "b", "new")
    ann.edit("/memories/sub/a.md", "a", "new")
    assert steps(folder(root, ann).pull()) == [("refuse", "/memories/b.md"), ("refuse", "/memories/sub/a.md")]
    assert sorted(p.name for p in outside.iterdir()) == ["secret.txt"]
    assert (outside / "secret.txt").read_text() == "secret"
    assert not any("secret" in ann.read(i.path).content.decode() for i in ann.list())
    (tmp_path / "rooted").symlink_to(outside)
    with pytest.raises(InvalidInput):
        folder(tmp_path / "rooted", ann)


def test_a_forged_state_reaches_nothing_outside(root: Path, tmp_path: Path, ann: Files) -> None:
    ann.write("/memories/a.md", "a")
    folder(root, ann).pull()
    (tmp_path / "victim").write_text("a")
    state = json.loads((root / STATE).read_text())
    for name in ("../victim", str(tmp_path / "victim"), "..\\victim", "x/../../victim"):
        state["files"]["/memories/a.md"]["name"] = name
        state["files"]["/memories/gone.md"] = {**state["files"]["/memories/a.md"]}
        state["files"]["/memories/a.md"]["version"] = 0
        (root / STATE).write_text(json.dumps(state))
        folder(root, ann).pull()
        assert (tmp_path / "victim").read_text() == "a"
    for text in ("", "[]", '{"files": 1}', '{"scope": "x", "prefix": "/", "files": {"/a": {"name": 1}}}'):
        (root / STATE).write_text(text)
        with pytest.raises(InvalidInput):
            folder(root, ann)


def test_a_folder_belongs_to_one_scope_and_prefix(root: Path, ann: Files, memory: Memory) -> None:
    ann.write("/memories/a.md", "a")
    folder(root, ann).pull()
    with pytest.raises(InvalidInput):
        folder(root, ann, "/")
    bob = Scope(org="acme", agent="coder", user="bob")
    with pytest.raises(InvalidInput):
        Folder(root, memory.at(bob).files, scope=bob, prefix="/memories/")


def test_what_memory_refuses_is_reported(root: Path, ann: Files, memory: Memory) -> None:
    operator = memory.at(Scope(org="acme"), by=Principal(id="root", role="operator")).files
    operator.write("/policies/a.md", "law")
    folder(root, ann, "/").pull()
    (root / "policies" / "a.md").write_text("mine")
    (root / "big.md").write_text("x" * 6000)
    (root / ".hidden").write_text("never looked at")
    done = folder(root, ann, "/").push()
    assert steps(done) == [("refuse", "/big.md"), ("refuse", "/policies/a.md")]
    assert "max_file_bytes" in done[0].reason
    assert operator.read("/policies/a.md").content == b"law"
    (root / "policies" / "a.md").unlink()
    assert steps(folder(root, ann, "/").push()) == [("refuse", "/big.md"), ("refuse", "/policies/a.md")]


def test_what_is_redacted_stays_in_the_folder(root: Path, ann: Files) -> None:
    root.mkdir()
    (root / "a.md").write_text("my password is hunter2\n")
    assert folder(root, ann).push()[0].reason == "kept in memory with secrets taken out"
    assert (root / "a.md").read_text() == "my password is hunter2\n"
    assert b"hunter2" not in ann.read("/memories/a.md").content
    assert folder(root, ann).push() == folder(root, ann).pull() == ()


def test_nothing_half_written_is_left(root: Path, ann: Files) -> None:
    ann.write("/memories/a", "file")
    ann.write("/memories/a/b", "below a file")
    done = folder(root, ann).pull()
    assert steps(done) == [("add", "/memories/a"), ("refuse", "/memories/a/b")]
    assert sorted(p.name for p in root.iterdir()) == [STATE, "a"]
    assert folder(root, ann).push() == ()


NAMES = [
    "AGENTS.md",
    "用户甲.md",
    "CON",
    "con.md",
    "Aux.txt",
    "COM1",
    "coder.",
    "x ",
    " x",
    ".hidden",
    "a:b",
    "a?b*",
    "100%.md",
    "%41.md",
    'a<b>|"c',
    "e\u0301.md",
    "é.md",
    "ﬁ.md",
    "alice@example.com",
    "-rf",
    "~",
    "字" * 100,
    "x" * 255,
]


def test_every_name_survives_every_system(root: Path, ann: Files) -> None:
    for number, name in enumerate(NAMES):
        ann.write(f"/memories/{name}/{name}", str(number))
    assert {action for action, _ in steps(folder(root, ann).pull())} == {"add"}
    names = [str(p.relative_to(root)) for p in root.rglob("*") if p.is_file() and p.name != STATE]
    assert len({folded(name) for name in names}) == len(NAMES)
    for part in {part for name in names for part in name.split("/")}:
        assert not set(part) & set('<>:"\\|?*')
        assert part[-1] not in ". "
        assert part.split(".")[0].lower() not in {"con", "aux", "com1"}
        assert len(part.encode()) <= 255
    before = {i.path: i.version for i in ann.list()}
    assert folder(root, ann).push() == folder(root, ann).pull() == ()
    for name in names:
        (root / name).write_text("changed")
    assert {action for action, _ in steps(folder(root, ann).push())} == {"update"}
    assert {i.path: i.version - 1 for i in ann.list()} == before


def test_names_that_differ_in_case_only_are_told_apart(root: Path, ann: Files) -> None:
    for name in ("a.md", "A.md", "readme/X", "README/x", "README/X"):
        ann.write(f"/memories/{name}", name)
    done = folder(root, ann).pull()
    kept = [step.name for step in done if step.action == "add"]
    assert len({folded(name) for name in kept}) == len(kept) >= 4
    assert all("case" in step.reason for step in done if step.action == "refuse")


@pytest.mark.parametrize("name", NAMES)
def test_a_name_is_read_back(name: str) -> None:
    made = name_of(name, ())
    assert made is not None
    if "%-" in made:
        with pytest.raises(InvalidInput):
            part_of(made)
    else:
        assert part_of(made) == name


def test_what_changed_between_looking_and_writing_stays(tmp_path: Path) -> None:
    disk = Disk(tmp_path)
    assert disk.write("a/b.md", b"one", over=None)
    assert not disk.write("a/b.md", b"two", over=None)
    assert not disk.write("a/b.md", b"two", over=digest(b"other"))
    assert not disk.delete("a/b.md", over=digest(b"other"))
    assert disk.read("a/b.md") == b"one"
    assert disk.write("a/b.md", b"two", over=digest(b"one"))
    assert disk.delete("a/b.md", over=digest(b"two"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["../x", "a/../x", "/x", "a//x", "", ".", "a\\x", "a\0x"])
def test_no_name_leads_outside(tmp_path: Path, name: str) -> None:
    disk = Disk(tmp_path / "in")
    for operation in (
        lambda: disk.read(name),
        lambda: disk.write(name, b"x", over=None),
        lambda: disk.delete(name, over=digest(b"x")),
    ):
        with pytest.raises(InvalidInput):
            operation()
    assert list(tmp_path.iterdir()) == []


def test_what_cannot_be_a_memory_file_is_named(root: Path, ann: Files) -> None:
    root.mkdir()
    with (root / "huge.bin").open("wb") as huge:
        huge.truncate(64 * 1024 * 1024 + 1)
    Path(os.fsdecode(os.fsencode(root) + b"/latin-\xe9.md")).write_text("x")
    (root / "tab\there.md").write_text("x")
    (root / "back\\slash.md").write_text("x")
    (root / "%61.md").write_text("escaped, but needlessly")
    done = folder(root, ann).push()
    assert {step.action for step in done} == {"add", "refuse"}
    assert [step.path for step in done if step.action == "add"] == ["/memories/%61.md"]
    assert all(step.reason for step in done if step.action == "refuse")
    assert len(done) == 5


def test_names_of_other_systems_stand_for_one_path(root: Path, ann: Files) -> None:
    """macOS may give names back in another normal form than they were written in."""
    root.mkdir()
    (root / "e\u0301.md").write_text("x")
    assert steps(folder(root, ann).push()) == [("add", "/memories/é.md")]
    (root / "é.md").write_text("y")
    assert steps(folder(root, ann).push()) == [("refuse", "/memories/é.md")]


def test_a_file_gone_meanwhile_is_reported(root: Path, ann: Files) -> None:
    class Vanishing:
        def __init__(self, files: Files) -> None:
            self.list, self.write, self.delete = files.list, files.write, files.delete

        def read(self, path: str):
            raise NotFound(path)

    ann.write("/memories/a.md", "a")
    done = Folder(root, Vanishing(ann), scope=ANN, prefix="/memories/").pull()
    assert steps(done) == [("refuse", "/memories/a.md")]
