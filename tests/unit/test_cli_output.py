"""What commands print for a person."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path


def run(folder: Path, *args: str) -> str:
    command = [sys.executable, "-m", "everlong", args[0], "--url", f"sqlite:///{folder}/m.db", *args[1:]]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True).stdout


def test_add_shows_what_was_learned_from_this_and_not_from_before(tmp_path: Path) -> None:
    assert "peanuts" in run(tmp_path, "add", "I'm allergic to peanuts.")
    printed = run(tmp_path, "add", "我住在上海。")
    assert "我住在上海" in printed
    assert "peanuts" not in printed


def test_a_record_is_a_line_and_not_a_dump(tmp_path: Path) -> None:
    run(tmp_path, "add", "I'm allergic to peanuts.")
    printed = run(tmp_path, "forget-topic", "peanuts", "--yes")
    gone = [line.split()[0] for line in printed.splitlines() if line.startswith("  ")]
    assert sorted(gone) == ["fact", "message"]
    assert "{" not in printed


def test_both_plays_of_the_demo_begin_on_the_same_day() -> None:
    command = [sys.executable, "-m", "everlong", "demo"]
    printed = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True).stdout
    assert "(user, 2026-05-04)" in printed
    assert "2026-05-07" not in printed
