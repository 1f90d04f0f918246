"""Pages: where PostgreSQL keeps what was erased until it needs the room, and how it lets go of it."""

import time

import psycopg

from workers.storage.connection import Connection

# Without `index_cleanup` few dead rows stay in the indexes.
VACUUM = """
    vacuum (index_cleanup on)
        facts, activity, vectors, signatures, events, links, contradictions, likenesses, lexemes, documents
"""

# A vacuum leaves the bytes where new rows will be written, and words of which no row is left in the GIN index.
REWRITE = """
    vacuum (full)
        facts, activity, vectors, signatures, events, links, contradictions, likenesses, lexemes, documents
"""

# The statistics hold a sample of what was erased. Analyzing takes a new one, but leaves the old where there is nothing
# to take it from, so that is dropped first; PostgreSQL can do that from version 18 on.
CLEARS = "select to_regproc('pg_catalog.pg_clear_attribute_stats') is not null"
CLEAR = """
    select pg_clear_attribute_stats(schemaname::text, tablename::text, attname::text, inherited)
    from pg_stats
    where schemaname = current_schema() and (tablename = any(%(tables)s) or starts_with(tablename, 'facts_'))
"""
ANALYZE = "analyze facts, vectors, signatures, events, lexemes, documents"
SAMPLED = ["facts", "vectors", "signatures", "events", "lexemes", "documents"]
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


def clean(db: Connection) -> None:
    """Take erased rows out of tables, indexes and statistics; nobody waits for it. `db` commits by itself."""
    db.execute("set statement_timeout = 0")
    db.execute(VACUUM)
    _sample_anew(db)
    db.execute(VACUUM_STATISTICS)


def rewrite(db: Connection) -> bool:
    """Write all tables and indexes anew with what is left in them; return whether this role may do that.

    Readers and writers wait meanwhile. `db` commits by itself.

    Raises:
        psycopg.errors.LockNotAvailable: somebody works on a table for too long; nothing is lost.
    """
    row = db.execute(OWNED).fetchone()
    if not row or not row[0]:
        return False
    db.execute("set statement_timeout = 0")
    db.execute(REWRITE)
    _sample_anew(db)
    db.execute(REWRITE_STATISTICS)
    return True


def drop_log(db: Connection) -> bool:
    """Have the write-ahead log up to now removed; return whether the server lets this role do that.

    A checkpoint keeps old segments under new names, for later, unless it is told otherwise; those that wait so are
    filled first, and go with the others.
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


def _sample_anew(db: Connection) -> None:
    """Make the statistics anew, so that no plan is made without any."""
    row = db.execute(CLEARS).fetchone()
    with db.transaction():
        if row and row[0]:
            db.execute(CLEAR, {"tables": SAMPLED})
        db.execute(ANALYZE)


def _reload(db: Connection, *, recycles: bool | None = None) -> None:
    """Have the server read its settings, and wait until it has."""
    db.execute(RELOAD)
    until = time.monotonic() + RELOAD_SECONDS
    while recycles is not None and time.monotonic() < until:
        row = db.execute(RECYCLES).fetchone()
        if row and row[0] == recycles:
            break
        time.sleep(0.05)
