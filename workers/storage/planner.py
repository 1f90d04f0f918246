"""Statistics of PostgreSQL's planner about a namespace that they do not contain yet."""

from collections.abc import Sequence

from psycopg import sql

from workers.storage.connection import Connection, number

MANY = 1000
"""Fewer facts are found quickly by any plan."""

# If the listed values are all there were at the last `analyze`, one row is expected of any other namespace, and joins
# read all its rows for each row. After changes of a tenth of a table PostgreSQL analyzes it by itself. Citus keeps
# statistics on its nodes, so that this finds no table there; in one statement with `facts` it would fail.
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

COUNT = "select count(*) from (select from facts where namespace = %(namespace)s limit %(many)s) as found"

# Without waiting: a table is locked while it is analyzed or vacuumed, or its definition changes.
ANALYZE = "analyze (skip_locked) {}"


def outdated(db: Connection, namespace: int) -> list[str]:
    """Return the tables to analyze: none, unless the statistics lack this namespace and it has many facts."""
    given = {"namespace": namespace, "many": MANY}
    tables = [table for (table,) in db.execute(OUTDATED, given)]
    return tables if tables and number(db, COUNT, given) == MANY else []


def analyze(db: Connection, tables: Sequence[str]) -> None:
    """Analyze the namespaces of tables; PostgreSQL warns of those that this role does not own, and leaves them out."""
    columns = sql.SQL(", ").join(sql.SQL("{} (namespace)").format(sql.Identifier(table)) for table in tables)
    db.execute(sql.SQL(ANALYZE).format(columns))
