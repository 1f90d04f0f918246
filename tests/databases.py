"""Databases of the tests, each dropped at the end of its block."""

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from typing import Any, LiteralString
from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from api.up.servers import Postgres
from workers.errors import EbbError
from workers.storage.connection import close_pools
from workers.storage.shards import IDS_OF_A_SHARD

CITUS_URL = os.environ.get("EBB_TEST_CITUS_URL", "")

SHARDS = int(os.environ.get("EBB_TEST_SHARDS", "1"))
"""Shards of the systems under test; tests of several shards have their own number."""

ON_ONE_SHARD = pytest.mark.skipif(SHARDS > 1, reason="the test reads or writes tables of the first shard itself")
RUN_OF_EACH_SHARD = pytest.mark.skipif(SHARDS > 1, reason="a pass over everything has a run on each shard")

FOR_TESTS = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "128MB",
    "max_wal_size": "256MB",
    "io_method": "sync",  # pages come from memory: handing a read to another process takes longer
}
"""Settings of the tests' PostgreSQL: safe against crashes of processes, which tests cause, but not of the machine."""

WITHOUT_FSYNC = "no"
"""`appendfsync` of the tests' Redis: with `everysec`, a killed one may lose two seconds if the disk is slow."""

UNSYNCED = tuple(part for name, value in FOR_TESTS.items() for part in ("-c", f"{name}={value}"))

_thread = ThreadPoolExecutor(1)
_drops: list[Future[None]] = []


@contextmanager
def new_database(postgres: Postgres, template: str = "template1", options: LiteralString = "") -> Iterator[str]:
    """Yield the URL of a fresh copy of a database, or of an empty one."""
    name = f"test_{uuid4().hex}"
    create = sql.SQL("create database {} template {} strategy file_copy {}")
    _execute(postgres, create.format(sql.Identifier(name), sql.Identifier(template), sql.SQL(options)))
    yield postgres.url(name)
    # In the background, since dropping a database waits for a checkpoint.
    drop = sql.SQL("drop database {} with (force)").format(sql.Identifier(name))
    _drops.append(_thread.submit(_execute, postgres, drop))


@contextmanager
def role_without_tables(url: str) -> Iterator[str]:
    """Yield the URL of a role that may read and write all tables of a database, and owns none."""
    name = f"plain_{uuid4().hex}"
    role = sql.Identifier(name)
    with psycopg.connect(url, autocommit=True) as db:
        db.execute(sql.SQL("create role {} login").format(role))
        db.execute(sql.SQL("grant select, insert, update, delete on all tables in schema public to {}").format(role))
        try:
            yield make_conninfo(url, user=name)
        finally:
            close_pools()
            db.execute(sql.SQL("drop owned by {}").format(role))
            db.execute(sql.SQL("drop role {}").format(role))


# Changes that deleting rows does not undo; each change of a definition gives a row a new `xmin`.
UNCHANGED = """
    select (select (count(*), max(xmin::text::bigint), sum(relpages), sum(reltuples))::text
            from pg_class where oid >= 16384),
        (select (count(*), max(xmin::text::bigint))::text from pg_attribute where attrelid >= 16384),
        (select (count(*), max(xmin::text::bigint))::text from pg_constraint where oid >= 16384),
        (select (count(*), max(xmin::text::bigint))::text from pg_trigger where oid >= 16384),
        (select (count(*), max(xmin::text::bigint))::text from pg_proc where oid >= 16384),
        (select (count(*), max(xmin::text::bigint))::text from pg_ts_config where oid >= 16384),
        (select (count(*), max(xmin::text::bigint))::text from pg_namespace where not starts_with(nspname, 'pg_')),
        (select count(*) from pg_extension), (select count(*) from pg_statistic where starelid >= 16384),
        (select array_agg(version) from schema_version), (select array_agg(number order by 1) from schema_migrations),
        (select count(*) from pg_db_role_setting join pg_database on pg_database.oid = setdatabase
            where datname = current_database()),
        exists(select from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()
                and backend_type = 'client backend' and state <> 'idle')
            or exists(select from pg_locks join pg_database on pg_database.oid = database
                where datname = current_database() and locktype = 'advisory')
"""
SIZE = "select sum(pg_relation_size(oid)) from pg_class where oid >= 16384 and relkind in ('r', 't')"
MOST_GROWTH = 2_000_000
"""Bytes by which tables may grow before another database is used: deleted rows change estimates of planned rows."""

EMPTIED = """
    do $$
    declare
        own record;
    begin
        set local session_replication_role = replica;
        set local lock_timeout = '1s';
        for own in select oid::regclass as name, relkind from pg_class
            where relnamespace = quote_ident(current_schema())::regnamespace and relkind in ('r', 'S')
                and relname not in ('schema_version', 'schema_migrations')
        loop
            if own.relkind = 'S' then
                perform setval(own.name, 1, false);
            else
                execute format('delete from %s', own.name);
            end if;
        end loop;
    end $$
"""


class Reused:
    """A database for one test after another, to which the pools of this process stay connected."""

    def __init__(self, postgres: Postgres, template: str) -> None:
        self._until_dropped = ExitStack()
        self.url = self._until_dropped.enter_context(new_database(postgres, template))
        self._until_dropped.callback(close_pools)
        self._db = self._until_dropped.enter_context(psycopg.connect(self.url, autocommit=True))
        self._unchanged = self._db.execute(UNCHANGED).fetchone()
        self._empty = "".join(map(_emptied_shard, schemas(self._db), range(100)))
        self._most = self._size() + MOST_GROWTH

    def emptied(self) -> bool:
        """Delete all rows but those that it is made with; return false if the next test needs another database."""
        with suppress(psycopg.Error):
            if self._db.execute(UNCHANGED).fetchone() != self._unchanged:
                return False
            self._db.execute(self._empty)
            return self._size() <= self._most
        return False

    def drop(self) -> None:
        self._until_dropped.close()

    def _size(self) -> int:
        (size,) = self._db.execute(SIZE).fetchone() or (0,)
        return int(size)


def _emptied_shard(schema: str, shard: int) -> str:
    """Return the statements that empty a shard, whose namespaces have ids of their own."""
    numbered = f"select setval(pg_get_serial_sequence('namespaces', 'id'), {shard * IDS_OF_A_SHARD + 1}, false)"
    return ";".join((f"set search_path = {schema}, public", EMPTIED, *SEEDS, numbered, "reset search_path", ""))


@contextmanager
def reused_databases(postgres: Postgres, template: str) -> Iterator[Callable[[], AbstractContextManager[str]]]:
    """Yield a function that returns an emptied database: connecting to a new one takes as long as several tests."""
    unused: list[Reused] = []

    @contextmanager
    def reused() -> Iterator[str]:
        database = unused.pop() if unused else Reused(postgres, template)
        yield database.url
        if database.emptied():
            unused.append(database)
        else:
            database.drop()

    yield reused
    for database in unused:
        database.drop()


@contextmanager
def new_schema(database_url: str, prefix: str = "test") -> Iterator[str]:
    """Yield the URL of a database with a fresh, empty schema in front of the search path."""
    name = f"{prefix}_{uuid4().hex}"
    yield make_conninfo(database_url, options=f'-csearch_path="{name}",public')
    drop_schemas(database_url, name)


def drop_schemas(database_url: str, name: str) -> None:
    """Drop the schemas of a system, those of its shards with the name of the first one and a number."""
    with psycopg.connect(database_url, autocommit=True) as db:
        for (schema,) in db.execute(OF_A_SYSTEM, [name]).fetchall():
            db.execute(sql.SQL("drop schema {} cascade").format(sql.Identifier(schema)))


OF_A_SYSTEM = "select nspname from pg_namespace where starts_with(nspname, %s)"


def database_of(request: pytest.FixtureRequest) -> AbstractContextManager[str]:
    """Give a new database; a test that uses the tests' PostgreSQL itself gets one there, not on the cluster."""
    if CITUS_URL and "postgres" in request.fixturenames:
        return new_database(request.getfixturevalue("postgres"), request.getfixturevalue("template"))
    fresh: Callable[[], AbstractContextManager[str]] = request.getfixturevalue("fresh")
    return fresh()


def schemas(db: psycopg.Connection[Any]) -> list[str]:
    """Return the schemas of the shards of the system that a connection leads to, the first one first."""
    (home,) = db.execute("select current_schema()").fetchone() or ("",)
    return [str(name) for (name,) in db.execute(OF_SHARDS, [home, f"^{home}_[0-9]{{4}}$"])]


OF_SHARDS = "select nspname from pg_namespace where nspname = %s or nspname ~ %s order by 1"


def on_each_shard(db: psycopg.Connection[Any], statement: Any, parameters: Sequence[Any] = ()) -> list[list[Any]]:
    """Return the rows of a statement on each shard."""
    found = []
    for name in schemas(db):
        db.execute(sql.SQL("set search_path = {}, public").format(sql.Identifier(name)))
        cursor = db.execute(statement, parameters)
        found.append(cursor.fetchall() if cursor.description else [])
    db.execute("reset search_path")
    return found


def together(shards: list[list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    """Return the rows of all shards; of aggregates, which each shard answers with one row, the sums or what one has."""
    if all(len(rows) == 1 for rows in shards):
        return [tuple(_sum(list(values)) for values in zip(*(row for (row,) in shards), strict=True))]
    return [row for rows in shards for row in rows]


def _sum(values: list[Any]) -> Any:
    given = [value for value in values if value is not None]
    if given and all(isinstance(value, int) and not isinstance(value, bool) for value in given):
        return sum(given)
    return next((value for value in given if value), given[0] if given else None)


EMPTY = """
    select 'truncate ' || string_agg(quote_ident(relname), ', ') || ' restart identity'
    from pg_class
    where relnamespace = quote_ident(current_schema())::regnamespace and relkind = 'r'
        and relname not in ('schema_version', 'schema_migrations')
"""
SEEDS = ("insert into languages (name) values ('english')", "insert into forget_limits default values")


@contextmanager
def distributed_schemas(cluster_url: str) -> Iterator[Callable[[], AbstractContextManager[str]]]:
    """Yield a function that returns a schema on a cluster, new or emptied: creating one takes seconds."""
    from workers.storage import schema  # tests of the pure core do not need tables

    unused: list[str] = []
    with ExitStack() as schemas:

        @contextmanager
        def empty() -> Iterator[str]:
            if not unused:
                unused.append(schemas.enter_context(new_schema(cluster_url)))
                schema.apply(unused[-1], count=SHARDS)
            yield (url := unused.pop())
            with suppress(EbbError, psycopg.Error):  # what a test changed or locked is not used again
                schema.verify_at(url)
                if _emptied(url):
                    unused.append(url)

        yield empty


def _emptied(url: str) -> bool:
    """Delete all rows of a schema but those that it is made with.

    Returns false if it has another language, more migrations or shards, or vector indexes, which other rows would keep.
    """
    from workers.storage import schema, signatures  # tests of the pure core do not need tables

    with psycopg.connect(url, autocommit=True) as db:
        db.execute("set lock_timeout = '5s'")
        (own,) = db.execute("select current_schema()").fetchone() or ("",)
        if db.execute("select name from languages").fetchone() != ("english",):
            return False
        if db.execute("select max(number) from schema_migrations").fetchone() != (schema.version(),):
            return False
        if len(db.execute(OF_A_SYSTEM, [own]).fetchall()) > 1 or signatures.indexes(db):
            return False
        (empty,) = db.execute(EMPTY).fetchone() or ("",)
        for statement in (empty, *SEEDS):
            db.execute(statement)
        return True


def wait_until_dropped() -> None:
    """Wait until all databases of finished blocks are dropped; raise the first error."""
    for drop in _drops:
        drop.result()
    _drops.clear()


def _execute(postgres: Postgres, statement: sql.Composed) -> None:
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as db:
        db.execute(statement)
