"""Faults: facts whose rows in different tables are inconsistent, orphaned rows, and their repair."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from workers.storage import branches
from workers.storage.connection import Connection, fetch_all

FOLLOWING = """
    select namespace, id from facts
    where (%(own)s::int is null or namespace = %(own)s) and (namespace, id) > (%(after)s, %(fact)s)
    order by namespace, id
    limit %(limit)s
"""

# As to `+ 0`, see `server.OUTDATED`.
PARTS = """
    select facts.id, forgotten_at is not null or superseded_at is not null as ended,
        activity.fidelity, coalesce(due_at < 'infinity', false) as due, retired, signatures.live, full_dims,
        vector_dims(embedding) as dims, date_part('epoch', due_at) as due_at, date_part('epoch', ends_at) as ends_at
    from facts
    left join activity on activity.namespace = facts.namespace + 0 and activity.fact = facts.id
    left join vectors on vectors.namespace = facts.namespace + 0 and vectors.fact = facts.id
    left join signatures on signatures.namespace = facts.namespace + 0 and signatures.fact = facts.id
    where facts.namespace = %(namespace)s and facts.id = any(%(ids)b)
"""

# The decay state is lost, so it starts from the time of storing, and the turns of an episode are counted from now on;
# the next pass recomputes it.
ADD_ACTIVITY = """
    insert into activity (namespace, fact, segment, base, last_seen_at, last_confirmed_at, tier, fidelity, retired,
        due_at, branch, encoded_at, occurred)
    select namespace, id, 0, 0.5, created_at, created_at, 0, 0, coalesce(forgotten_at, superseded_at) is not null,
        case when coalesce(forgotten_at, superseded_at) is null then %(now)s else 'infinity' end,
        case kind when 'semantic' then 0 when 'episodic' then 1 else 3 end,
        case when kind = 'episodic' then created_at end,
        case when kind = 'episodic' then (select turns from namespaces where namespaces.id = facts.namespace) end
    from facts where namespace = %(namespace)s and id = any(%(ids)b)
    on conflict do nothing
"""

# Those without a vector are embedded again.
MARK_PENDING = "update activity set fidelity = 0 where namespace = %(namespace)s and fact = any(%(ids)b)"
TOGGLE_RETIRED = "update activity set retired = not retired where namespace = %(namespace)s and fact = any(%(ids)b)"
TOGGLE_LIVE = "update signatures set live = not live where namespace = %(namespace)s and fact = any(%(ids)b)"


@dataclass(frozen=True, slots=True)
class Parts:
    """The rows of one fact in different tables, times in epoch seconds; None where a row is missing."""

    id: UUID
    ended: bool
    fidelity: int | None
    due: bool
    retired: bool | None
    live: bool | None
    full_dims: int | None
    dims: int | None
    due_at: float | None
    ends_at: float | None


def following(db: Connection, namespace: int | None, after: tuple[int, UUID], limit: int) -> list[tuple[int, UUID]]:
    """Return (namespace, id) of the next facts of one namespace, or all, after a position."""
    given = {"own": namespace, "after": after[0], "fact": after[1], "limit": limit}
    return db.execute(FOLLOWING, given, binary=True).fetchall()


def parts(db: Connection, namespace: int, ids: Sequence[UUID]) -> dict[UUID, Parts]:
    """Return the parts of each fact, by id."""
    return {one.id: one for one in fetch_all(db, Parts, PARTS, {"namespace": namespace, "ids": list(ids)}, binary=True)}


def mend(db: Connection, statement: str, namespace: int, ids: Sequence[UUID], now: datetime) -> None:
    """Repair facts by `ADD_ACTIVITY` or one of the statements after it."""
    db.execute(statement, {"namespace": namespace, "ids": list(ids), "now": now})


NAMING = dict.fromkeys(branches.OF_FACTS, ("fact",)) | branches.BETWEEN_FACTS
"""Tables whose rows name facts, and the columns that do."""

Range = tuple[int, UUID, UUID]
"""A namespace, and a range of its fact ids: after the first, up to the second."""

OF_COLUMN = """
    select {table}.namespace, {column} as fact from wanted
    join {table} on {table}.namespace = wanted.namespace and {column} > after and {column} <= upto
"""

NAMED = " union all ".join(
    OF_COLUMN.format(table=table, column=column) for table, columns in NAMING.items() for column in columns
)

# Each column has an index on namespace and fact; a range is as long as one batch of the doctor.
LEFTOVERS = f"""
    with wanted as materialized (
        select * from unnest(%(namespaces)b::int[], %(after)b::uuid[], %(upto)b::uuid[])
            as wanted (namespace, after, upto)
    ),
    named as ({NAMED})
    select distinct namespace, fact from named
    where not exists (select from facts where facts.namespace = named.namespace and facts.id = named.fact)
    order by namespace, fact
"""

DELETE_LEFTOVERS = """
    delete from {table} using unnest(%(namespaces)b::int[], %(ids)b::uuid[]) as gone (namespace, id)
    where {table}.namespace = gone.namespace and gone.id in ({columns})
"""

EMPTY = """
    select id from namespaces
    where (%(own)s::int is null or id = %(own)s)
        and not exists (select from facts where facts.namespace = namespaces.id)
    order by id
"""


def leftovers(db: Connection, ranges: Sequence[Range]) -> list[tuple[int, UUID]]:
    """Return (namespace, id) of the facts in these ranges that do not exist but have rows in other tables."""
    given = {
        "namespaces": [namespace for namespace, _, _ in ranges],
        "after": [after for _, after, _ in ranges],
        "upto": [upto for _, _, upto in ranges],
    }
    return db.execute(LEFTOVERS, given, binary=True).fetchall()


def delete_leftovers(db: Connection, gone: Sequence[tuple[int, UUID]]) -> None:
    """Delete orphaned rows of these facts."""
    given = {"namespaces": [tenant for tenant, _ in gone], "ids": [id_ for _, id_ in gone]}
    for table, columns in NAMING.items():
        db.execute(DELETE_LEFTOVERS.format(table=table, columns=", ".join(columns)), given)


def empty_namespaces(db: Connection, own: int | None) -> list[int]:
    """Return the namespaces without facts, of one or all."""
    return [id_ for (id_,) in db.execute(EMPTY, {"own": own})]
