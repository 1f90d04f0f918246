"""The turn limit: how many turns a namespace has, and the episodes that more have passed since than they outlive."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from workers.storage.activity import ANCHORS, Activity, rows_of
from workers.storage.connection import Connection, number

# A transaction that stores a turn waits here for others that do, so that each turn is counted once, by the first.
LOCK_TURNS = "select turns from namespaces where id = %(namespace)s for no key update"

TURNS = "select turns from namespaces where id = %(namespace)s"

# A turn is new if no other fact has it, live or not; of many that have it, no more are read than were just added.
ADVANCE = """
    with stored as (
        select session, turn, count(*) as facts from facts
        where namespace = %(namespace)s and id = any(%(ids)b) and session is not null and turn is not null
        group by session, turn
    ),
    new as (
        select session, turn from stored
        where facts = (
            select count(*) from (
                select from facts as known
                where known.namespace = %(namespace)s and known.session = stored.session and known.turn = stored.turn
                limit stored.facts + 1
            ) as few
        )
    ),
    advanced as (
        update namespaces set turns = turns + (select count(*) from new)
        where id = %(namespace)s and exists (select from new)
    )
    select session, turn from new
"""

# What another transaction has locked is skipped; the next turn finds it.
OUTRUN = f"""
    {ANCHORS}
    where namespace = %(namespace)s and branch = 1 and outrun_since is null and occurred < %(before)s
    order by occurred
    limit %(limit)s
    for no key update skip locked
"""

WRITE = """
    update activity set occurred = new.occurred, outrun_at = nullif(to_timestamp(new.outrun_at), 'infinity')
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[], %(occurred)b::bigint[], %(outrun_at)b::float8[])
        as new (namespace, fact, occurred, outrun_at)
    where activity.namespace = new.namespace and activity.fact = new.fact
"""

RESTART_COUNT = """
    update activity set occurred = turns, outrun_at = null
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[]) as new (namespace, fact)
    join namespaces on namespaces.id = new.namespace
    where activity.namespace = new.namespace and activity.fact = new.fact and branch = 1
"""

ENCODE_AGAIN = """
    update activity set encoded_at = %(now)s, occurred = turns, outrun_at = null
    from namespaces
    where activity.namespace = %(namespace)s and fact = any(%(ids)b) and branch in (1, 2)
        and namespaces.id = activity.namespace
"""


def lock_turns(db: Connection, namespace: int) -> int:
    """Return how many turns a namespace has, while no other transaction adds any before the commit."""
    return number(db, LOCK_TURNS, {"namespace": namespace})


def turns(db: Connection, namespace: int) -> int:
    """Return how many turns a namespace has."""
    return number(db, TURNS, {"namespace": namespace})


def advance(db: Connection, namespace: int, ids: Sequence[UUID]) -> set[tuple[str | int, int]]:
    """Count the turns that facts just added are the first to tell; return these, as session and turn."""
    return set(db.execute(ADVANCE, {"namespace": namespace, "ids": list(ids)}, binary=True).fetchall())


def outrun(db: Connection, namespace: int, before: int, limit: int) -> Activity:
    """Return persistent episodes that occurred before a turn and were not found so yet, the oldest first, locked."""
    return rows_of(db.execute(OUTRUN, {"namespace": namespace, "before": before, "limit": limit}))


def write(db: Connection, rows: Activity) -> None:
    """Write from which turn on persistent episodes are counted, and when they were outrun."""
    given = {
        "namespaces": rows.namespaces.tolist(),
        "ids": rows.ids,
        "occurred": rows.occurred.tolist(),
        "outrun_at": rows.anchors.outrun_at.tolist(),
    }
    db.execute(WRITE, given)


def restart_count(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> None:
    """Let the turns since persistent episodes be counted from now on."""
    db.execute(RESTART_COUNT, {"namespaces": list(namespaces), "ids": list(ids)})


def encode_again(db: Connection, namespace: int, ids: Sequence[UUID], now: datetime) -> None:
    """Let episodes be as if they were stored now."""
    db.execute(ENCODE_AGAIN, {"namespace": namespace, "ids": list(ids), "now": now})
