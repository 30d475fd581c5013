"""What the tests of the MCP server share: the SDK's client against a process of its own."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared._httpx_utils import create_mcp_http_client

COMMAND = [sys.executable, "-m", "everlong", "mcp"]


def environment(folder: Path, **more: str) -> dict[str, str]:
    return {
        "EVERLONG_URL": f"sqlite:///{folder / 'memory.db'}",
        "EVERLONG_EMBEDDER": "none",
        "EVERLONG_USER": "ann",
        "OPENBLAS_NUM_THREADS": "1",
        "PYTHONIOENCODING": "ascii",  # the protocol is UTF-8 whatever the console is
        **more,
    }


@asynccontextmanager
async def over_stdio(folder: Path, *arguments: str, mode: str = "auto", program: str = "", **more: str):
    """``program`` is Python that runs first and has to call ``main()``: what an extension may do to the server."""
    start = ["-c", program, "mcp"] if program else COMMAND[1:]
    parameters = StdioServerParameters(
        command=COMMAND[0], args=[*start, *arguments], env=environment(folder, **more), cwd=folder
    )
    with (folder / "log.txt").open("a") as log:
        async with Client(stdio_client(parameters, errlog=log), mode=mode) as client:
            yield client


@contextmanager
def http_server(folder: Path, *arguments: str, **more: str):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (folder / "log.txt").open("a") as log:
        command = [*COMMAND, "--http", "--port", str(port), *arguments]
        process = subprocess.Popen(command, env=environment(folder, **more), cwd=folder, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 20
        while time.monotonic() < deadline and process.poll() is None:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.terminate()
        process.wait(20)


@asynccontextmanager
async def over_http(url: str, mode: str = "auto", **headers: str):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with (
        create_mcp_http_client(headers=named) as http,
        Client(streamable_http_client(url, http_client=http), mode=mode) as client,
    ):
        yield client


def text(result) -> str:
    return "".join(block.text for block in result.content)


async def ok(client: Client, tool: str, **arguments):
    """What a tool gives as data; it has to say it in words too."""
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, text(result)
    assert text(result)
    return result.structured_content


async def refused(client: Client, tool: str, **arguments) -> str:
    """What a tool says when it refuses."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error, text(result)
    assert "Traceback" not in text(result)
    return text(result)
