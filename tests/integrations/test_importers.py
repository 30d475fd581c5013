"""Memory of other programs comes over with its words, times and links; odd parts are named, and nothing comes in by half."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest

from everlong import Scope, open_memory
from everlong.errors import InvalidInput
from everlong.integrations.deerflow.document import document
from everlong.integrations.importers import DIALECTS, bring, look

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from everlong.memory import Memory, ScopedMemory

ANN = Scope(user="ann")


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", embedder="none", worker="none", categories=("identity",)) as opened:
        yield opened


@pytest.fixture
def ann(memory: Memory) -> ScopedMemory:
    return memory.at(ANN)


def saved(folder: Path, name: str, data: Any) -> Path:
    path = folder / name
    path.write_text(data if isinstance(data, str) else json.dumps(data, ensure_ascii=False), "utf-8")
    return path


def texts(scoped: ScopedMemory) -> set[str]:
    return {fact.content for fact in scoped.facts(status=None).items}


def day(number: int, month: int = 1) -> datetime:
    return datetime(2026, month, number, tzinfo=UTC)


# ------------------------------------------------------------------------------------------------------ DeerFlow

DOCUMENT = {
    "version": "1.0",
    "lastUpdated": "2026-01-03T00:00:00Z",
    "user": {"workContext": {"summary": "在杭州做后端开发", "updatedAt": "2026-01-02T00:00:00Z"}},
    "history": {},
    "facts": [
        {
            "id": "fact_e5f6g7h8",
            "content": "User prefers dark mode",
            "category": "preference",
            "confidence": 0.95,
            "createdAt": "2026-01-01T00:00:00Z",
            "source": "thread-1",
        },
        {"id": "事实 2", "content": "用户喜欢爬山", "category": "identity", "odd": {"deep": [1]}},
    ],
}


def test_a_deerflow_document(ann: ScopedMemory, tmp_path: Path) -> None:
    result = bring(ann, "deerflow", saved(tmp_path, "memory.json", DOCUMENT))
    assert (result.tallies["fact"].new, result.tallies["profile"].new) == (2, 1)
    shown = document(ann)
    assert {entry["id"] for entry in shown["facts"]} == {"fact_e5f6g7h8", "事实 2"}
    assert next(e for e in shown["facts"] if e["id"] == "事实 2")["odd"] == {"deep": [1]}
    fact = next(f for f in ann.facts().items if f.category == "preference")
    assert (fact.created_at, fact.session, fact.confidence, fact.origin) == (day(1), "thread-1", 0.95, "import")
    assert ann.profile().sections["workContext"].updated_at == day(2)


def test_deerflows_markdown_facts(ann: ScopedMemory, tmp_path: Path) -> None:
    folder = tmp_path / "agents" / "__default__" / "facts" / "ab"
    folder.mkdir(parents=True)
    matter = (
        "schemaVersion: 2\nid: {}\ncategory: other\ncategoryExtension: knowledge\nconfidence: 0.8\nstatus: {}\n"
        "source:\n  type: conversation\n  threadId: t9\ncreatedAt: 2026-01-05T00:00:00Z\n"
    )
    saved(folder, "a.md", f"---\n{matter.format('a', 'active')}---\n住在成都，会说四川话\n")
    saved(folder, "b.md", f"---\n{matter.format('b', 'archived')}---\nUsed to live in Rome\n")
    saved(tmp_path, "memory.json", {"user": {}, "history": {}})
    result = bring(ann, "deerflow", tmp_path)
    assert result.tallies["fact"].new == 2
    (fact,) = ann.facts().items
    assert (fact.content, fact.category, fact.session, fact.created_at) == (
        *("住在成都，会说四川话", "knowledge", "t9"),
        day(5),
    )
    saved(folder, "c.md", "no front matter at all")
    assert look(ann, "deerflow", tmp_path).faults[0].reason == "c.md has no front matter"


# ------------------------------------------------------------------------------------------- mem0 and LangGraph

MEM0 = {
    "results": [
        {
            "id": "0b1e",
            "memory": "Likes Italian food",
            "hash": "x",
            "user_id": "u1",
            "categories": ["food"],
            "created_at": "2026-01-01T00:00:00-08:00",
            "updated_at": None,
            "metadata": {"n": 1.5},
        },
        {"memory": "对花生过敏", "user_id": "u1", "run_id": "r1"},
    ]
}


def test_memories_of_mem0(ann: ScopedMemory, tmp_path: Path) -> None:
    path = saved(tmp_path, "mem0.json", MEM0)
    assert bring(ann, "mem0", path).tallies["fact"].new == 2
    found = {fact.content: fact for fact in ann.facts().items}
    assert found["Likes Italian food"].created_at == datetime(2026, 1, 1, 8, tzinfo=UTC)
    assert found["Likes Italian food"].metadata["mem0"]["metadata"] == {"n": 1.5}
    assert found["对花生过敏"].session == "r1"
    again = bring(ann, "mem0", path)
    assert (again.count("new"), again.count("same"), again.count("conflicting")) == (0, 2, 0)
    assert ann.recall("peanut 花生").hits


def test_memory_of_several_users_is_not_given_to_one(ann: ScopedMemory, tmp_path: Path) -> None:
    items = [*MEM0["results"], {"memory": "Bob's salary", "user_id": "bob"}]
    path = saved(tmp_path, "mem0.json", items)
    with pytest.raises(InvalidInput, match="2 users"):
        bring(ann, "mem0", path)
    assert bring(ann, "mem0", path, only="u1").tallies["fact"].new == 2
    assert "Bob's salary" not in texts(ann)
    with pytest.raises(InvalidInput, match="nothing of 'eve'"):
        look(ann, "mem0", path, only="eve")


@pytest.fixture
def langgraph_store(tmp_path: Path) -> Path:
    """A store as LangGraph's own SqliteStore leaves it."""
    sqlite = pytest.importorskip("langgraph.store.sqlite")
    path = tmp_path / "store.db"
    with sqlite.SqliteStore.from_conn_string(str(path)) as store:
        store.setup()
        store.put(("memories", "ann"), "k 1", {"text": "Plays the violin", "category": "preference"})
        store.put(("memories", "ann"), "键", {"data": "在学小提琴"})
        store.put(("memories", "bob"), "k", {"text": "Bob plays drums"})
        store.put(("config",), "theme", {"dark": True})
    return path


def test_items_of_a_langgraph_store(ann: ScopedMemory, langgraph_store: Path) -> None:
    result = bring(ann, "langgraph", langgraph_store, only="ann")
    assert result.tallies["fact"].new == 2
    assert texts(ann) == {"Plays the violin", "在学小提琴"}
    fact = next(f for f in ann.facts().items if f.category == "preference")
    assert fact.metadata["langgraph"]["namespace"] == ["memories", "ann"]
    assert abs((datetime.now(UTC) - fact.created_at).total_seconds()) < 3600
    assert bring(ann, "langgraph", langgraph_store, only="config").tallies["fact"].new == 1
    assert '{"dark": true}' in texts(ann)


def test_a_broken_row_of_a_langgraph_store_is_named(ann: ScopedMemory, langgraph_store: Path) -> None:
    with closing(sqlite3.connect(langgraph_store)) as connection, connection:
        connection.execute("INSERT INTO store (prefix, key, value) VALUES ('memories.ann', 'zz', '{oops')")
    (fault,) = look(ann, "langgraph", langgraph_store, only="ann").faults
    assert (fault.id, fault.fate) == ("zz", "invalid")
    with pytest.raises(InvalidInput, match="is no JSON"):
        bring(ann, "langgraph", langgraph_store, only="ann")
    assert texts(ann) == set()


# ----------------------------------------------------------------------------------------------------- instructions


def test_instructions_of_agents(ann: ScopedMemory, tmp_path: Path) -> None:
    said = "# Style\n\n- Use tabs\n* 回答用中文\n1. Run the tests\n```\n- not a rule\n```\n- Use tabs\n"
    path = saved(tmp_path, "CLAUDE.md", said)
    result = bring(ann, "agents-md", path, facts=True)
    assert (result.tallies["file"].new, result.tallies["fact"].new) == (1, 3)
    assert ann.files.read("/memories/CLAUDE.md").content.decode() == said
    assert texts(ann) == {"Use tabs", "回答用中文", "Run the tests"}
    assert bring(ann, "agents-md", path).tallies["file"].same == 1


# -------------------------------------------------------------------------------------------------- conversations


def node(parent: str | None, role: str, parts: list[Any], at: float | None, **rest: Any) -> dict[str, Any]:
    message = {"author": {"role": role}, "create_time": at, "content": {"content_type": "text", "parts": parts}, **rest}
    return {"parent": parent, "children": [], "message": message}


CHATGPT = [
    {
        "id": "c-1",
        "title": "旅行计划",
        "create_time": day(1).timestamp(),
        "current_node": "n5",
        "mapping": {
            "root": {"parent": None, "children": ["n1"], "message": None},
            "n1": node("root", "system", [""], None),
            "n2": node("n1", "user", ["我想去京都。"], day(1).timestamp()),
            "n3": node("n2", "assistant", ["An answer that was thrown away"], day(2).timestamp()),
            "n4": node("n2", "assistant", ["京都很美。", {"asset_pointer": "file://x"}], day(3).timestamp()),
            "n5": node("n4", "user", ["Thanks! I live in Basel."], None),
        },
    },
    {"conversation_id": "c-2", "title": None, "mapping": {}, "current_node": None},
]


def test_conversations_of_chatgpt(memory: Memory, ann: ScopedMemory, tmp_path: Path) -> None:
    path = saved(tmp_path, "conversations.json", CHATGPT)
    result = bring(ann, "chatgpt", path)
    assert (result.tallies["session"].new, result.tallies["message"].new) == (1, 3)
    said = ann.messages()
    assert [m.content for m in said] == ["我想去京都。", "京都很美。", "Thanks! I live in Basel."]
    assert [m.created_at for m in said] == [day(1), day(3), day(3)]
    assert [m.role for m in said] == ["user", "assistant", "user"]
    assert said[0].metadata == {"title": "旅行计划"}
    assert ann.sessions().items[0].scope.session == "chatgpt:c-1"
    assert bring(ann, "chatgpt", path).count("new") == 0
    memory.drain()
    assert any("Basel" in text for text in texts(ann))


CLAUDE = [
    {
        "uuid": "u-1",
        "name": "Gardens",
        "created_at": "2026-01-01T00:00:00.000000Z",
        "chat_messages": [
            {"uuid": "m1", "sender": "human", "text": "My garden has roses.", "created_at": "2026-01-01T00:00:00Z"},
            {
                "uuid": "m2",
                "sender": "assistant",
                "text": "",
                "created_at": "2026-01-02T00:00:00Z",
                "content": [{"type": "tool_use", "name": "x"}, {"type": "text", "text": "真好"}],
            },
            {"uuid": "m3", "sender": "human", "text": "", "content": []},
        ],
    }
]


def test_conversations_of_claude(ann: ScopedMemory, tmp_path: Path) -> None:
    result = bring(ann, "claude", saved(tmp_path, "conversations.json", CLAUDE))
    assert result.tallies["message"].new == 2
    assert [(m.role, m.content, m.created_at) for m in ann.messages()] == [
        ("user", "My garden has roses.", day(1)),
        ("assistant", "真好", day(2)),
    ]


@pytest.mark.parametrize("odd", [7, None, [], {}, {"id": ""}, {"id": "x"}, {"id": "x", "mapping": {"a": 3}}])
def test_an_odd_conversation_is_named_by_its_number(ann: ScopedMemory, tmp_path: Path, odd: Any) -> None:
    path = saved(tmp_path, "conversations.json", [CHATGPT[0], odd])
    (fault,) = look(ann, "chatgpt", path).faults
    assert (fault.line, fault.fate) == (2, "invalid")
    with pytest.raises(InvalidInput, match="first at 2"):
        bring(ann, "chatgpt", path)
    assert ann.messages() == ()


def test_turns_that_go_round_in_a_circle_end(ann: ScopedMemory, tmp_path: Path) -> None:
    ring = {
        "id": "r",
        "current_node": "a",
        "mapping": {"a": node("b", "user", ["x"], 1), "b": node("a", "user", ["y"], 1)},
    }
    assert "circle" in look(ann, "chatgpt", saved(tmp_path, "c.json", [ring])).faults[0].reason


# ----------------------------------------------------------------------------------------------------------- lines


def test_lines_of_messages_and_facts(ann: ScopedMemory, tmp_path: Path) -> None:
    lines = [
        {"role": "user", "content": "I swim.", "session": "s", "created_at": 1767225600, "speaker": "Ann"},
        {"role": "AI", "content": "好的", "session": "s", "created_at": "2026-01-01T00:00:05"},
        {"content": "会游泳", "category": "weird", "confidence": 1, "id": "行 1"},
    ]
    path = saved(tmp_path, "x.jsonl", "\ufeff" + "\n\n".join(json.dumps(each, ensure_ascii=False) for each in lines))
    bring(ann, "jsonl", path)
    assert [(m.speaker, m.role, m.created_at.second) for m in ann.messages()] == [
        ("Ann", "user", 0),
        ("", "assistant", 5),
    ]
    (fact,) = ann.facts().items
    assert (fact.category, fact.metadata) == ("context", {"category": "weird"})


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", "is no JSON"),
        ("[1]", "content"),
        ('{"content": " "}', "content"),
        ('{"content": 5}', "content"),
        ('{"content": "x", "role": "ghost"}', "role"),
        ('{"content": "x", "confidence": 7}', "confidence"),
        ('{"content": "x", "metadata": 7}', "metadata"),
        ('{"content": "' + "长" * 2001 + '"}', "2,001 characters"),
        ("\udcff".encode("utf-8", "surrogateescape").decode("latin-1"), "is no JSON"),
    ],
)
def test_a_bad_line_is_named_by_number_and_reason(ann: ScopedMemory, tmp_path: Path, line: str, told: str) -> None:
    path = saved(tmp_path, "x.jsonl", f'{{"content": "fine, 好"}}\n{line}\n{{"content": "also fine"}}\n')
    found = look(ann, "jsonl", path)
    (fault,) = found.faults
    assert fault.line == 2
    assert told in fault.reason
    assert found.tallies["fact"].new == 2
    with pytest.raises(InvalidInput, match="first at 2"):
        bring(ann, "jsonl", path)
    assert texts(ann) == set()


# ------------------------------------------------------------------------------------------------------ every one


@pytest.mark.parametrize("dialect", sorted(set(DIALECTS) - {"agents-md"}))  # there, any bytes are a file
@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe", b"null", b'"text"', b"{}", b"[[]]", b"[" * 100_000])
def test_whatever_a_file_holds_it_is_refused_and_nothing_breaks(
    ann: ScopedMemory, tmp_path: Path, dialect: str, content: bytes
) -> None:
    path = tmp_path / "any"
    path.write_bytes(content)
    with pytest.raises(InvalidInput):
        bring(ann, dialect, path)
    with pytest.raises(InvalidInput):
        bring(ann, dialect, tmp_path / "none")


def test_an_unknown_dialect_names_the_known(ann: ScopedMemory) -> None:
    with pytest.raises(InvalidInput, match="mem0"):
        bring(ann, "zep", "x")


def test_two_users_may_bring_the_same(memory: Memory, tmp_path: Path) -> None:
    path = saved(tmp_path, "memory.json", DOCUMENT)
    for user in ("ann", "bob"):
        assert bring(memory.at(Scope(user=user)), "deerflow", path).tallies["fact"].new == 2


def test_secrets_of_a_source_are_taken_out(ann: ScopedMemory, tmp_path: Path) -> None:
    key = "ghp_" + "a1B2c3" * 6
    bring(ann, "jsonl", saved(tmp_path, "x.jsonl", json.dumps({"content": f"token {key}", "metadata": {"k": key}})))
    assert key not in repr(ann.facts())
