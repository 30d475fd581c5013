"""The MCP server over standard input and output, in a process of its own, with the SDK's client."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

pytest.importorskip("mcp", reason="needs everlong[mcp]")

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

COMMAND = [sys.executable, "-m", "everlong", "mcp"]


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    return {
        "EVERLONG_URL": f"sqlite:///{tmp_path / 'memory.db'}",
        "EVERLONG_EMBEDDER": "none",
        "EVERLONG_USER": "ann",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONIOENCODING": "ascii",  # the protocol is UTF-8 whatever the console is
        **more,
    }


@asynccontextmanager
async def served(tmp_path: Path, *arguments: str, mode: str = "auto", **more: str):
    parameters = StdioServerParameters(
        command=COMMAND[0], args=[*COMMAND[1:], *arguments], env=environment(tmp_path, **more), cwd=tmp_path
    )
    with (tmp_path / "log.txt").open("a") as log:
        async with Client(stdio_client(parameters, errlog=log), mode=mode) as client:
            yield client


def text(result) -> str:
    return "".join(block.text for block in result.content)


async def ok(client: Client, tool: str, **arguments):
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text(result)
    assert text(result)
    return result.structured_content


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_a_conversation_of_every_tool(tmp_path: Path, mode: str) -> None:
    async def run() -> None:
        async with served(tmp_path, mode=mode) as client:
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
