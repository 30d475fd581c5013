"""LangGraph's store contract: one table of operations run against its own store in memory and against ours."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp
from langgraph.store.memory import InMemoryStore

from everlong import Principal, Scope, open_memory
from everlong.config import build, load_settings
from everlong.errors import AccessDenied, InvalidInput
from everlong.integrations.langgraph import EverlongStore
from everlong.policy import Rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.memory import Memory

ROOT = Principal(id="root", role="operator")
VALUES: dict[str, dict[str, Any]] = {
    "a": {"text": "Ann likes green tea", "n": 1, "tags": ["x", "y"], "meta": {"lang": "en", "deep": {"k": 1}}},
    "b": {"text": "安喜欢绿茶", "n": 2.5, "flag": True, "meta": {"lang": "zh"}},
    "c": {"text": "dogs", "n": 10, "none": None, "tags": []},
    "empty": {},
    "odd": {"é\u0000\ud800": "\ud83d lone", "emoji": "🍵", "big": 2**70, "quote": '"\\\n'},
}
LABELS = [
    "ann@example",
    "用户甲",
    "a/b",
    "..slash\\"[2:],
    "%2e",
    "CON",
    " ",
    "A",
    "a",
    "-x",
    "é",
    "e\u0301",
    "🍵",
    "*x",
    "a:b~c+d",
]
LABELS += ["x" * 300, "用" * 300, "用" * 299 + "户", "\ud800"]


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 5, 1, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, **time: float) -> None:
        self.now += timedelta(**time)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def memory(clock: Clock) -> Iterator[Memory]:
    settings = load_settings(url="sqlite://", embedder="none", worker="none")
    with build(settings, clock=clock) as opened:
        yield opened


def by_user(namespace: tuple[str, ...]) -> Scope:
    if len(namespace) > 1 and namespace[0] == "users":
        return Scope(org="acme", user=namespace[1])
    return Scope(org="acme")


def filled(store):
    for number, namespace in enumerate([("docs",), ("docs", "v1"), ("docs", "v1", "draft"), ("文档", "v1")]):
        for key, value in VALUES.items():
            store.put(namespace, f"{key}{number}", value)
    return store


def keys(found) -> list[tuple[tuple[str, ...], str]]:
    return sorted((item.namespace, item.key) for item in found)


FILTERS = [
    {"n": 1},
    {"n": {"$eq": 1}},
    {"n": {"$ne": 1}},
    {"flag": True},
    {"flag": {"$ne": True}},
    {"none": None},
    {"missing": None},
    {"text": "安喜欢绿茶", "n": 2.5},
    {"text": "安喜欢绿茶", "n": 3},
    {"tags": ["x", "y"]},
    {"tags": ["x"]},
    {"tags": []},
    {"meta": {"lang": "en"}},
    {"meta": {"deep": {"k": 1}}},
    {"meta": {"deep": {"k": {"$ne": 1}}}},
    {"meta": "en"},
    {"emoji": "🍵"},
    {},
]


@pytest.mark.parametrize("where", FILTERS, ids=str)
def test_filters_mean_what_they_mean_in_langgraph(memory: Memory, where: dict[str, Any]) -> None:
    theirs, ours = filled(InMemoryStore()), filled(EverlongStore(memory))
    for prefix in ((), ("docs",), ("docs", "v1"), ("doc",), ("文档",), ("docs", "v2")):
        wanted = keys(theirs.search(prefix, filter=where, limit=100))
        assert keys(ours.search(prefix, filter=where, limit=100)) == wanted


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ({"$gt": 1}, ["b", "c"]),
        ({"$gte": 1}, ["a", "b", "c"]),
        ({"$lt": 2.5}, ["a"]),
        ({"$lte": 2.5}, ["a", "b"]),
        ({"$gt": 1, "$lt": 10}, ["b"]),
        ({"$gt": "1"}, ["b", "c"]),
        ({"$lt": -1}, []),
        ({"$gt": None}, []),
        ({"$gt": [1]}, []),
    ],
)
def test_order_compares_what_has_one_and_leaves_the_rest(memory: Memory, condition: dict, found: list[str]) -> None:
    store = EverlongStore(memory)
    for key, value in VALUES.items():
        store.put(("n",), key, value)
    assert sorted(item.key for item in store.search(("n",), filter={"n": condition})) == found
    store.put(("t",), "old", {"at": "2026-01-01"})
    store.put(("t",), "new", {"at": "2026-03-01"})
    assert [item.key for item in store.search(("t",), filter={"at": {"$gte": "2026-02-01"}})] == ["new"]
    with pytest.raises(ValueError, match=r"unknown operator \$in"):
        store.search(("n",), filter={"n": {"$in": [1]}})


LISTINGS: list[dict[str, Any]] = [
    {},
    {"prefix": ("docs",)},
    {"prefix": ("docs", "*")},
    {"prefix": ("*", "v1")},
    {"suffix": ("v1",)},
    {"suffix": ("v1", "*")},
    {"prefix": ("docs",), "suffix": ("draft",)},
    {"prefix": ("docs", "v1", "draft", "x")},
    {"max_depth": 1},
    {"max_depth": 2},
    {"prefix": ("docs",), "max_depth": 2},
    {"limit": 2},
    {"limit": 2, "offset": 1},
    {"offset": 9},
    {"prefix": ("文档",)},
]


@pytest.mark.parametrize("asked", LISTINGS, ids=str)
def test_namespaces_are_listed_as_in_langgraph(memory: Memory, asked: dict[str, Any]) -> None:
    theirs, ours = filled(InMemoryStore()), filled(EverlongStore(memory))
    assert ours.list_namespaces(**asked) == theirs.list_namespaces(**asked)
    assert asyncio.run(ours.alist_namespaces(**asked)) == theirs.list_namespaces(**asked)


def test_a_batch_reads_what_was_before_and_writes_what_came_last(memory: Memory) -> None:
    ops = [
        PutOp(("a",), "k", {"v": 1}),
        GetOp(("a",), "k"),
        PutOp(("a",), "k", {"v": 2}),
        PutOp(("a",), "gone", {"v": 1}),
        PutOp(("a",), "gone", None),
        SearchOp(("a",)),
    ]
    for store in (InMemoryStore(), EverlongStore(memory)):
        results = store.batch(ops)
        assert results == [None, None, None, None, None, []]
        found = asyncio.run(store.abatch([GetOp(("a",), "k"), GetOp(("a",), "gone"), SearchOp(("a",))]))
        assert found[0].value == {"v": 2}
        assert found[1] is None
        assert keys(found[2]) == [(("a",), "k")]
        assert store.batch([ListNamespacesOp((MatchCondition("prefix", ("a",)),))]) == [[("a",)]]


@pytest.mark.parametrize("namespace", [("a.b",), ("",), ("a", ""), ("a\x00",), (1,)], ids=str)
def test_namespaces_that_langgraph_refuses_are_refused(memory: Memory, namespace: tuple) -> None:
    for store in (InMemoryStore(), EverlongStore(memory)):
        for call in (
            lambda s: s.put(namespace, "k", {}),
            lambda s: s.get(namespace, "k"),
            lambda s: s.search(namespace),
        ):
            with pytest.raises(InvalidNamespaceError):
                call(store)
    with pytest.raises(InvalidNamespaceError):
        EverlongStore(memory).batch([PutOp(namespace, "k", {})])


def test_every_label_and_key_comes_back_exactly(memory: Memory) -> None:
    store = EverlongStore(memory)
    odd = [*LABELS, ".", "..", "", "a.json", "a.b/c", "\n", "x\x00"]
    for number, label in enumerate(LABELS):
        store.put((label, "notes"), "k", {"n": number})
        store.put((label,), label, {"n": -number})
    for number, key in enumerate(odd):
        store.put(("keys",), key, {"n": number})
    assert store.list_namespaces(suffix=("notes",), limit=1000) == sorted((label, "notes") for label in LABELS)
    for number, label in enumerate(LABELS):
        item = store.get((label, "notes"), "k")
        assert item is not None
        assert (item.namespace, item.key, item.value) == ((label, "notes"), "k", {"n": number})
        assert keys(store.search((label,))) == sorted([((label,), label), ((label, "notes"), "k")])
    assert [store.get(("keys",), key).value["n"] for key in odd] == list(range(len(odd)))
    deep = tuple("深" * 200 + str(number) for number in range(10))
    store.put(deep, "k", {"deep": True})
    assert keys(store.search(deep[:9])) == [(deep, "k")]


def test_values_come_back_as_they_were_and_belong_to_the_caller(memory: Memory) -> None:
    store = EverlongStore(memory)
    for key, value in VALUES.items():
        store.put(("v",), key, value)
        store.get(("v",), key).value["changed"] = True
        assert store.get(("v",), key).value == value
    with pytest.raises(InvalidInput, match="not JSON"):
        store.put(("v",), "x", {"when": datetime(2026, 1, 1, tzinfo=UTC)})


SECRETS = [
    "my password is Tr0ub4dor&3xx",
    "密码是 hunter2horse",
    "4111 1111 1111 1111",
    "-----BEGIN RSA PRIVATE KEY-----\nMIIE",
]
SECRETS += ["sk-abcdefghijklmnopqrstuvwxyz0123456789ABCDEF", 'pass"word\\: abc"def123XYZ!']


@pytest.mark.parametrize("secret", SECRETS)
def test_secrets_are_taken_out_of_values_and_the_rest_stays(memory: Memory, secret: str) -> None:
    store = EverlongStore(memory)
    for value in ({"a": secret}, {"password": secret}, {"in": [{"api_key": secret}, secret]}):
        store.put(("a",), "k", value | {"after": "茶", "n": 12345678901})
        (item,) = store.search(("a",), filter={"after": "茶", "n": 12345678901})
        assert item == store.get(("a",), "k")
        assert "[redacted" in str(item.value) or "word" in secret
        assert item.value.keys() == value.keys() | {"after", "n"}
    card = "4111 1111 1111 1111"
    store.put((card,), card, {})
    assert store.search((card,))[0].key == card
    assert store.list_namespaces() == [(card,), ("a",)]


def test_times_say_when_it_was_made_and_when_it_was_put(memory: Memory, clock: Clock) -> None:
    store = EverlongStore(memory)
    made = clock.now
    store.put(("a",), "k", {"v": 1})
    clock.pass_(hours=1)
    store.put(("a",), "k", {"v": 2})
    store.put(("a",), "other", {"v": 2})
    item = store.get(("a",), "k")
    assert (item.created_at, item.updated_at) == (made, clock.now)
    clock.pass_(hours=1)
    store.put(("a",), "last", {})
    assert store.search(("a",), limit=1)[0].key == "last"
    pages = [store.search(("a",), limit=1, offset=n)[0].key for n in range(3)]
    assert sorted(pages) == ["k", "last", "other"]
    assert store.search(("a",), offset=3) == []


# ------------------------------------------------------------------------------------------------------------- ttl


def test_time_to_live_is_in_minutes_and_reads_renew_it(memory: Memory, clock: Clock) -> None:
    store = EverlongStore(memory, ttl={"default_ttl": 10})
    assert store.supports_ttl
    store.put(("a",), "read", {})
    store.put(("a",), "left", {})
    store.put(("a",), "peeked", {})
    store.put(("a",), "kept", {}, ttl=None)
    store.put(("a",), "short", {}, ttl=0.5)
    made = store.get(("a",), "read").updated_at
    clock.pass_(minutes=6)
    assert store.get(("a",), "read").updated_at == made
    assert store.get(("a",), "peeked", refresh_ttl=False) is not None
    assert store.get(("a",), "short") is None
    clock.pass_(minutes=6)
    assert keys(store.search(("a",), refresh_ttl=False)) == [(("a",), "kept"), (("a",), "read")]
    assert store.get(("a",), "read").updated_at == made
    clock.pass_(minutes=11)
    store.put(("b",), "k", {}, ttl=1)
    clock.pass_(minutes=2)
    assert store.list_namespaces() == [("a",)]
    assert store.sweep_ttl() == 2
    assert store.sweep_ttl() == 0
    assert keys(store.search(())) == [(("a",), "kept")]


def test_settings_decide_whether_reads_renew_and_when_it_is_swept(memory: Memory, clock: Clock) -> None:
    store = EverlongStore(memory, ttl={"default_ttl": 10, "refresh_on_read": False, "sweep_interval_minutes": 5})
    store.put(("a",), "k", {})
    clock.pass_(minutes=9)
    assert store.get(("a",), "k") is not None
    clock.pass_(minutes=6)
    assert store.get(("b",), "other") is None
    files = memory.at(Scope(org="langgraph"), by=ROOT).files
    assert files.list("/store/") == ()


# ---------------------------------------------------------------------------------------------------------- search


@pytest.mark.parametrize(
    ("query", "best"), [("green tea", "a"), ("绿茶", "b"), ("dogs", "c"), ("  ", "odd"), ("nothing of it", None)]
)
def test_a_query_ranks_what_prefix_and_filter_let_in(memory: Memory, query: str, best: str | None) -> None:
    store = EverlongStore(memory)
    for key, value in VALUES.items():
        store.put(("in",), key, value)
    for number in range(30):
        store.put(("out",), f"{number}", {"text": "green tea 绿茶 dogs", "n": number})
    found = store.search(("in",), query=query, limit=100)
    assert {item.namespace for item in found} == {("in",)}
    assert len(found) == len(VALUES)
    if query.strip() and best:
        assert found[0].key == best
        assert found[0].score > 0.3
    scores = [item.score for item in found if item.score is not None]
    assert scores == sorted(scores, reverse=True)
    only = store.search(("in",), query=query, filter={"n": {"$gte": 2}}, limit=1)
    assert [item.key for item in only] == ["c" if best == "c" else only[0].key]
    assert only[0].key in {"b", "c"}


@pytest.mark.parametrize(
    ("index", "hidden", "seen"),
    [
        (["title"], "dogs", "tea"),
        (["meta.note"], "dogs", "绿茶"),
        (["parts[*].t"], "dogs", "window"),
        (["parts[0].t"], "window", "door"),
        (["parts[-1].t"], "door", "window"),
        (False, "tea", None),
        (None, None, "dogs"),
        (["$"], None, "dogs"),
    ],
    ids=str,
)
def test_only_the_chosen_fields_are_searched(memory: Memory, index: Any, hidden: str | None, seen: str | None) -> None:
    value = {"title": "tea", "body": "dogs", "meta": {"note": "绿茶"}, "parts": [{"t": "door"}, {"t": "window"}]}
    for store in (EverlongStore(memory), EverlongStore(memory, index={"fields": index} if index else None)):
        store.put(("x",), "k", value, index=index)
        for query, good in ((hidden, False), (seen, True)):
            if query:
                (found,) = store.search(("x",), query=query)
                assert ((found.score or 0) > 0.3) is good
        store.put(("x",), "k", value)
        if not store._fields:
            assert store.search(("x",), query="dogs")[0].score > 0.3
        store.delete(("x",), "k")
        assert memory.at(Scope(org="langgraph"), by=ROOT).files.list("/store/") == ()


# ---------------------------------------------------------------------------------------------------------- scopes


def test_a_users_items_are_nobody_elses_and_go_with_the_user(memory: Memory) -> None:
    store = EverlongStore(memory, scope=Scope(org="acme"), namespace_scope=by_user)
    store.put(("users", "ann", "notes"), "k", {"text": "Ann's secret 秘密"})
    store.put(("users", "bob", "notes"), "k", {"text": "Bob's"})
    store.put(("policies",), "k", {"text": "for all"})
    assert store.get(("users", "ann", "notes"), "k").value == {"text": "Ann's secret 秘密"}
    assert keys(store.search(("users", "ann"), query="秘密")) == [(("users", "ann", "notes"), "k")]
    assert keys(store.search(())) == [(("policies",), "k")]
    assert store.search(("users",), query="secret") == []
    assert store.list_namespaces(prefix=("users", "ann")) == [("users", "ann", "notes")]
    bob = memory.at(Scope(org="acme", user="bob"))
    assert [info.path for info in bob.files.list("/store/users")] == ["/store/users/bob/notes/k.json"]
    assert not [hit for hit in bob.recall("secret 秘密", kinds=("file",), min_score=0.0).hits if "Ann" in hit.text]
    memory.at(Scope(org="acme", user="ann"), by=ROOT).erase()
    assert store.get(("users", "ann", "notes"), "k") is None
    assert store.get(("users", "bob", "notes"), "k") is not None


def test_items_have_versions_and_rights(memory: Memory) -> None:
    store = EverlongStore(memory, namespace_scope=by_user)
    for number in range(3):
        store.put(
            (
                "users",
                "安",
            ),
            "k",
            {"v": number},
        )
    ann = memory.at(Scope(org="acme", user="安"))
    (info,) = ann.files.list("/store/")
    assert [f.metadata["by"] for f in ann.files.history(info.path)] == ["user:安"] * 3
    rule = Rule(effect="deny", reason="the shop is closed", actions=("write",), paths=("/store/shop/*",))
    with open_memory("sqlite://", embedder="none", worker="none", rules=[rule]) as closed:
        store = EverlongStore(closed)
        store.put(("open",), "k", {})
        with pytest.raises(AccessDenied, match="shop is closed"):
            store.put(("shop",), "k", {})


def test_a_question_may_name_the_files_and_folders_that_it_is_put_to(memory: Memory) -> None:
    ann = memory.at(Scope(user="ann"))
    for path in ("/notes/a.md", "/notes/deep/b.md", "/notes.md", "/茶/c.md"):
        ann.files.write(path, "green tea 绿茶")

    def found(*files: str) -> list[str]:
        return sorted(hit.record.path for hit in ann.recall("绿茶 tea", kinds=("file",), files=files).hits)

    assert found() == sorted(["/notes/a.md", "/notes/deep/b.md", "/notes.md", "/茶/c.md"])
    assert found("/notes/") == ["/notes/a.md", "/notes/deep/b.md"]
    assert found("/notes.md", "/茶/") == ["/notes.md", "/茶/c.md"]
    assert found("/notes") == []
    with pytest.raises(InvalidInput, match="must be a list"):
        ann.recall("tea", files="/notes/")


def test_what_memory_knows_is_searched_like_items(memory: Memory) -> None:
    store = EverlongStore(memory, namespace_scope=by_user, recalled="memory")
    ann = memory.at(Scope(org="acme", user="ann"))
    ann.remember("Ann plays the violin 小提琴")
    ann.files.write("/memories/music.md", "The violin is a Guarneri.")
    where = ("users", "ann", "memory")
    found = store.search(where, query="violin")
    assert {item.value["kind"] for item in found} == {"fact", "file"}
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)
    (fact,) = store.search(where, query="小提琴", filter={"kind": "fact"})
    assert (fact.namespace, fact.value["text"]) == (where, "Ann plays the violin 小提琴")
    assert store.search(where, query="violin", limit=1, offset=1) == [found[1]]
    assert store.search(where) == store.search(where, query=" ") == []
    assert store.search(("users", "bob", "memory"), query="violin") == []
    with pytest.raises(InvalidInput, match="nothing is put there"):
        store.put(where, "k", {})
    store.put(("users", "ann", "memory", "own"), "k", {})


@pytest.mark.parametrize("database", ["sqlite", "postgres"])
def test_of_many_who_put_at_once_each_comes_whole(database: str, tmp_path, request: pytest.FixtureRequest) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    if database == "postgres":
        url = request.getfixturevalue("postgres").fresh()
    with open_memory(url, embedder="none", worker="none") as memory:
        store = EverlongStore(memory)

        def put(number: int) -> None:
            store.put(("a",), "k", {"one": number, "two": number})
            store.put(("a",), f"own{number}", {})

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(put, range(20)))
        value = store.get(("a",), "k").value
        assert value["one"] == value["two"]
        assert len(store.search(("a",), limit=100)) == 21
        store.put(("a",), "tea", {"text": "绿茶 \ud800\u0000"}, index=["text"])
        assert store.search(("a",), query="绿茶", limit=1)[0].key == "tea"
