"""Databases of the tests: each is dropped when its block ends."""

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import psycopg
from psycopg import sql

from api.up.servers import Postgres


@contextmanager
def new_database(postgres: Postgres, template: str = "template1") -> Iterator[str]:
    """Give the address of a fresh copy of a database, or of one without a single table."""
    name = sql.Identifier(f"test_{uuid4().hex}")
    with psycopg.connect(postgres.url("postgres"), autocommit=True) as db:
        db.execute(sql.SQL("create database {} template {} strategy file_copy").format(name, sql.Identifier(template)))
        yield postgres.url(name.as_string().strip('"'))
        db.execute(sql.SQL("drop database {} with (force)").format(name))
