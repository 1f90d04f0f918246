"""The schema: applied as a whole, as often as you like, by one process at a time."""

from pathlib import Path

from workers.errors import SchemaError
from workers.storage.connection import Connection, connect

VERSION = 1
LOCK = 0x0EBB
"""Key of the advisory lock that lets one process at a time change the schema."""

STORED_VERSION = "select max(version) from schema_version"
SERVERS = """
    select 'PostgreSQL ' || current_setting('server_version') || ' with pgvector ' || extversion
    from pg_extension where extname = 'vector'
"""
EXISTS = "select to_regclass('schema_version') is not null"


def apply(database_url: str) -> None:
    """Bring the database to this version's schema; nothing happens to one that has it.

    Raises:
        SchemaError: the database was written by a newer version, or pgvector is missing.
        UnavailableError: the server does not answer.
    """
    with connect(database_url) as db:
        db.execute("select pg_advisory_xact_lock(%s)", (LOCK,))
        stored = version(db)
        if stored > VERSION:
            raise SchemaError(
                f"The database has schema version {stored}, this version of Ebb knows {VERSION}: upgrade Ebb."
            )
        if stored < VERSION:
            _check_pgvector(db)
            db.execute(_statements().encode())


def check(db: Connection) -> None:
    """Raise `SchemaError` unless the database has this version's schema."""
    stored = version(db)
    if stored != VERSION:
        raise SchemaError(
            f"The database has schema version {stored}, this version of Ebb needs {VERSION}: "
            "run `ebb up`, or `psql -f schema.sql` on it."
        )


def version(db: Connection) -> int:
    """Return the schema version that the database has; 0 for an empty one."""
    exists = db.execute(EXISTS).fetchone()
    if exists is None or not exists[0]:
        return 0
    row = db.execute(STORED_VERSION).fetchone()
    return int(row[0] or 0) if row else 0


def servers(db: Connection) -> str:
    """Return which PostgreSQL and pgvector answer."""
    row = db.execute(SERVERS).fetchone()
    return str(row[0]) if row else "PostgreSQL without pgvector"


def _check_pgvector(db: Connection) -> None:
    if db.execute("select 1 from pg_available_extensions where name = 'vector'").fetchone() is None:
        raise SchemaError("PostgreSQL has no pgvector: install it on the server (package `postgresql-18-pgvector`).")


def _statements() -> str:
    here = Path(__file__).resolve()
    packaged = here.parents[1] / "schema.sql"
    return (packaged if packaged.exists() else here.parents[2] / "schema.sql").read_text(encoding="utf-8")
