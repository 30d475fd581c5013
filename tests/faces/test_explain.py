"""``everlong explain`` and ``everlong doctor`` as a person uses them: real processes, a real store."""

from __future__ import annotations

import json
import sqlite3
from typing import TYPE_CHECKING

import pytest

from tests.faces.test_cli import ok, run
from tests.unit.read.test_explain import Seen

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("said", "asked"), [("I am allergic to <b>peanuts</b>.", "peanuts allergy"), ("我对花生过敏<b>。", "花生过敏吗")]
)
def test_a_question_is_explained_by_another_process(tmp_path: Path, said: str, asked: str) -> None:
    ok(tmp_path, "add", said)
    assert run(tmp_path, "explain", "--last").returncode == 5
    shown = ok(tmp_path, "context", asked, "--explain")
    assert "block: " in shown
    told = json.loads(ok(tmp_path, "explain", "--last", "--json"))
    assert told["trace"]["query"]["text"] == asked
    assert {row["shown"] for row in told["rows"]} <= {True, False}
    assert told["trace"]["id"] in ok(tmp_path, "explain", told["trace"]["id"])
    ok(tmp_path, "explain", "--last", "--html", "why.html")
    seen = Seen((tmp_path / "why.html").read_text("utf-8"))
    assert told["trace"]["id"] in seen.text
    assert asked in seen.text
    assert not seen.tags["b"]
    replay = json.loads(ok(tmp_path, "explain", "--last", "--min-score", "1", "--json"))
    assert not any(each["kept"] for each in replay["after"]["considered"])
    assert "below the threshold of 1.00" in ok(tmp_path, "explain", "--last", "--min-score", "1")
    assert run(tmp_path, "explain", told["trace"]["id"], "--user", "bob").returncode == 5
    assert run(tmp_path, "explain").returncode == 3


def test_a_doctor_finds_nothing_wrong_and_then_something(tmp_path: Path) -> None:
    ok(tmp_path, "add", "I am allergic to peanuts.")
    found = json.loads(ok(tmp_path, "doctor", "--question", "peanut allergy", "--json"))
    assert {"store", "durability", "sqlite", "disk", "work", "vectors", "contents"} <= {each["check"] for each in found}
    assert "problem" not in {each["severity"] for each in found}
    stale = run(tmp_path, "doctor", EVERLONG_EMBEDDER="none")
    assert stale.returncode == 0
    assert "words alone" in stale.stdout
    nothing = run(tmp_path, "doctor", "--question", "which submarine sank in Lisbon")
    assert nothing.returncode == 1
    assert "below the threshold" in nothing.stdout
    assert "everlong recall 'which submarine sank in Lisbon' --explain" in nothing.stdout


def test_a_doctor_says_why_a_store_cannot_be_opened(tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_bytes(b"no database at all " * 500)
    done = run(tmp_path, "doctor", "--url", "sqlite:///bad.db", "--json")
    assert done.returncode == 1
    assert [each["check"] for each in json.loads(done.stdout)] == ["store"]
    ok(tmp_path, "status", "--url", "sqlite:///new.db")
    with sqlite3.connect(tmp_path / "new.db") as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    newer = run(tmp_path, "doctor", "--url", "sqlite:///new.db")
    assert newer.returncode == 1
    assert "SchemaMismatch" in newer.stdout
