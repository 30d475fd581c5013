"""The set-ups that the documentation shows are ones that a client can use."""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

import pytest

pytest.importorskip("mcp", reason="needs everlong[mcp]")

from typer.testing import CliRunner

from everlong import open_memory
from everlong.cli.app import app
from everlong.records import Scope
from everlong.server.mcp import MemoryServer, as_agent

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "docs" / "mcp.md", ROOT / "docs" / "zh" / "mcp.md"]


def setups(page: Path) -> list[dict]:
    blocks = re.findall(r"^```json\n(.*?)^```$", page.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [next(iter(json.loads(block).values()))["everlong"] for block in blocks]


@pytest.mark.parametrize("page", PAGES, ids=["en", "zh"])
def test_set_ups_name_a_command_that_exists(page: Path) -> None:
    local = [each for each in setups(page) if "command" in each]
    assert len(local) == 3
    for each in local:
        assert shutil.which(each["command"], path=str(Path(sys.executable).parent))
        shown = CliRunner().invoke(app, [*each["args"], "--help"], env={"COLUMNS": "200"})
        assert shown.exit_code == 0
        variables = set(each["env"]) - {"EVERLONG_URL"}  # a setting: tests/docs holds those against their page
        assert variables <= set(re.findall(r"EVERLONG_\w+", shown.output))


@pytest.mark.parametrize("page", PAGES, ids=["en", "zh"])
def test_a_set_up_over_http_sends_a_key(page: Path) -> None:
    (remote,) = (each for each in setups(page) if "url" in each)
    assert remote["url"].endswith("/mcp")
    assert remote["headers"]["Authorization"].startswith("Bearer elk_")


def test_the_languages_show_the_same_set_ups() -> None:
    assert setups(PAGES[0]) == setups(PAGES[1])


@pytest.mark.parametrize("page", PAGES, ids=["en", "zh"])
def test_every_tool_and_variable_is_documented(page: Path) -> None:
    import anyio

    with open_memory("sqlite://", embedder="none", worker="none") as memory:
        server = MemoryServer(lambda _: as_agent(memory.at(Scope(user="ann"))))
        tools = {tool.name for tool in anyio.run(server.list_tools)}
    cells = [line for line in page.read_text("utf-8").splitlines() if line.startswith("| `")]
    documented = {name for line in cells for name in re.findall(r"`([a-z_]+)`", line.split("|")[1])}
    assert documented == tools
    shown = CliRunner().invoke(app, ["mcp", "--help"], env={"COLUMNS": "200"}).output
    named = {name for line in cells for name in re.findall(r"`(EVERLONG_\w+)`", line)}
    assert named == set(re.findall(r"EVERLONG_\w+", shown))
