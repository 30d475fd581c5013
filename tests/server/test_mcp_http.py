"""The MCP server over streamable HTTP, in a process of its own: each request sees what its credential opens."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from pathlib import Path
from urllib.parse import quote

import anyio
import pytest

pytest.importorskip("mcp", reason="needs everlong[mcp]")
pytest.importorskip("fastapi", reason="needs everlong[server]")

from everlong import open_memory
from everlong.server.keys import Keys
from tests.server.mcp_client import environment, http_server, ok, over_http, over_stdio, refused

_PING = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}}


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("served")
    with open_memory(environment(folder)["EVERLONG_URL"], embedder="none", worker="none") as memory:
        keys = Keys(memory.parts.store, clock=memory.parts.clock)
        made = {
            "ann": keys.make("ann", role="user", user="ann")[1],
            "李雷": keys.make("bob", role="user", user="李雷")[1],
            "agent": keys.make("coder", role="agent", agent="coder")[1],
            "operator": keys.make("root", role="operator")[1],
        }
        gone, made["gone"] = keys.make("gone", role="user", user="ann")
        keys.revoke(gone.id)
    with http_server(folder) as url:
        yield url, made


def bearer(key: str, **more: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}", **more}


def status(url: str, **headers: str) -> tuple[int, str]:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    given = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **named}
    request = urllib.request.Request(url, json.dumps(_PING).encode(), given)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_two_users_at_once(served, mode: str) -> None:
    url, keys = served

    async def use(user: str) -> None:
        async with over_http(url, mode=mode, **bearer(keys[user])) as client:
            for number in range(5):
                await ok(client, "remember", content=f"{user} 的秘密 secret {number} 🔑")
                found = await ok(client, "recall", query="秘密 secret", limit=50)
                assert {hit["text"].split()[0] for hit in found["hits"]} == {user}
            await ok(client, "write_file", path=f"/memories/{mode}.md", content=f"{user} 的文件")
            page = (await client.read_resource(f"everlong://files/memories/{mode}.md")).contents[0].text
            assert page == f"{user} 的文件"
            asked = (await client.get_prompt("what_do_you_know", {})).messages[0].content.text
            others = {"ann", "李雷"} - {user}
            assert f"{user} 的秘密" in asked and not any(f"{other} 的秘密" in asked for other in others)
            assert [each.name for each in (await client.list_resources()).resources] == ["profile"]

    async def run() -> None:
        async with anyio.create_task_group() as group:
            group.start_soon(use, "ann")
            group.start_soon(use, "李雷")

    anyio.run(run)


def test_nobody_comes_in_without_a_credential(served) -> None:
    url, keys = served
    assert status(url)[0] == 401
    assert status(url, Authorization="Bearer elk_nothing")[0] == 401
    assert status(url, Authorization="Basic YTpi")[0] == 401
    assert status(url, **bearer(keys["gone"]))[0] == 401
    assert status(url, **bearer(keys["ann"]))[0] == 200


def test_what_a_header_may_name(served) -> None:
    url, keys = served
    assert status(url, **bearer(keys["ann"], X_Everlong_User=quote("李雷")))[0] == 403
    code, said = status(url, **bearer(keys["agent"]))
    assert code == 400 and "X-Everlong-User" in said
    assert status(url, **bearer(keys["agent"], X_Everlong_User="ann", X_Everlong_Agent="other"))[0] == 403

    async def run() -> None:
        async with over_http(url, **bearer(keys["agent"], X_Everlong_User=quote("韩梅"))) as client:
            await ok(client, "remember", content="韩梅养猫 🐈")
            await ok(client, "write_file", path="/agent/notes.md", content="我的笔记")
        async with over_http(url, **bearer(keys["operator"], X_Everlong_User=quote("韩梅"))) as client:
            assert (await ok(client, "recall", query="养猫"))["hits"] == []  # it is kept for the agent coder
            assert "AccessDenied" in await refused(client, "approve_review", review_id="prop_1")

    anyio.run(run)


def test_a_users_key_has_a_users_rights(served) -> None:
    """It may name an agent, and does not become it: an agent's files are seen by all of its users. It decides nothing."""
    url, keys = served

    async def run() -> None:
        async with over_http(url, **bearer(keys["ann"], X_Everlong_Agent="coder")) as client:
            await ok(client, "remember", content="Ann codes 写代码")
            assert "AccessDenied" in await refused(client, "write_file", path="/agent/trap.md", content="恶意 evil")
            assert "AccessDenied" in await refused(client, "write_file", path="/policies/trap.md", content="evil")
        async with over_http(url, **bearer(keys["ann"])) as client:
            for tool in ("approve_review", "reject_review"):
                assert "a person's to decide" in await refused(client, tool, review_id="prop_1")

    anyio.run(run)


def test_a_page_in_a_browser_cannot_reach_it(served) -> None:
    url, keys = served
    assert status(url, **bearer(keys["ann"]), Origin="https://evil.example")[0] == 403
    assert status(url, **bearer(keys["ann"]), Host="evil.example")[0] == 421


def test_without_credentials_this_machine_has_one_user(tmp_path: Path) -> None:
    async def run(url: str) -> None:
        async with over_http(url) as client:
            await ok(client, "remember", content="Kept over HTTP 通过网络")
        async with over_http(url, X_Everlong_User="bob") as client:  # nobody there asks who
            assert len((await ok(client, "recall", query="网络"))["hits"]) == 1
        async with over_stdio(tmp_path) as client:
            assert len((await ok(client, "recall", query="HTTP"))["hits"]) == 1

    with http_server(tmp_path, "--no-auth") as url:
        anyio.run(run, url)


def test_without_credentials_no_other_machine_is_served(tmp_path: Path) -> None:
    import subprocess

    from tests.server.mcp_client import COMMAND

    command = [*COMMAND, "--http", "--no-auth", "--host", "0.0.0.0"]
    done = subprocess.run(
        command, env=environment(tmp_path), cwd=tmp_path, capture_output=True, timeout=30, check=False
    )
    assert done.returncode == 2
    assert b"this machine only" in done.stderr
