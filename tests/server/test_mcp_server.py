"""The MCP server in this process: what it tells of itself, what a person decides through it, what rules hide."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import anyio
import pytest

pytest.importorskip("mcp", reason="needs everlong[mcp]")

from mcp.client import Client

from everlong import open_memory
from everlong.errors import InvalidInput
from everlong.policy import Rule
from everlong.records import Principal, Scope
from everlong.server.mcp import MemoryServer, as_agent
from everlong.server.mcp_shapes import moment
from tests.server.mcp_client import environment, ok, refused, text


def talk(scoped, conversation, *, person: bool = False) -> None:
    async def run() -> None:
        async with Client(MemoryServer(lambda _: scoped, person=person)) as client:
            await conversation(client)

    anyio.run(run)


def test_what_the_tools_tell_of_themselves() -> None:
    """No tool takes whose memory it is; all of them together cost a host few tokens."""

    async def conversation(client: Client) -> None:
        tools = (await client.list_tools()).tools
        for tool in tools:
            properties = tool.input_schema["properties"]
            assert not {"user", "user_id", "org", "agent", "scope", "session", "role"} & set(properties)
            assert all(shape.get("description") for shape in properties.values()), tool.name
            assert tool.annotations.read_only_hint is not None and tool.annotations.open_world_hint is False
            assert tool.annotations.read_only_hint or tool.annotations.destructive_hint is not None
            assert len(tool.description) > 40
        seen = json.dumps([{"n": t.name, "d": t.description, "s": t.input_schema} for t in tools])
        assert len(seen) < 12_000  # some 3,000 tokens
        assert "never an instruction" in client.instructions

    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        talk(as_agent(memory.at(Scope(user="ann"))), conversation)


def test_a_person_words_a_held_fact_better() -> None:
    async def agent(client: Client) -> None:
        stored = await ok(client, "remember", content="安娜要跑 marathon 马拉松", category="goal")
        assert (stored["outcome"], stored["fact"]["status"]) == ("hold", "held")
        assert (await ok(client, "recall", query="马拉松"))["hits"] == []

    async def person(client: Client) -> None:
        page = await ok(client, "list_reviews", limit="1")
        (waiting,) = page["waiting"]
        assert (waiting["kind"], waiting["text"], page["total"]) == ("fact", "安娜要跑 marathon 马拉松", 1)
        decided = await ok(client, "approve_review", review_id=waiting["id"], content="安娜十月跑马拉松 🏃")
        assert decided["text"] == "安娜十月跑马拉松 🏃"
        assert [hit["text"] for hit in (await ok(client, "recall", query="马拉松"))["hits"]] == ["安娜十月跑马拉松 🏃"]
        await ok(client, "remember", content="Ann wants to dive 潜水", category="goal")
        (waiting,) = (await ok(client, "list_reviews"))["waiting"]
        await ok(client, "reject_review", review_id=waiting["id"], reason="不是我说的")
        assert (await ok(client, "list_reviews"))["waiting"] == []

    with open_memory("sqlite://", embedder="none", worker="none", review_categories={"goal"}) as memory:
        ann = memory.at(Scope(user="ann"))
        talk(as_agent(ann), agent)
        talk(ann, person, person=True)


def test_what_waits_is_shown_page_by_page() -> None:
    async def conversation(client: Client) -> None:
        seen, cursor = [], ""
        while True:
            result = await client.call_tool("list_reviews", {"limit": 2, "cursor": cursor})
            page = result.structured_content
            assert page["total"] == 5
            seen += [each["text"] for each in page["waiting"]]
            cursor = page["next"]
            assert (f"cursor={cursor}" in text(result)) == bool(cursor)
            if not cursor:
                break
        assert len(set(seen)) == 5

    with open_memory("sqlite://", embedder="none", worker="none", review_categories={"goal"}) as memory:
        ann = memory.at(Scope(user="ann"))
        for place in ("罗马 Rome", "Oslo", "Lima", "巴黎 Paris", "Cairo"):
            ann.remember(f"Ann wants to see {place}", category="goal")
        talk(as_agent(ann), conversation)


def test_what_rules_hide_is_neither_listed_nor_read() -> None:
    hidden = Rule(effect="deny", reason="not for agents", roles=("agent",), actions=("files", "file"), kinds=("file",))

    async def conversation(client: Client) -> None:
        assert [each.name for each in (await client.list_resources()).resources] == ["profile", "bake"]
        said = await refused(client, "read_file", path="/policies/p.md")
        assert "not for agents" in said or "NotFound" in said

    with open_memory("sqlite://", embedder="none", worker="none", rules=(hidden,)) as memory:
        root = memory.at(Scope(user="ann"), by=Principal(id="root", role="operator"))
        root.files.write("/policies/p.md", "secret")
        root.skills.write("bake", description="bread", body="knead")
        talk(as_agent(memory.at(Scope(user="ann"))), conversation)


def test_forgetting_says_where_it_is_still_told() -> None:
    async def conversation(client: Client) -> None:
        (hit,) = (await ok(client, "recall", query="Zurich", kinds="fact"))["hits"]
        result = await client.call_tool("forget", {"fact_id": hit["id"]})
        assert "still told in file" in text(result)
        assert [each["kind"] for each in result.structured_content["mentions"]] == ["file"]

    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        ann = memory.at(Scope(user="ann"))
        ann.remember("Ann lives in Zurich 苏黎世")
        ann.files.write("/memories/home.md", "Ann lives in Zurich 苏黎世, near the lake.")
        talk(as_agent(ann), conversation)


def test_whose_hand_it_is() -> None:
    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        ann = memory.at(Scope(user="ann", agent="coder"), by=Principal(id="ann", groups=("staff",)))
        assert as_agent(ann).by == Principal(id="coder", role="agent", groups=("staff",))
        assert as_agent(memory.at(Scope(user="ann"))).by == Principal(id="mcp", role="agent")


def test_days_are_meant_in_the_users_zone() -> None:
    assert moment("since", "2026-05-01", "Asia/Shanghai") == datetime(2026, 4, 30, 16, tzinfo=UTC)
    assert moment("since", " 2026-05-01T12:00:00Z ", "Asia/Shanghai") == datetime(2026, 5, 1, 12, tzinfo=UTC)
    assert moment("since", "2026-05-01 08:00+08:00", "UTC") == datetime(2026, 5, 1, tzinfo=UTC)
    assert moment("since", "", "UTC") is None
    with pytest.raises(InvalidInput, match="2026-05-01"):
        moment("since", "昨天", "UTC")


def test_a_span_of_time_bounds_what_is_found() -> None:
    today = datetime.now(UTC)

    async def conversation(client: Client) -> None:
        for since, until, count in (
            (f"{today - timedelta(days=1):%Y-%m-%d}", f"{today + timedelta(days=1):%Y-%m-%d}", 1),
            (f"{today + timedelta(days=1):%Y-%m-%d}", "", 0),
            ("", f"{today - timedelta(days=1):%Y-%m-%d}", 0),
        ):
            assert len((await ok(client, "recall", query="茶", since=since, until=until))["hits"]) == count

    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        memory.at(Scope(user="ann")).remember("安娜喝茶")
        talk(as_agent(memory.at(Scope(user="ann"))), conversation)


@pytest.mark.parametrize(("package", "arguments"), [("mcp", []), ("fastapi", ["--http"])])
def test_a_missing_extra_is_named(tmp_path: Path, package: str, arguments: list[str]) -> None:
    program = f"import sys; sys.modules[{package!r}] = None; from everlong.cli import main; main()"
    command = [sys.executable, "-c", program, "mcp", *arguments]
    done = subprocess.run(command, env=environment(tmp_path), cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 2
    assert b"pip install 'everlong[" in done.stderr
