"""Connections: transactions that commit or vanish, and servers that are away said by name."""

from contextlib import ExitStack

import psycopg
import pytest
from memory import Memory

from workers.errors import UnavailableError
from workers.storage import connection
from workers.storage.connection import close_pools, connect, reading, snapshot, transaction, writing

AWAY = "postgresql://postgres@127.0.0.1:1/ebb"
ADD = "insert into namespaces (name) values ('ours')"
COUNT = "select count(*) from namespaces"


def test_a_server_that_is_away_is_named_with_the_cause() -> None:
    with pytest.raises(UnavailableError) as failure:
        connect(AWAY)
    said = str(failure.value)
    assert "127.0.0.1" in said
    assert "Connection refused" in said
    assert said.endswith("Is it running at that address?")
    assert "\n" not in said


def test_a_pool_whose_server_is_away_says_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "WAIT_SECONDS", 0.2)
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1.*Connection refused"), transaction(AWAY):
        pass
    close_pools()


def test_a_database_that_does_not_exist_is_named(memory: Memory) -> None:
    url = memory.context.database_url.replace("/test_", "/nowhere_")
    with pytest.raises(UnavailableError, match=r'database "nowhere_[0-9a-f]+" does not exist'):
        connect(url)


def test_a_pool_with_no_connection_left_says_that_the_server_is_overloaded(
    memory: Memory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "WAIT_SECONDS", 0.2)
    url = memory.context.database_url
    with ExitStack() as taken:
        for _ in range(connection.POOL_SIZE):
            taken.enter_context(transaction(url))
        with pytest.raises(UnavailableError, match="overloaded, or max_connections is too low"):
            taken.enter_context(transaction(url))


def test_a_transaction_commits_at_its_end_and_vanishes_on_an_error(memory: Memory) -> None:
    url = memory.context.database_url
    with pytest.raises(psycopg.errors.DivisionByZero), transaction(url) as db:
        db.execute(ADD + "; select 1 / 0")
    assert memory.value(COUNT) == 0
    with transaction(url) as db:
        db.execute(ADD)
    assert memory.value(COUNT) == 1


def write(url: str, *statements: str) -> None:
    with writing(url) as db:
        for statement in statements:
            db.execute(statement.encode())


def test_what_is_written_without_waiting_is_committed_at_the_end_or_vanishes(memory: Memory) -> None:
    url = memory.context.database_url
    with pytest.raises(psycopg.errors.DivisionByZero):
        write(url, ADD, "select 1 / 0")
    assert memory.value(COUNT) == 0
    write(url, ADD)
    assert memory.value(COUNT) == 1


def test_a_large_statement_at_the_end_is_sent_whole(memory: Memory) -> None:
    with writing(memory.context.database_url) as db:
        db.execute("set local statement_timeout = '20s'")
        db.execute("insert into namespaces (name) select left(%s, 20)", ["ours" * 5_000_000])
    assert memory.value("select name from namespaces") == "ours" * 5


def test_a_pool_replaces_connections_that_the_server_has_ended(memory: Memory) -> None:
    url = memory.context.database_url
    with transaction(url) as db:
        ended = db.info.backend_pid
    with connect(url, autocommit=True) as db:
        db.execute("select pg_terminate_backend(%s, 5000)", (ended,))
    assert memory.value("select pg_backend_pid()") != ended


def test_a_snapshot_reads_one_state_and_writes_nothing(memory: Memory) -> None:
    with snapshot(memory.context.database_url) as db:
        assert db.execute(COUNT).fetchone() == (0,)
        memory.rows(ADD)
        assert db.execute(COUNT).fetchone() == (0,)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            db.execute(ADD)
        db.rollback()


def test_every_connection_works_in_utc_with_plans_made_for_its_values(memory: Memory) -> None:
    asked = "select current_setting('timezone'), current_setting('plan_cache_mode'), current_setting('hnsw.ef_search')"
    assert memory.rows(asked) == [("UTC", "force_custom_plan", "350")]


def test_who_reads_sees_one_state_to_the_end_and_the_next_one_sees_what_came_meanwhile(memory: Memory) -> None:
    url = memory.context.database_url
    with reading(url) as db:
        assert db.execute(COUNT).fetchone() == (0,)
        with connect(url) as other:
            other.execute(ADD)
        assert db.execute(COUNT).fetchone() == (0,)
    with transaction(url) as db:
        assert db.execute("select current_setting('transaction_isolation')").fetchone() == ("read committed",)
        assert db.execute(COUNT).fetchone() == (1,)


def test_a_connection_that_failed_or_was_lost_while_reading_is_no_harm_to_the_next(memory: Memory) -> None:
    url = memory.context.database_url
    with pytest.raises(psycopg.errors.DivisionByZero), reading(url) as db:
        db.execute("select 1 / 0")
    with pytest.raises(psycopg.OperationalError), reading(url) as db:
        db.execute("select pg_terminate_backend(pg_backend_pid())")
    with transaction(url) as db:
        assert db.execute("select current_setting('transaction_isolation')").fetchone() == ("read committed",)
