"""M3 in hosts: names as paths (aliyun/iac-code#37, alioshr/memory-bank-mcp#36, getzep/graphiti#1465 and #1319).

What a model or a caller names by a host's calls is refused where it is no path, and only ever a name in the store; ids
that are legal elsewhere are legal here, as user, agent, thread, label and key, and each is its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from urllib.parse import unquote

import pytest

from everlong import Memory, Scope, open_memory
from everlong.integrations.deepagents import EverlongBackend
from everlong.integrations.identity import scope_of
from everlong.integrations.langgraph import EverlongStore

REFUSED = [
    "../escape",
    "..\\..\\x",
    "/../x",
    "a/../../b",
    "/a/../../b",
    "C:\\x",
    "/C:\\x",
    "/coder/../writer",
    ".",
    "..",
    "",
]
REFUSED += ["/x\x00.md", "/" + "x" * 300, "/a\u202eb", "//etc/passwd"]
CONTAINED = ["/etc/passwd", "/%2e%2e%2fx", "/CON", "/coder.", "/~/x", "/用户甲/茶.md"]
IDS = [
    "alice@example.com",
    "org:team:42",
    "用户甲",
    "a.b",
    "a%2eb",
    "agent_1",
    "__default__",
    "..",
    "a/b",
    "CON",
    "Ünï",
    "x" * 300,
]


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", embedder="none", worker="none") as opened:
        yield opened


@pytest.mark.parametrize("path", REFUSED)
def test_what_is_no_path_is_refused_by_every_call_of_the_file_backend(memory: Memory, path: str) -> None:
    backend = EverlongBackend(memory, scope=Scope(user="ann"))
    backend.write("/escape", "mine")
    done = [
        backend.read(path).error,
        backend.write(path, "x").error,
        backend.edit(path, "a", "b").error,
        backend.delete(path).error,
        backend.upload_files([(path, b"x")])[0].error,
        backend.download_files([path])[0].error,
    ]
    assert {error.split(":")[0] for error in done if error} == {"invalid_path"}
    assert all(done)
    if path not in {"", "."}:  # a search begins at the root where it is told nothing
        for listed in (backend.ls(path).entries, backend.glob("*", path).matches, backend.grep("mine", path).matches):
            assert not listed
    assert [entry["path"] for entry in backend.ls("/").entries] == ["/escape"]


@pytest.mark.parametrize("path", CONTAINED)
@pytest.mark.parametrize("root", ["/", "/inner/用户"])
def test_odd_names_are_names_below_the_root(memory: Memory, path: str, root: str) -> None:
    backend = EverlongBackend(memory, root=root, scope=Scope(user="ann"))
    assert backend.write(path, "茶").path == path
    assert backend.read(path).file_data["content"] == "茶"
    assert [match["path"] for match in backend.grep("茶").matches] == [path]
    assert [info.path for info in memory.at(Scope(user="ann")).files.list()] == [root.rstrip("/") + path]
    other = EverlongBackend(memory, root="/inn", scope=Scope(user="ann"))
    assert (other.ls("/").entries, other.glob("*").matches) == ([], [])


def test_every_id_is_one_user_agent_and_thread_of_its_own(memory: Memory) -> None:
    for name in IDS:
        run = SimpleNamespace(context={"user_id": name}, config={"configurable": {"thread_id": name}})
        scope = scope_of(run, agent=name)
        assert scope.parts == ("", name, name, name)
        EverlongBackend(memory, scope=scope).write("/memories/a.md", f"of {name}")
        EverlongBackend(memory, scope=scope).write("/agent/a.md", f"for {name}")
    for name in IDS:
        backend = EverlongBackend(memory, scope=Scope(user=name, agent=name))
        assert backend.read("/memories/a.md").file_data["content"] == f"of {name}"
        assert backend.read("/agent/a.md").file_data["content"] == f"for {name}"


def test_every_id_is_a_label_once_its_periods_are_written_otherwise(memory: Memory) -> None:
    """LangGraph refuses a label with a period; what docs/hosts.md says to write is one-to-one and read back."""
    store = EverlongStore(memory, namespace_scope=lambda ns: Scope(user=unquote(ns[1])))
    labels = {name: name.replace("%", "%25").replace(".", "%2e") for name in IDS}
    for name, label in labels.items():
        store.put(("users", label), name, {"of": name})
    for name, label in labels.items():
        assert [item.value for item in store.search(("users", label))] == [{"of": name}]
        assert len(memory.at(Scope(user=name)).files.list("/store")) == 1
