"""The MCP server over standard input and output, in a process of its own, with the SDK's client."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import anyio
import pytest

pytest.importorskip("mcp", reason="needs everlong[mcp]")

from mcp.shared.exceptions import MCPError

from everlong import open_memory
from everlong.records import Principal, Scope
from tests.server.mcp_client import COMMAND, environment, ok, over_stdio, refused, text

ASK = json.dumps([{"effect": "ask", "reason": "a person looks first", "actions": ["remember"], "roles": ["agent"]}])


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_conversation_of_every_tool(tmp_path: Path, mode: str) -> None:
    async def run() -> None:
        async with over_stdio(tmp_path, mode=mode) as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            assert all(tool.description and tool.output_schema and tool.annotations for tool in tools.values())
            assert tools["recall"].annotations.read_only_hint
            assert tools["forget"].annotations.destructive_hint
            assert tools["remember"].annotations.idempotent_hint
            assert not tools["remember"].annotations.destructive_hint
            called = set()

            async def call(tool: str, **arguments):
                called.add(tool)
                return await ok(client, tool, **arguments)

            stored = await call("remember", content="我对花生过敏 🥜", category="preference")
            assert (stored["outcome"], stored["fact"]["content"]) == ("add", "我对花生过敏 🥜")
            again = await call("remember", content="我对花生过敏 🥜", category="preference")
            assert again["fact"]["id"] == stored["fact"]["id"]
            hits = (await call("recall", query="花生"))["hits"]
            assert [hit["text"] for hit in hits] == ["我对花生过敏 🥜"]
            assert "花生" in (await call("context", query="花生"))["text"]
            assert (await call("profile"))["version"] == 0
            assert await call("search_past_conversations", query="花生") == {"hits": []}
            versions = (await call("history", fact_id=stored["fact"]["id"]))["versions"]
            assert versions[0]["content"] == "我对花生过敏 🥜"
            written = await call("write_file", path="/memories/笔记.md", content="第一行\nsecond 🍵\n")
            assert written["version"] == 1
            await call("edit_file", path="/memories/笔记.md", old="second", new="第二行")
            assert [f["path"] for f in (await call("list_files", folder="/memories/"))["files"]] == [
                "/memories/笔记.md"
            ]
            assert (await call("read_file", path="/memories/笔记.md"))["text"] == "第一行\n第二行 🍵\n"
            assert (await call("list_reviews"))["waiting"] == []
            gone = await call("forget", fact_id=stored["fact"]["id"], reason="搬家了")
            assert gone["fact"]["status"] == "retired"
            assert (await call("recall", query="花生"))["hits"] == []
            assert tools.keys() - called == {"approve_review", "reject_review"}  # a person's: see below

    anyio.run(run)


def test_resources_and_prompts(tmp_path: Path) -> None:
    with open_memory(environment(tmp_path)["EVERLONG_URL"], embedder="none", worker="none") as memory:
        root = memory.at(Scope(user="ann"), by=Principal(id="root", role="operator"))
        root.update_profile(sections={"workContext": "在上海做烘焙 🥐"}, attributes={"birthday": "5-1"})
        root.files.write("/policies/退款 规定.md", "三十天内可退款。")
        root.skills.write("bake-bread", description="How to bake 面包", body="Knead. 揉面。")
        root.files.write("/memories/data.bin", b"\xff\x00")

    async def run() -> None:
        async with over_stdio(tmp_path) as client:
            listed = (await client.list_resources()).resources
            assert [each.name for each in listed] == ["profile", "/policies/退款 规定.md", "bake-bread"]
            pages = {each.name: (await client.read_resource(each.uri)).contents[0].text for each in listed}
            assert json.loads(pages["profile"])["sections"] == {"workContext": "在上海做烘焙 🥐"}
            assert pages["/policies/退款 规定.md"] == "三十天内可退款。"
            assert "揉面" in pages["bake-bread"]
            templates = (await client.list_resource_templates()).resource_templates
            assert {each.uri_template for each in templates} == {"everlong://files/{+path}", "everlong://skills/{name}"}
            binary = (await client.read_resource("everlong://files/memories/data.bin")).contents[0]
            assert (binary.mime_type, binary.blob) == ("application/octet-stream", "/wA=")
            for missing in (
                "everlong://skills/none",
                "everlong://files/none.md",
                "everlong://files/../x",
                "file:///etc",
            ):
                with pytest.raises(MCPError):
                    await client.read_resource(missing)

            prompts = (await client.list_prompts()).prompts
            assert {each.name for each in prompts} == {"what_do_you_know", "with_memory"}
            asked = (await client.get_prompt("what_do_you_know", {"language": "zh"})).messages[0].content.text
            assert "你记得我的哪些事" in asked and "在上海做烘焙" in asked
            told = (await client.get_prompt("with_memory", {"message": "面包"})).messages[0].content.text
            assert "recall" in told and "在上海做烘焙" in told
            with pytest.raises(MCPError, match="en or zh"):
                await client.get_prompt("with_memory", {"language": "fr"})
            assert "there is no tool" in await refused(client, "recal", query="x")  # and all goes on

    anyio.run(run)


def test_who_decides(tmp_path: Path) -> None:
    """An agent may ask and look; only a session of the person's own may decide."""

    async def agent() -> str:
        async with over_stdio(tmp_path, EVERLONG_RULES=ASK) as client:
            said = await refused(client, "remember", content="安娜搬到了大阪 🏯")
            assert "Not done yet" in said and "a person looks first" in said
            (waiting,) = (await ok(client, "list_reviews"))["waiting"]
            assert waiting["id"] in said and "大阪" in waiting["text"]
            for tool in ("approve_review", "reject_review"):
                assert "a person's to decide" in await refused(client, tool, review_id=waiting["id"])
            assert (await ok(client, "recall", query="大阪"))["hits"] == []
            return waiting["id"]

    async def person(review_id: str) -> None:
        async with over_stdio(tmp_path, EVERLONG_RULES=ASK, EVERLONG_MCP_PERSON="true") as client:
            decided = await ok(client, "approve_review", review_id=review_id)
            assert (decided["decision"], decided["id"]) == ("approved", review_id)
            assert "NotFound" in await refused(client, "reject_review", review_id=review_id)
            assert [hit["text"] for hit in (await ok(client, "recall", query="大阪"))["hits"]] == ["安娜搬到了大阪 🏯"]

    anyio.run(person, anyio.run(agent))


def test_big_outputs_come_in_parts(tmp_path: Path) -> None:
    whole = "".join(f"第{number}行 🍜 line\r\n" for number in range(40_000))
    assert 900_000 < len(whole.encode()) < 1_048_576

    async def run() -> None:
        async with over_stdio(tmp_path) as client:
            await ok(client, "write_file", path="/memories/big.md", content=whole)
            first = await client.call_tool("read_file", {"path": "/memories/big.md"})
            assert "go on with start=20000" in text(first)
            parts, start = [], 0
            while start is not None:
                part = await ok(client, "read_file", path="/memories/big.md", start=start, length=100_000)
                parts.append(part["text"])
                start = part["next"]
            assert "".join(parts) == whole
            page = (await client.read_resource("everlong://files/memories/big.md")).contents[0]
            assert page.text == whole
            assert "has" in await refused(client, "read_file", path="/memories/big.md", start=9_999_999)

    with open_memory(environment(tmp_path)["EVERLONG_URL"], embedder="none", worker="none") as memory:
        memory.at(Scope(user="ann", session="s")).add([("user", "日志 log " + "x" * 500_000)])

    async def found() -> None:
        async with over_stdio(tmp_path) as client:
            (hit,) = (await ok(client, "search_past_conversations", query="日志 log"))["hits"]
            assert len(hit["text"]) < 5000 and "500007 characters in all" in hit["text"]

    anyio.run(run)
    anyio.run(found)


def test_many_calls_at_once_and_some_given_up(tmp_path: Path) -> None:
    async def run() -> None:
        async with over_stdio(tmp_path, mode="legacy") as client:
            async with anyio.create_task_group() as group:
                for number in range(20):
                    group.start_soon(lambda n: ok(client, "remember", content=f"Number {n} is 号码{n}"), number)
            for _ in range(10):
                with anyio.move_on_after(0.001) as given_up:
                    await client.call_tool("context", {"query": "号码"})
                assert given_up.cancelled_caught
            found = await ok(client, "recall", query="Number 7 is 号码7", limit=50)
            assert "Number 7 is 号码7" in [hit["text"] for hit in found["hits"]]
            assert len((await ok(client, "recall", query="Number", limit=50))["hits"]) == 20

    anyio.run(run)


SLOW = """
import time
from everlong.cli import main
from everlong.memory.reading import Reading

recall = Reading.recall

def slow(self, question, **filters):
    time.sleep(1 if question == "slow 慢" else 0)
    return recall(self, question, **filters)

Reading.recall = slow
main()
"""


def test_a_slow_call_holds_up_nobody_and_can_be_given_up(tmp_path: Path) -> None:
    async def run() -> None:
        async with over_stdio(tmp_path, mode="legacy", program=SLOW) as client:
            done = []

            async def ask(query: str) -> None:
                await ok(client, "recall", query=query)
                done.append(query)

            async with anyio.create_task_group() as group:
                group.start_soon(ask, "slow 慢")
                await anyio.sleep(0.2)
                for number in range(5):
                    group.start_soon(ask, f"quick 快 {number}")
            assert len(done) == 6 and done[-1] == "slow 慢"

            with anyio.move_on_after(0.2) as given_up:
                await ask("slow 慢")
            assert given_up.cancelled_caught
            with anyio.fail_after(0.9):
                await ask("quick 快")

    anyio.run(run)


@pytest.mark.parametrize(("setting", "code"), [({"EVERLONG_URL": "nonsense://x"}, 2), ({}, 0)], ids=["wrong", "right"])
def test_a_start_that_fails_says_why_in_the_log(tmp_path: Path, setting: dict[str, str], code: int) -> None:
    """And nothing on standard output, where a client expects the protocol; nor when a client goes away at once."""
    given = environment(tmp_path, **setting)
    done = subprocess.run(COMMAND, env=given, cwd=tmp_path, input=b"", capture_output=True, timeout=30, check=False)
    assert (done.returncode, done.stdout) == (code, b"")
    assert bool(done.stderr) == bool(code)
    assert b"Traceback" not in done.stderr
