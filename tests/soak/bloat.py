"""Bloat: sizes of indexes and tables compared with those after a rebuild."""

from dataclasses import dataclass

import psycopg
from psycopg import sql

from workers.storage.connection import Connection

MIB = 1024 * 1024

INDEXES = """
    select relname, pg_relation_size(pg_class.oid) from pg_class
    where relnamespace = 'public'::regnamespace and relkind = 'i' order by relname
"""

TABLES = """
    select relname, pg_relation_size(pg_class.oid), conname from pg_class
    join pg_constraint on conrelid = pg_class.oid and contype = 'p'
    where relnamespace = 'public'::regnamespace and relkind = 'r' order by relname
"""

SIZE = "select pg_relation_size(%s::regclass)"


@dataclass(frozen=True, slots=True)
class Sizes:
    """Size of a table or an index in bytes, now and after a rebuild."""

    now: int
    fresh: int

    @property
    def ratio(self) -> float:
        """Return the current size divided by that after a rebuild."""
        return self.now / max(self.fresh, 1)


def indexes(url: str) -> dict[str, Sizes]:
    """Return the sizes of all indexes; each is rebuilt in a transaction that is rolled back."""
    return _rebuilt(url, INDEXES, "reindex index {0}")


def tables(url: str) -> dict[str, Sizes]:
    """Return the sizes of all tables with a primary key, without TOAST data."""
    return _rebuilt(url, TABLES, "cluster {0} using {1}")


def _rebuilt(url: str, listed: str, statement: str) -> dict[str, Sizes]:
    with psycopg.connect(url) as db:
        db.execute("set statement_timeout = 0; set lock_timeout = '60s'")
        found = db.execute(listed.encode()).fetchall()
        db.commit()
        return {name: Sizes(size, _fresh(db, statement, name, *more)) for name, size, *more in found}


def _fresh(db: Connection, statement: str, *names: str) -> int:
    db.execute(sql.SQL(statement).format(*map(sql.Identifier, names)))
    (size,) = db.execute(SIZE, [f'"{names[0]}"']).fetchone() or (0,)
    db.rollback()
    return int(size)
