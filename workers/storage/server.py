"""The database server: its clock, totals over all namespaces, statistics, vacuum, its log, and bloated indexes."""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
from psycopg import sql
from psycopg_pool import PoolTimeout

from workers.errors import UnavailableError
from workers.storage.connection import (
    READ_WAIT_SECONDS,
    Connection,
    fetch_all,
    number,
    scalar,
    transaction,
)
from workers.storage.refusals import cause_of, disk_full

ENDED = ("08", "57P")
"""Beginnings of SQLSTATEs: no connection, and a server that ends or starts; libpq's own errors have none."""


@contextmanager
def answers() -> Iterator[None]:
    """Raise `UnavailableError` if PostgreSQL, or a node of Citus, ends during a statement or does not answer it."""
    try:
        yield
    except psycopg.OperationalError as error:
        if isinstance(error, PoolTimeout) or not (error.sqlstate or ENDED[0]).startswith(ENDED):
            raise
        said = " ".join(str(error).split()).rstrip(".?")
        raise UnavailableError(f"PostgreSQL does not answer: {said}. Try again when it does.") from error


CLOCK = "select clock_timestamp()"


def read_clock(url: str) -> datetime:
    """Return the time by the database's clock; raises as `connection.transaction` does."""
    with transaction(url, wait=READ_WAIT_SECONDS) as db:
        return now(db)


def now(db: Connection) -> datetime:
    """Return the time by the database's clock."""
    shown: datetime = scalar(db, CLOCK)
    return shown.astimezone(UTC)


# The cheapest write: a record in the write-ahead log, flushed by the commit. The log has room that was taken before.
# On a full disk no file grows, which the rows show: they exceed the memory that they may use, so that they go to a
# temporary file. In one trip, as the server may be distant.
PROBE = """
    select set_config('work_mem', '64kB', true);
    select count(*) from generate_series(1, 10000);
    select pg_logical_emit_message(true, 'ebb', 'probe')
"""

# The commit of the probe would wait as long as those that wait for a replica do. Programs of other databases may wait
# for more, such as until a replica has applied a commit.
TAKES_NONE = """
    select pg_is_in_recovery() or current_setting('transaction_read_only')::boolean, exists (
        select from pg_stat_activity
        where datname = current_database() and wait_event = 'SyncRep'
            and query_start < clock_timestamp() - interval '5 seconds'
    )
"""


def try_write(db: Connection) -> None:
    """Write something and commit it.

    Raises:
        UnavailableError: the database does not accept writes.
    """
    is_read_only, waits_for_replica = db.execute(TAKES_NONE).fetchone() or (False, False)
    if is_read_only:
        raise UnavailableError("PostgreSQL takes no writes: it is read-only, or a replica that follows another.")
    if waits_for_replica:
        raise UnavailableError(
            "PostgreSQL takes no writes: commits wait for a synchronous replica that does not answer. Start it, or "
            "change `synchronous_standby_names`."
        )
    try:
        db.execute(PROBE)
        db.commit()
    except psycopg.errors.DiskFull as error:
        raise disk_full(cause_of(error)) from None
    except psycopg.Error as error:
        raise UnavailableError(f"PostgreSQL takes no writes: {str(error).strip()}.") from None


FACT_TOTALS = """
    select tier, fidelity, forgotten_reason, coalesce(held, false), sum(facts)::bigint
    from (
        select tier, fidelity, forgotten_reason, held, facts from tallies
        union all
        select tier, fidelity, forgotten_reason, held, facts from tally_changes
    ) as counted
    group by 1, 2, 3, 4
    having sum(facts) <> 0
"""

BYTES = "select pg_database_size(current_database())"

# One index probe per segment.
OLDEST_DUE = """
    select min(first.due_at)
    from generate_series(0, (select coalesce(max(segment), -1) from activity)) as series (segment)
    cross join lateral (
        select due_at from activity where activity.segment = series.segment order by due_at limit 1
    ) as first
    where first.due_at <= %(now)s
"""

NEWEST_RUN = """
    select finished_at, date_part('epoch', finished_at - started_at),
        (select coalesce(sum(duration_ms), 0) from decay_parts where run = decay_runs.id)
    from decay_runs
    where work = 'decay' and not dry_run and finished_at is not null
    order by started_at desc
    limit 1
"""


def fact_totals(db: Connection) -> list[tuple[int | None, int | None, str | None, bool, int]]:
    """Return (tier, fidelity, forgotten reason, held, facts) over all namespaces."""
    return db.execute(FACT_TOTALS).fetchall()


def size(db: Connection) -> int:
    """Return the bytes of the database on its disk."""
    return number(db, BYTES)


def oldest_due(db: Connection, now: datetime) -> datetime | None:
    """Return the earliest due time before `now`, if any fact is due."""
    return scalar(db, OLDEST_DUE, {"now": now})


def last_pass(db: Connection) -> tuple[Any, ...] | None:
    """Return the end of the last pass, its duration in seconds and its tasks' time in milliseconds."""
    return db.execute(NEWEST_RUN).fetchone()


ERASED_FROM = "facts, vectors, signatures, events, occurrences, lexemes, documents, deep, relations"
"""Tables that have what facts say, or names; PostgreSQL's statistics contain samples of their rows."""

TABLES = f"{ERASED_FROM}, activity, links, contradictions, likenesses, merged_texts"

# Without `index_cleanup`, vacuum may leave a few dead rows in the indexes.
VACUUM = f"vacuum (index_cleanup on) {TABLES}"

# A plain vacuum leaves the bytes in free space, and unused words in the GIN index.
REWRITE = f"vacuum (full) {TABLES}"

# `analyze` keeps the old statistics of an empty table, so they are cleared first, which PostgreSQL supports from
# version 18 on.
CLEARS = "select to_regproc('pg_catalog.pg_clear_attribute_stats') is not null"
CLEAR = """
    select pg_clear_attribute_stats(schemaname::text, tablename::text, attname::text, inherited)
    from pg_stats
    where schemaname = current_schema() and (tablename = any(%(tables)s) or tablename ~ '^(facts|relations)_')
"""
ANALYZE = f"analyze {ERASED_FROM}"

OWNED = "select pg_has_role(relowner, 'usage') from pg_class where oid = 'facts'::regclass"

RECYCLES = "select current_setting('wal_recycle')::boolean"
SPARE = "select count(*) from pg_ls_waldir() where name > pg_walfile_name(pg_current_wal_lsn()) and length(name) = 24"
FILL = "select pg_logical_emit_message(true, 'ebb', ''), pg_switch_wal()"

RELOAD_SECONDS = 5.0

NEXT = "select pg_snapshot_xmax(pg_current_snapshot())::xid"

# A vacuum keeps what a transaction may still read, also one of a replica, and does not wait for it. Other vacuums read
# nothing.
OLDER = """
    select exists (
        select from pg_stat_activity
        where (datname = current_database() or backend_type = 'walsender') and pid <> pg_backend_pid()
            and greatest(age(backend_xmin), age(backend_xid)) > age(%(xid)s::xid)
            and pid not in (select pid from pg_stat_progress_vacuum)
    ) or exists (select from pg_replication_slots where age(xmin) > age(%(xid)s::xid))
"""

READERS_SECONDS = 20.0
"""How long to wait for transactions that began before a vacuum, as for a lock."""


def vacuum(db: Connection) -> None:
    """Remove dead rows from tables, indexes and statistics without blocking others; `db` must be in autocommit.

    Raises:
        psycopg.errors.LockNotAvailable: a transaction may read such rows for too long, or a table is in use.
    """
    db.execute("set statement_timeout = 0")
    _wait_for_readers(db)
    db.execute(VACUUM)
    _renew_statistics(db)
    _wait_for_readers(db)
    db.execute("vacuum pg_catalog.pg_statistic")


def rewrite(db: Connection) -> bool:
    """Rewrite all tables and indexes; return false if this role may not.

    Readers and writers are blocked meanwhile. `db` must be in autocommit.

    Raises:
        psycopg.errors.LockNotAvailable: a transaction holds a table, or may read dead rows, for too long.
    """
    if not scalar(db, OWNED):
        return False
    db.execute("set statement_timeout = 0")
    _wait_for_readers(db)
    db.execute(REWRITE)
    _renew_statistics(db)
    _wait_for_readers(db)
    db.execute("vacuum full pg_catalog.pg_statistic")
    return True


def drop_log(db: Connection) -> bool:
    """Remove the write-ahead log up to now; return false if this role may not.

    Recycling of segments is turned off meanwhile, and segments recycled before are used up, so that the checkpoint
    removes them too.
    """
    try:
        db.execute("alter system set wal_recycle = off")
    except psycopg.errors.InsufficientPrivilege:
        return False
    try:
        _reload(db, recycles=False)
        for _ in range(number(db, SPARE) + 1):
            db.execute(FILL)
        db.execute("checkpoint")
    finally:
        recycle_log(db)
    return True


def recycle_log(db: Connection) -> None:
    """Have the server recycle segments of its log again."""
    db.execute("alter system reset wal_recycle")
    _reload(db)


def _wait_for_readers(db: Connection) -> None:
    """Wait for the end of the transactions that may still read rows deleted until now, which a vacuum would keep."""
    until, xid = time.monotonic() + READERS_SECONDS, scalar(db, NEXT)
    while scalar(db, OLDER, {"xid": xid}):
        if time.monotonic() >= until:
            raise psycopg.errors.LockNotAvailable("a long transaction may still read what was erased")
        time.sleep(0.05)


def _renew_statistics(db: Connection) -> None:
    """Clear and rebuild the statistics in one transaction, so that no plan is made without any."""
    clears = scalar(db, CLEARS)
    with db.transaction():
        if clears:
            db.execute(CLEAR, {"tables": ERASED_FROM.split(", ")})
        db.execute(ANALYZE)


def _reload(db: Connection, *, recycles: bool | None = None) -> None:
    """Reload the server's configuration; wait until `wal_recycle` has the given value."""
    db.execute("select pg_reload_conf()")
    until = time.monotonic() + RELOAD_SECONDS
    while recycles is not None and scalar(db, RECYCLES) != recycles and time.monotonic() < until:
        time.sleep(0.05)


# An entry takes 12 bytes besides its aligned columns; a newly built page holds 7,337 bytes of entries. The widths of
# columns come from `analyze`; those of expressions are found under the name of their index.
INDEX_SIZES = """
    select name, bytes, greatest(ceil(entries * entry / 7337), 1)::bigint * 8192 + 8192 as needed
    from (
        select index.relname as name, pg_relation_size(index.oid) as bytes, index.reltuples as entries,
            12 + 8 * ceil(sum(coalesce(stats.avg_width, nullif(attlen, -1), 32)) / 8.0) as entry
        from pg_index
        join pg_class as index on index.oid = indexrelid
        join pg_class as owner on owner.oid = indrelid
        join pg_am on pg_am.oid = index.relam and amname = 'btree'
        join pg_attribute on attrelid = indexrelid
        left join pg_stats as stats on stats.schemaname = current_schema() and (
            (stats.tablename = owner.relname and stats.attname = pg_get_indexdef(indexrelid, attnum, true))
            or (stats.tablename = index.relname and stats.attname = pg_attribute.attname)
        )
        where index.relnamespace = quote_ident(current_schema())::regnamespace and indisvalid and index.reltuples >= 0
            and pg_relation_size(index.oid) >= %(least)s
        group by index.oid
    ) as indexes
    order by bytes desc
"""

# An interrupted concurrent build leaves an invalid index, which costs writes and is never used.
UNFINISHED_INDEXES = """
    select relname from pg_index join pg_class on pg_class.oid = indexrelid
    where relnamespace = quote_ident(current_schema())::regnamespace and not indisvalid
        and relname ~ '_cc(new|old)[0-9]*$'
"""

REBUILD_INDEX = "reindex index concurrently {}"

DROP_INDEX = "drop index concurrently if exists {}"


@dataclass(frozen=True, slots=True)
class IndexSize:
    """An index, its size, and its estimated size after a rebuild, in bytes."""

    name: str
    bytes: int
    needed: int


def index_sizes(db: Connection, least: int) -> list[IndexSize]:
    """Return all B-trees of at least `least` bytes, largest first."""
    return fetch_all(db, IndexSize, INDEX_SIZES, {"least": least})


def rebuild_index(db: Connection, name: str) -> None:
    """Rebuild an index without blocking readers or writers; `db` must be in autocommit."""
    db.execute(sql.SQL(REBUILD_INDEX).format(sql.Identifier(name)))


def drop_unfinished_indexes(db: Connection) -> list[str]:
    """Drop the indexes that interrupted builds left; return their names. `db` must be in autocommit."""
    names = [name for (name,) in db.execute(UNFINISHED_INDEXES)]
    for name in names:
        db.execute(sql.SQL(DROP_INDEX).format(sql.Identifier(name)))
    return names


MANY = 1000
"""Fewer facts are found quickly by any plan."""

# If the listed values are all there were at the last `analyze`, one row is expected of any other namespace, and joins
# read all its rows for each row. After changes of a tenth of a table PostgreSQL analyzes it by itself. Citus keeps
# statistics on its nodes, so that this finds no table there; in one statement with `facts` it would fail.
# Until then statements look up rows by their whole key: `+ 0` or `offset 0` hides the namespace of a joined table from
# the planner, and `(select …)` has it expect as many rows as other namespaces have. Before the first `analyze` it
# expects hardly any entries in partial indexes, and reads a whole one; `coalesce` matches the condition of none.
OUTDATED = """
    select tablename from pg_stats
    where schemaname = current_schema() and attname = 'namespace' and exists (
        select from pg_stats
        where schemaname = current_schema() and tablename = 'facts' and attname = 'namespace'
            and (select sum(share) from unnest(most_common_freqs) as share) > 0.9999
            and %(namespace)s <> all (most_common_vals::text::int[])
    )
    order by tablename
"""

COUNT_MANY = "select count(*) from (select from facts where namespace = %(namespace)s limit %(many)s) as found"

# Without waiting: a table is locked while it is analyzed or vacuumed, or its definition changes.
ANALYZE_COLUMNS = "analyze (skip_locked) {}"


def without_statistics(db: Connection, namespace: int) -> list[str]:
    """Return the tables to analyze: none, unless the statistics lack this namespace and it has many facts."""
    given = {"namespace": namespace, "many": MANY}
    tables = [table for (table,) in db.execute(OUTDATED, given)]
    return tables if tables and number(db, COUNT_MANY, given) == MANY else []


def analyze(db: Connection, tables: Sequence[str]) -> None:
    """Analyze the namespaces of tables; PostgreSQL warns of those that this role does not own, and leaves them out."""
    columns = sql.SQL(", ").join(sql.SQL("{} (namespace)").format(sql.Identifier(table)) for table in tables)
    db.execute(sql.SQL(ANALYZE_COLUMNS).format(columns))
