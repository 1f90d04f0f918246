"""Migrations: numbered SQL files in this folder that bring an older database to the state of `schema.sql`.

A file `NNNN_name.sql` runs in one transaction, which also records it, unless its first line is

- `-- outside a transaction`: its statements, each ended by a semicolon at the end of a line, run one by one, for what
  PostgreSQL does not allow in a transaction, such as `create index concurrently`; or
- `-- in parts`: its last statement, an update of `facts` that ends with conditions joined by `and`, runs for some facts
  after the others, each time in a transaction of its own. The statements before it run in one transaction. It does not
  come back to facts that workers of the previous release store meanwhile.

These kinds start from the beginning after an interruption, so their statements must be repeatable. A migration only
adds, so that workers of the previous release keep working; one that they cannot work with raises `schema_version`.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, partial
from importlib import resources
from typing import Any, Literal, TypeAlias
from uuid import UUID

import psycopg
from psycopg import sql

from workers.errors import SchemaError, UnavailableError
from workers.storage.connection import Connection, connect, scalar
from workers.storage.refusals import broken_off, cause_of

Mode: TypeAlias = Literal["transaction", "outside a transaction", "in parts"]
Report: TypeAlias = Callable[[str], None]

LOCK = 0x0EBB
"""Key of the advisory lock for changing the schema."""

POLL_SECONDS = 0.2
"""Interval for trying the lock: a statement that waits for it would block `create index concurrently`."""

LOCK_TIMEOUT = "2s"
"""How long a statement waits for a lock on a table, since everything that needs the table then waits behind it.

It is longer than `deadlock_timeout`, after which PostgreSQL ends a vacuum that is in the way.
"""

PAUSE_SECONDS = 5.0
"""Pause before such a statement is tried again."""

FIRST = 1
"""Number of the schema before there were migrations."""

UNLIMITED = """
    select set_config(name, '0', false) from pg_settings
    where name in ('statement_timeout', 'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')
"""
LIMIT_LOCKS = "select set_config('lock_timeout', %(timeout)s, false)"
HOLDERS = """
    select array_agg(format('process %%s (%%s)', pid, coalesce(nullif(application_name, ''), 'no name')) order by pid)
    from pg_stat_activity
    where xact_start < clock_timestamp() - %(timeout)s::interval and pid in (
        select pid from pg_locks join pg_class on pg_class.oid = relation
        where granted and locktype = 'relation' and relnamespace = quote_ident(current_schema())::regnamespace
            and database = (select oid from pg_database where datname = current_database())
    )
"""
UNFINISHED = "unfinished: "
"""Beginning of the name of a migration of which some parts have not run.

Its number is there before its first part, so that a worker of the previous release that starts accepts the schema.
"""

NUMBER = f"select max(number) from schema_migrations where not starts_with(name, '{UNFINISHED}')"
RECORD = """
    insert into schema_migrations (number, name) values (%(number)s, %(name)s)
    on conflict (number) do update set name = excluded.name
"""

PART = 1_000
"""Facts of one part: others wait less than a second for its rows, and what a deadlock undoes is soon done again."""

BEFORE_FIRST = 0, UUID(int=0)
"""A key, namespace and id, before that of any fact."""

END_OF_PART = """
    select namespace, id from facts where (namespace, id) > (%(namespace)s, %(id)s)
    order by namespace, id limit 1 offset %(part)s - 1
"""

# `set local` reaches the nodes of Citus, `set_config` does not.
BY_KEY = "set local enable_seqscan = off"
BEHIND = sql.SQL(" and (facts.namespace, facts.id) > ({}, {})")
UP_TO = sql.SQL(" and (facts.namespace, facts.id) <= ({}, {})")
TABLES = """
    select to_regclass(path || 'schema_version') is not null, to_regclass(path || 'schema_migrations') is not null
    from (select quote_ident(current_schema()) || '.' as path) as own
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration: its number, name, SQL and mode."""

    number: int
    name: str
    sql: str
    mode: Mode = "transaction"


def statements(script: str) -> list[str]:
    """Return the statements of a script: a semicolon at the end of a line ends each, except within `$$`.

    They run one by one, for Citus sends each that it knows to its nodes as it stands.
    """
    found = [""]
    for part in f"{script.rstrip()}\n".split(";\n"):
        if found[-1].count("$$") % 2:
            found[-1] += f";\n{part}"
        else:
            found.append(part)
    return [one.strip() for one in found if one.strip()]


@cache
def known() -> tuple[Migration, ...]:
    """Return all migrations of this version of Ebb, by number."""
    files = [file for file in resources.files(__name__).iterdir() if file.name.endswith(".sql")]
    return tuple(sorted((_parsed(file.name, file.read_text("utf-8")) for file in files), key=lambda one: one.number))


def number(db: Connection) -> int:
    """Return the number of a database's newest migration: 0 if it is empty, 1 if it has a schema without migrations."""
    row = db.execute(TABLES).fetchone()
    has_schema, has_migrations = row or (False, False)
    if not has_migrations:
        return FIRST if has_schema else 0
    return scalar(db, NUMBER) or FIRST


@contextmanager
def exclusive(database_url: str, report: Report) -> Iterator[Connection]:
    """Yield a connection with the schema lock, in autocommit and without time limits; waits for the lock.

    Raises:
        UnavailableError: the server does not answer, or ended the connection, or the role lacks a right.
    """
    with connect(database_url, autocommit=True) as db:
        db.execute(UNLIMITED)
        if not _locked(db):
            report("Another process migrates this database: waiting for it")
            while not _locked(db):
                time.sleep(POLL_SECONDS)
        try:
            yield db
        except psycopg.OperationalError as error:
            raise UnavailableError(
                f"The migration was interrupted: {cause_of(error)}. Run `ebb migrate` again: it goes on "
                "where it stopped."
            ) from None
        except psycopg.errors.InsufficientPrivilege as error:
            raise broken_off(error) from None


def run(database_url: str, db: Connection, migrations: tuple[Migration, ...], report: Report) -> None:
    """Run the migrations that the database lacks, in order, on an exclusive connection.

    Raises:
        SchemaError: a statement failed; earlier migrations stay.
    """
    had = number(db)
    pending = [one for one in migrations if one.number > had]
    for place, migration in enumerate(pending, start=1):
        title = f"migration {migration.number:04} {migration.name} ({place} of {len(pending)})"
        started = time.monotonic()
        with watched(database_url, db.info.backend_pid, lambda text, title=title: report(f"{title}: {text}")):  # type: ignore[misc]
            _run(db, migration, lambda text, title=title: report(f"{title}: {text}"))  # type: ignore[misc]
        report(f"{title}: done in {time.monotonic() - started:.1f} s")


def _locked(db: Connection) -> bool:
    return bool(scalar(db, "select pg_try_advisory_lock(%(key)s)", {"key": LOCK}))


def _run(db: Connection, migration: Migration, report: Report) -> None:
    record = {"number": migration.number, "name": migration.name}
    try:
        if migration.mode == "transaction":
            _yielding(db, report, lambda: _run_at_once(db, statements(migration.sql), record))
            return
        if migration.mode == "in parts":
            *before, update = statements(migration.sql)
            begun = record | {"name": f"{UNFINISHED}{migration.name}"}
            _yielding(db, report, lambda: _run_at_once(db, before, begun))
            _run_parts(db, update, report)
            db.execute(RECORD, record)
            return
        _run_statements(db, migration, report)
        db.execute(RECORD, record)
    except psycopg.OperationalError:
        raise
    except psycopg.Error as error:
        raise SchemaError(
            f"Migration {migration.number:04} {migration.name} failed and changed nothing that is not repeatable: "
            f"{' '.join(str(error).split()).rstrip('.')}. Remove the cause and run `ebb migrate` again."
        ) from error


def _run_at_once(db: Connection, every: Sequence[str], record: Mapping[str, Any]) -> None:
    with db.transaction():
        for statement in every:
            db.execute(statement.encode())
        db.execute(RECORD, record)


def _run_parts(db: Connection, update: str, report: Report) -> None:
    """Update the facts in the order of their keys."""
    after: tuple[Any, ...] | None = BEFORE_FIRST
    parts = 0
    while after is not None:
        given = {"namespace": after[0], "id": after[1], "part": PART}
        until = db.execute(END_OF_PART, given).fetchone()
        part = sql.SQL(update) + BEHIND.format(*after)
        _yielding(db, report, partial(_run_part, db, part if until is None else part + UP_TO.format(*until)))
        after, parts = until, parts + 1
        report(f"up to {parts * PART} facts so far")


def _run_part(db: Connection, update: sql.Composed) -> None:
    with db.transaction():
        db.execute(BY_KEY)  # the planner cannot know how few facts are in a part
        db.execute(update)


def _run_statements(db: Connection, migration: Migration, report: Report) -> None:
    for statement in statements(migration.sql):
        if " concurrently " in statement:  # blocks no reader and no writer while it waits
            db.execute(statement.encode())
        else:
            _yielding(db, report, partial(db.execute, statement.encode()))


def _yielding(db: Connection, report: Report, act: Callable[[], object]) -> None:
    """Change tables; while another transaction, such as a backup, holds their locks, pause and try again."""
    db.execute(LIMIT_LOCKS, {"timeout": LOCK_TIMEOUT})
    try:
        while True:
            with suppress(psycopg.errors.LockNotAvailable, psycopg.errors.DeadlockDetected):
                act()
                return
            holders = scalar(db, HOLDERS, {"timeout": LOCK_TIMEOUT}) or ["other processes"]
            report(f"waiting for {', '.join(holders)}, and trying again while others work")
            time.sleep(PAUSE_SECONDS)
    finally:
        if not db.closed:
            db.execute(LIMIT_LOCKS, {"timeout": "0"})


def _parsed(file: str, sql: str) -> Migration:
    label, _, name = file.removesuffix(".sql").partition("_")
    first = sql.split("\n", 1)[0].removeprefix("-- ").strip()
    for mode in ("outside a transaction", "in parts"):
        if first == mode:
            return Migration(int(label), name, sql, mode)
    return Migration(int(label), name, sql)


EVERY_SECONDS = 5.0

WAITING = """
    select array_agg(format('process %%s (%%s)', pid, coalesce(nullif(application_name, ''), 'no name')) order by pid)
    from pg_stat_activity
    where pid = any(pg_blocking_pids(%(pid)s))
"""
BUILDING = """
    select format('%%s, %%s of %%s blocks', phase, blocks_done, blocks_total)
    from pg_stat_progress_create_index where pid = %(pid)s
"""

STATE = """
    select case state when 'idle' then 'to be tried again' else 'running' end
    from pg_stat_activity where pid = %(pid)s
"""


@contextmanager
def watched(
    database_url: str, pid: int, report: Callable[[str], None], every_seconds: float = EVERY_SECONDS
) -> Iterator[None]:
    """Report the progress of the server process `pid` every few seconds until the block ends."""
    done = threading.Event()
    watcher = threading.Thread(target=_watch, args=(database_url, pid, report, done, every_seconds), daemon=True)
    watcher.start()
    try:
        yield
    finally:
        done.set()
        watcher.join()


def _watch(
    database_url: str, pid: int, report: Callable[[str], None], done: threading.Event, every_seconds: float
) -> None:
    started = time.monotonic()
    while not done.wait(every_seconds):
        try:
            report(f"{time.monotonic() - started:.0f} s, {_state(database_url, pid)}")
        except UnavailableError:  # the migration itself reports an unavailable server
            return


def _state(database_url: str, pid: int) -> str:
    with connect(database_url, autocommit=True) as db:
        if waiting := scalar(db, WAITING, {"pid": pid}):
            return f"waiting for {', '.join(waiting)}"
        return scalar(db, BUILDING, {"pid": pid}) or scalar(db, STATE, {"pid": pid}) or "ended"
