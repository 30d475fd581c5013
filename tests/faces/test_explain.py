"""``everlong explain`` and ``everlong doctor`` as a person uses them: a real store, its question asked by another process."""

from __future__ import annotations

import json
import os
import sqlite3
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest

from everlong.cli.app import main
from tests.faces.test_cli import ok
from tests.unit.read.test_explain import Seen

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

WORDS = {"EVERLONG_EMBEDDER": "none"}


@dataclass
class Done:
    """How a command ended, and what it printed."""

    returncode: int
    stdout: str


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """Runs a command in this process, in the test's folder."""

    def command(*args: str, **env: str) -> Done:
        with monkeypatch.context() as patch:
            for name in [name for name in os.environ if name.startswith("EVERLONG_")]:
                patch.delenv(name)
            for name, value in env.items():
                patch.setenv(name, value)
            patch.chdir(tmp_path)
            patch.setattr(sys, "argv", ["everlong", *args])
            capsys.readouterr()
            try:
                main()
            except SystemExit as end:
                return Done(int(end.code or 0), capsys.readouterr().out)
            return Done(0, capsys.readouterr().out)

    return command


def test_a_question_is_explained_by_another_process(tmp_path: Path, run: Callable[..., Done]) -> None:
    asked = "花生过敏吗 peanuts allergy"
    ok(tmp_path, "add", "我对花生过敏 <b>peanuts</b>.", **WORDS)
    assert run("explain", "--last", **WORDS).returncode == 5
    shown = ok(tmp_path, "context", asked, "--explain", **WORDS)
    assert "block: " in shown
    told = json.loads(run("explain", "--last", "--json", **WORDS).stdout)
    assert told["trace"]["query"]["text"] == asked
    assert {row["shown"] for row in told["rows"]} <= {True, False}
    assert told["trace"]["id"] in run("explain", told["trace"]["id"], **WORDS).stdout
    assert run("explain", "--last", "--html", "why.html", **WORDS).returncode == 0
    seen = Seen((tmp_path / "why.html").read_text("utf-8"))
    assert told["trace"]["id"] in seen.text
    assert asked in seen.text
    assert not seen.tags["b"]
    replay = json.loads(run("explain", "--last", "--min-score", "1", "--json", **WORDS).stdout)
    assert not any(each["kept"] for each in replay["after"]["considered"])
    assert "below the threshold of 1.00" in run("explain", "--last", "--min-score", "1", **WORDS).stdout
    assert run("explain", told["trace"]["id"], "--user", "bob", **WORDS).returncode == 5
    assert run("explain", **WORDS).returncode == 3


def test_a_doctor_finds_nothing_wrong_and_then_something(tmp_path: Path, run: Callable[..., Done]) -> None:
    ok(tmp_path, "add", "I am allergic to peanuts.")
    found = json.loads(run("doctor", "--question", "peanut allergy", "--json").stdout)
    assert {"store", "durability", "sqlite", "disk", "work", "vectors", "contents"} <= {each["check"] for each in found}
    assert "problem" not in {each["severity"] for each in found}
    stale = run("doctor", EVERLONG_EMBEDDER="none")
    assert stale.returncode == 0
    assert "words alone" in stale.stdout
    nothing = run("doctor", "--question", "which submarine sank in Lisbon")
    assert nothing.returncode == 1
    assert "below the threshold" in nothing.stdout
    assert "everlong recall 'which submarine sank in Lisbon' --explain" in nothing.stdout


def test_a_doctor_says_why_a_store_cannot_be_opened(tmp_path: Path, run: Callable[..., Done]) -> None:
    (tmp_path / "bad.db").write_bytes(b"no database at all " * 500)
    done = run("doctor", "--url", "sqlite:///bad.db", "--json")
    assert done.returncode == 1
    assert [each["check"] for each in json.loads(done.stdout)] == ["store"]
    assert run("status", "--url", "sqlite:///new.db", **WORDS).returncode == 0
    with sqlite3.connect(tmp_path / "new.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    newer = run("doctor", "--url", "sqlite:///new.db", **WORDS)
    assert newer.returncode == 1
    assert "SchemaMismatch" in newer.stdout
