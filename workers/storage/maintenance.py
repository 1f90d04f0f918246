"""Maintenance: vacuum after erasing, removal of old write-ahead log, and rebuilding of bloated indexes."""

import time
from dataclasses import dataclass

import psycopg
from psycopg import sql
from psycopg.rows import class_row

from workers.storage.connection import Connection

# Without `index_cleanup`, vacuum may leave a few dead rows in the indexes.
VACUUM = """
    vacuum (index_cleanup on)
        facts, activity, vectors, signatures, events, links, contradictions, likenesses, lexemes, documents, deep
"""

# A plain vacuum leaves the bytes in free space, and unused words in the GIN index.
REWRITE = """
    vacuum (full)
        facts, activity, vectors, signatures, events, links, contradictions, likenesses, lexemes, documents, deep
"""

# Statistics contain samples of erased rows. `analyze` keeps the old statistics of an empty table, so they are cleared
# first, which PostgreSQL supports from version 18 on.
CLEARS = "select to_regproc('pg_catalog.pg_clear_attribute_stats') is not null"

CLEAR = """
    select pg_clear_attribute_stats(schemaname::text, tablename::text, attname::text, inherited)
    from pg_stats
    where schemaname = current_schema() and (tablename = any(%(tables)s) or starts_with(tablename, 'facts_'))
"""

ANALYZE = "analyze facts, vectors, signatures, events, lexemes, documents, deep"

SAMPLED = ["facts", "vectors", "signatures", "events", "lexemes", "documents", "deep"]

VACUUM_STATISTICS = "vacuum pg_catalog.pg_statistic"

REWRITE_STATISTICS = "vacuum full pg_catalog.pg_statistic"

OWNED = "select pg_has_role(relowner, 'usage') from pg_class where oid = 'facts'::regclass"

OFF = "alter system set wal_recycle = off"

AS_BEFORE = "alter system reset wal_recycle"

RELOAD = "select pg_reload_conf()"

RECYCLES = "select current_setting('wal_recycle')::boolean"

SPARE = "select count(*) from pg_ls_waldir() where name > pg_walfile_name(pg_current_wal_lsn()) and length(name) = 24"

FILL = "select pg_logical_emit_message(true, 'ebb', ''), pg_switch_wal()"

CHECKPOINT = "checkpoint"

RELOAD_SECONDS = 5.0


def vacuum(db: Connection) -> None:
    """Remove dead rows from tables, indexes and statistics without blocking others; `db` must be in autocommit."""
    db.execute("set statement_timeout = 0")
    db.execute(VACUUM)
    _renew_statistics(db)
    db.execute(VACUUM_STATISTICS)


def rewrite(db: Connection) -> bool:
    """Rewrite all tables and indexes; return false if this role may not.

    Readers and writers are blocked meanwhile. `db` must be in autocommit.

    Raises:
        psycopg.errors.LockNotAvailable: a transaction holds a table for too long; nothing is lost.
    """
    row = db.execute(OWNED).fetchone()
    if not row or not row[0]:
        return False
    db.execute("set statement_timeout = 0")
    db.execute(REWRITE)
    _renew_statistics(db)
    db.execute(REWRITE_STATISTICS)
    return True


def drop_log(db: Connection) -> bool:
    """Remove the write-ahead log up to now; return false if this role may not.

    Recycling of segments is turned off meanwhile, and segments recycled before are used up, so that the checkpoint
    removes them too.
    """
    try:
        db.execute(OFF)
    except psycopg.errors.InsufficientPrivilege:
        return False
    try:
        _reload(db, recycles=False)
        row = db.execute(SPARE).fetchone()
        for _ in range(int(row[0]) + 1 if row else 1):
            db.execute(FILL)
        db.execute(CHECKPOINT)
    finally:
        db.execute(AS_BEFORE)
        _reload(db)
    return True


def _renew_statistics(db: Connection) -> None:
    """Clear and rebuild the statistics in one transaction, so that no plan is made without any."""
    row = db.execute(CLEARS).fetchone()
    with db.transaction():
        if row and row[0]:
            db.execute(CLEAR, {"tables": SAMPLED})
        db.execute(ANALYZE)


def _reload(db: Connection, *, recycles: bool | None = None) -> None:
    """Reload the server's configuration; wait until `wal_recycle` has the given value."""
    db.execute(RELOAD)
    until = time.monotonic() + RELOAD_SECONDS
    while recycles is not None and time.monotonic() < until:
        row = db.execute(RECYCLES).fetchone()
        if row and row[0] == recycles:
            break
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
        where index.relnamespace = current_schema()::regnamespace and indisvalid and index.reltuples >= 0
            and pg_relation_size(index.oid) >= %(least)s
        group by index.oid
    ) as indexes
    order by bytes desc
"""

# An interrupted concurrent build leaves an invalid index, which costs writes and is never used.
UNFINISHED_INDEXES = """
    select relname from pg_index join pg_class on pg_class.oid = indexrelid
    where relnamespace = current_schema()::regnamespace and not indisvalid and relname ~ '_cc(new|old)[0-9]*$'
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
    with db.cursor(row_factory=class_row(IndexSize)) as cursor:
        return cursor.execute(INDEX_SIZES, {"least": least}).fetchall()


def rebuild_index(db: Connection, name: str) -> None:
    """Rebuild an index without blocking readers or writers; `db` must be in autocommit."""
    db.execute(sql.SQL(REBUILD_INDEX).format(sql.Identifier(name)))


def drop_unfinished_indexes(db: Connection) -> list[str]:
    """Drop the indexes that interrupted builds left; return their names. `db` must be in autocommit."""
    names = [name for (name,) in db.execute(UNFINISHED_INDEXES)]
    for name in names:
        db.execute(sql.SQL(DROP_INDEX).format(sql.Identifier(name)))
    return names
