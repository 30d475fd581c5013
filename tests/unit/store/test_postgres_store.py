"""What only PostgreSQL can show: errors of a server, and text it cannot keep."""

from dataclasses import replace

import pytest

from everlong.errors import ConfigError, InvalidInput, StoreError, StoreUnavailable
from everlong.store import open_store
from everlong.testing import CountingIds, FakeClock
from everlong.testing.samples import ANN, add_fact


def opened(url):
    return open_store(url, clock=FakeClock(), new_id=CountingIds())


def test_a_server_that_is_not_there_says_so_and_shows_no_password():
    with pytest.raises(StoreUnavailable, match="does not answer") as caught:
        opened("postgresql://ann:password@127.0.0.1:1/memory")
    assert "password@" not in str(caught.value)


def test_a_malformed_url_is_a_setting_to_correct():
    with pytest.raises(ConfigError, match="malformed"):
        opened("postgresql://host:port/memory")


def test_what_postgresql_cannot_keep_or_do(postgres_url):
    store = opened(postgres_url)
    with pytest.raises(InvalidInput), store.write() as tx:
        add_fact(tx, content="a\x00b")
    with store.read() as tx, pytest.raises(StoreError):
        add_fact(tx)
    with store.write() as tx:
        first = add_fact(tx)
    with store.write() as tx:
        assert tx.facts.revise(replace(first, confidence=1), expected=1).version == 2
    store.close()


def test_a_lost_connection_is_replaced(postgres, postgres_url):
    store = opened(postgres_url)
    name = postgres_url.split("?")[0].rsplit("/", 1)[1]
    kill = f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{name}'"

    def write_while_cut():
        with store.write() as tx:
            postgres.sql(kill)
            add_fact(tx)

    with pytest.raises(StoreUnavailable):
        write_while_cut()
    with store.write() as tx:
        add_fact(tx)
    postgres.sql(kill)
    with store.read() as tx:
        assert tx.facts.list(ANN).total == 1
    store.close()
