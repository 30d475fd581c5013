"""``everlong serve`` and ``everlong keys`` as their users run them."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest


def everlong(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "everlong", *words]
    return subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True, check=False)


def environment() -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith("EVERLONG_")}
    return {**own, "EVERLONG_EMBEDDER": "none"}


def test_a_key_made_on_the_command_line_opens_the_server(tmp_path: Path) -> None:
    made = json.loads(everlong(tmp_path, "keys", "add", "laptop", "--user", "安娜", "--lasts", "90d", "--json").stdout)
    assert re.fullmatch(r"elk_[0-9a-f]{16}_[0-9a-f]{64}", made["key"])
    listed = everlong(tmp_path, "keys", "list", "--json").stdout
    assert made["id"] in listed
    assert made["key"].rpartition("_")[2] not in listed
    assert "hash" not in listed
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "everlong", "serve", "--port", str(port)]
    server = subprocess.Popen(command, cwd=tmp_path, env=environment(), stderr=subprocess.PIPE, text=True)
    try:
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", headers={"Authorization": f"Bearer {made['key']}"}
        ) as http:
            deadline = time.monotonic() + 30
            while True:
                try:
                    assert http.get("/v1/ready").status_code == 200
                    break
                except httpx.TransportError:
                    assert time.monotonic() < deadline
                    time.sleep(0.05)
            assert http.get("/v1/whoami").json()["user"] == "安娜"
            assert everlong(tmp_path, "keys", "revoke", made["id"], "--json").returncode == 0
            assert http.get("/v1/whoami").status_code == 401
    finally:
        server.send_signal(signal.SIGTERM)
        _, told = server.communicate(timeout=30)
    assert made["key"].rpartition("_")[2] not in told


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("serve", "--no-auth", "--host", "0.0.0.0"), 2),
        (("keys", "add", "x"), 3),
        (("keys", "add", "x", "--user", "a", "--lasts", "soon"), 3),
        (("keys", "add", "x", "--user", "a", "--role", "god"), 3),
        (("keys", "revoke", "none"), 5),
    ],
)
def test_what_cannot_be_says_why(tmp_path: Path, words: tuple[str, ...], code: int) -> None:
    done = everlong(tmp_path, *words)
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert done.stderr.strip()
