"""Connections to PostgreSQL: a small pool in each process, opened at first use because none survives a fork."""

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any, TypeAlias

import psycopg
from pgvector.psycopg import register_vector
from psycopg.rows import TupleRow
from psycopg_pool import ConnectionPool, PoolTimeout

from workers.errors import UnavailableError

Connection: TypeAlias = psycopg.Connection[TupleRow]
Pool: TypeAlias = ConnectionPool[Connection]

POOL_SIZE = 4
CONNECT_SECONDS = 5
WAIT_SECONDS = 8.0

# A generic plan of a vector or text query can be thousands of times slower than one made for its values. HNSW with a
# search list of 350 finds 983 of 1,000 true neighbours among a million signatures in tight clusters, and 885 where none
# is much nearer than the rest; with 250 it is 963 and 867, with 400 it is 984 and 890, for an eighth more time.
CONFIGURE = """
    set statement_timeout = '55s';
    set idle_in_transaction_session_timeout = '60s';
    set lock_timeout = '20s';
    set plan_cache_mode = 'force_custom_plan';
    set hnsw.ef_search = 350;
    set jit = off;
    set timezone = 'UTC'
"""

# What PostgreSQL runs once for each row that is written, foreign keys and `search_lexemes`, would be planned as often.
KEEP_PLANS = "set local plan_cache_mode = 'auto'"

_pools: dict[tuple[int, str, bool], Pool] = {}
_opening = Lock()


@contextmanager
def transaction(url: str, *, second: bool = False) -> Iterator[Connection]:
    """Give a connection in a transaction that commits at the end of the block, or rolls back on an error.

    A `second` one, for who waits for it with another in hand, comes from a pool of its own: it would never come if all
    of one pool's were in such hands.

    Raises:
        UnavailableError: the server does not answer; the message names host and cause.
    """
    try:
        with _pool(url, second=second).connection(timeout=WAIT_SECONDS) as db:
            yield db
    except PoolTimeout:
        raise UnavailableError(_explain(url)) from None


@contextmanager
def reading(url: str) -> Iterator[Connection]:
    """Give a connection in a transaction whose statements all see the state that the first one saw.

    What is purged meanwhile by others stays readable to the end; nothing is waited for.

    Raises:
        UnavailableError: the server does not answer; the message names host and cause.
    """
    with transaction(url) as db:
        db.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        try:
            with db.transaction():
                yield db
        finally:
            if not db.closed:
                db.isolation_level = None


@contextmanager
def writing(url: str) -> Iterator[Connection]:
    """Give a connection in a transaction that writes many rows, or few without waiting for each statement's answer.

    Statements are sent at once, and an error is raised when the next answer is read, at the latest at the end of the
    block; `rowcount` is not known within it.

    Raises:
        UnavailableError: the server does not answer; the message names host and cause.
    """
    with transaction(url) as db, db.pipeline():
        keep_plans(db)
        # The commit comes behind the pipeline, whose end sends what is still to be sent; within, it would wait for it.
        yield db


def keep_plans(db: Connection) -> None:
    """Plan what follows in this transaction once for each connection, not for its values: for rows found by their keys.

    To plan what reads the candidates of a recall takes as long as a third of reading them.
    """
    db.execute(KEEP_PLANS)


@contextmanager
def snapshot(url: str) -> Iterator[Connection]:
    """Give a connection of its own that reads one unchanging state of the database, for as long as it takes."""
    with connect(url) as db:
        db.execute("set statement_timeout = 0; set idle_in_transaction_session_timeout = 0")
        db.commit()
        db.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        db.read_only = True
        yield db


def connect(url: str, *, autocommit: bool = False) -> Connection:
    """Return a configured connection outside the pool.

    Raises:
        UnavailableError: the server does not answer; the message names host and cause.
    """
    try:
        db = psycopg.connect(url, autocommit=autocommit, connect_timeout=CONNECT_SECONDS, application_name="ebb")
    except psycopg.OperationalError as error:
        raise UnavailableError(f"PostgreSQL does not answer: {_cause(error)}. Is it running at that address?") from None
    _configure(db)
    return db


def close_pools() -> None:
    """Close this process's pools."""
    for key in [key for key in _pools if key[0] == os.getpid()]:
        _pools.pop(key).close()


def _pool(url: str, *, second: bool) -> Pool:
    key = (os.getpid(), url, second)
    with _opening:
        if key not in _pools:
            _pools[key] = _open_pool(url)
        return _pools[key]


def _open_pool(url: str) -> Pool:
    return ConnectionPool(
        url,
        min_size=0,
        max_size=POOL_SIZE,
        open=True,
        configure=_configure,
        check=_check,
        kwargs={"connect_timeout": CONNECT_SECONDS, "application_name": "ebb"},
        name="ebb",
    )


def _check(db: psycopg.Connection[Any]) -> None:
    """Ask whether a connection lives, but only where the server has said something unasked, as it does when it ends.

    Nobody waits for an answer before each transaction, of which a recall has two.
    """
    said = select.poll()
    said.register(db.fileno(), select.POLLIN)
    if said.poll(0):
        ConnectionPool.check_connection(db)


def _configure(db: psycopg.Connection[Any]) -> None:
    db.execute(CONFIGURE)
    if db.execute("select 1 from pg_type where typname = 'halfvec'").fetchone():
        register_vector(db)
    if not db.autocommit:
        db.commit()


def _explain(url: str) -> str:
    """Return why no connection came: the server's own words where it has some."""
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError as error:
        return f"PostgreSQL does not answer: {_cause(error)}. Is it running at that address?"
    return f"PostgreSQL gave no connection within {WAIT_SECONDS:g} s: it is overloaded, or max_connections is too low."


def _cause(error: BaseException) -> str:
    return " ".join(str(error).split()).rstrip(".?")
