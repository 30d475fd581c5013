"""Deep Agents with its files in a memory: the backend by itself, composed, and under real deep agents."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from deepagents import FilesystemPermission, create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend
from deepagents.backends.store import StoreBackend
from deepagents.middleware.summarization import SummarizationMiddleware
from langchain.agents import create_agent
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command

from everlong import Principal, Scope, open_memory
from everlong.errors import InvalidPath
from everlong.integrations.deepagents import EverlongBackend
from everlong.integrations.deerflow import DocumentCalls, MemoryConfig
from everlong.integrations.langchain import EverlongMiddleware
from everlong.integrations.langgraph import EverlongStore
from everlong.policy import Rule
from tests.integrations.scripted import Scripted, calls, system_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from everlong.memory import Memory

ANN = Scope(org="acme", agent="coder", user="ann")
ROOT = Principal(id="root", role="operator")
PNG = b"\x89PNG\r\n\x1a\n\x00\xff"


@dataclass
class Who:
    user_id: str
    org: str = "acme"


@pytest.fixture
def memory() -> Iterator[Memory]:
    with open_memory("sqlite://", embedder="none", worker="none") as opened:
        yield opened


@pytest.fixture
def backend(memory: Memory) -> EverlongBackend:
    return EverlongBackend(memory, scope=ANN)


def paths(entries: Any) -> list[str]:
    return [entry["path"] for entry in entries]


def policy_of(memory: Memory, text: str = "No secrets in code.\n", path: str = "/policies/rules.md") -> None:
    memory.at(Scope(org="acme"), by=ROOT).files.write(path, text, read_only=True)


# ---------------------------------------------------------------------------------------------------- by itself


def test_it_reads_as_deep_agents_own_backend_does(backend: EverlongBackend) -> None:
    theirs = StoreBackend(namespace=lambda _: ("files",), store=InMemoryStore())
    texts = {
        "/a.md": "one\ntwo\r\nthree",
        "/d/空.md": "",
        "/d/茶.md": "绿茶\n红茶\n",
        "/d/e/deep.py": "x = 1\n",
        "/blank": " \n",
    }
    for path, text in texts.items():
        assert backend.write(path, text) == theirs.write(path, text)
    for path in texts:
        for offset, limit in [(0, 2000), (1, 1), (0, 0), (-1, 2), (0, -5), (99, 1)]:
            ours, wanted = backend.read(path, offset, limit), theirs.read(path, offset, limit)
            assert (ours.error, ours.total_lines, ours.start_line, ours.end_line, ours.next_offset) == (
                (wanted.error, wanted.total_lines, wanted.start_line, wanted.end_line, wanted.next_offset)
            )
            assert (ours.file_data or {}).get("content") == (wanted.file_data or {}).get("content")
    for folder in ("/", "/d", "/d/", "/none"):
        assert paths(backend.ls(folder).entries) == paths(theirs.ls(folder).entries)
    for pattern, path in [("*.md", None), ("**/*.md", "/"), ("d/*", None), ("/*.md", None), ("*.py", "/d"), ("{a,茶}.md", "/"),
                          ("*", "/d/茶.md"), ("x", "/none")]:  # fmt: skip
        assert sorted(paths(backend.glob(pattern, path).matches)) == sorted(paths(theirs.glob(pattern, path).matches))
    for text, path, glob, most in [("t", None, None, None), ("茶", "/d", "*.md", None), ("茶", "/d/茶.md", None, None),
                                   ("t", None, None, 1), ("t", None, None, 9), ("o", "/none", None, None),
                                   ("=", "/", "d/**/*.py", None), ("t", None, "*.py", None)]:  # fmt: skip
        ours, wanted = backend.grep(text, path, glob, max_count=most), theirs.grep(text, path, glob, max_count=most)
        key = lambda match: (match["path"], match["line"])  # noqa: E731
        assert ours.truncated == wanted.truncated
        if not wanted.truncated:
            lines = [match | {"text": match["text"].rstrip("\r")} for match in wanted.matches]
            assert sorted(ours.matches, key=key) == sorted(lines, key=key)
        assert len(ours.matches) == len(wanted.matches)
    assert backend.glob("../x").error
    assert backend.grep("x", glob="../x").error


def test_it_writes_edits_and_deletes_and_keeps_versions(backend: EverlongBackend, memory: Memory) -> None:
    assert backend.write("/memories/AGENTS.md", "喜欢茶\r\nlikes tea\r\n").path == "/memories/AGENTS.md"
    assert backend.write("/memories/AGENTS.md", "喜欢绿茶\r\nlikes tea, tea\r\n").error is None
    assert backend.edit("/memories/AGENTS.md", "喜欢绿茶\nlikes", "爱绿茶\nloves").occurrences == 1
    assert backend.edit("/memories/AGENTS.md", "tea", "cake", replace_all=True).occurrences == 2
    assert memory.at(ANN).files.read("/memories/AGENTS.md").content.decode() == "爱绿茶\r\nloves cake, cake\r\n"
    assert len(memory.at(ANN).files.history("/memories/AGENTS.md")) == 4
    for old, new in (("", "x"), ("nowhere", "x"), ("cake", "pie")):
        assert backend.edit("/memories/AGENTS.md", old, new).error
    backend.write("/d/a", "1")
    backend.write("/d/e/b", "2")
    backend.write("/dx", "3")
    assert backend.delete("/d").path == "/d"
    assert paths(backend.ls("/").entries) == ["/dx", "/memories/"]
    assert backend.delete("/d").error.startswith("file_not_found: ")


def test_errors_have_deep_agents_codes(backend: EverlongBackend, memory: Memory) -> None:
    policy_of(memory)
    backend.write("/d/a", "1")
    wanted = {
        "/none": "file_not_found",
        "/d": "is_directory",
        "../x": "invalid_path",
        "x\\y": "invalid_path",
        "": "invalid_path",
        "/a/../../b": "invalid_path",
    }
    for response in backend.download_files([*wanted, "/d/a"]):
        assert response.error == wanted.get(response.path)
    for path, code in wanted.items():
        if path == "/none":
            continue
        assert backend.read(path).error.startswith(f"{code}: ")
        assert backend.edit(path, "a", "b").error.startswith(f"{code}: ")
        assert backend.write(path, "x").error.startswith(f"{code}: ")
        assert backend.upload_files([(path, b"x")])[0].error == code
    assert backend.read("/none").error.startswith("file_not_found: ")
    denied = [
        backend.write("/policies/rules.md", "none").error,
        backend.write("/policies/new.md", "x").error,
        backend.edit("/policies/rules.md", "No", "All").error,
        backend.delete("/policies/rules.md").error,
        backend.delete("/policies").error,
    ]
    assert [error.split(":")[0] for error in denied] == ["permission_denied"] * 5
    assert backend.upload_files([("/policies/x", b"1"), ("/ok", b"2")])[0].error == "permission_denied"
    assert backend.download_files(["/policies/rules.md", "/ok"])[1].content == b"2"
    with pytest.raises(InvalidPath):
        EverlongBackend(memory, root="memories")
    outside = EverlongBackend(memory).read("/x")
    assert outside.error.startswith("permission_denied: outside of a run")


def test_bytes_come_back_as_they_are(backend: EverlongBackend) -> None:
    backend.upload_files([("/cat.png", PNG), ("/latin.txt", b"caf\xe9"), ("/bom.md", b"\xef\xbb\xbfhi")])
    assert [r.content for r in backend.download_files(["/cat.png", "/latin.txt", "/bom.md"])] == [
        PNG,
        b"caf\xe9",
        b"\xef\xbb\xbfhi",
    ]
    assert backend.read("/cat.png").file_data["encoding"] == "base64"
    assert backend.grep("hi").matches[0]["path"] == "/bom.md"


def test_the_async_twins_do_the_same(backend: EverlongBackend) -> None:
    async def run() -> list[Any]:
        return [
            (await backend.awrite("/a", "tea")).path,
            (await backend.aedit("/a", "tea", "茶")).occurrences,
            (await backend.aread("/a")).file_data["content"],
            paths((await backend.als("/")).entries),
            paths((await backend.aglob("a")).matches),
            len((await backend.agrep("茶", max_count=1)).matches),
            (await backend.aupload_files([("/b", b"1")]))[0].error,
            (await backend.adownload_files(["/b"]))[0].content,
            (await backend.adelete("/a")).path,
        ]

    assert asyncio.run(run()) == ["/a", 1, "茶", ["/a"], ["/a"], 1, None, b"1", "/a"]


# ------------------------------------------------------------------------------------------------- in deep agents


def deep(memory: Memory, model: Scripted, /, **options: Any):
    options = {"backend": EverlongBackend(memory, agent="coder"), "checkpointer": InMemorySaver()} | options
    return create_deep_agent(model, context_schema=Who, **options)


def say(agent, text: Any, *, user: str = "ann", session: str = "monday"):
    content = text if isinstance(text, Command) else {"messages": [("user", text)]}
    return agent.invoke(content, {"configurable": {"thread_id": session}}, context=Who(user))


@pytest.mark.parametrize("note", ["Ann likes short answers.", "安喜欢简短的回答。"])
def test_a_user_file_is_in_the_next_conversations_prompt_and_nobody_elses(memory: Memory, note: str) -> None:
    model = Scripted(
        answers=[calls("write_file", file_path="/memories/AGENTS.md", content=note), "Noted.", "Hi.", "Hi."]
    )
    agent = deep(memory, model, memory=["/memories/AGENTS.md"])
    say(agent, "Remember how I like it")
    say(agent, "Hello", session="thursday")
    say(agent, "Hello", user="bob", session="friday")
    assert note not in system_text(model.seen[0])
    assert note in system_text(model.seen[2])
    assert note not in system_text(model.seen[3])
    assert memory.at(Scope(org="acme", user="ann")).files.read("/memories/AGENTS.md").content.decode() == note
    assert memory.at(ANN).files.history("/memories/AGENTS.md")[0].metadata["by"] == "agent:coder"


def test_the_agents_own_file_serves_every_user(memory: Memory) -> None:
    model = Scripted(
        answers=[calls("write_file", file_path="/agent/AGENTS.md", content="Answer in rhymes."), "ok", "ok"]
    )
    agent = deep(memory, model, memory=["/agent/AGENTS.md"])
    say(agent, "From now on, rhyme")
    say(agent, "Hello", user="bob", session="friday")
    assert "Answer in rhymes." in system_text(model.seen[-1])
    other = deep(memory, model, memory=["/agent/AGENTS.md"], backend=EverlongBackend(memory, agent="writer"))
    say(other, "Hello")
    assert "Answer in rhymes." not in system_text(model.seen[-1])


def test_policies_are_read_and_never_written(memory: Memory) -> None:
    policy_of(memory)
    write = calls("edit_file", file_path="/policies/rules.md", old_string="No secrets", new_string="Secrets")
    model = Scripted(answers=[write, "I may not."])
    said = say(deep(memory, model, memory=["/policies/rules.md"]), "Change the policy")
    assert "No secrets in code." in system_text(model.seen[0])
    assert said["messages"][2].text.startswith("permission_denied: ")
    assert memory.at(ANN).files.read("/policies/rules.md").content == b"No secrets in code.\n"


def test_skills_are_found_and_read_on_demand(memory: Memory) -> None:
    skill = "---\nname: tea\ndescription: 泡茶 how to make tea\n---\n\nBoil water.\n"
    memory.at(Scope(org="acme"), by=ROOT).files.write("/skills/tea/SKILL.md", skill)
    mine = skill.replace("tea", "cake")
    memory.at(ANN).files.write("/skills/cake/SKILL.md", mine)
    model = Scripted(answers=[calls("read_file", file_path="/skills/tea/SKILL.md"), "Done."])
    said = say(deep(memory, model, skills=["/skills/"]), "Make tea")
    assert "泡茶 how to make tea" in system_text(model.seen[0])
    assert "泡茶 how to make cake" in system_text(model.seen[0])
    assert "Boil water." not in system_text(model.seen[0])
    assert "Boil water." in said["messages"][2].text


def test_it_composes_with_other_backends(memory: Memory) -> None:
    composite = CompositeBackend(
        default=StateBackend(), routes={"/memories/": EverlongBackend(memory, root="/memories", agent="coder")}
    )
    write = AIMessage(
        "",
        tool_calls=[
            {"name": "write_file", "args": {"file_path": "/memories/a.md", "content": "kept 留"}, "id": "1"},
            {"name": "write_file", "args": {"file_path": "/scratch.md", "content": "gone"}, "id": "2"},
        ],
    )
    model = Scripted(answers=[write, calls("grep", pattern="留", path="/memories"), "ok", calls("ls", path="/"), "ok"])
    agent = deep(memory, model, backend=composite, memory=["/memories/a.md"])
    found = say(agent, "Write")
    assert "/memories/a.md" in found["messages"][-2].text
    listed = say(agent, "Look", session="thursday")["messages"][-2].text
    assert "/memories/" in listed
    assert "scratch" not in listed
    assert "kept 留" in system_text(model.seen[-1])
    assert [info.path for info in memory.at(ANN).files.list()] == ["/memories/a.md"]


def test_deep_agents_permissions_hold_on_top(memory: Memory) -> None:
    closed = [FilesystemPermission(operations=["write"], paths=["/memories/**"], mode="deny")]
    model = Scripted(answers=[calls("write_file", file_path="/memories/a.md", content="x"), "ok"])
    said = say(deep(memory, model, permissions=closed), "Write")
    assert "denied" in said["messages"][2].text
    assert memory.at(ANN).files.list() == ()


SHARED = Rule(
    effect="ask", reason="shared files need a person", roles=("agent",), actions=("write",), paths=("/policies/*",)
)
OWN = Rule(effect="ask", reason="ask first", roles=("agent",), actions=("write",), paths=("/memories/*",))


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("action", ["write_file", "edit_file", "delete"])
def test_what_a_person_must_decide_interrupts_the_run(action: str, approved: bool, asynchronous: bool) -> None:
    path = "/policies/new.md" if action == "write_file" else "/memories/a.md"
    call = {
        "write_file": calls("write_file", file_path=path, content="新的 rule"),
        "edit_file": calls("edit_file", file_path=path, old_string="old", new_string="新的 rule"),
        "delete": calls("delete", file_path=path),
    }[action]
    with open_memory("sqlite://", embedder="none", worker="none", rules=[SHARED, OWN]) as memory:
        memory.at(ANN).files.write("/memories/a.md", "old")
        agent = deep(memory, Scripted(answers=[call, "Done."]))
        config = {"configurable": {"thread_id": "t"}}

        def go(given: Any):
            if asynchronous:
                return asyncio.run(agent.ainvoke(given, config, context=Who("ann")))
            return agent.invoke(given, config, context=Who("ann"))

        waiting = go({"messages": [("user", "Change it")]})["__interrupt__"][0].value
        assert waiting["arguments"]["path"] == path
        assert memory.at(ANN).files.read("/memories/a.md").content == b"old"
        done = go(Command(resume={"approved": approved, "by": "boss"}))
        assert done["messages"][-1].text == "Done."
        texts = {
            info.path: memory.at(ANN).files.read(info.path).content.decode() for info in memory.at(ANN).files.list()
        }
        after = {
            "write_file": {"/memories/a.md": "old", path: "新的 rule"},
            "edit_file": {path: "新的 rule"},
            "delete": {},
        }
        assert texts == (after[action] if approved else {"/memories/a.md": "old"})
        assert not memory.at(Scope(org="acme"), by=ROOT).inbox.list().items
        if not approved:
            assert "permission_denied" in done["messages"][-2].text


def test_subagents_get_no_memory_unless_they_are_given_it(memory: Memory) -> None:
    memory.at(Scope(org="acme", user="ann")).remember("Ann is allergic to peanuts")
    task = calls("task", description="What about peanuts?", subagent_type="helper")
    model, helper = Scripted(answers=[task, "Done."]), Scripted(answers=["Peanut-free bar."])
    inner = {
        "name": "helper",
        "description": "Looks for things",
        "system_prompt": "You look.",
        "model": helper,
        "tools": [],
    }
    agent = deep(memory, model, subagents=[inner], middleware=[EverlongMiddleware(memory)])
    say(agent, "What about peanuts?")
    assert "allergic to peanuts" in system_text(model.seen[0])
    assert "allergic to peanuts" not in system_text(helper.seen[0])
    said = memory.at(Scope(org="acme", user="ann")).messages()
    assert [m.content for m in said] == ["What about peanuts?", "Done."]
    helper.answers.append("Bar.")
    model.answers[:] = [task, "Done."]
    given = inner | {"middleware": [EverlongMiddleware(memory, capture=False)]}
    say(deep(memory, model, subagents=[given]), "What about it?", session="thursday")
    assert "allergic to peanuts" in system_text(helper.seen[1])


@pytest.mark.parametrize("asynchronous", [False, True])
def test_deep_agents_own_summaries_lose_nothing(memory: Memory, asynchronous: bool) -> None:
    """Its summarisation keeps the state whole and shortens what the model sees: memory has every turn by then."""
    backend = EverlongBackend(memory, agent="coder")
    shorten = SummarizationMiddleware(
        Scripted(answers=["SUMMARY"] * 20), backend=backend, trigger=("messages", 5), keep=("messages", 2)
    )
    model = Scripted()
    agent = create_agent(
        model, middleware=[shorten, EverlongMiddleware(memory)], context_schema=Who, checkpointer=InMemorySaver()
    )
    for turn in range(6):
        given, config = (
            {"messages": [("user", f"柜子 locker number {turn}")]},
            {"configurable": {"thread_id": "monday"}},
        )
        if asynchronous:
            asyncio.run(agent.ainvoke(given, config, context=Who("ann")))
        else:
            agent.invoke(given, config, context=Who("ann"))
    assert any("SUMMARY" in m.text for m in model.seen[-1])
    assert not any("locker number 0" in m.text for m in model.seen[-1])
    kept = memory.at(Scope(org="acme", user="ann", session="monday")).messages(limit=50)
    assert [m.content for m in kept if m.role == "user"] == [f"柜子 locker number {n}" for n in range(6)]
    assert not any("SUMMARY" in m.content for m in kept)


# ---------------------------------------------------------------------------------------------------- across hosts


def test_what_one_host_learned_every_other_host_recalls(memory: Memory) -> None:
    ann = Scope(org="acme", user="ann")
    told = {
        "langchain": "I play the violin 小提琴",
        "store": "Her dog is called Doudou 豆豆",
        "file": "She lives in Leipzig 莱比锡",
        "deerflow": "She collects stamps 邮票",
    }
    first = create_agent(Scripted(), middleware=[EverlongMiddleware(memory)], context_schema=Who)
    first.invoke({"messages": [("user", told["langchain"])]}, {"configurable": {"thread_id": "m"}}, context=Who("ann"))
    store = EverlongStore(memory, namespace_scope=lambda ns: Scope(org="acme", user=ns[1]), recalled="memory")
    store.put(("users", "ann"), "dog", {"text": told["store"]})
    EverlongBackend(memory, scope=ann).write("/memories/AGENTS.md", told["file"])
    flow = DocumentCalls(memory, MemoryConfig(org="acme"))
    flow.create_memory_fact(told["deerflow"], user_id="ann")
    memory.drain()
    document = [fact["content"] for fact in flow.get_memory(user_id="ann")["facts"]]
    assert any("violin" in content for content in document)
    assert flow.get_memory(user_id="bob")["facts"] == []

    asked = {"langchain": "violin 小提琴", "store": "dog 豆豆", "file": "Leipzig 莱比锡", "deerflow": "stamps 邮票"}
    for learned, question in asked.items():
        known = store.search(("users", "ann", "memory"), query=question)
        assert any(told[learned] in item.value["text"] for item in known), learned
        assert store.search(("users", "bob", "memory"), query=question) == []
        model = Scripted(answers=[calls("recall_memory", query=question), "ok"])
        agent = deep(memory, model, middleware=[EverlongMiddleware(memory, capture=False, tools=("recall_memory",))])
        found = say(agent, question, session=f"about {learned}")["messages"][-2].text
        assert told[learned] in found, learned
        model = Scripted(answers=[calls("recall_memory", query=question), "ok"])
        agent = deep(memory, model, middleware=[EverlongMiddleware(memory, capture=False, tools=("recall_memory",))])
        other = say(agent, question, user="bob", session=f"bob about {learned}")["messages"][-2].text
        assert told[learned] not in other, learned


def test_deep_agents_own_store_backend_runs_over_our_store(memory: Memory) -> None:
    """What the documentation shows with ``StoreBackend`` holds with the store of a memory, a namespace for each user."""
    store = EverlongStore(memory, namespace_scope=lambda ns: Scope(org="acme", user=ns[1]))
    backend = StoreBackend(namespace=lambda rt: ("users", rt.context.user_id))
    note = "喜欢茶 likes tea"
    model = Scripted(answers=[calls("write_file", file_path="/memories/AGENTS.md", content=note), "ok", "ok", "ok"])
    agent = deep(memory, model, backend=backend, store=store, memory=["/memories/AGENTS.md"])
    say(agent, "Remember")
    say(agent, "Hello", session="thursday")
    say(agent, "Hello", user="bob", session="friday")
    assert note in system_text(model.seen[2])
    assert note not in system_text(model.seen[3])
    assert store.search(("users", "ann"), query="茶 tea")[0].value["content"] == note


def test_edits_of_several_agents_at_once_all_hold(tmp_path) -> None:
    with open_memory(f"sqlite:///{tmp_path / 'm.db'}", embedder="none", worker="none") as memory:
        backends = [EverlongBackend(memory, scope=Scope(agent=f"a{n}", user="ann")) for n in range(4)]
        backends[0].write("/memories/a.md", "\n".join(f"第{n}行 old" for n in range(20)))

        def edit(number: int) -> Any:
            return backends[number % 4].edit("/memories/a.md", f"第{number}行 old", f"第{number}行 new").error

        with ThreadPoolExecutor(4) as pool:
            assert list(pool.map(edit, range(20))) == [None] * 20
        file = memory.at(Scope(user="ann")).files.read("/memories/a.md")
        assert file.content.decode().split("\n") == [f"第{n}行 new" for n in range(20)]
        assert file.version == 21
        with ThreadPoolExecutor(4) as pool:
            done = list(pool.map(lambda n: backends[n % 4].write("/memories/a.md", f"all {n}").error, range(12)))
        assert done == [None] * 12
        assert backends[0].read("/memories/a.md").file_data["content"].startswith("all ")
