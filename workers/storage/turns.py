"""Turns: those of conversations, the values that they state, and the number of turns, after which episodes end."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from workers.core.extraction import SPEAKER
from workers.storage import columns, deep, entities, words
from workers.storage.activity import ANCHORS, Activity, of_keys, rows_of
from workers.storage.connection import Connection, fetch_all, number

# Preceding turns are included to resolve pronouns. One that another fact has superseded says what was true before. As
# to `offset 0`, see `server.OUTDATED`.
TURNS = """
    with new as (
        select id, session, turn from facts
        where namespace = %(namespace)s and id = any(%(ids)s) and forgotten_at is null
            and (superseded_at is null or superseded_by is not null)
    ),
    first as (select session, min(turn) as turn from new where turn is not null group by session)
    select id, text, role, session, source, coalesce(source_date, created_at) as said_at,
        id = any(%(ids)s) as asked_for
    from facts
    where namespace = %(namespace)s and forgotten_at is null
        and (superseded_at is null or superseded_by is not null) and id = any(array(
        select id from new
        union all
        select earlier.id from first
        cross join lateral (
            select id from facts
            where namespace = %(namespace)s and session = first.session
                and turn >= first.turn - %(before)s and turn < first.turn
            offset 0
        ) as earlier
    ))
    order by facts.session, facts.turn, array_position(%(ids)s::uuid[], id), id
"""

# Ended facts that no pass has forgotten yet state nothing any more. As to `+ 0`, see `server.OUTDATED`.
STATED = """
    select facts.id, value, coalesce(source_date, created_at) as said_at, valid_until,
        coalesce(pinned_until > %(now)s, false) as pinned
    from facts
    join activity on activity.namespace = facts.namespace + 0 and activity.fact = facts.id
    where facts.namespace = %(namespace)s and facts.id = any(%(ids)s) and forgotten_at is null and value is not null
        and (superseded_at is not null
            or not has_ended(row(activity.*)::activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s))
    order by said_at desc, id desc
    limit 100
"""

ANY_OF = "select exists (select from facts where namespace = %(namespace)s and id = any(%(ids)s) and role = %(role)s)"

# Facts that another turn states too are left out, unless that turn was forgotten on request or merged.
DRAWN_FROM = """
    select facts.id
    from links
    join facts on facts.namespace = links.namespace and facts.id = links.source
    where links.namespace = %(namespace)s and links.target = any(%(ids)s) and links.type = 'PART_OF'
        and facts.metadata -> 'extracted' is not null and not exists (
            select from links as other
            join facts as turn on turn.namespace = other.namespace and turn.id = other.target
            where other.namespace = %(namespace)s and other.source = facts.id and other.type = 'PART_OF'
                and other.target <> all(%(ids)s)
                and coalesce(turn.forgotten_reason not in ('asked', 'retracted', 'merged'), true)
        )
"""


@dataclass(frozen=True, slots=True)
class Turn:
    """A turn of a conversation; those not `asked_for` are context before the others."""

    id: UUID
    text: str
    role: str | None
    session: str | int | None
    source: str | None
    said_at: datetime
    asked_for: bool


@dataclass(frozen=True, slots=True)
class Value:
    """A value that a fact states for a property: when it was said, and until when it was true."""

    id: UUID
    value: str
    said_at: datetime
    valid_until: datetime | None = None
    pinned: bool = False

    def holds(self, instant: datetime) -> bool:
        """Return whether the value was still true at an instant."""
        return self.valid_until is None or self.valid_until > instant


def read_turns(db: Connection, namespace: int, ids: Sequence[UUID], before: int) -> list[Turn]:
    """Return the live and superseded facts in order, and up to `before` turns before the first one of each session."""
    return fetch_all(db, Turn, TURNS, {"namespace": namespace, "ids": list(ids), "before": before})


def packed_from(db: Connection, namespace: int, ids: Sequence[UUID]) -> list[UUID]:
    """Return the facts in deep memory that were extracted from any of these turns."""
    said = number(db, ANY_OF, {"namespace": namespace, "ids": list(ids), "role": SPEAKER})
    return deep.drawn_from(db, namespace, ids) if said else []


def drawn_from(db: Connection, namespace: int, ids: Sequence[UUID]) -> list[UUID]:
    """Return the facts that were extracted from these turns only, without those in deep memory."""
    found = [id_ for (id_,) in db.execute(DRAWN_FROM, {"namespace": namespace, "ids": list(ids)})]
    kept = deep.stated(db, namespace, found) if found else set()
    return [id_ for id_ in found if id_ not in kept]


def stated(db: Connection, namespace: int, entity: str, key: str, now: datetime) -> list[Value]:
    """Return the stated values of an entity's property, including superseded ones, newest first."""
    ids = entities.of_entity_with_past(db, namespace, entity, key, words.lexemes(db, entity))
    return fetch_all(db, Value, STATED, {"namespace": namespace, "ids": ids, "now": now})


# Serialises transactions that store turns, so that each turn is counted once.
LOCK_TURNS = "select turns from namespaces where id = %(namespace)s for no key update"

COUNT_TURNS = "select turns from namespaces where id = %(namespace)s"

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

# Locked rows are left for the next turn. They are chosen from the table, as the index does not serve the view, which
# has no nulls: each turn would read all episodes of the namespace. Those of an archive may have no turn.
CHOSEN = """array(
        select fact from activity
        where namespace = %(namespace)s and branch = 1 and outrun_at is null and {0}
        order by occurred
        limit %(limit)s
        for no key update skip locked
    )"""
PAST_LIMIT = f"""
    {ANCHORS}
    where namespace = %(namespace)s
        and fact = any({CHOSEN.format("occurred < %(before)s")} || {CHOSEN.format("occurred is null")})
    order by occurred
    limit %(limit)s
    for no key update
"""

WRITE_AGES = """
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


def advance(db: Connection, namespace: int, ids: Sequence[UUID]) -> tuple[int, int]:
    """Count the new turns of facts that were just added; return the namespace's turns before, and the new ones.

    The count is locked until the commit.
    """
    locked = db.execute(LOCK_TURNS, {"namespace": namespace})
    counted = db.execute(ADVANCE, {"namespace": namespace, "ids": list(ids)}, binary=True)
    (before,) = locked.fetchone() or (0,)
    return before, len(counted.fetchall())


def count_turns(db: Connection, namespace: int) -> int:
    """Return a namespace's number of turns."""
    return number(db, COUNT_TURNS, {"namespace": namespace})


def past_limit(db: Connection, namespace: int, before: int, limit: int) -> Activity:
    """Return persistent episodes from before a turn that are not marked as outrun, oldest first, locked."""
    return rows_of(db.execute(PAST_LIMIT, {"namespace": namespace, "before": before, "limit": limit}))


def write_ages(db: Connection, rows: Activity) -> None:
    """Write the first counted turn of persistent episodes, and when they were outrun."""
    ages = {"occurred": columns.bigints(rows.occurred), "outrun_at": columns.floats(rows.anchors.outrun_at)}
    db.execute(WRITE_AGES, of_keys(rows) | ages)


def restart_count(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> None:
    """Count the turns since persistent episodes from now on."""
    db.execute(RESTART_COUNT, {"namespaces": list(namespaces), "ids": list(ids)})


def encode_again(db: Connection, namespace: int, ids: Sequence[UUID], now: datetime) -> None:
    """Reset the age of episodes, as if they were stored now."""
    db.execute(ENCODE_AGAIN, {"namespace": namespace, "ids": list(ids), "now": now})
