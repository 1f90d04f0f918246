"""Index sizes: which B-trees take far more pages than their entries need, and building those anew.

Pages are freed only when nothing of them is left. Where most facts are erased and few are kept for good, an index keeps
as many pages as there ever were facts, each with an entry or two.
"""

from dataclasses import dataclass

from psycopg import sql
from psycopg.rows import class_row

from workers.storage.connection import Connection

# An entry takes 12 bytes besides its columns, which are aligned; a page takes 7,337 bytes of them when it is built. How
# wide columns are is known from `analyze`, of expressions by the name of their index.
SIZES = """
    select name, bytes, greatest(ceil(entries * entry / 7337), 1)::bigint * 8192 + 8192 as needed
    from (
        select index.relname as name, pg_relation_size(index.oid) as bytes, index.reltuples as entries,
            12 + 8 * ceil(sum(coalesce(stats.avg_width, nullif(attlen, -1), 32)) / 8.0) as entry
        from pg_index
        join pg_class as index on index.oid = indexrelid
        join pg_class as owner on owner.oid = indrelid
        join pg_am on pg_am.oid = index.relam and amname = 'btree'
        join pg_attribute on attrelid = indexrelid
        left join pg_stats as stats on stats.schemaname = 'public' and (
            (stats.tablename = owner.relname and stats.attname = pg_get_indexdef(indexrelid, attnum, true))
            or (stats.tablename = index.relname and stats.attname = pg_attribute.attname)
        )
        where index.relnamespace = 'public'::regnamespace and indisvalid and index.reltuples >= 0
            and pg_relation_size(index.oid) >= %(least)s
        group by index.oid
    ) as indexes
    order by bytes desc
"""

# A building that died leaves one of these, which is kept up to date and never used.
LEFT_OVER = """
    select relname from pg_index join pg_class on pg_class.oid = indexrelid
    where relnamespace = 'public'::regnamespace and not indisvalid and relname ~ '_cc(new|old)[0-9]*$'
"""

REBUILD = "reindex index concurrently {}"

DROP = "drop index concurrently if exists {}"


@dataclass(frozen=True, slots=True)
class Size:
    """An index, how many bytes it takes, and about how many it would take if it were built now."""

    name: str
    bytes: int
    needed: int


def sizes(db: Connection, least: int) -> list[Size]:
    """Return all B-trees of at least so many bytes, the largest first."""
    with db.cursor(row_factory=class_row(Size)) as cursor:
        return cursor.execute(SIZES, {"least": least}).fetchall()


def rebuild(db: Connection, name: str) -> None:
    """Build an index anew beside the old one, while everybody reads and writes; outside any transaction."""
    db.execute(sql.SQL(REBUILD).format(sql.Identifier(name)))


def drop_left_over(db: Connection) -> list[str]:
    """Drop what a building that died has left; return the names. Outside any transaction."""
    names = [name for (name,) in db.execute(LEFT_OVER)]
    for name in names:
        db.execute(sql.SQL(DROP).format(sql.Identifier(name)))
    return names
