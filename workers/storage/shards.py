"""Shards: schemas with the same tables, and the directory of the namespaces on them, which stands in the first."""

from collections.abc import Iterable

from ebb.contract.admin import Shard
from psycopg import sql

from workers.errors import SettingsError
from workers.storage import routing
from workers.storage.connection import Connection, home_and_shard, number, scalar

ADD = "insert into {home}.directory (name, shard) values (%(name)s, %(shard)s) on conflict do nothing"

REMOVE = "delete from {}.directory where name = %(name)s and shard = %(shard)s"

# A namespace of the first shard may have no row.
ADD_ON_ANOTHER = """
    insert into {home}.directory (name, shard)
    select %(name)s, %(shard)s
    where not exists (select from {home}.namespaces where name = %(name)s)
    on conflict do nothing
"""

IS_HERE = "select exists (select from {home}.directory where name = %(name)s and shard = %(shard)s)"

NUMBERS = """
    select coalesce(max(right(nspname, 4)::int), 0) + 1 from pg_namespace
    where left(nspname, -5) = current_schema() and right(nspname, 5) ~ '^_[0-9]{4}$'
"""

EXISTS = "select count(*) from pg_namespace where nspname = %(schema)s"

MEASURE = """
    select (select count(*) from namespaces where position(' ' in name) = 0) as namespaces,
        coalesce((
            select sum(facts) from (
                select facts from tallies where forgotten_reason is null
                union all
                select facts from tally_changes where forgotten_reason is null
            ) as counted
        ), 0)::bigint as facts
"""

# Apart, as the shard's node would answer with its own schema.
SIZE = """
    select current_schema(), coalesce(sum(pg_total_relation_size(oid)), 0)::bigint from pg_class
    where relnamespace = quote_ident(current_schema())::regnamespace and relkind = 'r'
"""
# The tables of the node that is asked are empty: their rows are on the shard's node.
SIZE_ON_CITUS = SIZE.replace("pg_total_relation_size", "citus_total_relation_size")

IDS_OF_A_SHARD = 2**21
"""Ids of the namespaces that begin on one shard; a moved one keeps its id, so ids of all shards differ."""

NUMBER = "select setval(pg_get_serial_sequence('namespaces', 'id'), %(first)s, false)"

DIRECTORY = "select name, shard from directory where %(names)s::text[] is null or name = any(%(names)s)"

HIGHEST = "select name, shard from directory order by shard desc limit 1"

LONGEST_NAME = 63
"""Bytes of a name after which PostgreSQL cuts it."""


def schema_of(home: str, shard: int) -> str:
    """Return the schema of a shard."""
    return f"{home}_{shard:04}" if shard else home


def home(db: Connection) -> str:
    """Return the schema of the first shard, on a connection that is not routed."""
    return str(scalar(db, "select current_schema()"))


def directory(db: Connection, names: Iterable[str] | None = None) -> dict[str, int]:
    """Return the shard of each namespace in the directory, or of some, on a connection that is not routed."""
    return dict(db.execute(DIRECTORY, {"names": None if names is None else list(names)}).fetchall())


def next_number(db: Connection) -> int:
    """Return the number of the first shard without a schema, on a connection that is not routed."""
    return number(db, NUMBERS)


def exists(db: Connection, home: str, shard: int) -> bool:
    """Return whether a shard has its schema."""
    return number(db, EXISTS, {"schema": schema_of(home, shard)}) > 0


def measure(db: Connection, shard: int, *, on_citus: bool) -> Shard:
    """Return the current shard with its counts; old rows of moved namespaces count until they are deleted."""
    namespaces, facts = db.execute(MEASURE).fetchone() or (0, 0)
    schema, size = db.execute(SIZE_ON_CITUS if on_citus else SIZE).fetchone() or ("", 0)
    counts = {"namespaces": namespaces, "facts": facts, "bytes": size}
    return Shard.model_validate({"number": shard, "schema": schema, **counts})


def place(db: Connection, namespace: str) -> int:
    """Choose the shard of a new namespace, continue the transaction there, and return its number."""
    known = home_and_shard(db)
    if known is None or known[1] is not None:
        return (known[1] if known else None) or 0
    shard = routing.shard_of_new(namespace)
    db.execute(sql.SQL(ADD).format(home=sql.Identifier(known[0])), {"name": namespace, "shard": shard})
    routing.send(db, namespace)
    return shard


def place_branch(db: Connection, branch: str) -> bool:
    """Record that a branch is on the shard of its namespace, the current one; false if its name is on another shard."""
    known = home_and_shard(db)
    if known is None:
        return True
    home, given = sql.Identifier(known[0]), {"name": branch, "shard": known[1] or 0}
    # Two statements: Citus inserts no row where it finds the condition true without reading a table.
    db.execute(sql.SQL(ADD_ON_ANOTHER if known[1] else ADD).format(home=home), given)
    return db.execute(sql.SQL(IS_HERE).format(home=home), given).fetchone() == (True,)


def forget(db: Connection, namespace: str) -> None:
    """Remove a namespace from the directory."""
    known = home_and_shard(db)
    if known is not None:
        db.execute(sql.SQL(REMOVE).format(sql.Identifier(known[0])), {"name": namespace, "shard": known[1] or 0})


def number_namespaces(db: Connection) -> None:
    """Give new namespaces of an empty shard other ids than those of other shards."""
    if shard := routing.current():
        db.execute(NUMBER, {"first": int(shard) * IDS_OF_A_SHARD + 1})


def check(db: Connection, shards: int) -> None:
    """Raise `SettingsError` if the name of the first schema is too long, or a namespace is on a later shard."""
    first = home(db)
    longest = LONGEST_NAME - len(schema_of("", 1))
    if shards > 1 and len(first.encode()) > longest:
        raise SettingsError(
            f"EBB_SHARDS={shards} is not allowed: the schemas of shards are named after {first!r}, the first of the "
            f"search path, whose name may have {longest} bytes; give the first one a shorter name."
        )
    row = db.execute(HIGHEST).fetchone()
    if row and row[1] >= shards:
        raise SettingsError(
            f"EBB_SHARDS={shards} is not allowed: the namespace {row[0]!r} is on shard {row[1]}. Set "
            f"EBB_SHARDS={row[1] + 1} or more, or move what is there with `ebb shards move`."
        )
