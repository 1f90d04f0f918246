"""The schema: made from the snapshot `schema.sql` or brought up to date by migrations, and verified before use."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path

from workers.errors import SchemaError, SettingsError
from workers.storage import catalogue, migrations
from workers.storage.connection import Connection, connect

COMPATIBILITY = "select max(version) from schema_version"
SERVERS = """
    select 'PostgreSQL ' || current_setting('server_version') || ' with pgvector ' || extversion
        || case when current_setting('transaction_timeout', true) is null
            then '; it is older than 17, so a worker that hangs within a write keeps its locks until its host is gone'
            else '' end
    from pg_extension where extname = 'vector'
"""
STATED = {
    "version": r"insert into schema_migrations \(number, name\) values \((\d+), 'snapshot'\)",
    "compatibility": r"insert into schema_version \(version\) values \((\d+)\)",
}
"""Where the snapshot says what it makes."""


def apply(database_url: str, report: Callable[[str], None] = lambda _: None) -> list[int]:
    """Bring the database to this version's schema; return the numbers of the migrations that ran.

    A database that is up to date, or that a newer version has migrated, stays as it is. What was interrupted goes on
    where it stopped, and two processes at once take turns.

    Raises:
        SchemaError: the schema is not one that this version can use or migrate, or pgvector is missing.
        UnavailableError: the server does not answer.
    """
    with migrations.exclusive(database_url, report) as db:
        had = migrations.number(db)
        if had == 0:
            _make(db)
        elif had < version():
            migrations.run(database_url, db, migrations.known(), report)
        verify(db)
    return [one.number for one in migrations.known() if 0 < had < one.number]


def check(db: Connection) -> None:
    """Raise `SchemaError` unless this version of Ebb can work with the schema, going by its numbers alone."""
    had = migrations.number(db)
    if had < version():
        what = "no schema of Ebb" if had == 0 else f"schema {had}"
        raise SchemaError(f"The database has {what}, this version of Ebb needs schema {version()}: run `ebb migrate`.")
    row = db.execute(COMPATIBILITY).fetchone()
    needed = int(row[0] or 0) if row else 0
    if needed > compatibility():
        raise SchemaError(
            f"The database has schema {had}, which this version of Ebb (schema {version()}) cannot work with: "
            "upgrade Ebb."
        )


def verify_at(database_url: str) -> None:
    """Raise `EbbError` unless this version of Ebb can work with the database at a URL."""
    if not database_url:
        raise SettingsError("EBB_DATABASE_URL is not set. Set it, or let `ebb up` start servers of its own.")
    with connect(database_url) as db:
        verify(db)


def verify(db: Connection) -> None:
    """Raise `SchemaError` unless `check` passes and the live catalogue is what this version of Ebb works with."""
    check(db)
    found = differences(db)
    if found:
        more = f", and {len(found) - 1} more" if len(found) > 1 else ""
        raise SchemaError(
            f"The database's schema is not the one that this version of Ebb works with: {found[0]}{more}. See all "
            "with `ebb doctor`; undo the change, restore a backup, or export with the version that wrote it and import."
        )


def differences(db: Connection) -> list[str]:
    """Return in which ways the live catalogue differs from the expected one.

    In a database that a newer version has migrated only what is missing counts: what was added or widened there does
    no harm.
    """
    found = catalogue.differences(catalogue.live(db), catalogue.expected())
    newer = migrations.number(db) > version()
    return [one for one in found if one.endswith(" is missing")] if newer else found


def servers(db: Connection) -> str:
    """Return which PostgreSQL and pgvector answer."""
    row = db.execute(SERVERS).fetchone()
    return str(row[0]) if row else "PostgreSQL without pgvector"


def version() -> int:
    """Return the number of the schema that `schema.sql` makes."""
    return _stated("version")


def compatibility() -> int:
    """Return the newest `schema_version` that this version of Ebb can work with."""
    return _stated("compatibility")


def _make(db: Connection) -> None:
    if db.execute("select 1 from pg_available_extensions where name = 'vector'").fetchone() is None:
        raise SchemaError("PostgreSQL has no pgvector: install it on the server (package `postgresql-18-pgvector`).")
    with db.transaction():
        db.execute(snapshot().encode())


@cache
def _stated(what: str) -> int:
    found = re.search(STATED[what], snapshot())
    if found is None:
        raise SchemaError(f"schema.sql does not state its {what}: reinstall Ebb.")
    return int(found[1])


@cache
def snapshot() -> str:
    """Return the SQL of `schema.sql`."""
    here = Path(__file__).resolve()
    packaged = here.parents[1] / "schema.sql"
    return (packaged if packaged.exists() else here.parents[2] / "schema.sql").read_text(encoding="utf-8")
