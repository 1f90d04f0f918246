"""The schema is created once, verified at every start, and never applied to that of a newer version."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast
from uuid import uuid4

import psycopg
import pytest
from databases import new_database, new_schema, role_without_tables
from memory import Memory
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from api.cli import doctor
from api.up import servers
from workers.admin import shard_moves
from workers.errors import SchemaError, UnavailableError
from workers.memory.embed import check_embedder
from workers.storage import migrations, schema, server
from workers.storage.connection import close_pools, connect

NEXT = "insert into schema_migrations (number, name) values (%s, 'of a newer version')"


@pytest.fixture
def empty_url(postgres: servers.Postgres) -> Iterator[str]:
    """Return the URL of an empty database."""
    with new_database(postgres) as url:
        yield url


def verified(url: str) -> None:
    with connect(url) as db:
        schema.verify(db)


def test_applying_the_schema_again_changes_nothing(memory: Memory) -> None:
    memory.add("Tea at four.")
    assert schema.apply(memory.context.database_url) == []
    verified(memory.context.database_url)
    assert len(memory.ids("tea")) == 1


def test_the_snapshot_refuses_a_database_that_has_a_schema(memory: Memory) -> None:
    with connect(memory.context.database_url) as db, pytest.raises(psycopg.errors.RaiseException, match="has a schema"):
        db.execute(schema.snapshot().encode())


def test_a_database_that_cannot_store_every_text_is_refused(postgres: servers.Postgres) -> None:
    with new_database(postgres, "template0", "encoding 'SQL_ASCII' locale 'C'") as url:
        with pytest.raises(SchemaError, match=r"encoding is SQL_ASCII, .* --encoding=UTF8"):
            schema.apply(url)
        with connect(url) as db:
            assert db.execute("select 1 from pg_tables where schemaname = 'public'").fetchall() == []


def test_a_database_with_another_small_letter_for_the_capital_i_is_refused(postgres: servers.Postgres) -> None:
    with new_database(postgres, "template0") as url:
        with connect(url) as db:  # as in Turkish, whose locale few machines have
            db.execute("create schema turkish")
            lower = "translate(pg_catalog.lower($1), 'i', U&'\\0131')"
            db.execute(f"create function turkish.lower(text) returns text return {lower}")
        with pytest.raises(SchemaError, match=r"small letter for I, .* --locale=C.UTF-8"):
            schema.apply(make_conninfo(url, options="-c search_path=public,turkish,pg_catalog"))


@pytest.mark.parametrize(
    ("oldest", "least", "said"),
    [
        ("OLDEST_POSTGRES", 99, r"^The server is PostgreSQL \d+: Ebb needs 99 or newer\.$"),
        ("OLDEST_PGVECTOR", (99, 1), r"has pgvector [\d.]+, Ebb needs 99\.1 or newer: install that on the server"),
    ],
)
def test_servers_that_are_too_old_are_refused(
    empty_url: str, monkeypatch: pytest.MonkeyPatch, oldest: str, least: object, said: str
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(schema, oldest, least)
        with pytest.raises(SchemaError, match=said):
            schema.apply(empty_url)
    schema.apply(empty_url)
    monkeypatch.setattr(schema, oldest, least)
    for start in (schema.apply, schema.verify_at):
        with pytest.raises(SchemaError, match=said):
            start(empty_url)


def test_two_processes_that_apply_it_to_an_empty_database_at_once_both_succeed(empty_url: str) -> None:
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(schema.apply, [empty_url, empty_url])) == [[], []]
    with connect(empty_url) as db:
        schema.verify(db)
        assert db.execute("select count(*) from schema_version").fetchone() == (1,)


def test_a_database_with_a_table_of_the_same_name_is_refused_with_what_to_do(empty_url: str) -> None:
    with connect(empty_url) as db:
        db.execute("create table facts (id int)")
    with pytest.raises(SchemaError, match=r'schema: relation "facts" already exists\. Give Ebb an empty'):
        schema.apply(empty_url)


def test_a_role_that_may_not_create_the_extension_is_told_who_can(empty_url: str, postgres: servers.Postgres) -> None:
    role = f"writer_{uuid4().hex}"
    database = sql.Identifier(conninfo_to_dict(empty_url)["dbname"])
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as admin:
        admin.execute(sql.SQL("create role {} login").format(sql.Identifier(role)))
        admin.execute(sql.SQL("alter database {} owner to {}").format(database, sql.Identifier(role)))
    try:
        with pytest.raises(SchemaError, match='extension "vector"\\. Let a superuser prepare the database once'):
            schema.apply(make_conninfo(empty_url, user=role))
    finally:
        close_pools()
        with psycopg.connect(postgres.url("postgres"), autocommit=True) as admin:
            admin.execute(sql.SQL("alter database {} owner to postgres").format(database))
            admin.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


def test_the_number_of_the_snapshot_is_that_of_the_newest_migration() -> None:
    numbers = [one.number for one in migrations.known()]
    assert numbers == list(range(2, schema.version() + 1)), "the first statement of schema.sql has the newest number"


def test_the_expected_catalogue_is_what_the_snapshot_makes(memory: Memory) -> None:
    with connect(memory.context.database_url) as db:
        live = schema.live_catalogue(db)
    assert live == schema.expected_catalogue(), "schema.sql was changed: run `make catalogue`"


def test_a_database_of_a_newer_version_is_left_as_it_is_and_used(memory: Memory) -> None:
    memory.rows(NEXT, schema.version() + 1)
    memory.rows("alter table facts add column mood text")
    memory.rows("alter table facts drop constraint facts_importance_check")
    memory.rows("alter table facts add constraint facts_importance_check check (importance >= 0)")
    assert schema.apply(memory.context.database_url) == []
    newer = schema.described(schema.version_of(memory.context.database_url))
    assert newer == f"version {schema.version() + 1}, of a newer Ebb: this one has {schema.version()}"
    memory.add("Tea at four.")
    assert len(memory.ids("tea")) == 1
    memory.rows("drop table likenesses")
    with pytest.raises(SchemaError, match=r"lacks what .* likenesses.*\. Upgrade Ebb\.$"):
        verified(memory.context.database_url)


@pytest.mark.usefixtures("postgres")
def test_a_server_that_takes_no_writes_is_refused_with_what_to_do(memory: Memory) -> None:
    read_only = f"{memory.context.database_url}&options=-cdefault_transaction_read_only%3Don"
    with pytest.raises(UnavailableError, match=r"takes no writes: it is a standby.* remove `standby.signal`"):
        schema.apply(read_only)


@pytest.mark.usefixtures("postgres")
def test_a_role_that_may_not_write_each_table_is_refused_and_the_tables_are_named(memory: Memory) -> None:
    with connect(memory.context.database_url) as db:
        db.execute("create role little")
        db.execute("grant select, insert, update, delete on all tables in schema public to little")
        db.execute("set local role little")
        schema.verify(db)
        db.execute("reset role")
        db.execute("revoke all on events from little")
        db.execute("revoke delete on links from little")
        db.execute("set local role little")
        with pytest.raises(SchemaError, match=r"may not read and write events, links: have .* `grant select"):
            schema.verify(db)
        db.rollback()


@pytest.mark.usefixtures("postgres")
def test_a_role_that_may_not_read_the_migrations_is_refused_with_what_to_do(memory: Memory) -> None:
    with role_without_tables(memory.context.database_url) as url:
        memory.rows(f"revoke all on schema_migrations from {conninfo_to_dict(url)['user']}")
        for act in (schema.apply, schema.verify_at):
            with pytest.raises(UnavailableError, match=r"table schema_migrations\. Have the owner .* `grant"):
                act(url)
        settings = memory.having(database_url=url).context.settings
        assert "Have the owner" in doctor._checked("database", settings, cast("Any", None))["says"]


def test_a_schema_that_the_role_may_not_use_is_not_replaced_by_the_next_one(memory: Memory) -> None:
    with new_schema(memory.context.database_url) as own, role_without_tables(memory.context.database_url) as url:
        schema.apply(own)
        options = conninfo_to_dict(own)["options"]
        for act in (schema.apply, schema.verify_at):
            with pytest.raises(SchemaError, match=r"no schema test_\w+, .* `grant usage on` it"):
                act(make_conninfo(url, options=options))


def test_a_schema_that_this_version_cannot_work_with_is_refused(memory: Memory) -> None:
    memory.rows(NEXT, schema.version() + 1)
    memory.rows("insert into schema_version (version) values (%s)", schema.compatibility() + 1)
    with pytest.raises(SchemaError, match=rf"has schema {schema.version() + 1}, .* cannot work with: upgrade Ebb"):
        verified(memory.context.database_url)
    with pytest.raises(SchemaError, match="upgrade Ebb"):
        schema.apply(memory.context.database_url)


def test_a_database_without_schema_is_refused_by_the_check(empty_url: str) -> None:
    with connect(empty_url) as db, pytest.raises(SchemaError, match=r"has no schema of Ebb.* run `ebb migrate`"):
        schema.check(db)


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("drop index signatures_scan", "index signatures_scan is missing"),
        ("drop table likenesses", "table likenesses is missing"),
        ("alter table facts drop column metadata", "column facts.metadata is missing"),
        ("alter table links alter column strength type real", "column links.strength is 'real not null"),
        ("alter table facts alter column kind drop default", "column facts.kind is"),
        ("drop trigger erased on facts", "trigger facts.erased is missing"),
        ("alter table facts add constraint short check (length(text) < 10)", "constraint facts.short is not known"),
        (
            "alter table relations drop constraint relations_type_check",
            "constraint relations.relations_type_check is m",
        ),
        ("create or replace function unspaced() returns text language sql return 'a'", "function unspaced() is"),
    ],
)
def test_each_difference_from_the_expected_catalogue_is_refused_and_named(
    memory: Memory, statement: str, named: str
) -> None:
    memory.rows(statement)
    with connect(memory.context.database_url) as db:
        assert any(one.startswith(named) for one in schema.differences(db))
        with pytest.raises(SchemaError, match=r"not the one that this version .* Undo the change"):
            schema.verify(db)


def test_the_refusal_names_several_differences_for_only_a_running_system_has_a_doctor(memory: Memory) -> None:
    memory.rows("drop index facts_newest")
    memory.rows("alter table facts add constraint short check (length(text) < 10)")
    with connect(memory.context.database_url) as db, pytest.raises(SchemaError) as refused:
        schema.verify(db)
    assert "constraint facts.short is not known to Ebb" in str(refused.value)
    assert "index facts_newest is missing" in str(refused.value)


def test_tables_and_indexes_of_others_are_no_difference(memory: Memory) -> None:
    memory.rows("create table notes (body text)")
    memory.rows("create index own_index on facts (created_at)")
    verified(memory.context.database_url)


def test_applying_it_to_a_server_that_is_away_says_so() -> None:
    with pytest.raises(UnavailableError, match=r"127\.0\.0\.1.*refused"):
        schema.apply("postgresql://postgres@127.0.0.1:1/ebb")


@pytest.mark.parametrize("prefix", ["test", "Test"])
def test_a_second_system_works_in_a_schema_of_its_own(memory: Memory, prefix: str) -> None:
    with new_schema(memory.context.database_url, prefix) as url:
        with connect(url) as db, pytest.raises(SchemaError, match=rf"no schema {prefix}_\w+, .*: run `ebb migrate`"):
            schema.check(db)
        schema.apply(url)
        verified(url)
        own = memory.having(database_url=url)
        check_embedder(own.context)
        first, _ = own.add("Tea at four."), own.add("Invoice paid.", decay_class="checkpoint")
        assert own.ids("tea") == [first]
        assert own.decay(400).counters.forgotten == 1
        own.forget(first, at=400)
        assert own.stats(400).forgotten == 2
        assert not any(own.examine(400).values())
        with connect(url) as db:
            assert server.index_sizes(db, 1)
            assert server.drop_unfinished_indexes(db) == []
        schema.apply(url, count=2)
        split = own.having(database_url=url, shards=2)
        for _ in split.context.each_shard():
            check_embedder(split.context)
        (one, _) = shard_moves.listed(split.context)
        assert (one.schema_name[: len(prefix)], one.bytes > 0) == (prefix, True)
        assert shard_moves.move(split.context, "default", 1).new == 1
        close_pools()
    assert memory.stats(400).facts == memory.stats(400).forgotten == 0


def test_a_name_without_quotes_is_in_lower_case_as_in_postgresql(memory: Memory) -> None:
    with new_schema(memory.context.database_url) as own:
        path = conninfo_to_dict(own)["options"]
        url = make_conninfo(own, options=str(path).replace("test_", "Test_").replace('"', ""))
        with connect(url) as db, pytest.raises(SchemaError, match=r"no schema test_\w+, .*: run `ebb migrate`"):
            schema.check(db)
        schema.apply(url)
        verified(own)
        close_pools()


@pytest.mark.parametrize(("value", "warns"), [("on", False), ("remote_apply", False), ("off", True)])
def test_a_server_that_may_lose_acknowledged_writes_is_reported(memory: Memory, value: str, warns: bool) -> None:
    url = make_conninfo(memory.context.database_url, options=f"-csynchronous_commit={value}")
    with connect(url) as db:
        said = schema.servers(db)
    assert ("\nwarning: synchronous_commit is off, so a crash" in said) == warns
