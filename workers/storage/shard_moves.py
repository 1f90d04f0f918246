"""Moves of a namespace to another shard: its rows are copied, then those that changed meanwhile."""

from collections.abc import Mapping
from dataclasses import dataclass

from psycopg import sql
from psycopg.rows import class_row

from workers.storage import branches, routing
from workers.storage.connection import Connection

MOVED = (
    "namespaces", "facts", *branches.OF_FACTS, *branches.BETWEEN_FACTS, *branches.OF_NAMESPACES, "api_keys", "uses",
    "endings", "folders", "decay_runs", "decay_parts", "decay_allowances",
)  # fmt: skip
"""Tables with rows of a namespace, those before which others refer to; triggers of the new shard count the tallies."""

LEFT = " (moved)"
"""What the name of the old rows' namespace ends with; no other name contains a blank."""

OF_NAMESPACE = "namespace = %(id)s"
OF_ITS_RUNS = "run in (select id from {source}.decay_runs where namespace = %(id)s)"
WHERE = {
    "namespaces": "id = %(id)s", "decay_parts": OF_ITS_RUNS, "decay_allowances": f"{OF_NAMESPACE} and {OF_ITS_RUNS}",
}  # fmt: skip

# This table has no primary key; its rows are replaced.
WITHOUT_KEY = {"deep": ("namespace", "id")}

# A live fact may have the hash of one that was live before, which must be written first.
ORDER = {"facts": "order by forgotten_at is null and superseded_at is null"}

COLUMNS = """
    select attname, attname = any (array(
        select attname from pg_index join pg_attribute on attrelid = indrelid and attnum = any(indkey)
        where indrelid = %(table)s::text::regclass and indisprimary
    ))
    from pg_attribute
    where attrelid = %(table)s::text::regclass and attnum > 0 and not attisdropped and attgenerated = ''
    order by attnum
"""

# Transactions that were running then have no smaller ids, nor have their savepoints.
HORIZON = "select pg_snapshot_xmin(pg_current_snapshot())::text"

CHANGED = "age(old.xmin) <= age(xid(%(since)s::text::xid8))"

COPY_FROM = "copy (select {columns} from {source}.{table} where {where}) to stdout (format binary)"
COPY_TO = "copy {target}.{table} ({columns}) from stdin (format binary)"

INSERT_CHANGED = """
    insert into {target}.{table} ({columns}) overriding system value
    select {columns} from {source}.{table} as old where {where} and {changed} {order}
    {conflict}
"""

UPSERT = "on conflict ({keys}) do update set {given}"
SKIP = "on conflict ({keys}) do nothing"

DELETE_VANISHED = """
    delete from {target}.{table} as mine
    where {where} and not exists (select from {source}.{table} as old where {same})
"""

DELETE_CHANGED = """
    delete from {target}.{table} as mine
    where {where} and exists (select from {source}.{table} as old where {same} and {changed})
"""

ADVANCE = """
    select setval(sequence, greatest(
        (select coalesce(max(id), 1) from {target}.{table} where {where}), nextval(sequence)
    ))
    from pg_get_serial_sequence(%(table)s, 'id') as sequence
"""

COUNTED = ("events", "relations")
"""Tables with ids of a sequence, which must not give them out again."""

SWITCH = """
    insert into {home}.directory (name, shard) values (%(name)s, %(shard)s)
    on conflict (name) do update set shard = excluded.shard
"""

FIND = """
    select id, name, branch_of is not null as is_branch,
        exists (select from {source}.namespaces where branch_of = %(name)s) as has_branches
    from {source}.namespaces where name = %(name)s
"""

LOCK = "select pg_advisory_xact_lock(hashtextextended(%(place)s, 15)) from {home}.languages"

DELETING = 0x0EBB + 5
"""Advisory lock of a move, and of the deletion of what moves left, which must not meet a namespace that moves back."""

# Of a German shard, words would be stemmed again, in English; without an embedder, facts are found by words only.
UNLIKE = """
    select (select name from {source}.languages) is distinct from (select name from {target}.languages)
        or (select (name, dims, signature_seed) from {source}.embedders)
            is distinct from (select (name, dims, signature_seed) from {target}.embedders)
"""

RENAME = """
    update {source}.namespaces set name = %(left)s, branch_of = %(left)s, branched_at = statement_timestamp()
    where id = %(id)s
"""


def try_hold(db: Connection) -> bool:
    """Keep off moves and deletions of what moves left until the commit, unless one is at work."""
    return db.execute("select pg_try_advisory_xact_lock(%s)", [DELETING]).fetchone() == (True,)


@dataclass(frozen=True, slots=True)
class Moving:
    """A namespace that is to be moved."""

    id: int
    name: str
    is_branch: bool
    has_branches: bool


@dataclass(frozen=True, slots=True)
class Way:
    """The schemas of a move: of the first shard, of the old shard and of the new one."""

    home: str
    source: str
    target: str

    def names(self) -> dict[str, sql.Identifier]:
        """Return them as parts of statements."""
        return {name: sql.Identifier(getattr(self, name)) for name in ("home", "source", "target")}


def unlike(db: Connection, way: Way) -> bool:
    """Return whether the shards differ in their language or embedder."""
    return db.execute(sql.SQL(UNLIKE).format(**way.names())).fetchone() == (True,)


def find(db: Connection, way: Way, name: str) -> Moving | None:
    """Return a namespace of the old shard."""
    with db.cursor(row_factory=class_row(Moving)) as cursor:
        return cursor.execute(sql.SQL(FIND).format(**way.names()), {"name": name}).fetchone()


def switch(db: Connection, way: Way, name: str, shard: int) -> None:
    """Write the new shard to the directory, for all others from the commit on; another move waits for that."""
    db.execute(sql.SQL(SWITCH).format(**way.names()), {"name": name, "shard": shard})


def horizon(db: Connection) -> str:
    """Return a transaction id such that all rows that the snapshot does not see have this one or a later one."""
    row = db.execute(HORIZON).fetchone()
    return str(row[0]) if row else "3"


def copy(seen: Connection, db: Connection, way: Way, id_: int) -> int:
    """Copy all rows of a namespace that a second connection sees in its snapshot; return how many."""
    rows = 0
    for table in MOVED:
        columns = sql.SQL(", ").join(sql.Identifier(name) for name in _columns(db, way, table))
        reading = _statement(COPY_FROM, way, table, columns=columns)
        written = db.cursor()
        with (
            seen.cursor().copy(reading, {"id": id_}) as given,
            written.copy(_statement(COPY_TO, way, table, columns=columns)) as taken,
        ):
            for block in given:
                taken.write(block)
        rows += written.rowcount
    return rows


def catch_up(db: Connection, way: Way, id_: int, since: str) -> int:
    """Copy the rows of a namespace written since a horizon, and delete those that are gone; return how many."""
    given, changed = {"id": id_, "since": since}, 0
    for table in reversed(MOVED):
        changed += db.execute(_delete(db, way, table, DELETE_VANISHED), given).rowcount
    for table in MOVED:
        if table in WITHOUT_KEY:
            db.execute(_delete(db, way, table, DELETE_CHANGED), given)
        changed += db.execute(_insert(db, way, table), given).rowcount
    for table in COUNTED:
        named = f"{way.target}.{table}"
        db.execute(_statement(ADVANCE, way, table), given | {"table": sql.Identifier(*named.split(".")).as_string(db)})
    return changed


def lock(db: Connection, way: Way, place: routing.Place) -> None:
    """Wait until no transaction works at a place, and let none begin until the end of this one."""
    db.execute(sql.SQL(LOCK).format(**way.names()), {"place": routing.lock_name(place)})


def leave(db: Connection, way: Way, moving: Moving) -> None:
    """Hide the old rows, and delete those that would act on their own."""
    db.execute(sql.SQL(RENAME).format(**way.names()), {"id": moving.id, "left": moving.name + LEFT})
    for table in ("api_keys", "folders"):
        db.execute(_statement("delete from {source}.{table} where {where}", way, table), {"id": moving.id})


def _insert(db: Connection, way: Way, table: str) -> sql.Composed:
    columns = _columns(db, way, table)
    keys = [sql.Identifier(name) for name, is_key in columns.items() if is_key]
    others = [sql.Identifier(name) for name, is_key in columns.items() if not is_key]
    conflict: sql.Composable = sql.SQL("")
    if keys:
        given = sql.SQL(", ").join(sql.SQL("{0} = excluded.{0}").format(name) for name in others)
        conflict = sql.SQL(UPSERT if others else SKIP).format(keys=sql.SQL(", ").join(keys), given=given)
    return _statement(
        INSERT_CHANGED,
        way,
        table,
        columns=sql.SQL(", ").join(sql.Identifier(name) for name in columns),
        changed=sql.SQL(CHANGED),
        order=sql.SQL(ORDER.get(table, "")),
        conflict=conflict,
    )


def _delete(db: Connection, way: Way, table: str, statement: str) -> sql.Composed:
    keys = WITHOUT_KEY.get(table) or [name for name, is_key in _columns(db, way, table).items() if is_key]
    same = sql.SQL(" and ").join(sql.SQL("old.{0} = mine.{0}").format(sql.Identifier(name)) for name in keys)
    return _statement(statement, way, table, same=same, changed=sql.SQL(CHANGED))


def _columns(db: Connection, way: Way, table: str) -> Mapping[str, bool]:
    """Return whether each column that a copy writes belongs to the primary key."""
    named = sql.Identifier(way.target, table).as_string(db)
    return dict(db.execute(COLUMNS, {"table": named}).fetchall())


def _statement(statement: str, way: Way, table: str, **parts: sql.Composable) -> sql.Composed:
    where = sql.SQL(WHERE.get(table, OF_NAMESPACE)).format(**way.names())
    return sql.SQL(statement).format(**way.names(), table=sql.Identifier(table), where=where, **parts)
