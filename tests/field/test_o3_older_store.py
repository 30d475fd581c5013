"""O3: after an upgrade an older store loops, or memory seems lost; a newer one is half read.

eleboucher/memini#16, buildingjoshbetter/TrueMemory#286, chandra447/pi-hermes-memory#91, garrytan/gbrain#657,
bytedance/deer-flow#2647 (the old file is ignored), bytedance/deer-flow#4122 (a setting turned from file to folder).
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from everlong import Scope, open_memory
from everlong.errors import ConfigError, SchemaMismatch
from everlong.integrations.importers import bring
from everlong.store.backup import backup, restore

ANN = Scope(user="ann")


def facts(path: Path) -> set[str]:
    with open_memory(f"sqlite:///{path}", embedder="none", worker="none") as memory:
        return {fact.content for fact in memory.at(ANN).facts().items}


def kept(path: Path) -> Path:
    with open_memory(f"sqlite:///{path}", embedder="none", worker="none") as memory:
        memory.at(ANN).remember("Keeps bees")
        memory.at(ANN).remember("养蜜蜂")
    return path


def stamp(path: Path, revision: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("UPDATE alembic_version SET version_num = ?", (revision,))


def test_opening_again_and_again_loses_nothing(tmp_path: Path) -> None:
    path = kept(tmp_path / "m.db")
    assert facts(path) == facts(path) == {"Keeps bees", "养蜜蜂"}


def test_a_newer_store_is_refused_by_name_and_left_alone(tmp_path: Path) -> None:
    path = kept(tmp_path / "m.db")
    stamp(path, "9999")
    for _ in range(2):
        with pytest.raises(SchemaMismatch):
            facts(path)
    copy = tmp_path / "copy.db"
    backup(path, copy)  # what a newer version wrote can be carried about all the same
    restore(copy, tmp_path / "again.db")
    with pytest.raises(SchemaMismatch):
        facts(tmp_path / "again.db")


def test_a_folder_where_a_file_was_meant_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="folder"):
        facts(tmp_path)


def test_the_old_file_of_a_host_comes_in(tmp_path: Path) -> None:
    old = tmp_path / "memory.json"
    old.write_text(
        '{"version": "1.0", "user": {}, "history": {}, "facts": [{"id": "a", "content": "养猫 cat"}]}', "utf-8"
    )
    path = tmp_path / "m.db"
    with open_memory(f"sqlite:///{path}", embedder="none", worker="none") as memory:
        bring(memory.at(ANN), "deerflow", old)
    assert facts(path) == {"养猫 cat"}
