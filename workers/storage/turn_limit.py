"""The turn limit: the number of turns of a namespace, and the episodes that it has outrun."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from workers.storage.activity import ANCHORS, Activity, rows_of
from workers.storage.connection import Connection, number

# Serialises transactions that store turns, so that each turn is counted once.
LOCK_TURNS = "select turns from namespaces where id = %(namespace)s for no key update"

TURNS = "select turns from namespaces where id = %(namespace)s"

# A turn is new if no earlier fact has it, live or not; the limit bounds the facts that are read.
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

# Locked rows are left for the next turn.
PAST_LIMIT = f"""
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
    """Return a namespace's number of turns, locked until the commit."""
    return number(db, LOCK_TURNS, {"namespace": namespace})


def turns(db: Connection, namespace: int) -> int:
    """Return a namespace's number of turns."""
    return number(db, TURNS, {"namespace": namespace})


def advance(db: Connection, namespace: int, ids: Sequence[UUID]) -> set[tuple[str | int, int]]:
    """Count the new turns of facts that were just added; return them as (session, turn)."""
    return set(db.execute(ADVANCE, {"namespace": namespace, "ids": list(ids)}, binary=True).fetchall())


def past_limit(db: Connection, namespace: int, before: int, limit: int) -> Activity:
    """Return persistent episodes from before a turn that are not marked as outrun, oldest first, locked."""
    return rows_of(db.execute(PAST_LIMIT, {"namespace": namespace, "before": before, "limit": limit}))


def write(db: Connection, rows: Activity) -> None:
    """Write the first counted turn of persistent episodes, and when they were outrun."""
    given = {
        "namespaces": rows.namespaces.tolist(),
        "ids": rows.ids,
        "occurred": rows.occurred.tolist(),
        "outrun_at": rows.anchors.outrun_at.tolist(),
    }
    db.execute(WRITE, given)


def restart_count(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> None:
    """Count the turns since persistent episodes from now on."""
    db.execute(RESTART_COUNT, {"namespaces": list(namespaces), "ids": list(ids)})


def encode_again(db: Connection, namespace: int, ids: Sequence[UUID], now: datetime) -> None:
    """Reset the age of episodes, as if they were stored now."""
    db.execute(ENCODE_AGAIN, {"namespace": namespace, "ids": list(ids), "now": now})
