"""DeerFlow's documents: as files, and as a view over the store, lossless both ways."""

from __future__ import annotations

import json
import multiprocessing
import os
from datetime import UTC, datetime

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from everlong import Scope, open_memory
from everlong.errors import AccessDenied, Conflict, InvalidInput, TooLarge
from everlong.integrations.deerflow.document import apply_document, create_empty_memory, document, revision
from everlong.integrations.deerflow.storage import FileMemoryStorage
from everlong.records import SECTIONS, Principal

FULL = {
    "version": "1.0",
    "lastUpdated": "2025-06-15T10:23:45Z",
    "user": {
        "workContext": {"summary": "高级工程师，主导框架开发。", "updatedAt": "2025-06-15T10:23:45Z"},
        "personalContext": {"summary": "Speaks Chinese and English.", "updatedAt": "2025-06-14T08:12:30Z"},
        "topOfMind": {"summary": "", "updatedAt": ""},
    },
    "history": {
        "recentMonths": {"summary": "重构中间件。", "updatedAt": "2025-06-15T10:23:45Z"},
        "earlierContext": {"summary": "", "updatedAt": ""},
        "longTermBackground": {"summary": "", "updatedAt": ""},
    },
    "facts": [
        {
            "id": "fact_e5f6g7h8",  # no hexadecimal number: any text is an id
            "content": "项目中使用 PostgreSQL",
            "category": "knowledge",
            "confidence": 0.85,
            "createdAt": "2025-06-12T11:30:00Z",
            "source": "thread_def456",
        },
        {
            "id": "../x",
            "content": "Prefers Vim",
            "category": "house-rule",
            "confidence": 1,
            "createdAt": "yesterday",
            "source": {"type": "manual"},
            "topics": ["editor"],
            "sourceError": None,
        },
        {"id": "bare", "content": " two  spaces kept "},
    ],
    "x-team": {"nested": [1, 2.5, None, True, "表情 🙂"]},
}


@pytest.fixture
def memory():
    with open_memory("sqlite://", embedder="none", worker="none") as opened:
        yield opened


@pytest.fixture
def ann(memory):
    return memory.at(Scope(user="ann"))


def copy(data):
    return json.loads(json.dumps(data))


def test_a_document_comes_back_as_it_went_in(ann) -> None:
    assert apply_document(ann, copy(FULL)) == FULL
    assert document(ann) == FULL
    facts = {fact.id: fact for fact in ann.facts().items}
    assert facts["fact_e5f6g7h8"].session == "thread_def456"
    assert facts["fact_e5f6g7h8"].created_at == datetime(2025, 6, 12, 11, 30, tzinfo=UTC)
    assert facts["../x"].category == "context", "a category that nobody declared stays in the document alone"
    assert ann.recall("项目中使用什么 PostgreSQL？", kinds=("fact",)).hits[0].id == "fact_e5f6g7h8"


def test_applying_again_changes_nothing(ann) -> None:
    apply_document(ann, copy(FULL))
    before = ann.journal().items
    apply_document(ann, document(ann))
    assert ann.journal().items == before
    assert {fact.version for fact in ann.facts().items} == {1}


def test_what_changes_in_the_store_shows_and_the_rest_stays(ann) -> None:
    apply_document(ann, copy(FULL))
    ann.revise("../x", content="Prefers Emacs", confidence=0.6)
    ann.forget("bare")
    ann.update_profile(sections={"topOfMind": "发布 2.0"})
    ann.remember("Ann likes tea", category="preference")
    seen = document(ann)
    assert [f["content"] for f in seen["facts"]] == ["项目中使用 PostgreSQL", "Prefers Emacs", "Ann likes tea"]
    changed = dict(FULL["facts"][1], content="Prefers Emacs", confidence=0.6)
    assert seen["facts"][1] == changed
    assert seen["facts"][2]["source"] == "manual"
    assert seen["user"]["topOfMind"]["summary"] == "发布 2.0"
    assert seen["user"]["workContext"] == FULL["user"]["workContext"]
    assert seen["lastUpdated"] > FULL["lastUpdated"]
    assert seen["x-team"] == FULL["x-team"]
    assert apply_document(ann, copy(seen)) == seen


def test_importing_an_old_copy_brings_back_what_was_forgotten(ann) -> None:
    apply_document(ann, copy(FULL))
    ann.forget("bare")
    assert apply_document(ann, copy(FULL)) == FULL
    assert [fact.status for fact in ann.history("bare")] == ["active", "retired", "active"]


def test_documents_of_user_agent_and_both_are_apart(memory) -> None:
    operator = Principal(id="root", role="operator")
    places = [Scope(user="ann"), Scope(agent="coder"), Scope(user="ann", agent="coder"), Scope()]
    for number, place in enumerate(places):
        data = dict(create_empty_memory(), facts=[{"id": "same", "content": f"number {number}"}])
        apply_document(memory.at(place, by=operator), data)
    for number, place in enumerate(places):
        assert [f["content"] for f in document(memory.at(place, by=operator))["facts"]] == [f"number {number}"]


def test_a_change_made_meanwhile_is_not_overwritten(ann) -> None:
    mark = revision(apply_document(ann, copy(FULL)))
    ann.forget("bare")
    with pytest.raises(Conflict):
        apply_document(ann, copy(FULL), expected=mark)
    apply_document(ann, copy(FULL), expected=revision(document(ann)))


def entry(**fields):
    return dict(create_empty_memory(), facts=[{"id": "a", "content": "text", **fields}])


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ([], InvalidInput),
        ({}, InvalidInput),
        ({"facts": {}}, InvalidInput),
        ({"user": [], "facts": []}, InvalidInput),
        ({"user": {"workContext": "text"}}, InvalidInput),
        (entry(id=""), InvalidInput),
        (entry(id=7), InvalidInput),
        (entry(content=" \n"), InvalidInput),
        (entry(content="啊" * 50_000), TooLarge),
        (entry(confidence=999), InvalidInput),
        (entry(confidence=float("nan")), InvalidInput),
        (entry(confidence=True), InvalidInput),
        (entry(x={1, 2}), InvalidInput),
        ({"facts": [{"id": "a", "content": "x"}, {"id": "a", "content": "y"}]}, InvalidInput),
        ({"facts": [{"id": str(n), "content": "x"} for n in range(10_001)]}, TooLarge),
    ],
)
def test_a_broken_document_changes_nothing(ann, data, error) -> None:
    """O2: an import passes the same checks as everything else that is stored."""
    apply_document(ann, copy(FULL))
    with pytest.raises(error):
        apply_document(ann, data)
    assert document(ann) == FULL


def test_secrets_in_a_document_are_not_stored(ann) -> None:
    secret = "sk-" + "Ab3" * 16
    landed = apply_document(ann, entry(content=f"the key is {secret}", note=f"key {secret}"))
    assert secret not in json.dumps([landed, document(ann)])


def test_another_users_document_is_closed(memory) -> None:
    with pytest.raises(AccessDenied):
        document(memory.at(Scope(user="ann"), by=Principal(id="bob")))
    with pytest.raises(AccessDenied):
        apply_document(memory.at(Scope(user="ann"), by=Principal(id="bob")), create_empty_memory())


words = st.text(alphabet='abc 你好🙂"\\<>é', min_size=1, max_size=12).filter(lambda s: any(c.isalnum() for c in s))
times = st.datetimes(timezones=st.just(UTC)).map(lambda at: at.isoformat().replace("+00:00", "Z"))
extra = st.dictionaries(
    st.sampled_from(["topics", "status", "备注"]), st.none() | st.booleans() | words | st.lists(words)
)
facts = st.lists(
    st.tuples(
        st.fixed_dictionaries(
            {"id": words, "content": words},
            optional={
                "category": st.sampled_from(["preference", "correction", "other", "自定"]) | words,
                "confidence": st.floats(0, 1) | st.integers(0, 1),
                "createdAt": times | st.just("") | words,
                "source": st.sampled_from(["unknown", "thread-1", ""]) | extra,
            },
        ),
        extra,
    ).map(lambda pair: {**pair[1], **pair[0]}),
    max_size=5,
    unique_by=lambda fact: fact["id"],
)
section = st.fixed_dictionaries(
    {"summary": st.just("") | words, "updatedAt": times | st.just("")}, optional={"备注": words}
)
documents = st.fixed_dictionaries(
    {
        "facts": facts,
        **{
            group: st.fixed_dictionaries({}, optional={n: section for n, g in SECTIONS.items() if g == group})
            for group in ("user", "history")
        },
    },
    optional={"version": words, "lastUpdated": times | words, "revision": st.integers(0, 9)},
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(first=documents, second=documents)
def test_any_document_survives_any_other(memory, first, second) -> None:
    ann = memory.at(Scope(user="ann"))
    for data in (first, second, first):
        apply_document(ann, copy(data))
        assert document(ann) == data


# ---------------------------------------------------------------------------------------------------------- files


def test_files_lie_where_deerflow_looks(tmp_path) -> None:
    storage = FileMemoryStorage(tmp_path)
    for agent, user, where in [
        ("coder", "ann", "users/ann/agents/coder/memory.json"),
        (None, "ann", "users/ann/memory.json"),
        ("coder", None, "agents/coder/memory.json"),
        (None, None, "memory.json"),
    ]:
        assert storage.save(FULL, agent, user_id=user)
        assert json.loads((tmp_path / where).read_text("utf-8")) == FULL
        assert storage.load(agent, user_id=user) == FULL
    assert "高级工程师" in (tmp_path / "memory.json").read_text("utf-8")
    assert FileMemoryStorage(tmp_path, storage_path="other/m.json").path() == tmp_path / "other/m.json"


@pytest.mark.parametrize("agent", ["../x", "a/b", "", "a_b", "a\n", "代码"])
def test_an_agents_name_is_never_a_path(tmp_path, agent) -> None:
    with pytest.raises(InvalidInput):
        FileMemoryStorage(tmp_path).load(agent)


def test_any_user_id_stays_below_the_folder(tmp_path) -> None:
    storage = FileMemoryStorage(tmp_path)
    paths = {storage.path(user_id=user) for user in ["..", "../x", "a/b", "a%2fb", "安", ".", "a b", "CON"]}
    assert len(paths) == 8
    assert all(path.parent.parent == tmp_path / "users" for path in paths)


def test_a_change_in_the_same_tick_is_seen(tmp_path) -> None:
    """B3: time and size of the file are the same as before."""
    one, other = FileMemoryStorage(tmp_path), FileMemoryStorage(tmp_path)
    for old, new in [("abc", "xyz"), ("阿黄", "小白")]:
        one.save(entry(content=old), user_id="ann")
        stamp = one.path(user_id="ann").stat()
        assert one.load(user_id="ann")["facts"][0]["content"] == old
        other.save(entry(content=new), user_id="ann")
        os.utime(one.path(user_id="ann"), ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
        assert one.load(user_id="ann")["facts"][0]["content"] == new


def test_what_was_read_is_a_copy(tmp_path) -> None:
    storage = FileMemoryStorage(tmp_path)
    storage.save(FULL)
    storage.load()["facts"].clear()
    assert storage.load() == FULL == storage.reload()


@pytest.mark.parametrize("content", ["{", "[]", "", "null"])
def test_a_broken_file_is_pointed_out_and_left(tmp_path, content) -> None:
    (tmp_path / "memory.json").write_text(content)
    with pytest.raises(InvalidInput):
        FileMemoryStorage(tmp_path).load()
    assert (tmp_path / "memory.json").read_text() == content


def _add(folder: str, name: str) -> None:
    storage = FileMemoryStorage(folder)
    for number in range(10):
        with storage.locked(user_id="ann"):
            data = storage.load(user_id="ann")
            data["facts"].append({"id": f"{name}-{number}", "content": "x"})
            storage.save(data, user_id="ann")


def test_two_processes_lose_nothing(tmp_path) -> None:
    context = multiprocessing.get_context("fork")
    workers = [context.Process(target=_add, args=(str(tmp_path), name)) for name in "ab"]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(FileMemoryStorage(tmp_path).load(user_id="ann")["facts"]) == 20


def test_memory_of_an_older_layout_is_pointed_out(tmp_path, caplog) -> None:
    """O3: the file without users is there while users have files of their own; and a setting that was a file is a folder."""
    storage = FileMemoryStorage(tmp_path)
    storage.save(FULL)
    assert storage.load(user_id="安")["facts"] == []
    assert str(tmp_path / "memory.json") in caplog.text
    (tmp_path / "folder").mkdir()
    moved = FileMemoryStorage(tmp_path, storage_path="folder")
    assert moved.save(FULL) and moved.load() == FULL


def test_memory_of_a_user_makes_no_agent(tmp_path) -> None:
    """N4: a folder stands for memory only; nothing but the document lies in it."""
    storage = FileMemoryStorage(tmp_path)
    storage.load("coder", user_id="ann")
    assert not list(tmp_path.iterdir()), "reading makes nothing"
