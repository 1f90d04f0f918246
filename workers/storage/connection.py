"""Connections to PostgreSQL: a small pool in each process, opened at first use because none survives a fork.

Functions that connect raise `UnavailableError`, naming host and cause, if the server does not answer. Those that take a
connection from a pool raise `NoConnectionError` if PostgreSQL or the pool has none free in time.
"""

import atexit
import os
import re
import select
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from enum import Enum, auto
from functools import partial
from threading import Lock
from typing import Any, Self, TypeAlias, TypeVar

import psycopg
from pgvector.psycopg.bit import register_bit_info
from pgvector.psycopg.halfvec import register_halfvec_info
from pgvector.psycopg.vector import register_vector_info
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import TransactionStatus
from psycopg.rows import TupleRow, class_row
from psycopg.types import TypeInfo
from psycopg_pool import ConnectionPool, PoolTimeout

from workers import tracing
from workers.errors import EbbError, NoConnectionError, OvertakenError, SettingsError, UnavailableError
from workers.storage import routing
from workers.storage.lenient import read_leniently
from workers.storage.refusals import MAKE_ROOM, broken_off, cause_of, nodes_answer, refused

Connection: TypeAlias = psycopg.Connection[TupleRow]
Cursor: TypeAlias = psycopg.Cursor[TupleRow]
Statement: TypeAlias = str | sql.Composed
Pool: TypeAlias = ConnectionPool["_Own"]
Row = TypeVar("Row")
Result = TypeVar("Result")

DEADLOCKS = 10
"""Attempts of a transaction that locks many rows in another order than writers do, which can cause a deadlock."""

POOL_SIZE = 4
CONNECT_SECONDS = 5
WAIT_SECONDS = 8.0
"""Timeout for getting a connection from the pool."""

READ_WAIT_SECONDS = 2.5
"""The timeout of readers: a user waits, and the whole task has eight seconds."""

RECONNECT_SECONDS = 4.0
"""Time after which a pool gives up a new connection, and tries again when one is asked for.

It waits twice as long before each attempt, so that after an outage of minutes it would wait for minutes more. So it
waits two seconds at most, less than a reader.
"""

SLOW_SECONDS = 0.5
"""A new connection that takes longer shows that the server, or the network to it, is slow."""

TRANSACTION_SECONDS = 65.0
"""Tasks end after a minute, so a longer transaction belongs to a process or host that hangs."""

CLIENT_ALIVE = {
    "keepalives": 1, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 25_000,
}  # fmt: skip
"""TCP settings that detect a lost server within half a minute; the URL may override them."""

SEARCH = {"hnsw.ef_search": "350", "hnsw.iterative_scan": "relaxed_order"}
"""The length of HNSW's search list, and that a search goes on where a filter or the list leaves too few results.

Among a million signatures in tight clusters 350 finds 983 of 1,000 true neighbours, and 885 where none is much nearer
than the rest; with 250 it is 963 and 867, with 400 it is 984 and 890, for an eighth more time. Of 110,000, with a
filter that leaves half, a search that goes on finds 95 % of the nearest 200, in strict order 88 %; one that does not
go on finds 82 %.
"""

AS_BY_DEFAULT = {
    "timezone": "UTC",
    "datestyle": "ISO",
    "intervalstyle": "postgres",
    "bytea_output": "hex",
    "extra_float_digits": "1",
    "quote_all_identifiers": "off",
    "standard_conforming_strings": "on",
    "default_transaction_isolation": "read committed",
}
"""What Ebb's statements, and the catalogue of their functions, are written for, whatever the server is set to.

Through a pooler the isolation is that of the server.
"""

# A generic plan of a vector or text query can be thousands of times slower than one made for its values.
CONFIGURATION = {
    "statement_timeout": "55s",
    "idle_in_transaction_session_timeout": "60s",
    "lock_timeout": "20s",
    "plan_cache_mode": "force_custom_plan",
    **SEARCH,
    "jit": "off",
    **AS_BY_DEFAULT,
}
SERVER_ALIVE = {
    "tcp_keepalives_idle": "30s",
    "tcp_keepalives_interval": "10s",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "60s",
    "client_connection_check_interval": "10s",  # else what a killed process began runs, and locks, to its end
}

LIMITS_TRANSACTIONS, LIMITS_SESSIONS = 170_000, 140_000
"""The first versions of PostgreSQL with `transaction_timeout` and with `idle_session_timeout`.

Only the first ends the transaction of a client that stops within a pipeline: its session is not idle, and no statement
runs. Where the server's administrator has set one for all, it would end a vacuum, or sessions that wait in a pool.
"""

SET = """
    select set_config(name, value, true)
    from unnest(%(names)s::text[], %(values)s::text[]) as given (name, value)
"""

REGISTER = {"vector": register_vector_info, "halfvec": register_halfvec_info, "bit": register_bit_info}
"""What registers each of pgvector's types on a connection, by the type's name."""

# In one statement, because on a distant server each trip delays the first task of a connection.
CONFIGURE = """
    select pg_backend_pid() <> %(process)s,
        (select jsonb_agg(found) from (
            select typname as name, oid::bigint, typarray::bigint as array_oid, oid::regtype::text as regtype,
                typdelim as delimiter
            from pg_type
            where oid = any(array[to_regtype('vector'), to_regtype('halfvec'), to_regtype('bit')]::oid[])
        ) as found),
        (
            select count(set_config(name, value, false))
            from unnest(%(names)s::text[], %(values)s::text[]) as given (name, value)
            where pg_backend_pid() = %(process)s
                and (name <> 'client_connection_check_interval' or version() ~ 'linux|darwin|freebsd')
        )
"""

LIFT_LIMITS = """
    select set_config(name, '0', true) from pg_settings where name in ('statement_timeout', 'transaction_timeout')
"""

BEGIN, BEGIN_SNAPSHOT, COMMIT = "begin", "begin isolation level repeatable read", "commit"

# Settings of readers' sessions. A statement that needs a plan for its values, as those with filters do, must not be
# prepared. A plan that is kept must not read a whole table, which may have been nearly empty when it was made.
READERS = {"default_transaction_isolation": "repeatable read", "plan_cache_mode": "auto", "enable_seqscan": "off"}

# With custom plans, foreign keys and `search_lexemes` would be planned once for each written row. Citus cannot plan
# every statement for any values, and would pass on `set local` to its nodes, whose triggers need custom plans.
KEEP_PLANS = "select set_config('plan_cache_mode', 'auto', true), set_config('enable_seqscan', 'off', true)"
COMMIT_LATER = "select set_config('synchronous_commit', 'off', true), set_config('plan_cache_mode', 'auto', true)"
GENERIC_PLANS = """
    select set_config('plan_cache_mode', case when current_setting('citus.version', true) is null
        then 'force_generic_plan' else 'auto' end, true), set_config('enable_seqscan', 'off', true)
"""

SAID_ONCE = "facts_said_once"
"""The index by which two live facts of a namespace cannot say the same; on Citus a number follows its name."""

SEARCH_PATH = re.compile(r"(?:-c *|--)search_path=((?:\\.|\S)+)")

POOLED = (
    "EBB_DATABASE_URL leads to a pooler such as PgBouncer, and this needs a session of its own: set "
    "EBB_DIRECT_DATABASE_URL to the address of PostgreSQL itself."
)

_pools: dict[tuple[int, str, "_Use"], Pool] = {}
_opening = Lock()


class _Use(Enum):
    """What a pool's connections are for. A caller that holds one connection takes another from another pool.

    Otherwise callers that all wait for their second connection would wait for each other.
    """

    TRANSACTIONS = auto()
    READS = auto()
    SECOND_READS = auto()


class _Own(psycopg.Connection[TupleRow]):
    """A connection that knows whether it goes through a pooler, where each transaction may run in another session.

    `routed` is the result of `routing.begin`, or true while its transactions are not to be routed. `configuration` are
    the settings of its session, which a pooler does not keep.
    """

    configuration: Mapping[str, str] = CONFIGURATION
    pooled = False
    routed: psycopg.Cursor[TupleRow] | bool | None = True

    @contextmanager
    def transaction(self, *arguments: Any, **options: Any) -> Iterator[psycopg.Transaction]:
        """Begin a transaction, or a savepoint within one, as psycopg does."""
        begins = _is_idle(self)
        with nodes_answer(), super().transaction(*arguments, **options) as begun:
            if begins:
                _prepare(self)
            yield begun


@contextmanager
def _takes_writes(db: Connection) -> Iterator[None]:
    """Raise `UnavailableError` if the server's disk is full, the role lacks rights, or the server became read-only.

    Then connect again, as a server that became a standby may keep its connections; among several hosts, a new one leads
    to the primary.
    """
    try:
        yield
    except (psycopg.errors.DiskFull, psycopg.errors.InsufficientPrivilege) as error:
        raise broken_off(error) from error
    except psycopg.errors.ReadOnlySqlTransaction as error:
        db.close()
        raise UnavailableError(
            "PostgreSQL takes no writes: it is read-only, or a replica that follows another. See its log for why, such "
            "as a full disk, and `default_transaction_read_only`."
        ) from error


class _TracedCursor(psycopg.Cursor[Any]):
    """A cursor whose statements are spans of the current trace."""

    def execute(self, query: Any, *arguments: Any, **options: Any) -> Self:
        """Run a statement."""
        with tracing.statement(query):
            return super().execute(query, *arguments, **options)

    def executemany(self, query: Any, *arguments: Any, **options: Any) -> None:
        """Run a statement for each of many rows."""
        with tracing.statement(query):
            super().executemany(query, *arguments, **options)


def again_after_deadlock(act: Callable[[], Result], attempts: int = DEADLOCKS) -> Result:
    """Return what `act` returns; while PostgreSQL ends its transaction because of a deadlock, call it again.

    Raises:
        psycopg.errors.DeadlockDetected: each of the attempts ended so.
    """
    for _ in range(attempts - 1):
        with suppress(psycopg.errors.DeadlockDetected):
            return act()
    return act()


@contextmanager
def transaction(url: str, *, wait: float = WAIT_SECONDS) -> Iterator[Connection]:
    """Yield a connection in a transaction that commits at the end of the block, or rolls back on an error.

    PostgreSQL 17 and later end a transaction after `TRANSACTION_SECONDS`, unless it calls `lift_limits`.
    """
    with _borrowed(url, _Use.TRANSACTIONS, wait) as db:
        _prepare(db)
        yield db


@contextmanager
def _borrowed(url: str, use: _Use, wait: float) -> Iterator[_Own]:
    """Yield a connection of a pool for a transaction.

    Raise `OvertakenError` if a concurrent transaction stored an equal fact, or erased one that is referred to. In a
    pipeline such an error appears later than its statement, at the latest at the end of the transaction.
    """
    try:
        with nodes_answer(), _pool(url, use).connection(timeout=wait) as db, _takes_writes(db):
            yield db
    except PoolTimeout:
        raise _explained(url, wait) from None
    except psycopg.errors.UniqueViolation as error:
        if SAID_ONCE not in (error.diag.message_primary or ""):  # Citus names it only there
            raise
        raise OvertakenError("A fact that says the same was stored at this very moment: try again.") from None
    except psycopg.errors.ForeignKeyViolation:
        raise OvertakenError("What this refers to was erased at this very moment: try again.") from None


@contextmanager
def reading(url: str) -> Iterator[Connection]:
    """Yield a connection in a `repeatable read` transaction: all statements see one snapshot."""
    with _borrowed(url, _Use.TRANSACTIONS, READ_WAIT_SECONDS) as db, _autocommit(db):
        db.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        try:
            with db.transaction():
                yield db
        finally:
            if _is_idle(db):
                db.isolation_level = None


@contextmanager
def _autocommit(db: Connection) -> Iterator[None]:
    """Put a connection in autocommit for the block; close one that an error left in the middle of a statement.

    psycopg would raise a `ProgrammingError` instead of the error, after which a task is tried again.
    """
    db.autocommit = True
    try:
        yield
    except BaseException:
        if not _is_idle(db):
            db.close()
        raise
    finally:
        if not db.closed:
            db.autocommit = False


def _is_idle(db: Connection) -> bool:
    return db.info.transaction_status == TransactionStatus.IDLE


@contextmanager
def reader(url: str) -> Iterator[Connection]:
    """Yield a connection on which each `in_pipeline` is a transaction that reads one snapshot.

    Statements have generic plans where these cost no more.
    """
    with _borrowed(url, _Use.READS, READ_WAIT_SECONDS) as db, _autocommit(db):
        yield db


@contextmanager
def second_reader(url: str) -> Iterator[Connection]:
    """Yield another reader's transaction, whose queries run in parallel with those of the caller's first one."""
    with _borrowed(url, _Use.SECOND_READS, READ_WAIT_SECONDS) as db, _autocommit(db), in_pipeline(db):
        yield db


@contextmanager
def in_pipeline(db: Connection) -> Iterator[None]:
    """Run a `reader`'s transaction in pipeline mode, which waits only where rows are fetched.

    Results that are not fetched in the block arrive at its end. Without a begin, all statements up to the end of the
    pipeline are one transaction, whose isolation is the session's; a pooler's session does not have it.
    """
    with _pipeline(db, BEGIN_SNAPSHOT if isinstance(db, _Own) and db.pooled else None):
        _prepare(db, share=False)
        yield


@contextmanager
def _pipeline(db: Connection, begin: str | None) -> Iterator[None]:
    """Run a transaction in a pipeline, from the statement `begin` to a commit, or else from the first statement.

    psycopg's own transaction waits once at the beginning of a pipeline and twice at its end.
    """
    try:
        with db.pipeline():
            if begin is not None:
                db.execute(begin)
            with _closed_if_interrupted(db):
                yield
            if begin is not None:
                db.execute(COMMIT)
    except BaseException:
        if not db.closed:
            db.rollback()
        raise


@contextmanager
def _closed_if_interrupted(db: Connection) -> Iterator[None]:
    """Close the connection if the block ends for a reason of its own, such as a time limit.

    A pipeline that ends waits for all its results, which never come if the network to the server has failed.
    """
    try:
        yield
    except (psycopg.Error, EbbError):
        raise
    except BaseException:
        db.close()
        raise


@contextmanager
def writing(url: str, *, few: bool = False) -> Iterator[Connection]:
    """Yield a connection in a transaction in pipeline mode, which does not wait for each statement.

    Its statements, which find rows by key, have generic plans; with `few` rows even where these cost more, as planning
    the statements of a single store takes as long as running them. An error is raised when the next result
    is read, at the latest at the end of the block; `rowcount` is not known within it.
    """
    with _borrowed(url, _Use.TRANSACTIONS, WAIT_SECONDS) as db, _autocommit(db), _pipeline(db, BEGIN):
        _prepare(db)
        db.execute(GENERIC_PLANS if few else KEEP_PLANS)
        yield db


def send_all(db: Connection) -> None:
    """Send all queued statements of a pipeline; psycopg alone sends only what fits into the socket's buffer."""
    while db.pgconn.flush():
        select.select([], [db.pgconn.socket], [])


def commit_later(db: Connection) -> None:
    """Do not wait for the disk when this transaction commits, and use generic plans in the rest of it.

    For work that is found again if a crash of the server loses its last commits. A later commit that waits makes them
    durable as well.
    """
    db.execute(COMMIT_LATER)


def lift_limits(db: Connection) -> None:
    """Disable the time limits of this transaction and its statements."""
    db.execute(LIFT_LIMITS)


def limit_statements(db: Connection, seconds: float) -> None:
    """Limit the time of each further statement of this transaction."""
    db.execute("select set_config('statement_timeout', %s, true)", [f"{seconds * 1000:.0f}ms"])


@contextmanager
def snapshot(url: str) -> Iterator[Connection]:
    """Yield a connection outside the pool that reads one snapshot, without time limits."""
    with connect(url) as db, _takes_writes(db):
        db.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        db.read_only = True
        _prepare(db)
        lift_limits(db)
        db.execute("set local idle_in_transaction_session_timeout = 0")
        yield db


def connect(url: str, *, autocommit: bool = False) -> Connection:
    """Return a configured connection outside the pool; `autocommit` requires a session of its own.

    Raises:
        SettingsError: `autocommit`, and a pooler is between this process and PostgreSQL.
    """
    try:
        db = _Own.connect(url, autocommit=autocommit, **_options(url))
    except psycopg.OperationalError as error:
        raise refused(cause_of(error)) from None
    _configure(db, CONFIGURATION | SERVER_ALIVE | _limits(db, 0.0))
    if db.pooled and autocommit:
        db.close()
        raise SettingsError(POOLED)
    if autocommit and (place := routing.current()) is not None:
        routing.send(db, place, local=False)
        db.routed = True
    return db


@contextmanager
def outside_pool(url: str) -> Iterator[Connection]:
    """Yield a connection outside the pool, on the current shard until its first commit, which shares no lock."""
    with connect(url) as db, _takes_writes(db):
        routing.begin(db, share=False)
        yield db


def scalar(db: Connection, statement: str, given: Mapping[str, Any] | None = None) -> Any:
    """Return a statement's single value; None if it returns no row."""
    row = db.execute(statement, given).fetchone()
    return row[0] if row else None


def number(db: Connection, statement: str, given: Mapping[str, Any] | None = None) -> int:
    """Return a statement's single number, or boolean as 1 or 0; 0 if it returns no row."""
    return int(scalar(db, statement, given) or 0)


def fetch_all(
    db: Connection, kind: type[Row], statement: Statement, given: Mapping[str, Any] | None = None, **options: Any
) -> list[Row]:
    """Return a statement's rows as objects of `kind`, by the names of their columns; `options` are those of psycopg."""
    return ask_all(db, kind, statement, given, **options)()


def ask_all(
    db: Connection, kind: type[Row], statement: Statement, given: Mapping[str, Any] | None = None, **options: Any
) -> Callable[[], list[Row]]:
    """Send a statement; return the reader of its rows, which are as those of `fetch_all`."""
    return db.cursor(row_factory=class_row(kind)).execute(statement, given, **options).fetchall


def fetch_one(
    db: Connection, kind: type[Row], statement: Statement, given: Mapping[str, Any] | None = None
) -> Row | None:
    """Return a statement's first row as an object of `kind`, if there is one."""
    return db.cursor(row_factory=class_row(kind)).execute(statement, given).fetchone()


@atexit.register
def close_pools() -> None:
    """Close this process's pools. At exit, Python 3.13 would wait five seconds for each thread of an open pool."""
    for key in [key for key in _pools if key[0] == os.getpid()]:
        _pools.pop(key).close()


def _pool(url: str, use: _Use) -> Pool:
    key = (os.getpid(), url, use)
    with _opening:
        if key not in _pools:
            _pools[key] = _open_pool(url, CONFIGURATION if use is _Use.TRANSACTIONS else CONFIGURATION | READERS)
        return _pools[key]


def _open_pool(url: str, configuration: Mapping[str, str]) -> Pool:
    return ConnectionPool(
        url,
        min_size=0,
        max_size=POOL_SIZE,
        reconnect_timeout=RECONNECT_SECONDS,
        open=True,
        connection_class=_Own,
        configure=partial(_configure_pooled, configuration=configuration),
        check=_check,
        kwargs=_options(url),
        name="ebb",
    )


def _check(db: psycopg.Connection[Any]) -> None:
    """Check a connection, but only if the server has sent something unasked, as it does when it closes.

    So a transaction does not begin with a round trip. What a time limit at the very end of a block left set is undone
    first: in autocommit no transaction is on its shard.
    """
    if db.autocommit:
        db.autocommit = False
    if db.isolation_level is not None:
        db.isolation_level = None
    said = select.poll()
    said.register(db.fileno(), select.POLLIN)
    if said.poll(0):
        ConnectionPool.check_connection(db)


def _configure(db: _Own, settings: Mapping[str, str]) -> None:
    """Set the session's parameters, and detect a pooler, whose sessions do not keep them."""
    given = {"process": db.info.backend_pid, "names": [*settings], "values": [*settings.values()]}
    own, db.autocommit = db.autocommit, True
    db.pooled, types, _ = db.execute(CONFIGURE, given).fetchone() or (False, None, 0)
    db.autocommit = own
    if db.pooled:
        db.prepare_threshold = None  # prepared statements belong to one session
    if tracing.is_on():
        db.cursor_factory = _TracedCursor
    read_leniently(db)
    for one in types or ():
        REGISTER[one["name"]](db, TypeInfo(**one))
    db.routed = None


def _configure_pooled(db: _Own, configuration: Mapping[str, str]) -> None:
    db.configuration = {**configuration, **_limits(db, TRANSACTION_SECONDS)}
    _configure(db, {**db.configuration, **SERVER_ALIVE})


def _prepare(db: Connection, *, share: bool = True) -> None:
    """Set the parameters for this transaction where a pooler's session does not keep them, and route it.

    Transactions that read one snapshot share no lock: they find a namespace where it was at that time.
    """
    if not isinstance(db, _Own):
        return
    if db.pooled:
        own = {**db.configuration, **_limits(db, TRANSACTION_SECONDS), **_search_path(db)}
        db.execute(SET, {"names": [*own], "values": [*own.values()]})
    if db.routed is not True:
        db.routed = routing.begin(db, share=share and db.isolation_level is None)


def on_shard_of(db: Connection, place: routing.Place) -> AbstractContextManager[None]:
    """Continue a transaction at another place; every later use of another one needs this too."""
    known = home_and_shard(db)
    return nullcontext() if known is None else routing.switched(db, known[0], place)


def home_and_shard(db: Connection) -> tuple[str, int | None] | None:
    """Return the schema of the first shard, and the shard of the current namespace or None if it has none yet.

    There is no answer in a system with one shard.
    """
    routed = db.routed if isinstance(db, _Own) else None
    if not isinstance(routed, psycopg.Cursor):
        return None
    routed.scroll(0, "absolute")
    home, shard, _ = routed.fetchone() or ("", None, "")
    return home, shard


def _search_path(db: Connection) -> dict[str, str]:
    """Return the search path that the address gives, which a pooler does not pass on."""
    found = SEARCH_PATH.search(db.info.options)
    return {"search_path": found[1].replace("\\", "")} if found else {}


def _limits(db: Connection, seconds: float) -> dict[str, str]:
    """Return the settings by which a transaction may take so many seconds, or 0 for any, and a session may be idle."""
    own = {"transaction_timeout": LIMITS_TRANSACTIONS, "idle_session_timeout": LIMITS_SESSIONS}
    values = {"transaction_timeout": f"{int(seconds * 1000)}", "idle_session_timeout": "0"}
    return {name: values[name] for name, since in own.items() if db.info.server_version >= since}


def _options(url: str) -> dict[str, Any]:
    """Return the connection options that the URL does not set."""
    given = conninfo_to_dict(url)
    own = {"connect_timeout": CONNECT_SECONDS, "application_name": "ebb", "client_encoding": "UTF8", **CLIENT_ALIVE}
    return {name: value for name, value in own.items() if name not in given}


def _explained(url: str, waited: float) -> UnavailableError:
    """Return the error for a failed connection, with the server's message if there is one."""
    began = time.monotonic()
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError as error:
        return refused(cause_of(error))
    if (took := time.monotonic() - began) > SLOW_SECONDS:
        return UnavailableError(
            f"PostgreSQL answers slowly: there was no connection for {waited:g} s, and a new one took {took:.1f} s. "
            "Try again; if it lasts, see its load and the network to it."
        )
    return NoConnectionError(f"There was no connection to PostgreSQL free for {waited:g} s. {MAKE_ROOM}")
