"""Memory as its users meet it, over the real parts: SQLite, the bundled embedder, the built-in extractor."""

from __future__ import annotations

import os
import stat
import threading
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from everlong import Scope, open_memory
from everlong.config import Settings, build
from everlong.errors import (
    ConfigError,
    Conflict,
    EmptyText,
    EverlongError,
    InvalidInput,
    InvalidPath,
    InvalidScope,
    NotFound,
    TooLarge,
    UnknownCategory,
)
from everlong.testing.fakes import FakeClock, ScriptedChatModel

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from everlong.memory import Memory, ScopedMemory


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", embedder="none", worker="none") as opened:
        yield opened


@pytest.fixture
def ann(memory: Memory) -> ScopedMemory:
    return memory.at(Scope(user="ann", session="s1"))


def contents(scoped: ScopedMemory) -> list[str]:
    return [fact.content for fact in scoped.facts().items]


def test_said_once_known_in_the_next_conversation(memory: Memory, ann: ScopedMemory) -> None:
    added = ann.add([("user", "I'm allergic to peanuts."), ("assistant", "Noted.")])
    assert added.status == "queued"
    memory.drain()
    later = memory.at(Scope(user="ann", session="s2"))
    assert contents(later) == ["I'm allergic to peanuts"]
    assert "peanuts" in later.context("peanuts?").text
    fact = later.facts().items[0]
    assert fact.evidence[0].message_id == added.message_ids[0]
    assert fact.session == "s1"


def test_another_user_sees_nothing(memory: Memory, ann: ScopedMemory) -> None:
    ann.add([("user", "I'm allergic to peanuts.")])
    memory.drain()
    for scope in (Scope(user="bob"), Scope(user="ann2"), Scope(user="Ann"), Scope(user="an")):
        other = memory.at(scope)
        assert not contents(other)
        assert not other.recall("peanuts").hits
        assert other.context("peanuts").text == ""
        with pytest.raises(NotFound):
            other.fact(ann.facts().items[0].id)


def test_agents_do_not_see_each_other_but_see_what_is_the_users(memory: Memory) -> None:
    memory.at(Scope(user="ann")).remember("Ann speaks Portuguese")
    coder = memory.at(Scope(user="ann", agent="coder"))
    coder.remember("Ann wants tabs")
    writer = memory.at(Scope(user="ann", agent="writer"))
    assert contents(writer) == ["Ann speaks Portuguese"]
    assert sorted(contents(coder)) == ["Ann speaks Portuguese", "Ann wants tabs"]


def test_the_same_turn_again_adds_nothing(memory: Memory, ann: ScopedMemory) -> None:
    history: list[tuple[str, str]] = []
    for number in range(5):
        history += [("user", f"I have {number + 2} hens."), ("assistant", "Nice.")]
        ann.add(history)
    assert len(ann.messages()) == 10
    assert ann.add(history).status == "duplicate"
    memory.drain()
    before = contents(ann)
    ann.add(history)
    memory.drain()
    assert contents(ann) == before


def test_each_decision_is_journalled_with_its_reason(memory: Memory, ann: ScopedMemory) -> None:
    ann.add([("user", "I live in Lisbon.")])
    memory.drain()
    ann.remember("I live in Lisbon")
    entries = memory.at(Scope(user="ann")).journal().items
    assert {"add", "extract", "confirm"} <= {e.action for e in entries}
    assert all(e.reason for e in entries if e.kind == "fact")


def test_revise_forget_and_history(ann: ScopedMemory) -> None:
    fact = ann.remember("Ann plays chess").fact
    assert fact is not None
    revised = ann.revise(fact.id, content="Ann plays go", expected=fact.version)
    assert (revised.created_at, revised.id) == (fact.created_at, fact.id)
    assert not ann.recall("chess").hits
    assert [h.text for h in ann.recall("Ann plays go").hits] == ["Ann plays go"]
    with pytest.raises(Conflict):
        ann.revise(fact.id, content="Ann plays tennis", expected=fact.version)
    ann.forget(fact.id)
    assert not ann.recall("plays go").hits
    assert [f.content for f in ann.history(fact.id)] == ["Ann plays chess", "Ann plays go", "Ann plays go"]
    again = ann.remember("Ann plays go")
    assert again.outcome == "add"
    assert ann.recall("plays go").hits


def test_profile_and_files_with_versions(ann: ScopedMemory) -> None:
    profile = ann.update_profile(sections={"workContext": "Bakes bread."}, attributes={"allergies": ["nuts"]})
    assert profile.version == 1
    with pytest.raises(Conflict):
        ann.update_profile(attributes={"x": 1}, expected=0)
    with pytest.raises(InvalidInput):
        ann.update_profile(sections={"nope": "x"})
    assert "Bakes bread." in ann.context("anything").text
    file = ann.files.write("/memories/AGENTS.md", "- 喜欢茶\n")
    assert ann.files.read("/memories/AGENTS.md").content.decode() == "- 喜欢茶\n"
    with pytest.raises(Conflict):
        ann.files.write("/memories/AGENTS.md", "other")
    ann.files.write("/memories/AGENTS.md", "new", expected=file.version)
    for path in ("x.md", "/a/../b", "/", "/a//b", "/a\\b", "/a\x00"):
        with pytest.raises(InvalidPath):
            ann.files.write(path, "x")


def test_erase_removes_everything_of_one_user_only(memory: Memory, ann: ScopedMemory) -> None:
    ann.add([("user", "I'm allergic to peanuts.")])
    memory.at(Scope(user="bob", session="s1")).add([("user", "I'm allergic to shrimp.")])
    memory.drain()
    counts = memory.at(Scope(user="ann")).erase().counts
    assert counts["messages"] == 1
    assert counts["facts"] == 1
    assert not ann.messages()
    assert not ann.recall("peanuts").hits
    assert not contents(ann)
    assert contents(memory.at(Scope(user="bob"))) == ["I'm allergic to shrimp"]


def test_explain_says_why_and_to_nobody_else(memory: Memory, ann: ScopedMemory) -> None:
    ann.remember("Ann plays chess")
    found = ann.recall("chess")
    trace = ann.explain(found.trace.id)
    assert [c.kept for c in trace.considered if c.id == found.hits[0].id] == [True]
    assert all(c.reason for c in trace.considered)
    with pytest.raises(NotFound):
        memory.at(Scope(user="bob")).explain(found.trace.id)


BAD = [
    ("add", {"messages": "just text"}, InvalidInput),
    ("add", {"messages": [("wizard", "hi")]}, InvalidInput),
    ("add", {"messages": [42]}, InvalidInput),
    ("add", {"messages": [("user", "x" * 10_000_000)]}, TooLarge),
    ("remember", {"content": ""}, EmptyText),
    ("remember", {"content": " \n "}, EmptyText),
    ("remember", {"content": "x" * 3000}, TooLarge),
    ("remember", {"content": "x", "category": "nope"}, UnknownCategory),
    ("remember", {"content": "x", "confidence": float("nan")}, InvalidInput),
    ("remember", {"content": "x", "confidence": 999}, InvalidInput),
    ("recall", {"question": ""}, EmptyText),
    ("recall", {"question": "x", "colour": "red"}, InvalidInput),
    ("context", {"question": "x", "budget": 99}, InvalidInput),
    ("fact", {"fact_id": "nope"}, NotFound),
    ("forget", {"fact_id": "'; DROP TABLE facts; --"}, NotFound),
    ("revise", {"fact_id": "x", "scope": "y"}, InvalidInput),
]


@pytest.mark.parametrize(("operation", "arguments", "error"), BAD)
def test_bad_input_is_one_of_our_errors_and_changes_nothing(
    ann: ScopedMemory, operation: str, arguments: dict[str, object], error: type[EverlongError]
) -> None:
    ann.remember("Ann plays chess")
    before = (contents(ann), ann.messages(), ann.jobs())
    with pytest.raises(error):
        getattr(ann, operation)(**arguments)
    assert (contents(ann), ann.messages(), ann.jobs()) == before


def test_text_no_store_can_hold_is_mended_not_refused(memory: Memory, ann: ScopedMemory) -> None:
    ann.add([("user", "I'm allergic to \ud83d nuts\x00 and shrimp."), ("user", "I have a dog.")])
    memory.drain()
    assert len(ann.messages()) == 2
    assert any("shrimp" in c for c in contents(ann))
    assert "I have a dog" in contents(ann)
    for part in ("user\x00", "\ud83d", " ", "x" * 513):
        with pytest.raises(InvalidScope):
            Scope(user=part)


def test_odd_ids_are_kept_exactly(memory: Memory) -> None:
    users = ["alice@example.com", "用户甲", "a.b", "a_b", "a%b", "ALICE", "alice", "x" * 300, "__default__", "../x"]
    for number, user in enumerate(users):
        memory.at(Scope(user=user)).remember(f"likes number {number}")
    for number, user in enumerate(users):
        assert contents(memory.at(Scope(user=user))) == [f"likes number {number}"]


def test_a_thread_learns_in_the_background_and_close_finishes_the_work(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/m.db"
    before = threading.active_count()
    memory = open_memory(url, embedder="none")
    assert threading.active_count() == before
    memory.at(Scope(user="ann", session="s")).add([("user", "I'm allergic to peanuts.")])
    memory.close()
    with open_memory(url, embedder="none", worker="none") as again:
        assert contents(again.at(Scope(user="ann"))) == ["I'm allergic to peanuts"]


def test_a_model_that_fails_loses_nothing(tmp_path: Path) -> None:
    from everlong.errors import ModelError

    clock = FakeClock()
    answer = '{"user":{},"history":{},"newFacts":[{"content":"User plays chess","category":"preference",'
    answer += '"confidence":0.9,"evidence":[{"message":"m1","quote":"I play chess"}]}],"factsToRemove":[]}'
    model = ScriptedChatModel([ModelError("away"), answer])
    settings = Settings(url=f"sqlite:///{tmp_path}/m.db", embedder="none", extractor="llm", worker="none")
    with build(settings, chat_model=model, clock=clock) as memory:
        ann = memory.at(Scope(user="ann", session="s"))
        ann.add([("user", "I play chess")])
        memory.drain()
        assert not contents(ann)
        assert memory.status().waiting == 1
        memory.drain()
        assert contents(ann) == ["User plays chess"]
        assert memory.status().waiting == 0


def test_wrong_settings_and_places_say_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="debounce_seconds"):
        open_memory("sqlite://", debounce_seconds=0)
    with pytest.raises(ConfigError, match="colour"):
        open_memory("sqlite://", colour="red")
    with pytest.raises(ConfigError):
        open_memory("sqlite://", embedder="word2vec")
    with pytest.raises(ConfigError, match="model"):
        open_memory("sqlite://", extractor="llm")
    notes = tmp_path / "notes.db"
    notes.write_bytes(b"this is no database, it is a letter to a friend" * 100)
    with pytest.raises(EverlongError):
        open_memory(f"sqlite:///{notes}", embedder="none")
    assert notes.read_bytes().startswith(b"this is no database")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_without_permission(tmp_path: Path) -> None:
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    with pytest.raises(EverlongError):
        open_memory(f"sqlite:///{tmp_path}/m.db", embedder="none")


def test_times_are_those_of_the_messages(memory: Memory, ann: ScopedMemory) -> None:
    at = datetime(2025, 11, 19, 8, 0, tzinfo=UTC)
    ann.add([{"role": "user", "content": "I moved to Porto.", "created_at": at}])
    assert ann.messages()[0].created_at == at


def test_a_conversation_can_be_left_out_but_what_was_learned_in_it_stays(memory: Memory, ann: ScopedMemory) -> None:
    ann.add([("user", "I'm allergic to peanuts.")])
    memory.drain()
    memory.at(Scope(user="ann", session="s2")).add([("user", "Peanuts are in the satay sauce.")])
    found = memory.at(Scope(user="ann")).recall("peanuts", exclude_sessions=("s1",)).hits
    assert {(hit.kind, hit.record.session) for hit in found} == {("fact", "s1"), ("message", "s2")}
    block = memory.at(Scope(user="ann")).context("peanuts", exclude_sessions=("s1", "s2")).text
    assert "I'm allergic to peanuts (user" in block
    assert "conversation:" not in block
