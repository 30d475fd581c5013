"""Clients that write numbers, flags and lists as text, and servers whose log lines break the protocol.

vectorize-io/hindsight#849 (a list as a JSON string is refused and the agent repeats the call), basicmachines-co/
basic-memory#657; hurttlocker/o8#1541, FalkorDB/FalkorDB-MCPServer#27 (log lines on standard output).
"""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import product
from pathlib import Path

import anyio
import pytest

pytest.importorskip("mcp", reason="needs everlong[mcp]")

from mcp.client import Client

from everlong import open_memory
from everlong.records import Scope
from everlong.server.mcp import MemoryServer, as_agent
from tests.server.mcp_client import environment, ok, refused, text


@pytest.fixture
def memory():
    with open_memory("sqlite://", embedder="none", worker="none") as opened:
        yield opened


def talk(memory, conversation) -> None:
    async def run() -> None:
        server = MemoryServer(lambda _: as_agent(memory.at(Scope(user="ann", session="s2"))), zone="Asia/Shanghai")
        async with Client(server) as client:
            await conversation(client)

    anyio.run(run)


@pytest.fixture
def known(memory):
    ann = memory.at(Scope(user="ann", session="s1"))
    ann.add([{"role": "user", "content": "绿茶和 green tea 我都喜欢", "metadata": {"k": 1}}])
    ann.remember("Ann drinks green tea 绿茶", category="preference")
    ann.remember("Ann sells green tea 绿茶", category="knowledge")
    ann.remember("Ann plans a green tea 绿茶 trip", category="goal")
    return memory


LISTS = [
    ["preference", "goal"],
    '["preference", "goal"]',
    "preference, goal",
    "preference，goal",
    "preference、goal",
    "['preference', 'goal']",
    "preference\ngoal",
]


def test_lists_and_numbers_as_text(known) -> None:
    async def conversation(client: Client) -> None:
        for categories, limit, query in product(LISTS, [5, "5", "5.0", 5.0, " 5 "], ["green tea", "绿茶"]):
            found = await ok(client, "recall", query=query, categories=categories, limit=limit)
            facts = [hit for hit in found["hits"] if hit["kind"] == "fact"]
            assert {hit["category"] for hit in facts} == {"preference", "goal"}
        for limit in (1, "1", "1.0"):
            assert len((await ok(client, "recall", query="green tea", kinds="fact", limit=limit))["hits"]) == 1

    talk(known, conversation)


def test_one_word_is_a_list_of_one(known) -> None:
    async def conversation(client: Client) -> None:
        for kinds in ("message", '"message"', '["message"]', ["message"]):
            found = await ok(client, "recall", query="绿茶", kinds=kinds, limit="1")
            assert [hit["kind"] for hit in found["hits"]] == ["message"]

    talk(known, conversation)


@pytest.mark.parametrize(("written", "meant"), [("false", False), ("False", False), ("true", True), ("0", False)])
def test_flags_as_text(memory, written: str, meant: bool) -> None:
    async def conversation(client: Client) -> None:
        stored = await ok(client, "remember", content="喝茶 tea", pinned=written, confidence="0.9")
        assert (stored["fact"]["pinned"], stored["fact"]["confidence"]) == (meant, 0.9)

    talk(memory, conversation)


def test_objects_as_text(known) -> None:
    async def conversation(client: Client) -> None:
        for metadata, count in (('{"k": 1}', 0), ("{}", 3), ({}, 3), (None, 3), ("", 3)):
            found = await ok(client, "recall", query="green tea", kinds="fact", metadata=metadata)
            assert len(found["hits"]) == count

    talk(known, conversation)


@pytest.mark.parametrize(
    "content", ['["a"]', '{"喜欢": "茶"}', "5", "true", "null", '"quoted 引号"', "[1, 2", "  茶\n"]
)
def test_text_stays_text(memory, content: str) -> None:
    async def conversation(client: Client) -> None:
        written = await ok(client, "write_file", path="/memories/a.md", content=content)
        assert (await ok(client, "read_file", path="/memories/a.md"))["text"] == content
        await ok(client, "edit_file", path="/memories/a.md", old=content, new='{"b": [茶]}')
        assert (await ok(client, "read_file", path="/memories/a.md"))["text"] == '{"b": [茶]}'
        assert written["version"] == 1
        stored = await ok(client, "remember", content=f"安娜写道 {content.strip()}")
        assert stored["fact"]["content"] == f"安娜写道 {content.strip()}"

    talk(memory, conversation)


def test_what_is_not_stored_is_not_called_a_success(memory) -> None:
    async def conversation(client: Client) -> None:
        result = await client.call_tool("remember", {"content": '{"facts": ["茶"]}'})
        assert result.structured_content["outcome"] == "reject"
        assert text(result).startswith("Nothing was stored")

    talk(memory, conversation)


def test_what_is_left_out_may_be_null_or_empty(known) -> None:
    async def conversation(client: Client) -> None:
        empty = {"kinds": None, "limit": "", "categories": "", "since": None, "until": "", "metadata": None}
        assert (await ok(client, "recall", query="绿茶", **empty))["hits"]
        assert (await ok(client, "recall", query=2026, limit=None))["hits"] == []

    talk(known, conversation)


NONSENSE = [
    ("recall", {"query": "茶", "limit": "five"}, "limit", "integer"),
    ("recall", {"query": "茶", "limit": True}, "limit", "no numbers"),
    ("recall", {"query": "茶", "limit": "[5]"}, "limit", "integer"),
    ("recall", {"query": "茶", "limit": 0}, "limit", "greater than or equal to 1"),
    ("recall", {"query": "茶", "limit": "1e9"}, "limit", "integer"),
    ("recall", {"query": "茶", "kinds": "facts"}, "kinds", "'fact'"),
    ("recall", {"query": "茶", "since": "yesterday 昨天"}, "since", "2026-05-01"),
    ("recall", {"query": ["茶"]}, "query", "string"),
    ("recall", {"query": "   "}, "EmptyText", ""),
    ("recall", {}, "query", "required"),
    ("recall", {"query": "茶", "kinds": '["\\ud800"]'}, "kinds", "fact, message, file"),
    ("remember", {"content": {"a": 1}}, "content", "string"),
    ("remember", {"content": "茶", "pinned": "maybe"}, "pinned", "boolean"),
    ("remember", {"content": "茶", "confidence": "7"}, "confidence", "less than or equal to 1"),
    ("remember", {"content": "茶", "category": "wishes"}, "UnknownCategory", "preference"),
    ("remember", {"content": "茶", "user_id": "bob"}, "no argument 'user_id'", "content"),
    ("remember", {"content": "茶", "user": "bob"}, "no argument 'user'", "content"),
    ("profile", {"user": "bob"}, "no argument 'user'", "no arguments"),
    ("forget", {"fact_id": "fact_of_bob"}, "NotFound", ""),
    ("history", {"fact_id": 12345}, "NotFound", ""),
    ("read_file", {"path": "../../etc/passwd"}, "InvalidPath", "/memories/AGENTS.md"),
    ("read_file", {"path": "/memories/none.md"}, "NotFound", ""),
    ("write_file", {"path": "/policies/p.md", "content": "x"}, "AccessDenied", ""),
    ("write_file", {"path": "/memories/x.md", "content": "x", "version": "3"}, "Conflict", ""),
    ("edit_file", {"path": "/memories/none.md", "old": "a", "new": "b"}, "NotFound", ""),
    ("list_reviews", {"cursor": "nonsense"}, "InvalidInput", ""),
    ("nothing_of_the_kind", {}, "there is no tool", "recall"),
]


@pytest.mark.parametrize(
    ("tool", "arguments", "names", "helps"), NONSENSE, ids=[f"{n}-{c[0]}" for n, c in enumerate(NONSENSE)]
)
def test_nonsense_is_refused_with_what_to_do(known, tool, arguments, names, helps) -> None:
    before = known.at(Scope(user="ann")).facts().total

    async def conversation(client: Client) -> None:
        said = await refused(client, tool, **arguments)
        assert names in said and helps in said, said
        assert "Error executing" not in said
        assert (await ok(client, "recall", query="绿茶"))["hits"]  # the session goes on

    talk(known, conversation)
    assert known.at(Scope(user="ann")).facts().total == before


NOISY = """
import atexit, logging, os, subprocess, sys, warnings
import everlong.config as config
from everlong.memory.reading import Reading
from everlong.cli import main

def noise(where):
    print(where, "下载模型 downloading: 100%")
    sys.stdout.write("half a line")
    os.write(1, b"from C\\n")
    subprocess.run(["echo", "from a child"])
    warnings.warn("careful 小心")
    logging.getLogger("plugin").debug("debugging")

logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
open_memory, recall = config.open_memory, Reading.recall

def loud_open(*args, **settings):
    noise("opening")
    return open_memory(*args, **settings)

def loud_recall(self, *args, **filters):
    noise("recalling")
    return recall(self, *args, **filters)

config.open_memory, Reading.recall = loud_open, loud_recall
atexit.register(noise, "leaving")
main()
"""


def test_standard_output_is_protocol_only(tmp_path: Path) -> None:
    """Read line by line: libraries, C code, children, warnings and log lines all land in the log."""
    asked = [
        {"method": "initialize", "id": 1, "params": {"protocolVersion": "2025-06-18", "capabilities": {},
         "clientInfo": {"name": "test", "version": "1"}}},
        {"method": "notifications/initialized"},
        {"method": "tools/call", "id": 2, "params": {"name": "remember", "arguments": {"content": "喝茶 🍵"}}},
    ]  # fmt: skip
    asked += [
        {"method": "tools/call", "id": n, "params": {"name": "recall", "arguments": {"query": "喝茶"}}} for n in (3, 4)
    ]
    command = [sys.executable, "-c", NOISY, "mcp"]
    process = subprocess.Popen(
        command,
        env=environment(tmp_path, PYTHONWARNINGS="always", PYTHONIOENCODING="utf-8"),
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=(tmp_path / "log").open("wb"),
    )
    answers = []
    for each in asked:
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **each}).encode() + b"\n")
        process.stdin.flush()
        if "id" in each:
            answers.append(json.loads(process.stdout.readline()))
    for each in (
        {"method": "tools/call", "id": 5, "params": {"name": "recall", "arguments": '{"query": "喝茶", "limit": "1"}'}},
        {
            "method": "tools/call",
            "id": 6,
            "params": {"name": "remember", "arguments": {"content": "喝咖啡 \ud83c coffee"}},
        },
        {"method": "prompts/get", "id": 7, "params": {"name": "with_memory", "arguments": {"user": "bob"}}},
        {"method": "prompts/get", "id": 8, "params": {"name": "nothing"}},
    ):
        process.stdin.write(json.dumps({"jsonrpc": "2.0", **each}).encode() + b"\n")
        process.stdin.flush()
        answers.append(json.loads(process.stdout.readline()))
    process.stdin.write(b"this is no JSON\n")  # answered or dropped, never the end
    process.stdin.close()
    rest = process.stdout.read().decode("utf-8").splitlines()
    assert process.wait(20) == 0
    assert [each["id"] for each in answers] == [1, 2, 3, 4, 5, 6, 7, 8]
    assert all(json.loads(line)["jsonrpc"] == "2.0" for line in rest)
    for number in (3, 4):
        assert answers[number]["result"]["structuredContent"]["hits"][0]["text"] == "喝茶 🍵"
    assert answers[5]["result"]["structuredContent"]["fact"]["content"] == "喝咖啡 ? coffee"
    assert "no such argument 'user'" in answers[6]["error"]["message"]
    assert "no such prompt" in answers[7]["error"]["message"]
    log = (tmp_path / "log").read_text("utf-8")
    for heard in ("opening", "recalling", "leaving", "half a line", "from C", "from a child", "careful", "debugging"):
        assert heard in log
