"""A probe: whether the database takes writes, and not only questions."""

import psycopg

from workers.errors import UnavailableError
from workers.storage.connection import Connection

# A record in the write-ahead log that nothing reads, flushed by the commit: the least that a write does.
PROBE = "select pg_logical_emit_message(true, 'ebb', 'probe')"
READ_ONLY = "select pg_is_in_recovery() or current_setting('transaction_read_only')::boolean"


def try_write(db: Connection) -> None:
    """Write something and commit it.

    Raises:
        UnavailableError: the database takes no writes.
    """
    row = db.execute(READ_ONLY).fetchone()
    if row is not None and row[0]:
        raise UnavailableError("PostgreSQL takes no writes: it is read-only, or a replica that follows another.")
    try:
        db.execute(PROBE)
        db.commit()
    except psycopg.Error as error:
        raise UnavailableError(f"PostgreSQL takes no writes: {str(error).strip()}.") from None
