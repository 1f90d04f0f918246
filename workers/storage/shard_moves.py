"""Moves of a namespace to another shard: its rows are copied, then those that changed meanwhile.

The shards may be on different nodes of Citus, so no statement names two of them: rows pass through the client.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import LiteralString, TypeAlias

from psycopg import sql

from workers.storage import branches, routing
from workers.storage.connection import Connection, fetch_all, fetch_one

MOVED = (
    "namespaces", "facts", *branches.OF_FACTS, *branches.BETWEEN_FACTS, *branches.OF_NAMESPACES, "api_keys", "uses",
    "endings", "folders", "decay_runs", "decay_parts", "decay_allowances",
)  # fmt: skip
"""Tables with rows of a namespace, those before which others refer to; triggers of the new shard count the tallies."""

COMING = " (moving)"
"""What the name of the new rows' namespace ends with until it is complete; no other name contains a blank."""

LEFT = " (moved)"
"""What the name of the old rows' namespace ends with."""

OF_NAMESPACE = "namespace = %(id)s"
OF_ITS_RUNS = "run in (select id from {schema}.decay_runs where namespace = %(id)s)"
WHERE = {
    "namespaces": "id = %(id)s", "decay_parts": OF_ITS_RUNS, "decay_allowances": f"{OF_NAMESPACE} and {OF_ITS_RUNS}",
}  # fmt: skip

TABLES = """
    select relname as name, array_agg(attname::text order by attnum) as columns,
        array_agg(attname::text order by attnum) filter (where is_key) as keys,
        array_agg(format_type(atttypid, null) order by attnum) filter (where is_key) as types,
        bool_or(is_primary) as unique
    from (
        select relname, attname, attnum, atttypid, is_primary, is_primary or (relname = 'deep' and attname = any (
            '{namespace,id}'
        )) as is_key
        from pg_class
        join pg_attribute on attrelid = pg_class.oid and attnum > 0 and not attisdropped and attgenerated = ''
        cross join lateral (
            select exists (
                select from pg_index where indrelid = attrelid and indisprimary and attnum = any (indkey)
            ) as is_primary
        ) as own
        where relnamespace = %(schema)s::text::regnamespace and relname = any (%(names)s::text[])
    ) as attributes
    group by relname
    order by array_position(%(names)s::text[], relname::text)
"""

# Citus runs these on the shard's node, and a shard that is moved to another one has ids of that.
HORIZON = """
    select (pg_control_system()).system_identifier::text, pg_current_snapshot()::text from {source}.languages
"""
OWN = """
    select (pg_control_system()).system_identifier::text, pg_current_xact_id_if_assigned()::text
    from {schema}.languages
"""

COPY_FROM = "copy (select {selected} from {schema}.{table} where {where}) to stdout (format binary)"
COPY_TO = "copy {schema}.{table} ({columns}) from stdin (format binary)"

DIGEST = """
    select {name} as name, array[count(*), coalesce(sum(hash_record_extended(row({keys}), 0)), 0)] as digest,
        {rows} as rows
    from {schema}.{table} as old where {where}
"""
CHANGED = "(json_agg(old) filter (where age(old.xmin) <= age(xid(%(since)s::text::xid8))))::text"

# One value of all rows may take 256 MB.
CHANGED_ROWS = """
    copy (
        select to_json(old) from {schema}.{table} as old
        where {where} and age(old.xmin) <= age(xid(%(since)s::text::xid8))
    ) to stdout
"""
PIECE_CHARACTERS = 1 << 24
"""How much of the changed rows is written by one statement."""

UPSERT = """
    insert into {schema}.{table} ({columns}) overriding system value
    select {selected} from json_populate_recordset(null::{schema}.{table}, %(rows)s::json)
    {conflict}
"""

# A live fact may have the hash that another one had before it was edited or ended. The other one has a hash of
# no statement until its own new row is written.
RELEASE = """
    with live as materialized (
        select id, hash from json_populate_recordset(null::{schema}.{table}, %(rows)s::json)
        where forgotten_at is null and superseded_at is null
    )
    update {schema}.{table} as mine set hash = uuid_send(id)
    where {where} and forgotten_at is null and superseded_at is null and hash = any(array(select hash from live))
        and not exists (select from live where live.id = mine.id and live.hash = mine.hash)
"""

DELETE_CHANGED = """
    delete from {schema}.{table} as mine
    where {where} and exists (
        select from json_populate_recordset(null::{schema}.{table}, %(rows)s::json) as old where {same}
    )
"""

KEYS = "select {arrays} from {schema}.{table} where {where}"

DELETE_VANISHED = """
    delete from {schema}.{table} as mine
    where {where} and not exists (select from unnest({arrays}) as old ({keys}) where {same})
"""

# The new shard's statistics may not know the copied rows yet: each would be compared with each.
# As statements, which Citus passes on to its nodes, as it does not calls of set_config.
WITHOUT_LOOPS = "set local enable_nestloop = off"
WITH_LOOPS = "set local enable_nestloop to default"

DELETE = "delete from {schema}.{table} where {where}"

ACTING = ("api_keys", "decay_runs", "folders")
"""Tables whose rows act on their own."""

COUNTED = ("events", "relations")
"""Tables with ids of a sequence, which must not give them out again."""

# Each node of Citus has a range of ids, which begins with the number of its group in the upper 16 bits.
HIGHEST = "select coalesce(max(id & (1::bigint << 48) - 1), 0) from {schema}.{table} where {where}"
ADVANCE = """
    select setval(sequence, greatest(nextval(sequence), {base} + {highest}))
    from pg_get_serial_sequence({table}, 'id') as sequence
"""
BASE = "((select groupid::bigint from pg_dist_local_group) << 48)"
ON_ALL_NODES = "select success, result from run_command_on_all_nodes(%(command)s)"

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

# From a table, so that all nodes of Citus use the same lock.
TRY_HOLD = "select pg_try_advisory_xact_lock(%(lock)s) from languages"

# Of a German shard, words would be stemmed again, in English; without an embedder, facts are found by words only. The
# embedder is locked until the commit, so that vectors are not cleared meanwhile.
KIND = """
    select (select name from {schema}.languages),
        (select (name, dims, signature_seed)::text from {schema}.embedders for share)
"""

RULES = "select rules from {schema}.fading_rules"

SHOW = """
    update {target}.namespaces
    set name = %(name)s, settings_changed_at = greatest(settings_changed_at, %(changed_at)s::timestamptz)
    where id = %(id)s
"""

HIDE = """
    update {schema}.namespaces set name = %(left)s, branch_of = %(left)s, branched_at = statement_timestamp()
    where name = %(name)s
    returning id
"""

Running: TypeAlias = tuple[str, str | None]
"""A server and the id of a transaction there."""


@dataclass(frozen=True, slots=True)
class Moving:
    """A namespace that is to be moved."""

    id: int
    name: str
    is_branch: bool
    has_branches: bool


@dataclass(frozen=True, slots=True)
class Table:
    """A table with rows of a namespace: its columns, and those that identify a row, by a `unique` index or not."""

    name: str
    columns: Sequence[str]
    keys: Sequence[str]
    types: Sequence[str]
    unique: bool


@dataclass(frozen=True, slots=True)
class Way:
    """The schemas of a move: of the first shard, of the old shard and of the new one."""

    home: str
    source: str
    target: str

    def names(self) -> dict[str, sql.Identifier]:
        """Return them as parts of statements."""
        return {name: sql.Identifier(getattr(self, name)) for name in ("home", "source", "target")}

    def schemas(self, schema: str) -> dict[str, sql.Identifier]:
        """Return the parts of a statement about one of them, its `schema`."""
        return self.names() | {"schema": sql.Identifier(schema)}


@dataclass(frozen=True, slots=True)
class Move:
    """A move under way: the namespace and the tables with its rows."""

    way: Way
    namespace: Moving
    tables: Sequence[Table]
    on_citus: bool

    @property
    def given(self) -> dict[str, object]:
        """Return the parameters of all its statements."""
        return {"id": self.namespace.id, "coming": self.namespace.name + COMING}


@dataclass(frozen=True, slots=True)
class Content:
    """The rows of a table of one namespace: a digest of their keys, and the rows since a horizon as JSON, if any."""

    name: str
    digest: list[object]
    rows: str | None


def try_hold(db: Connection) -> bool:
    """Keep off moves and deletions of what moves left until the commit, unless one is at work."""
    return db.execute(TRY_HOLD, {"lock": DELETING}).fetchone() == (True,)


def alike(db: Connection, way: Way, statement: LiteralString) -> bool:
    """Return whether the old shard and the new one have the same `KIND`, or the same decay `RULES`."""
    one, other = (
        db.execute(sql.SQL(statement).format(**way.schemas(schema))).fetchone() for schema in (way.source, way.target)
    )
    return one == other


def find(db: Connection, way: Way, name: str) -> Moving | None:
    """Return a namespace of the old shard."""
    return fetch_one(db, Moving, sql.SQL(FIND).format(**way.names()), {"name": name})


def tables(db: Connection, way: Way) -> list[Table]:
    """Return the tables with rows of a namespace, in the order in which rows are added."""
    return fetch_all(db, Table, TABLES, {"schema": sql.Identifier(way.target).as_string(db), "names": list(MOVED)})


def own_transaction(db: Connection, way: Way, schema: str) -> Running:
    """Return the server of a shard, and the id that the current transaction has there, if it wrote."""
    server, own = db.execute(sql.SQL(OWN).format(**way.schemas(schema))).fetchone() or ("", None)
    return server, own


def horizon(db: Connection, way: Way, own: Iterable[Running] = ()) -> tuple[str, str]:
    """Return the server of the old shard, and a transaction id: rows that the snapshot does not see have no earlier.

    Transactions that were running then have no smaller ids, nor have their savepoints. The move's `own` ones do not
    count, as they write nothing to the old shard and run for as long as the move does.
    """
    server, snapshot = db.execute(sql.SQL(HORIZON).format(**way.names())).fetchone() or ("", "3:3:")
    _, following, running = snapshot.split(":")
    others = [int(id_) for id_ in running.split(",") if id_ and (server, id_) not in own]
    return server, str(min(others, default=int(following)))


def copy(seen: Connection, db: Connection, move: Move) -> int:
    """Copy all rows of a namespace that a second connection sees in its snapshot; return how many."""
    rows = 0
    for table in move.tables:
        reading = _statement(COPY_FROM, move, table, move.way.source)
        written = db.cursor()
        with (
            seen.cursor().copy(reading, move.given) as given,
            written.copy(_statement(COPY_TO, move, table, move.way.target)) as taken,
        ):
            for block in given:
                taken.write(block)
        rows += written.rowcount
    return rows


def changes(db: Connection, move: Move, since: str) -> list[Content]:
    """Return the contents of all tables of the old shard, with the rows since a horizon, by one statement."""
    return _contents(db, move, move.way.source, CHANGED, move.given | {"since": since})


def write(db: Connection, move: Move, changed: Sequence[Content], limit: Callable[[], None]) -> None:
    """Write changed rows to the new shard, with a call of `limit` before each table."""
    found = {one.name: one.rows for one in changed}
    for table in move.tables:
        if rows := found[table.name]:
            limit()
            _write(db, move, table, rows)


def catch_up(seen: Connection, db: Connection, move: Move, since: str) -> int:
    """Copy the rows of the old shard since a horizon, however many, that a second connection sees; return how many."""
    rows = 0
    for table in move.tables:
        reading = _statement(CHANGED_ROWS, move, table, move.way.source)
        with seen.cursor().copy(reading, move.given | {"since": since}) as given:
            for piece in _pieces(row for (row,) in given.rows()):
                rows += _write(db, move, table, f"[{','.join(piece)}]")
    return rows


def _pieces(rows: Iterable[str]) -> Iterator[list[str]]:
    piece, size = list[str](), 0
    for row in rows:
        if piece and size + len(row) > PIECE_CHARACTERS:
            yield piece
            piece, size = [], 0
        piece.append(row)
        size += len(row)
    if piece:
        yield piece


def _write(db: Connection, move: Move, table: Table, rows: str) -> int:
    given = move.given | {"rows": rows}
    if table.name == "facts":
        db.execute(_statement(RELEASE, move, table, move.way.target), given)
    if not table.unique:
        db.execute(_statement(DELETE_CHANGED, move, table, move.way.target), given)
    return db.execute(_statement(UPSERT, move, table, move.way.target), given).rowcount


def unequal(db: Connection, move: Move, wanted: Sequence[Content]) -> list[Table]:
    """Return the tables whose rows on the new shard are others than these."""
    digests = {one.name: one.digest for one in _contents(db, move, move.way.target, "null::text", move.given)}
    others = {one.name for one in wanted if one.digest != digests[one.name]}
    return [table for table in move.tables if table.name in others]


def delete_vanished(
    seen: Connection, db: Connection, move: Move, among: Iterable[Table], limit: Callable[[], None]
) -> None:
    """Delete the rows of the new shard that the old one does not have any more."""
    for table in reversed(list(among)):
        limit()
        reading = [sql.SQL("array_agg({})::text").format(sql.Identifier(name)) for name in table.keys]
        found = seen.execute(_statement(KEYS, move, table, move.way.source, arrays=_listed(reading)), move.given)
        keys = {f"key_{place}": key for place, key in enumerate(found.fetchone() or ())}
        given = [sql.SQL(f"%(key_{place})s::{type_}[]") for place, type_ in enumerate(table.types)]
        db.execute(WITHOUT_LOOPS)
        db.execute(_statement(DELETE_VANISHED, move, table, move.way.target, arrays=_listed(given)), move.given | keys)
        db.execute(WITH_LOOPS)


def advance(db: Connection, move: Move) -> None:
    """Have the sequences of the new shard give no id that a moved row has."""
    for table in move.tables:
        if table.name in COUNTED:
            (highest,) = db.execute(_statement(HIGHEST, move, table, move.way.target), move.given).fetchone() or (0,)
            named = sql.Literal(sql.Identifier(move.way.target, table.name).as_string(db))
            base = sql.SQL(BASE if move.on_citus else "0")
            command = sql.SQL(ADVANCE).format(base=base, highest=sql.Literal(highest), table=named)
            if move.on_citus:
                db.execute(ON_ALL_NODES, {"command": command.as_string(db)})
            else:
                db.execute(command)


def lock(db: Connection, way: Way, place: routing.Place) -> None:
    """Wait until no transaction works at a place, and let none begin until the end of this one."""
    db.execute(sql.SQL(LOCK).format(**way.names()), {"place": routing.lock_name(place)})


def show(db: Connection, move: Move, *, settled: bool) -> None:
    """Give the new rows' namespace its name; unless it is `settled`, the next pass computes all its facts again."""
    given = {"id": move.namespace.id, "name": move.namespace.name, "changed_at": None if settled else "-infinity"}
    db.execute(sql.SQL(SHOW).format(**move.way.names()), given)


def switch(db: Connection, move: Move, shard: int) -> None:
    """Write the new shard to the directory, for all others from the commit on."""
    db.execute(sql.SQL(SWITCH).format(**move.way.names()), {"name": move.namespace.name, "shard": shard})


def hide(db: Connection, name: str, schema: str) -> None:
    """Give a namespace of a shard the name of one whose rows were moved; delete its rows that act on their own."""
    hidden = db.execute(sql.SQL(HIDE).format(schema=sql.Identifier(schema)), {"name": name, "left": name + LEFT})
    for (id_,) in hidden.fetchall():
        for table in ACTING:
            own = {"schema": sql.Identifier(schema), "table": sql.Identifier(table), "where": sql.SQL(OF_NAMESPACE)}
            db.execute(sql.SQL(DELETE).format(**own), {"id": id_})


def _contents(db: Connection, move: Move, schema: str, rows: LiteralString, given: dict[str, object]) -> list[Content]:
    each = [
        _statement(DIGEST, move, table, schema, name=sql.Literal(table.name), rows=sql.SQL(rows))
        for table in move.tables
    ]
    return fetch_all(db, Content, sql.SQL(" union all ").join(each), given)


def _statement(
    statement: LiteralString, move: Move, table: Table, schema: str, **parts: sql.Composable
) -> sql.Composed:
    names = move.way.schemas(schema)
    keys = [sql.Identifier(name) for name in table.keys]
    own = {
        "table": sql.Identifier(table.name),
        "where": sql.SQL(WHERE.get(table.name, OF_NAMESPACE)).format(**names),
        "columns": _listed(sql.Identifier(name) for name in table.columns),
        "selected": _listed(_selected(table, name) for name in table.columns),
        "keys": _listed(keys),
        "same": sql.SQL(" and ").join(sql.SQL("old.{0} = mine.{0}").format(key) for key in keys),
        "conflict": _conflict(table) if table.unique else sql.SQL(""),
    }
    return sql.SQL(statement).format(**(names | own | parts))


def _selected(table: Table, column: str) -> sql.Composable:
    """Return what is written to a column: the namespace has another name until it is complete."""
    renamed = (table.name, column) == ("namespaces", "name")
    return sql.SQL("%(coming)s::text") if renamed else sql.Identifier(column)


def _conflict(table: Table) -> sql.Composed:
    others = [sql.Identifier(name) for name in table.columns if name not in table.keys]
    given = _listed(sql.SQL("{0} = excluded.{0}").format(name) for name in others)
    action = sql.SQL("update set {}").format(given) if others else sql.SQL("nothing")
    return sql.SQL("on conflict ({}) do {}").format(_listed(sql.Identifier(name) for name in table.keys), action)


def _listed(parts: Iterable[sql.Composable]) -> sql.Composed:
    return sql.SQL(", ").join(parts)
