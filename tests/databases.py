"""Databases of the tests, each dropped at the end of its block."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from uuid import uuid4

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from api.up.servers import Postgres

FOR_TESTS = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "128MB",
    "max_wal_size": "256MB",
}
"""Settings of the tests' PostgreSQL: safe against crashes of processes, which tests cause, but not of the machine."""

UNSYNCED = tuple(part for name, value in FOR_TESTS.items() for part in ("-c", f"{name}={value}"))

_thread = ThreadPoolExecutor(1)
_drops: list[Future[None]] = []


@contextmanager
def new_database(postgres: Postgres, template: str = "template1") -> Iterator[str]:
    """Yield the URL of a fresh copy of a database, or of an empty one."""
    name = f"test_{uuid4().hex}"
    create = sql.SQL("create database {} template {} strategy file_copy")
    _execute(postgres, create.format(sql.Identifier(name), sql.Identifier(template)))
    yield postgres.url(name)
    # In the background, since dropping a database waits for a checkpoint.
    drop = sql.SQL("drop database {} with (force)").format(sql.Identifier(name))
    _drops.append(_thread.submit(_execute, postgres, drop))


@contextmanager
def new_schema(database_url: str) -> Iterator[str]:
    """Yield the URL of a database with a fresh, empty schema in front of the search path."""
    name = f"test_{uuid4().hex}"
    yield make_conninfo(database_url, options=f"-csearch_path={name},public")
    with psycopg.connect(database_url, autocommit=True) as db:
        db.execute(sql.SQL("drop schema if exists {} cascade").format(sql.Identifier(name)))


def wait_until_dropped() -> None:
    """Wait until all databases of finished blocks are dropped; raise the first error."""
    for drop in _drops:
        drop.result()
    _drops.clear()


def _execute(postgres: Postgres, statement: sql.Composed) -> None:
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as db:
        db.execute(statement)
