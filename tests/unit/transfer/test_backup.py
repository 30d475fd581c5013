"""A backup is whole, of a store in use, examined; a restore never writes over anything; the commands say what was done."""

from __future__ import annotations

import json
import threading
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from everlong import Scope, open_memory
from everlong.cli.app import app
from everlong.errors import EverlongError, InvalidInput, StoreUnavailable
from everlong.store.backup import backup, path_of, restore

if TYPE_CHECKING:
    from everlong.memory import Memory

ANN = Scope(user="ann")


def opened(path: Path) -> Memory:
    return open_memory(f"sqlite:///{path}", embedder="none", worker="none")


@pytest.fixture
def live(tmp_path: Path) -> Path:
    path = tmp_path / "live.db"
    with opened(path) as memory:
        memory.at(ANN).remember("She lives in Turin")
        memory.at(ANN).remember("她住在都灵")
    return path


def test_a_store_in_use_is_copied_whole(live: Path, tmp_path: Path) -> None:
    with opened(live) as memory:
        stop = threading.Event()

        def write() -> None:
            number = 0
            while not stop.is_set():
                memory.at(Scope(user=f"u{number}")).remember(f"Fact number {number}")
                number += 1

        writer = threading.Thread(target=write)
        writer.start()
        try:
            size = backup(live, tmp_path / "copy.db")
        finally:
            stop.set()
            writer.join()
    assert size == (tmp_path / "copy.db").stat().st_size
    assert sorted(p.name for p in tmp_path.glob("copy*")) == ["copy.db"]
    assert (tmp_path / "copy.db").stat().st_mode & 0o077 == 0
    restore(tmp_path / "copy.db", tmp_path / "again.db")
    with opened(tmp_path / "again.db") as memory:
        assert {fact.content for fact in memory.at(ANN).facts().items} == {"She lives in Turin", "她住在都灵"}


def test_nothing_is_ever_written_over(live: Path, tmp_path: Path) -> None:
    (tmp_path / "there").write_text("precious")
    for run in (backup, restore):
        with pytest.raises(InvalidInput, match="exists already"):
            run(live, tmp_path / "there")
    assert (tmp_path / "there").read_text() == "precious"
    with pytest.raises(InvalidInput, match="no store"):
        backup(tmp_path / "none.db", tmp_path / "x")


@pytest.mark.parametrize("damage", ["middle", "cut", "text", "empty", "foreign"])
def test_a_damaged_backup_is_refused_and_leaves_nothing(live: Path, tmp_path: Path, damage: str) -> None:
    import sqlite3

    bad = tmp_path / "bad.db"
    backup(live, bad)
    data = bytearray(bad.read_bytes())
    if damage == "middle":
        data[8192:16384] = b"\x55" * 8192
    bad.write_bytes({"cut": data[: len(data) // 2], "text": b"hello", "empty": b""}.get(damage, data))
    if damage == "foreign":
        bad.unlink()
        with closing(sqlite3.connect(bad)) as other, other:
            other.execute("CREATE TABLE notes (text)")
    with pytest.raises(StoreUnavailable):
        restore(bad, tmp_path / "new.db")
    assert list(tmp_path.glob("new*")) == []


@pytest.mark.parametrize(
    ("url", "found"), [("sqlite://", None), ("postgresql://h/d", None), ("sqlite:////a/b.db", Path("/a/b.db"))]
)
def test_where_a_url_keeps_its_file(url: str, found: Path | None) -> None:
    assert path_of(url) == found


# -------------------------------------------------------------------------------------------------------- commands


def run(*arguments: object, code: int = 0) -> str:
    result = CliRunner().invoke(app, [str(each) for each in arguments], env={"EVERLONG_EMBEDDER": "none"})
    if isinstance(result.exception, EverlongError):
        assert result.exception.exit_code == code, result.exception
        return str(result.exception)
    assert result.exit_code == code, result.output
    return result.output


def test_memory_moves_by_commands(live: Path, tmp_path: Path) -> None:
    out, here, there = tmp_path / "out.jsonl", f"sqlite:///{live}", f"sqlite:///{tmp_path / 'b.db'}"
    assert json.loads(run("export", out, "--url", here, "--user", "ann", "--json"))["records"] == {"fact": 2}
    assert run("import", out, "--preview", "--url", there, "--user", "ann") == "fact: 2 new\n"
    assert "facts" not in run("facts", "--url", there, "--user", "ann", "--json")[:3]
    assert run("import", out, "--url", there, "--user", "ann") == "fact: 2 new\n"
    assert run("import", out, "--url", there, "--user", "ann") == "fact: 2 same\n"
    assert "what was here is in" in run("import", out, "--replace", "--url", there, "--user", "ann")
    assert "does not lie within" in run("import", out, "--preview", "--url", there, "--user", "bob", code=3)
    assert "does not lie within" in run("import", out, "--url", there, "--user", "bob", code=3)
    assert run("export", "-", "--url", there, "--user", "ann").startswith('{"format":"everlong"')


def test_a_store_is_backed_up_and_restored_by_commands(live: Path, tmp_path: Path) -> None:
    file, new = tmp_path / "b.bak", f"sqlite:///{tmp_path / 'new.db'}"
    run("backup", file, "--url", f"sqlite:///{live}")
    assert "exists already" in run("backup", file, "--url", f"sqlite:///{live}", code=3)
    run("restore-backup", file, "--url", new)
    assert "她住在都灵" in run("facts", "--url", new, "--user", "ann")
    assert "exists already" in run("restore-backup", file, "--url", new, code=3)
    assert "backup of SQLite" in run("restore-backup", file, "--url", "postgresql://h/d", code=3)


def test_postgres_is_backed_up_as_an_export_and_restored_anywhere(postgres_url: str, tmp_path: Path) -> None:
    with open_memory(postgres_url, embedder="none", worker="none") as memory:
        for scope in (ANN, Scope(org="acme", user="安")):
            memory.at(scope).remember("She lives in Turin")
    file, new = tmp_path / "all.jsonl", f"sqlite:///{tmp_path / 'new.db'}"
    run("backup", file, "--url", postgres_url)
    assert "holds memory already" in run("restore-backup", file, "--url", postgres_url, code=3)
    run("restore-backup", file, "--url", new)
    with open_memory(new, embedder="none", worker="none") as memory:
        for scope in (ANN, Scope(org="acme", user="安")):
            assert memory.at(scope).facts().total == 1
            assert any(each.action == "add" for each in memory.at(scope).journal().items)


def test_memory_of_other_programs_comes_by_command(tmp_path: Path) -> None:
    file, url = tmp_path / "x.jsonl", f"sqlite:///{tmp_path / 'a.db'}"
    file.write_text('{"content": "Rides a bike, 骑车"}\n', "utf-8")
    assert run("import", file, "--from", "jsonl", "--preview", "--url", url) == "fact: 1 new\n"
    assert run("import", file, "--from", "jsonl", "--url", url) == "fact: 1 new\n"
    assert "only be added" in run("import", file, "--from", "jsonl", "--replace", "--url", url, code=3)
    assert "none of" in run("import", file, "--from", "zep", "--url", url, code=3)
