"""Stores that are new, newer, interrupted or opened twice at once, on both dialects."""

import threading
from dataclasses import replace

import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, inspect, text

from everlong.errors import EverlongError, SchemaMismatch
from everlong.protocols import Backlog
from everlong.store import migrate, open_store, schema
from everlong.testing import CountingIds, FakeClock
from everlong.testing.samples import ANN, add_fact, extraction, proposal

REVISIONS = sorted(path.name[:4] for path in (migrate._SCRIPTS / "versions").glob("0*.py"))


def opened(url):
    return open_store(url, clock=FakeClock(), new_id=CountingIds())


@pytest.fixture(params=["sqlite", "postgres"])
def empty(request, tmp_path):
    """The URL of a database without a schema, and an engine to look into it."""
    if request.param == "sqlite":
        url = f"sqlite:///{tmp_path / 'a.db'}"
        engine = create_engine(url)
        yield url, engine
        engine.dispose()
        return
    server = request.getfixturevalue("postgres")
    server.sql(
        "DROP DATABASE IF EXISTS bare", "CREATE DATABASE bare TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C.UTF-8'"
    )
    url = server.uri("bare")
    engine = create_engine(url.replace("postgresql://", "postgresql+psycopg://"))
    yield url, engine
    engine.dispose()
    server.drop(url)


def test_the_migrations_lead_to_the_schema_of_the_code(empty):
    url, engine = empty
    opened(url).close()
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == schema.HEAD


def test_opening_again_changes_nothing(empty):
    url, _ = empty
    store = opened(url)
    with store.write() as tx:
        add_fact(tx)
    store.close()
    store = opened(url)
    with store.read() as tx:
        assert tx.facts.list(ANN).total == 1
    store.close()


def test_a_newer_store_is_refused_and_left_alone(empty):
    url, engine = empty
    opened(url).close()
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SchemaMismatch, match=f"9999.*{schema.HEAD}"):
        opened(url)
    with engine.connect() as connection:
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == "9999"


def test_an_interrupted_migration_leaves_nothing_and_can_be_repeated(empty, monkeypatch):
    url, engine = empty
    upgrade = migrate._upgrade

    def interrupted(connection, found):
        upgrade(connection, found)
        raise KeyboardInterrupt

    monkeypatch.setattr(migrate, "_upgrade", interrupted)
    with pytest.raises(KeyboardInterrupt):
        opened(url)
    assert inspect(engine).get_table_names() == []
    monkeypatch.undo()
    opened(url).close()


def made_at(engine, revision):
    """Brings an empty database to an older schema, as an older version of everlong did."""
    config = Config()
    config.set_main_option("script_location", str(migrate._SCRIPTS))
    with engine.begin() as connection:
        config.attributes["connection"] = connection
        command.upgrade(config, revision)


@pytest.mark.parametrize("revision", REVISIONS[:-1])
def test_an_older_store_is_brought_up_to_date_with_all_it_holds(empty, revision):
    url, engine = empty
    made_at(engine, revision)
    values = {column.name: 1 if column.type.python_type in (int, float) else "x" for column in schema.facts.c}
    values |= {"org": "acme", "agent": "", "user": "ann", "session": "", "id": "old", "content": "安娜喝茶 tea"}
    values |= {"terms": b"12345678", "evidence": "[]", "metadata": "{}", "origin": "user", "status": "active"}
    with engine.begin() as connection:
        connection.execute(schema.facts.insert().values(values))
    store = opened(url)
    with store.write() as tx:
        assert tx.facts.get(ANN, "old").content == "安娜喝茶 tea"
        tx.proposals.put(proposal(target="old"))
        tx.extractions.append(extraction())
        assert tx.proposals.list(ANN).total == tx.extractions.list(ANN).total == 1
    store.close()
    with engine.connect() as connection:
        assert compare_metadata(MigrationContext.configure(connection), schema.metadata) == []
        assert connection.execute(text("SELECT version_num FROM alembic_version")).scalar() == schema.HEAD


def test_what_waits_in_an_older_store_is_counted(empty):
    url, engine = empty
    made_at(engine, "0003")
    place = {"org": "acme", "agent": "", "user": "ann"}
    with engine.begin() as connection:
        for session, extracted in (("talk", 1), ("walk", 0)):
            values = {"epoch": "e", "created_at": 1, "updated_at": 1, "extracted": extracted, "session": session}
            connection.execute(schema.sessions.insert().values(**place, **values))
            for position in (1, 2, 3):
                values = {"id": f"m{position}", "session": session, "position": position, "revision": position}
                values |= dict.fromkeys(("role", "content", "speaker", "origin"), "茶") | {"terms": b"12345678"}
                values |= {"signals": "[]", "metadata": "{}", "created_at": 1, "length": 1, "question": 0}
                connection.execute(schema.messages.insert().values(**place, **values))
        connection.execute(
            text(
                "INSERT INTO buckets VALUES ('acme', '', 'ann', '', 'message', 'e', 3), ('', '', '', '', 'fact', 'e', 1)"
            )
        )
    store = opened(url)
    with store.write() as tx:
        assert tx.messages.backlog(replace(ANN, session="talk")) == Backlog(messages=2, characters=2, at_home=5)
        tx.sessions.fence(replace(ANN, session="walk"))
        assert tx.messages.backlog(replace(ANN, session="talk")).at_home == 2
    store.close()


def test_the_head_of_the_code_is_the_last_migration():
    assert REVISIONS[-1] == schema.HEAD


def test_two_that_open_a_new_store_at_once_both_succeed(empty):
    url, _ = empty
    failed = []

    def begin():
        try:
            opened(url).close()
        except EverlongError as error:
            failed.append(error)

    threads = [threading.Thread(target=begin) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failed == []


def test_every_key_and_index_begins_with_the_tenant():
    for table in schema.metadata.tables.values():
        assert next(iter(table.primary_key.columns)).name == "org", table.name
        assert not table.foreign_keys
        for index in table.indexes:
            assert next(iter(index.columns)).name == "org" or index.name == "jobs_by_time", index.name
