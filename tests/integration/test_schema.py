"""The schema is applied as often as anybody likes, and never onto what a newer version made."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from memory import Memory

from api.system import servers
from workers.errors import SchemaError, UnavailableError
from workers.storage import schema
from workers.storage.connection import connect

SHAPE = """
    select 'table', table_name, column_name, data_type from information_schema.columns where table_schema = 'public'
    union all
    select 'index', tablename, indexname, indexdef from pg_indexes where schemaname = 'public'
    order by 1, 2, 3
"""


@pytest.fixture
def empty_url(postgres: servers.Postgres) -> Iterator[str]:
    """The address of a database without a single table."""
    url = servers.ensure_database(postgres, "empty_ebb")
    yield url
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as db:
        db.execute("drop database empty_ebb with (force)")


def test_applying_the_schema_again_changes_nothing(memory: Memory) -> None:
    memory.add("Tea at four.")
    before = memory.rows(SHAPE)
    schema.apply(memory.context.database_url)
    assert memory.rows(SHAPE) == before
    assert memory.rows("select version from schema_version") == [(schema.VERSION,)]
    assert len(memory.ids("tea")) == 1


def test_its_statements_can_be_run_by_hand_over_a_database_that_has_them(memory: Memory) -> None:
    before = memory.rows(SHAPE)
    with connect(memory.context.database_url) as db:
        db.execute(schema._statements().encode())
    assert memory.rows(SHAPE) == before
    assert memory.rows("select version from schema_version") == [(schema.VERSION,)]


def test_two_processes_that_apply_it_to_an_empty_database_at_once_both_succeed(empty_url: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(schema.apply, [empty_url, empty_url]))
    with connect(empty_url) as db:
        schema.check(db)
        assert db.execute("select count(*) from schema_version").fetchone() == (1,)


def test_a_newer_version_is_refused_and_left_as_it_is(memory: Memory) -> None:
    memory.rows("insert into schema_version (version) values (%s)", schema.VERSION + 1)
    with pytest.raises(
        SchemaError, match=rf"has schema version {schema.VERSION + 1}.* knows {schema.VERSION}: upgrade"
    ):
        schema.apply(memory.context.database_url)
    with connect(memory.context.database_url) as db, pytest.raises(SchemaError, match="run `ebb up`"):
        schema.check(db)


def test_a_database_without_schema_is_refused_by_the_check(empty_url: str) -> None:
    with connect(empty_url) as db, pytest.raises(SchemaError, match=r"has schema version 0.* run `ebb up`"):
        schema.check(db)


def test_applying_it_to_a_server_that_is_away_says_so() -> None:
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1.*refused"):
        schema.apply("postgresql://postgres@127.0.0.1:1/ebb")
