"""Contradictions: facts that say different values of the same key of the same entity."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from workers.storage.connection import Connection

MOST_OF_ONE = 10
"""How many others a new fact is compared with, the newest first: a key may have thousands of values."""

# Of two that store about the same at once neither sees the other's fact, unless the second waits for the first's
# commit. A topic's lock is one of 64 of its namespace: a batch may have more topics than a server has locks.
LOCK_TOPICS = """
    select pg_advisory_xact_lock(%(namespace)s, topic.lock)
    from (
        select distinct hashtext(lower(entity) || ' ' || lower(key)) & 63 as lock
        from facts
        where namespace = %(namespace)s and id = any(%(ids)s) and key is not null and value is not null
        order by lock
    ) as topic
"""

FIND = """
    insert into contradictions (namespace, fact, other, found_at)
    select %(namespace)s, least(new.id, old.id), greatest(new.id, old.id), %(now)s
    from facts as new
    cross join lateral (
        select id from facts
        where namespace = %(namespace)s and id <> new.id
            and entity is not null and forgotten_at is null and superseded_at is null
            and left(lower(entity), 200) = left(lower(new.entity), 200)
            and left(lower(key), 200) = left(lower(new.key), 200)
            and lower(entity) = lower(new.entity) and lower(key) = lower(new.key) and lower(value) <> lower(new.value)
        order by created_at desc
        limit %(most)s
    ) as old
    where new.namespace = %(namespace)s and new.id = any(%(ids)s)
        and new.forgotten_at is null and new.superseded_at is null
    on conflict do nothing
"""

OPEN = """
    select one.entity, one.key, found_at, array[one.id, two.id] as ids, array[one.value, two.value] as values,
        array[one.text, two.text] as texts, array[one.created_at, two.created_at] as created_at
    from contradictions
    join remembered as one on one.namespace = contradictions.namespace and one.id = fact
    join remembered as two on two.namespace = contradictions.namespace and two.id = other
    where contradictions.namespace = %(namespace)s and accepted_at is null
        and not has_ended(one.activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
        and not has_ended(two.activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
        and (%(found_at)s::timestamptz is null or found_at < %(found_at)s
            or found_at = %(found_at)s and (fact, other) > (%(fact)s::uuid, %(other)s::uuid))
    order by found_at desc, fact, other
    limit %(limit)s
"""

COUNT = """
    select count(*) from contradictions
    join remembered as one on one.namespace = contradictions.namespace and one.id = fact
    join remembered as two on two.namespace = contradictions.namespace and two.id = other
    where contradictions.namespace = %(namespace)s and accepted_at is null
        and not has_ended(one.activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
        and not has_ended(two.activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
"""

ACCEPT = """
    update contradictions set accepted_at = coalesce(accepted_at, %(now)s)
    where namespace = %(namespace)s and fact = least(%(one)s, %(two)s) and other = greatest(%(one)s, %(two)s)
"""


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two facts about the same key of the same entity, and what each says; each list has one item a fact."""

    entity: str
    key: str
    found_at: datetime
    ids: list[UUID]
    values: list[str]
    texts: list[str]
    created_at: list[datetime]


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a listing goes on: behind a pair."""

    found_at: datetime
    fact: UUID
    other: UUID


def find(db: Connection, namespace: int, ids: Sequence[UUID], now: datetime) -> int:
    """Note which live facts contradict these, which were just written; return how many pairs are new.

    It is to be the last thing in its transaction, for others who store about the same wait from now until the commit.
    """
    given = {"namespace": namespace, "ids": list(ids), "now": now, "most": MOST_OF_ONE}
    db.execute(LOCK_TOPICS, given)
    return db.execute(FIND, given).rowcount


def unsettled(
    db: Connection, namespace: int, now: datetime, limit: int, behind: Cursor | None = None
) -> list[Contradiction]:
    """Return pairs of facts that contradict each other and are remembered at `now`, found last first."""
    place = dict.fromkeys(("found_at", "fact", "other")) if behind is None else asdict(behind)
    with db.cursor(row_factory=class_row(Contradiction)) as cursor:
        return cursor.execute(OPEN, {"namespace": namespace, "now": now, "limit": limit} | place).fetchall()


def count(db: Connection, namespace: int, now: datetime) -> int:
    """Return how many such pairs there are."""
    row = db.execute(COUNT, {"namespace": namespace, "now": now}).fetchone()
    return int(row[0]) if row else 0


def accept(db: Connection, namespace: int, one: UUID, two: UUID, now: datetime) -> bool:
    """Note that both facts of a pair hold; false if there is no such pair."""
    return db.execute(ACCEPT, {"namespace": namespace, "one": one, "two": two, "now": now}).rowcount > 0
