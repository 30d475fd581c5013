"""The command line as a person uses it: a real process, a real store."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def run(folder: Path, *args: str, stdin: str = "", **env: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("EVERLONG_")}
    return subprocess.run(
        [sys.executable, "-m", "everlong", *args],
        cwd=folder,
        env={**clean, "PYTHONUTF8": "1", **env},
        input=stdin,
        capture_output=True,
        text=True,
        encoding="utf-8",
        errors="replace",
        timeout=120,
        check=False,
    )


def ok(folder: Path, *args: str, stdin: str = "", **env: str) -> str:
    done = run(folder, *args, stdin=stdin, **env)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_what_was_added_is_recalled_by_another_process(tmp_path: Path) -> None:
    added = json.loads(ok(tmp_path, "add", "I am allergic to peanuts.", "--user", "ann", "--json"))
    assert added["added"]["status"] == "queued"
    hits = json.loads(ok(tmp_path, "recall", "peanuts allergy", "--user", "ann", "--json"))["hits"]
    assert {hit["kind"] for hit in hits} == {"fact", "message"}
    assert all("peanuts" in hit["record"]["content"] for hit in hits)
    assert not json.loads(ok(tmp_path, "recall", "peanuts allergy", "--user", "bob", "--json"))["hits"]
    assert "peanuts" in ok(tmp_path, "context", "peanuts", "--user", "ann")
    assert "peanuts" in ok(tmp_path, "facts", "--user", "ann")


def test_chinese_through_a_pipe(tmp_path: Path) -> None:
    ok(tmp_path, "add", "--user", "甲", stdin="我对花生过敏。\n")
    assert "我对花生过敏" in ok(tmp_path, "facts", "--user", "甲")
    assert "花生" in ok(tmp_path, "recall", "花生", "--user", "甲")


def test_a_console_that_cannot_show_a_character_shows_its_escape(tmp_path: Path) -> None:
    text = "I live in Алиса → 上海 🍸."
    assert run(tmp_path, "add", text, PYTHONUTF8="0", PYTHONIOENCODING="cp1252").returncode == 0
    shown = run(tmp_path, "facts", PYTHONUTF8="0", PYTHONIOENCODING="cp1252")
    assert shown.returncode == 0
    assert "\\u4e0a" in shown.stdout
    assert text.rstrip(".") in ok(tmp_path, "facts")


def test_profile_is_set_shown_and_cleared(tmp_path: Path) -> None:
    ok(tmp_path, "profile", "birthday=05-01", "workContext=Runs a bakery in Lyon.")
    shown = json.loads(ok(tmp_path, "profile", "--json"))
    assert shown["attributes"] == {"birthday": "05-01"}
    assert shown["sections"]["workContext"]["summary"] == "Runs a bakery in Lyon."
    ok(tmp_path, "profile", "birthday=")
    assert json.loads(ok(tmp_path, "profile", "--json"))["attributes"] == {}


def test_work_can_be_left_to_a_worker(tmp_path: Path) -> None:
    ok(tmp_path, "add", "Please remember that my gate code changed.", "--no-wait")
    assert json.loads(ok(tmp_path, "status", "--json"))["waiting"] >= 1
    assert json.loads(ok(tmp_path, "worker", "--once", "--json"))["ran"] >= 1
    assert "gate code" in ok(tmp_path, "facts")


@pytest.mark.parametrize(
    ("args", "code", "says"),
    [
        (["add", ""], 0, "nothing"),
        (["recall", "  "], 3, "EmptyText"),
        (["facts", "--user", ""], 3, "InvalidScope"),
        (["status", "--url", "oracle://x"], 2, "ConfigError"),
        (["status", "--url", "sqlite:////proc/nowhere/memory.db"], 2, "ConfigError"),
        (["profile", "birthday"], 3, "InvalidInput"),
        (["context", "x", "--budget", "5"], 3, "InvalidInput"),
        (["chat"], 2, "EVERLONG_MODEL"),
        (["demo", "--language", "fr"], 3, "InvalidInput"),
    ],
)
def test_bad_input_says_what_to_do_and_ends_with_its_code(
    tmp_path: Path, args: list[str], code: int, says: str
) -> None:
    done = run(tmp_path, *args)
    assert done.returncode == code, done.stderr
    assert says in done.stdout + done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("language", ["zh", "en"])
def test_demo_recalls_all_three_facts_and_nothing_for_the_weather(tmp_path: Path, language: str) -> None:
    result = json.loads(ok(tmp_path, "demo", "--language", language, "--json"))[language]
    learned = [d["fact"]["content"] for d in result["learned"]]
    assert len(learned) == 3
    assert {hit["record"]["content"] for hit in result["recalled"]} == set(learned)
    assert result["unrelated"] == []
    assert all(fact in result["block"] for fact in learned)
    assert result["block"].startswith("<memory>")


def test_demo_for_a_person_needs_no_colours_and_leaves_nothing_behind(tmp_path: Path) -> None:
    shown = ok(tmp_path, "demo")
    assert "ESP32" in shown
    assert "\x1b[" not in shown
    assert list(tmp_path.iterdir()) == []


def test_the_policy_says_which_rule_decides(tmp_path: Path) -> None:
    (tmp_path / "everlong.toml").write_text(
        '[[rules]]\neffect = "deny"\nreason = "nobody erases acme"\norg = "acme"\nactions = ["erase"]\n', "utf-8"
    )
    asked = ["policy", "check", "erase", "--by", "ops", "--role", "operator", "--json", "--user", "ann", "--org"]
    closed = json.loads(run(tmp_path, *asked, "acme").stdout)
    assert closed == {"effect": "deny", "reason": "nobody erases acme", "rule": 1}
    assert json.loads(run(tmp_path, *asked, "umbrella").stdout)["effect"] == "allow"
    assert "nobody erases acme" in run(tmp_path, "policy", "list").stdout
