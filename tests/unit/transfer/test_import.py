"""An import is whole or nothing, refuses what would lose something, and says what became of every record."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from everlong import Scope, open_memory
from everlong.errors import AccessDenied, InvalidInput
from everlong.records import Principal
from everlong.transfer.export import AUDIT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.memory import Memory, ScopedMemory

ANN, BOB = Scope(user="ann"), Scope(user="bob")
ROOT = Principal(id="root", role="operator")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with open_memory(f"sqlite:///{tmp_path / 'm.db'}", embedder="none", worker="none") as opened:
        yield opened


def furnish(memory: Memory, scope: Scope = ANN) -> ScopedMemory:
    """One of everything, with history, in both languages."""
    here = memory.at(scope)
    talk = memory.at(Scope(user=scope.user, session="s1"))
    talk.add([("user", "I like green tea. 我住在杭州。"), ("assistant", "Noted. 记住了。")])
    memory.drain()
    fact = here.remember("The dog is called Rex").fact
    assert fact
    here.revise(fact.id, content="The dog is called Rexy")
    here.forget(here.remember("我在北京工作").fact.id)  # type: ignore[union-attr]
    here.files.write("/memories/AGENTS.md", "# 你好\n")
    here.files.write("/memories/AGENTS.md", "# 你好\n\nhello\n", expected=1)
    here.files.write("/memories/gone.md", "x")
    here.files.delete("/memories/gone.md")
    here.files.write("/memories/pixel.bin", b"\xff\xd8\x00")
    here.update_profile(attributes={"生日": "5-1"}, sections={"workContext": "Builds boats"})
    here.update_profile(attributes={"生日": "6-1"})
    return here


def lines(data: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in data.splitlines()]


def exported(scoped: ScopedMemory, *, audit: bool = False) -> bytes:
    out = io.BytesIO()
    scoped.transfer.export(out, audit=audit)
    return out.getvalue()


def sealed(records: list[dict[str, Any]], scope: Scope = ANN, **head: Any) -> io.BytesIO:
    """A whole file of these lines."""
    from hashlib import sha256

    parts = {"user": scope.user}
    top = {"format": "everlong", "version": 1, "scope": parts, "at": "2026-01-01T00:00:00Z", "kinds": [], **head}
    body = b"".join(json.dumps(each, ensure_ascii=False).encode() + b"\n" for each in records)
    end = {"type": "end", "records": {"all": len(records)}, "sha256": sha256(body).hexdigest()}
    return io.BytesIO(json.dumps(top).encode() + b"\n" + body + json.dumps(end).encode() + b"\n")


FACT: dict[str, Any] = {
    "type": "fact",
    "id": "f1",
    "scope": {"user": "ann"},
    "content": "喜欢喝茶",
    "created_at": "2026-01-01T00:00:00Z",
    "updated_at": "2026-01-01T00:00:00Z",
}


def test_an_export_holds_everything_but_what_it_says_it_leaves_out(memory: Memory) -> None:
    here = furnish(memory)
    head, *records, end = lines(exported(here))
    assert head["left_out"][:2] == list(AUDIT)
    assert "vectors" in head["left_out"]
    kinds = {each["type"] for each in records}
    assert kinds == {
        *("profile", "profile_version", "session", "message", "fact", "fact_version", "file", "file_version")
    }
    assert sum(end["records"].values()) == len(records)
    assert {each["status"] for each in records if each["type"] == "fact"} == {"active", "retired"}
    assert [each["path"] for each in records if each["type"] == "file_version"].count("/memories/gone.md") == 1
    assert [each["base64"] for each in records if each.get("path") == "/memories/pixel.bin"] == ["/9gA"]


def test_a_merge_of_the_same_changes_nothing(memory: Memory) -> None:
    here = furnish(memory)
    before = exported(here, audit=True)
    result = here.transfer.import_(io.BytesIO(exported(here)))
    assert result.count("new") == result.count("conflicting") == 0
    assert exported(here, audit=True).split(b"\n", 1)[1] == before.split(b"\n", 1)[1]


def test_what_differs_stays_as_it_is_and_is_told(memory: Memory) -> None:
    here = furnish(memory)
    data = exported(here)
    fact = here.facts().items[0]
    here.revise(fact.id, content="Another wording")
    found = here.transfer.preview(io.BytesIO(data))
    assert found.tallies["fact"].conflicting == 1
    fault = next(each for each in found.faults if each.kind == "fact")
    assert fault.fate == "conflicting" and fault.id == fact.id
    assert json.loads(data.splitlines()[fault.line - 1])["id"] == fact.id
    assert here.transfer.import_(io.BytesIO(data)).tallies == found.tallies
    assert here.fact(fact.id).content == "Another wording"


def test_messages_of_elsewhere_come_behind_those_that_are_here(memory: Memory) -> None:
    data = exported(furnish(memory))
    with open_memory("sqlite://", embedder="none", worker="none") as other:
        other.at(Scope(user="ann", session="own")).add([("user", "My car is red.")])
        here = other.at(ANN)
        here.transfer.import_(io.BytesIO(data))
        with other.parts.store.read() as tx:
            (own,) = tx.messages.tail(Scope(user="ann", session="own"), limit=9)
            there = tx.messages.tail(Scope(user="ann", session="s1"), limit=9)
            state = tx.sessions.get(Scope(user="ann", session="s1"))
        assert own.position < min(m.position for m in there)
        assert state is not None and state.extracted == there[-1].position
        other.at(Scope(user="ann", session="own")).add([("user", "And my boat is blue.")])
        with other.parts.store.read() as tx:
            assert tx.messages.tail(Scope(user="ann", session="own"), limit=1)[0].position > there[-1].position
        assert any("tea" in hit.text for hit in here.recall("green tea").hits)


def test_what_was_not_read_yet_is_learned_from(memory: Memory) -> None:
    record = {
        "type": "session",
        "scope": {"user": "ann", "session": "s"},
        "created_at": "2026-01-01T00:00:00Z",
        "updated_at": "2026-01-01T00:00:00Z",
        "extracted": 0,
    }
    said = {
        "type": "message",
        "id": "m",
        "scope": {"user": "ann"},
        "session": "s",
        "role": "user",
        "position": 1,
        "content": "I live in Oslo.",
        "created_at": "2026-01-01T00:00:00Z",
    }
    memory.at(ANN).transfer.import_(sealed([record, said]))
    memory.drain()
    assert "Oslo" in memory.at(ANN).facts().items[0].content


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "empty"),
        (b"\n", "empty"),
        (b"hello\n", "header"),
        (b'{"user": {}, "facts": []}\n', "header"),
        (sealed([FACT], version=2).getvalue(), "newer everlong"),
        (sealed([FACT]).getvalue()[:-20], "cut off"),
        (sealed([FACT, FACT]).getvalue().rsplit(b"\n", 2)[0] + b"\n", "cut off"),
        (sealed([FACT]).getvalue().replace("茶".encode(), "酒".encode()), "not what was exported"),
        (sealed([FACT]).getvalue().splitlines()[0] + b"\n", "cut off"),
    ],
)
@pytest.mark.parametrize("mode", ["merge", "replace"])
def test_what_is_not_whole_is_refused(memory: Memory, tmp_path: Path, data: bytes, told: str, mode: Any) -> None:
    here = furnish(memory)
    before = exported(here, audit=True)
    file = tmp_path / "in.jsonl"
    file.write_bytes(data)
    with pytest.raises(InvalidInput, match=told):
        here.transfer.import_(file, mode=mode)
    assert exported(here, audit=True).split(b"\n", 1)[1] == before.split(b"\n", 1)[1]
    assert list(tmp_path.glob("*.jsonl*")) == [file]


def test_one_bad_line_keeps_all_out_and_a_preview_names_it(memory: Memory, tmp_path: Path) -> None:
    here = furnish(memory)
    before = exported(here)
    file = sealed([FACT, {**FACT, "id": "f2", "confidence": 7}, {**FACT, "id": "f3"}, {**FACT, "id": "f3"}])
    found = here.transfer.preview(file)
    assert (found.tallies["fact"].new, found.tallies["fact"].invalid) == (2, 2)
    assert [(each.line, each.reason.split(":")[0]) for each in found.faults] == [
        (3, "confidence"),
        (5, "the same record stands twice in the file"),
    ]
    with pytest.raises(InvalidInput, match="line 3: confidence"):
        here.transfer.import_(file)
    with pytest.raises(InvalidInput, match="line 3"):
        here.transfer.import_(file, mode="replace", backup=tmp_path / "b.jsonl")
    assert exported(here).split(b"\n", 1)[1] == before.split(b"\n", 1)[1]


def test_a_replacement_can_be_undone_from_its_backup(memory: Memory, tmp_path: Path) -> None:
    here = furnish(memory).as_seen_by(ROOT)
    before = exported(here, audit=True)
    file = tmp_path / "in.jsonl"
    file.write_bytes(sealed([FACT]).getvalue())
    result = here.transfer.import_(file, mode="replace")
    assert [fact.id for fact in here.facts(status=None).items] == ["f1"]
    assert here.files.list() == ()
    assert not here.recall("green tea").hits
    assert Path(result.backup).read_bytes().split(b"\n", 1)[1] == before.split(b"\n", 1)[1]
    assert Path(result.backup).stat().st_mode & 0o077 == 0
    here.transfer.import_(result.backup, mode="replace", backup=tmp_path / "second.jsonl")
    now = lines(exported(here, audit=True))
    assert [each for each in now[1:-1] if each.get("action") != "import_replace"] == lines(before)[1:-1]


@pytest.mark.parametrize(
    ("file", "told"), [(sealed([]), "wipe"), (sealed([{**FACT, "scope": {"user": "bob"}}], BOB), "user=bob")]
)
def test_a_replacement_that_would_only_wipe_is_refused(
    memory: Memory, tmp_path: Path, file: io.BytesIO, told: str
) -> None:
    here = furnish(memory)
    with pytest.raises(InvalidInput, match=told):
        here.transfer.import_(file, mode="replace", backup=tmp_path / "b.jsonl")
    assert here.facts().total and not (tmp_path / "b.jsonl").exists()


def test_nothing_of_others_comes_in(memory: Memory) -> None:
    furnish(memory, BOB)
    theirs = exported(memory.at(BOB))
    found = memory.at(ANN).transfer.preview(io.BytesIO(theirs))
    assert found.count("new") == 0
    assert "does not lie within user=ann" in found.faults[0].reason
    with pytest.raises(InvalidInput):
        memory.at(ANN).transfer.import_(io.BytesIO(theirs))
    with pytest.raises(AccessDenied):
        memory.at(BOB, by=Principal(id="ann")).transfer.export(io.BytesIO())


def test_an_id_that_is_in_use_elsewhere_tells_nothing_of_it(memory: Memory) -> None:
    fact = memory.at(BOB).remember("Bob's secret plan").fact
    assert fact
    found = memory.at(ANN).transfer.import_(sealed([{**FACT, "id": fact.id}]))
    assert found.tallies["fact"].conflicting == 1
    assert "secret" not in str(found)
    assert memory.at(BOB).fact(fact.id) == fact


def test_a_user_cannot_speak_as_an_operator(memory: Memory) -> None:
    call = {
        "type": "proposal",
        "id": "p",
        "scope": {"user": "ann"},
        "kind": "call",
        "target": "erase",
        "by": "x",
        "reason": "r",
        "created_at": "2026-01-01T00:00:00Z",
        "payload": {"by": {"id": "root", "role": "operator"}},
    }
    log = {
        "type": "entry",
        "id": "e",
        "at": "2026-01-01T00:00:00Z",
        "scope": {"user": "ann"},
        "by": "x",
        "action": "add",
    }
    file = sealed([{**FACT, "origin": "operator", "trust": 1.0}, call, log])
    result = memory.at(ANN).transfer.import_(file)
    assert result.count("left_out") == 2
    (fact,) = memory.at(ANN).facts().items
    assert (fact.origin, fact.trust) == ("import", 0.6)
    assert memory.at(ANN).inbox.list().total == 0
    again = memory.at(ANN, by=ROOT).transfer.import_(file)
    assert again.count("new") == 2


def test_secrets_are_taken_out_and_nothing_else_changes(memory: Memory) -> None:
    key = "sk-proj-" + "a1B2" * 10
    file = sealed([{**FACT, "content": f"我的密钥是 {key}", "metadata": {"note": key, "n": 1}}])
    memory.at(ANN).transfer.import_(file)
    assert key not in exported(memory.at(ANN), audit=True).decode()
    assert "[redacted: " in memory.at(ANN).facts().items[0].content


def test_an_export_is_one_state_while_others_write(memory: Memory, tmp_path: Path) -> None:
    here = furnish(memory)

    class Slow(io.BytesIO):
        def write(self, data: Any) -> int:
            if b'"type":"session"' in data:
                here.remember("Written meanwhile, 写入")
            return super().write(data)

    out = Slow()
    result = here.transfer.export(out)
    assert b"Written meanwhile" not in out.getvalue()
    assert result.total == len(lines(out.getvalue())) - 2
    assert here.facts().items[0].content == "Written meanwhile, 写入"


def test_a_failed_export_leaves_no_file(memory: Memory, tmp_path: Path) -> None:
    here = furnish(memory)
    with pytest.raises(InvalidInput, match="cannot be written"):
        here.transfer.export(tmp_path / "nowhere" / "out.jsonl")
    file = tmp_path / "out.jsonl"
    here.transfer.export(file)
    assert [path.name for path in tmp_path.glob("out*")] == ["out.jsonl"]
    with pytest.raises(InvalidInput, match="cannot be read"):
        here.transfer.preview(tmp_path / "none.jsonl")
