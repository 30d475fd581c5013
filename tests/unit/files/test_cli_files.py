"""The commands for memory files, as a person runs them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from everlong import Scope, open_memory
from everlong.cli.app import app

PATH = "/memories/笔记.md"


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("EVERLONG_EMBEDDER", "none")
    monkeypatch.setenv("EVERLONG_USER", "ann")
    where = f"sqlite:///{tmp_path / 'memory.db'}"
    with open_memory(where, embedder="none", worker="none") as memory:
        memory.at(Scope(user="ann")).files.write(PATH, "\ufeff茶\r\n".encode())
    return where


def run(*words: str, code: int = 0):
    result = CliRunner().invoke(app, ["files", *words])
    assert result.exit_code == code, result.output
    return result


def test_list_and_show(url: str) -> None:
    assert PATH in run("list", "--url", url).output
    assert json.loads(run("list", "--url", url, "--json").output)[0]["size"] == 8
    assert run("show", PATH, "--url", url).stdout_bytes == "\ufeff茶\r\n".encode()


def test_pull_push_and_conflict(url: str, tmp_path: Path) -> None:
    root = tmp_path / "copy"
    assert "add" in run("pull", str(root), "--url", url, "--dry-run").output
    assert not root.exists()
    run("pull", str(root), "--url", url)
    assert "nothing to do" in run("pull", str(root), "--url", url).output
    note = root / "memories" / "笔记.md"
    note.write_text("咖啡\n")
    assert "update" in run("push", str(root), "--url", url).output
    assert run("show", PATH, "--url", url).output == "咖啡\n"
    note.write_text("mine\n")
    with open_memory(url, embedder="none", worker="none") as memory:
        memory.at(Scope(user="ann")).files.edit(PATH, "咖啡", "theirs")
    done = json.loads(run("push", str(root), "--url", url, "--json", code=6).output)
    assert [(step["action"], step["path"]) for step in done] == [("conflict", PATH)]


def test_an_operator_fills_policies(url: str, tmp_path: Path) -> None:
    root = tmp_path / "org"
    (root / "policies").mkdir(parents=True)
    (root / "policies" / "合规.md").write_text("不可外传")
    assert "refuse" in run("push", str(root), "--url", url, "--org", "acme", code=6).output
    run("push", str(root), "--url", url, "--org", "acme", "--user", "", "--operator", "root")
    assert "/policies/合规.md" in run("list", "--url", url, "--org", "acme").output


def test_watch_keeps_both_in_step_until_stopped(url: str, tmp_path: Path) -> None:
    root = tmp_path / "copy"
    command = [sys.executable, "-m", "everlong", "files", "watch", str(root), "--url", url, "--every", "0.1"]
    watching = subprocess.Popen(command, env=os.environ, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        note = root / "memories" / "笔记.md"
        assert eventually(note.exists)
        note.write_text("from the editor\n")
        with open_memory(url, embedder="none", worker="none") as memory:
            files = memory.at(Scope(user="ann")).files
            assert eventually(lambda: files.read(PATH).content == b"from the editor\n")
            files.edit(PATH, "editor", "agent")
            assert eventually(lambda: note.read_text() == "from the agent\n")
    finally:
        watching.send_signal(signal.SIGINT)
        output = watching.communicate(timeout=20)[0]
    assert watching.returncode == 0
    assert [line.split()[0] for line in output.splitlines()] == ["add", "update", "update"]


def eventually(true, seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.05)
    return False
