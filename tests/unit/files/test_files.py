"""Memory files through the façade: kept to the byte, scoped by path, never lost, never guessed."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

import pytest

from everlong import Memory, Principal, Scope, open_memory
from everlong.errors import AccessDenied, Conflict, InvalidInput, InvalidPath, NotFound, TooLarge
from everlong.memory import Files

ORG = "acme"
ANN = Scope(org=ORG, agent="coder", user="ann", session="s1")
BOB = Scope(org=ORG, agent="coder", user="bob")
ROOT = Principal(id="root", role="operator")
CODER = Principal(id="coder", role="agent")


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory(
        "sqlite://", embedder="none", worker="none", max_file_bytes=2000, max_files=20, max_file_versions=5
    ) as opened:
        yield opened


@pytest.fixture
def ann(memory: Memory) -> Files:
    return memory.at(ANN).files


# ------------------------------------------------------------------------------------------------------ what is kept


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xef\xbb\xbf# \xe6\xa0\x87\xe9\xa2\x98\r\nb\r\n",
        b"no end",
        b"\x00\xff\xfe",
        "e\u0301 Å\u2028x\n".encode(),
        b"a\rb\r",
    ],
)
def test_bytes_are_kept_as_they_are(ann: Files, content: bytes) -> None:
    ann.write("/memories/a.md", content)
    assert ann.read("/memories/a.md").content == content


def test_text_is_kept_as_it_is(ann: Files) -> None:
    text = "\ufeff# 标题\r\ne\u0301\r\n"
    ann.write("/memories/a.md", text)
    assert ann.read("/memories/a.md").content == text.encode()
    assert ann.lines("/memories/a.md").lines == ("# 标题", "e\u0301")
    ann.edit("/memories/a.md", "# 标题\n", "# 新\n")
    assert ann.read("/memories/a.md").content == "\ufeff# 新\r\ne\u0301\r\n".encode()


@pytest.mark.parametrize(
    ("offset", "limit", "shown"), [(0, 2, ("一", "2")), (2, 9, ("3",)), (3, 1, ()), (9, 9, ()), (0, 0, ())]
)
def test_lines_are_read_a_portion_at_a_time(ann: Files, offset: int, limit: int, shown: tuple[str, ...]) -> None:
    ann.write("/memories/a.md", "一\n2\r\n3")
    found = ann.lines("/memories/a.md", offset=offset, limit=limit)
    assert (found.lines, found.total, found.offset) == (shown, 3, offset)


def test_what_is_no_text_has_no_lines(ann: Files) -> None:
    ann.write("/memories/a.png", b"\xff\xd8")
    with pytest.raises(InvalidInput):
        ann.lines("/memories/a.png")
    with pytest.raises(InvalidInput):
        ann.edit("/memories/a.png", "a", "b")
    with pytest.raises(InvalidInput):
        ann.lines("/memories/a.png", offset=-1)


@pytest.mark.parametrize("content", ["\ud800", 7, None])
def test_what_cannot_be_stored_is_refused(ann: Files, content: object) -> None:
    with pytest.raises(InvalidInput):
        ann.write("/memories/a.md", content)
    assert not ann.list()


# ------------------------------------------------------------------------------------------------------------ scopes


def test_each_folder_belongs_to_its_scope(memory: Memory, ann: Files) -> None:
    coder = memory.at(ANN, by=CODER).files
    assert coder.write("/memories/a.md", "m").scope == Scope(org=ORG, user="ann")
    assert coder.write("/agent/a.md", "a").scope == Scope(org=ORG, agent="coder")
    assert coder.write("/notes.md", "n").scope == ANN.home
    assert memory.at(ANN, by=ROOT).files.write("/policies/a.md", "p").scope == Scope(org=ORG)
    assert [info.path for info in ann.list()] == ["/agent/a.md", "/memories/a.md", "/notes.md", "/policies/a.md"]
    assert [info.path for info in memory.at(BOB).files.list()] == ["/agent/a.md", "/policies/a.md"]
    other_agent = memory.at(Scope(org=ORG, agent="writer", user="ann")).files
    assert [info.path for info in other_agent.list()] == ["/memories/a.md", "/policies/a.md"]
    assert not memory.at(Scope(org="umbrella", agent="coder", user="ann")).files.list()


@pytest.mark.parametrize("by", [Principal(id="ann"), CODER])
def test_policies_are_written_by_operators_only(memory: Memory, by: Principal) -> None:
    memory.at(Scope(org=ORG), by=ROOT).files.write("/policies/合规.md", "不可外传")
    files = memory.at(ANN, by=by).files
    assert files.read("/policies/合规.md").content.decode() == "不可外传"
    for change in (
        lambda: files.write("/policies/合规.md", "x", expected=1),
        lambda: files.write("/policies/new.md", "x"),
        lambda: files.edit("/policies/合规.md", "不可", "可"),
        lambda: files.delete("/policies/合规.md"),
        lambda: files.restore("/policies/合规.md", 1),
    ):
        with pytest.raises(AccessDenied):
            change()
    assert files.read("/policies/合规.md").version == 1


def test_a_user_does_not_write_for_everyone(ann: Files) -> None:
    with pytest.raises(AccessDenied):
        ann.write("/agent/a.md", "obey me")


def test_an_agent_writes_its_own_shared_files_but_no_other_agents(memory: Memory) -> None:
    stranger = memory.at(ANN, by=Principal(id="writer", role="agent")).files
    with pytest.raises(AccessDenied):
        stranger.write("/agent/a.md", "x")


def test_a_read_only_file_is_neither_changed_nor_hidden(memory: Memory, ann: Files) -> None:
    memory.at(Scope(org=ORG), by=ROOT).files.write("/rules.md", "law", read_only=True)
    for change in (
        lambda: ann.write("/rules.md", "mine"),
        lambda: ann.edit("/rules.md", "law", "mine"),
        lambda: ann.delete("/rules.md"),
    ):
        with pytest.raises(AccessDenied):
            change()
    with pytest.raises(AccessDenied):
        ann.write("/mine.md", "x", read_only=True)
    assert ann.read("/rules.md").content == b"law"


def test_a_narrow_file_hides_a_wide_one_until_it_goes(memory: Memory, ann: Files) -> None:
    memory.at(Scope(org=ORG), by=ROOT).files.write("/memories/AGENTS.md", "- default\n")
    made = ann.edit("/memories/AGENTS.md", "default", "mine")
    assert (made.scope, made.version) == (Scope(org=ORG, user="ann"), 1)
    assert ann.read("/memories/AGENTS.md").content == b"- mine\n"
    assert memory.at(BOB).files.read("/memories/AGENTS.md").content == b"- default\n"
    ann.delete("/memories/AGENTS.md")
    assert ann.read("/memories/AGENTS.md").content == b"- default\n"


# ----------------------------------------------------------------------------------------------------------- editing


@pytest.mark.parametrize(
    ("old", "new"), [("", "x"), ("missing", "x"), ("a", "a"), ("aa", "x"), ("b", "x"), ("缺", "x")]
)
def test_an_unclear_edit_changes_nothing(ann: Files, old: str, new: str) -> None:
    content = "aaa b\r\nb\n"
    ann.write("/memories/a.md", content)
    with pytest.raises(InvalidInput) as caught:
        ann.edit("/memories/a.md", old, new)
    assert len(str(caught.value)) > 20
    found = ann.read("/memories/a.md")
    assert (found.content, found.version) == (content.encode(), 1)


def test_every_place_can_be_meant(ann: Files) -> None:
    ann.write("/memories/a.md", "茶 a 茶")
    assert ann.edit("/memories/a.md", "茶", "咖啡", replace_all=True).content.decode() == "咖啡 a 咖啡"


def test_a_secret_made_of_two_parts_is_redacted(ann: Files) -> None:
    ann.write("/memories/a.md", "my WORD is hunter2x9\r\n茶\n")
    assert b"hunter2" not in ann.edit("/memories/a.md", "WORD", "password").content
    assert ann.edit("/memories/a.md", "茶", "咖啡").content.endswith("咖啡\n".encode())


def test_edits_follow_the_lines_ends_of_the_file(ann: Files) -> None:
    ann.write("/memories/a.md", b"a\r\nb\r\nc\r\n")
    assert ann.edit("/memories/a.md", "a\nb", "x\ny").content == b"x\r\ny\r\nc\r\n"


# ------------------------------------------------------------------------------------------------ versions and merges


def test_edits_elsewhere_are_merged(ann: Files) -> None:
    first = ann.write("/memories/a.md", "1\n2\n3\n4\n5\n")
    ann.write("/memories/a.md", "1\n2\n3\n4\nfive\n", expected=1)
    merged = ann.write("/memories/a.md", "一\n2\n3\n4\n5\n", expected=first.version)
    assert (merged.content.decode(), merged.version) == ("一\n2\n3\n4\nfive\n", 3)


def test_edits_of_the_same_line_are_a_conflict_that_names_it(ann: Files) -> None:
    ann.write("/memories/a.md", "1\n2\n3\n")
    ann.write("/memories/a.md", "1\ntwo\n3\n", expected=1)
    for change in (
        lambda: ann.write("/memories/a.md", "1\n二\n3\n", expected=1),
        lambda: ann.edit("/memories/a.md", "2", "二", expected=1),
    ):
        with pytest.raises(Conflict, match="line 2") as caught:
            change()
        assert (caught.value.expected, caught.value.actual) == (1, 2)
    assert ann.read("/memories/a.md").content == b"1\ntwo\n3\n"


def test_bytes_are_never_merged(ann: Files) -> None:
    ann.write("/memories/a.bin", b"\xff1\n2\n")
    ann.write("/memories/a.bin", b"\xff1\n3\n", expected=1)
    with pytest.raises(Conflict):
        ann.write("/memories/a.bin", b"\xfe1\n2\n", expected=1)


def test_the_same_content_again_is_no_new_version(ann: Files) -> None:
    ann.write("/memories/a.md", "x")
    assert ann.write("/memories/a.md", "x").version == 1


def test_a_file_that_is_gone_is_a_conflict(ann: Files) -> None:
    ann.write("/memories/a.md", "x")
    ann.delete("/memories/a.md", expected=1)
    with pytest.raises(Conflict):
        ann.write("/memories/a.md", "y", expected=1)
    assert ann.write("/memories/a.md", "z").version == 2
    for change in (
        lambda: ann.delete("/memories/a.md", expected=1),
        lambda: ann.edit("/memories/a.md", "z", "y", expected=99),
        lambda: ann.write("/memories/a.md", "y", expected=99),
        lambda: ann.edit("/memories/a.md", "z", "y", expected=0),
    ):
        with pytest.raises(Conflict):
            change()
    with pytest.raises(NotFound):
        ann.delete("/memories/never.md")
    assert ann.read("/memories/a.md").content == b"z"


def test_history_diff_and_restore(ann: Files) -> None:
    ann.write("/memories/a.md", "茶\n")
    ann.write("/memories/a.md", "咖啡\n", expected=1)
    assert [(f.version, f.metadata["by"]) for f in ann.history("/memories/a.md")] == [(2, "user:ann"), (1, "user:ann")]
    assert ann.diff("/memories/a.md", 1).splitlines()[2:] == ["@@ -1 +1 @@", "-茶", "+咖啡"]
    assert not ann.diff("/memories/a.md", 1, 1)
    assert ann.read("/memories/a.md", version=1).content.decode() == "茶\n"
    restored = ann.restore("/memories/a.md", 1)
    assert (restored.version, restored.content.decode()) == (3, "茶\n")
    ann.delete("/memories/a.md")
    with pytest.raises(NotFound):
        ann.read("/memories/a.md")
    assert [f.version for f in ann.history("/memories/a.md")] == [3, 2, 1]
    assert ann.restore("/memories/a.md", 2).version == 4
    with pytest.raises(NotFound):
        ann.restore("/memories/a.md", 9)
    with pytest.raises(NotFound):
        ann.history("/memories/never.md")


def test_so_many_versions_are_kept(ann: Files) -> None:
    for number in range(12):
        ann.write("/memories/a.md", f"{number}", expected=number)
    assert [f.version for f in ann.history("/memories/a.md")] == [12, 11, 10, 9, 8, 7]


def test_every_change_is_in_the_journal(memory: Memory, ann: Files) -> None:
    ann.write("/memories/a.md", "1\n2\n")
    ann.edit("/memories/a.md", "1", "one")
    ann.write("/memories/a.md", "1\ntwo\n", expected=1)
    ann.restore("/memories/a.md", 1)
    ann.delete("/memories/a.md")
    entries = memory.at(Scope(org=ORG, user="ann")).journal(target="/memories/a.md").items
    assert [(e.action, e.before, e.after) for e in entries] == [
        ("delete_file", 4, None),
        ("restore_file", 3, 4),
        ("write_file", 2, 3),
        ("edit_file", 1, 2),
        ("write_file", 0, 1),
    ]
    assert entries[2].reason == "merged a change to version 1 with version 2"


def test_erasing_leaves_no_version(memory: Memory, ann: Files) -> None:
    ann.write("/memories/a.md", "secret plan")
    ann.delete("/memories/a.md")
    memory.at(Scope(org=ORG, user="ann")).erase()
    with pytest.raises(NotFound):
        ann.history("/memories/a.md")


@pytest.mark.parametrize("number", [-1, True, "1", 1.0, 2**63])
def test_numbers_are_checked(ann: Files, number: object) -> None:
    ann.write("/memories/a.md", "a")
    for operation in (
        lambda: ann.read("/memories/a.md", version=number),
        lambda: ann.lines("/memories/a.md", limit=number),
        lambda: ann.grep("a", limit=number),
        lambda: ann.history("/memories/a.md", limit=number),
        lambda: ann.diff("/memories/a.md", number),
        lambda: ann.write("/memories/a.md", "b", expected=number),
        lambda: ann.edit("/memories/a.md", "a", "b", expected=number),
        lambda: ann.delete("/memories/a.md", expected=number),
        lambda: ann.restore("/memories/a.md", number),
    ):
        with pytest.raises(InvalidInput):
            operation()
    with pytest.raises(InvalidInput):
        ann.edit("/memories/a.md", 7, "b")
    assert ann.read("/memories/a.md").content == b"a"


@pytest.mark.parametrize("name", ["周报　一月.md", "👨‍👩‍👧.md", "a\u00a0b", "naïve café", "ａ/．．/b", "नमस्ते"])
def test_names_of_every_script_are_names(ann: Files, name: str) -> None:
    assert ann.write(f"/memories/{name}", "x").path == f"/memories/{name}"
    assert [info.path for info in ann.list()] == [f"/memories/{name}"]


@pytest.mark.parametrize("glob", ["", "[z-a]", "x" * 1001, 7])
def test_what_is_no_glob_is_refused(ann: Files, glob: object) -> None:
    with pytest.raises(InvalidInput):
        ann.glob(glob)
    with pytest.raises(InvalidPath):
        ann.read(7)


def test_too_much_alike_is_a_conflict_not_a_long_wait(memory: Memory) -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as wide:
        files = wide.at(ANN).files
        started = time.monotonic()
        files.write("/memories/a.md", "a\nb\n" * 5000)
        files.write("/memories/a.md", "x\n" + "b\na\n" * 5000, expected=1)
        with pytest.raises(Conflict, match="alike"):
            files.write("/memories/a.md", "b\n" + "a\nb\n" * 5000 + "y\n", expected=1)
        assert time.monotonic() - started < 5


# ------------------------------------------------------------------------------------------------------------ limits


def test_the_size_is_bounded_on_every_way_in(memory: Memory, ann: Files) -> None:
    full, over = "字" * 666, "字" * 667
    for change in (lambda: ann.write("/memories/a.md", over), lambda: ann.write("/memories/a.md", over.encode())):
        with pytest.raises(TooLarge, match="max_file_bytes"):
            change()
    ann.write("/memories/a.md", full)
    with pytest.raises(TooLarge):
        ann.edit("/memories/a.md", "字", "字字", replace_all=True)
    ann.write("/memories/b.md", "a\n" + "b" * 990 + "\n")
    ann.write("/memories/b.md", "a" * 700 + "\n" + "b" * 990 + "\n", expected=1)
    with pytest.raises(TooLarge):
        ann.write("/memories/b.md", "a\n" + "b" * 990 + "\n" + "c" * 900, expected=1)
    assert ann.read("/memories/a.md").content.decode() == full


def test_the_number_is_bounded(ann: Files) -> None:
    for number in range(20):
        ann.write(f"/memories/{number}.md", "x")
    with pytest.raises(TooLarge, match="max_files"):
        ann.write("/memories/more.md", "x")
    ann.write("/memories/0.md", "still writable", expected=1)
    ann.write("/notes.md", "another scope")


# --------------------------------------------------------------------------------------------------------- searching


@pytest.fixture
def full(ann: Files) -> Files:
    ann.write("/memories/AGENTS.md", "# Rules\n喜欢喝茶\nlikes tea\n")
    ann.write("/memories/log/2026-01.md", "tea at five\n")
    ann.write("/memories/log/notes.txt", "TEA\r\n茶\r\n")
    ann.write("/memories/x.bin", b"\xfftea")
    return ann


@pytest.mark.parametrize(
    ("glob", "found"),
    [
        ("/memories/*.md", ["AGENTS.md"]),
        ("*.md", ["AGENTS.md", "log/2026-01.md"]),
        ("/memories/**/*.md", ["AGENTS.md", "log/2026-01.md"]),
        ("/memories/**", ["AGENTS.md", "log/2026-01.md", "log/notes.txt", "x.bin"]),
        ("log/*", ["log/2026-01.md", "log/notes.txt"]),
        ("*.{md,bin}", ["AGENTS.md", "log/2026-01.md", "x.bin"]),
        ("????-[0-9][!a].md", ["log/2026-01.md"]),
        ("[", []),
        ("log[.-0]*.md", []),
        ("log[!a]*.md", []),
        ("AGENTS[^a]md", ["AGENTS.md"]),
        ("l{o?,x}/*.txt", ["log/notes.txt"]),
        ("***.txt", ["log/notes.txt"]),
        ("/memories/[a-", []),
        ("{a", []),
        ("*.MD", []),
    ],
)
def test_globs(full: Files, glob: str, found: list[str]) -> None:
    assert [info.path.removeprefix("/memories/") for info in full.glob(glob)] == found


def test_folders(full: Files) -> None:
    assert [info.size for info in full.list("/memories/log")] == [12, 10]
    assert full.list("/memories/log") == full.list("/memories/log/") == full.glob("*", prefix="/memories/log/")
    assert not full.list("/memories/lo")
    for folder in ("", "memories", "/a/../b", "//"):
        with pytest.raises(InvalidPath):
            full.list(folder)


def test_grep(full: Files) -> None:
    found = full.grep("茶")
    assert [(m.path, m.line, m.text) for m in found.matches] == [
        ("/memories/AGENTS.md", 2, "喜欢喝茶"),
        ("/memories/log/notes.txt", 2, "茶"),
    ]
    assert not found.stopped
    assert [m.line for m in full.grep(r"^(?i:tea)\b", regex=True).matches] == [1, 1]
    assert not full.grep(r"^tea\b", glob="*.txt", regex=True).matches
    assert not full.grep("a.").matches
    assert len(full.grep("tea", limit=1).matches) == 1
    assert "limit" in full.grep("tea", limit=1).stopped
    assert not full.grep("tea", limit=2).stopped
    for pattern, is_regex in (("", False), ("(", True), ("a" * 1001, False)):
        with pytest.raises(InvalidInput):
            full.grep(pattern, regex=is_regex)


def test_a_hostile_pattern_is_stopped(ann: Files) -> None:
    ann.write("/memories/a.md", "a" * 1500 + "!\n")
    started = time.monotonic()
    assert "took longer" in ann.grep(r"(a|a|aa)+$", regex=True).stopped
    ann.write("/memories/" + "a" * 200 + "b" + "a" * 50, "x")
    with contextlib.suppress(InvalidInput):
        assert not ann.glob("*a*a*a*a*a*a*a*a*a*a*a*a*b")
    assert time.monotonic() - started < 10


# ------------------------------------------------------------------------------------------------------- at one time


def test_edits_at_once_are_all_kept(memory: Memory, ann: Files) -> None:
    ann.write("/memories/a.md", "".join(f"- {n}.\n" for n in range(8)))
    failed: list[Exception] = []

    def edit(number: int) -> None:
        try:
            memory.at(ANN).files.edit("/memories/a.md", f"- {number}.", f"- {number}. done")
        except Exception as error:  # noqa: BLE001 (looked at below)
            failed.append(error)

    threads = [threading.Thread(target=edit, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed
    assert ann.read("/memories/a.md").content.decode() == "".join(f"- {n}. done\n" for n in range(8))
