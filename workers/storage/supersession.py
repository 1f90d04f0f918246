"""Supersession: facts that replaced others, and contradictions."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from workers.core.text import FIELDS, MARK
from workers.storage.connection import Connection, fetch_all, number, scalar

GIVEN_END = """
    select (details ->> 'valid_until')::timestamptz from events
    where events.namespace = facts.namespace and events.fact = facts.id and at = facts.superseded_at
        and what = 'closed'
    order by events.id desc
    limit 1
"""
"""The end of validity that a superseded fact had before, from the event of its supersession."""

# A fact is not superseded before it was stored, and does not become invalid before it was valid. An earlier end of
# validity that was given stays, and an event keeps it for undoing.
CLOSE = """
    with old as (
        select facts.id, valid_until as given, greatest(created_at, stated_at) as at,
            greatest(valid_from, until) as until
        from unnest(%(ids)s::uuid[], %(stated_at)s::timestamptz[], %(until)s::timestamptz[])
            as closing (id, stated_at, until)
        join facts on facts.namespace = %(namespace)s and facts.id = closing.id and superseded_at is null
    ),
    closed as (
        update facts set superseded_at = old.at, valid_until = least(old.given, old.until)
        from old
        where facts.namespace = %(namespace)s and facts.id = old.id
    )
    insert into events (namespace, fact, at, what, details)
    select %(namespace)s, id, at, 'closed', jsonb_build_object('valid_until', given) from old where given is not null
"""

# `union` ends at a circle, which a chain has only if a clock was wrong; then the fact itself is returned.
LATEST = """
    with recursive chain as (
        select %(fact)s::uuid as id
        union
        select superseded_by
        from chain
        join facts on facts.namespace = %(namespace)s and facts.id = chain.id
        where superseded_by is not null
    )
    select coalesce(
        (
            select chain.id
            from chain
            left join facts on facts.namespace = %(namespace)s and facts.id = chain.id
            where superseded_by is null
        ),
        %(fact)s
    )
"""

LINK_OLD = """
    update facts set superseded_by = pair.new
    from unnest(%(old)s::uuid[], %(new)s::uuid[]) as pair (old, new)
    where facts.namespace = %(namespace)s and facts.id = pair.old
"""

LINK_NEW = """
    update facts set supersedes_id = pair.old
    from unnest(%(old)s::uuid[], %(new)s::uuid[]) as pair (old, new)
    where facts.namespace = %(namespace)s and facts.id = pair.new and supersedes_id is null
"""

# The row of a fact names one that it superseded; its history has the others.
NOTE_FURTHER = """
    insert into events (namespace, fact, at, what, details)
    select %(namespace)s, newer.id, older.superseded_at, 'superseded another', jsonb_build_object('id', older.id)
    from unnest(%(old)s::uuid[], %(new)s::uuid[]) as pair (old, new)
    join facts as older on older.namespace = %(namespace)s and older.id = pair.old
    join facts as newer on newer.namespace = %(namespace)s and newer.id = pair.new and newer.supersedes_id <> older.id
"""

# Events keep the old values. The newer fact keeps `supersedes_id`, which a redelivered store looks for. As to `+ 0`,
# see `server.OUTDATED`.
REOPEN = f"""
    with old as (
        select namespace + 0 as namespace, id, superseded_at, superseded_by from facts
        where namespace = %(namespace)s and id = any(%(ids)s) and superseded_at is not null and forgotten_at is null
    ),
    back as (
        update facts set superseded_at = null, superseded_by = null, valid_until = ({GIVEN_END})
        from old
        where facts.namespace = old.namespace and facts.id = old.id
        returning facts.namespace, facts.id, old.superseded_at, old.superseded_by
    ),
    noted as (
        select id as fact, superseded_at as at, 'superseded' as what,
            jsonb_strip_nulls(jsonb_build_object('by', superseded_by)) as details
        from back
        union all
        select id, %(now)s, 'restored', jsonb_strip_nulls(jsonb_build_object(
            'reason', case when superseded_by is null then 'retracted' else 'superseded' end, 'fact', superseded_by))
        from back
        union all
        select newer.id, done.at, done.what, jsonb_build_object('id', back.id)
        from back
        join facts as newer on newer.namespace = back.namespace and newer.id = back.superseded_by
        cross join lateral (
            values (back.superseded_at, 'superseded another'), (%(now)s, 'supersession undone')
        ) as done (at, what)
        where done.what = 'supersession undone' or newer.supersedes_id = back.id
    )
    insert into events (namespace, fact, at, what, details)
    select %(namespace)s, fact, at, what, details from noted
"""


@dataclass(frozen=True, slots=True)
class Closed:
    """A fact that no longer holds: when that was stated, and until when it was true."""

    id: UUID
    stated_at: datetime
    until: datetime


def close(db: Connection, namespace: int, closed: Sequence[Closed]) -> None:
    """Mark live facts as superseded; `link` records the facts that replaced them."""
    given = {
        "namespace": namespace,
        "ids": [one.id for one in closed],
        "stated_at": [one.stated_at for one in closed],
        "until": [one.until for one in closed],
    }
    db.execute(CLOSE, given)


def latest(db: Connection, namespace: int, fact: UUID) -> UUID:
    """Return the last of the facts that superseded a fact one after another, or the fact itself."""
    found: UUID = scalar(db, LATEST, {"namespace": namespace, "fact": fact})
    return found


def link(db: Connection, namespace: int, old: Sequence[UUID], new: Sequence[UUID]) -> None:
    """Record in both directions which facts replaced closed ones."""
    pairs = {"namespace": namespace, "old": list(old), "new": list(new)}
    db.execute(LINK_OLD, pairs)
    db.execute(LINK_NEW, pairs)
    db.execute(NOTE_FURTHER, pairs)


def reopen(db: Connection, namespace: int, ids: Sequence[UUID], now: datetime) -> None:
    """Undo the supersession of facts, and add events to them and to the facts that had replaced them."""
    db.execute(REOPEN, {"namespace": namespace, "ids": list(ids), "now": now})


MOST_OF_ONE = 10
"""Number of facts that a new one contradicts at most, newest first: a key may have thousands of values."""

MOST_EXAMINED = 1_000
"""Number of facts that a new one is compared with, newest first: thousands may have the same value."""

# Serialises concurrent stores about the same entity and key, as neither would see the other's fact. Topics share 64
# locks a namespace, as a batch may have more topics than a server has locks.
LOCK_TOPICS = """
    select pg_advisory_xact_lock(%(namespace)s, topic.lock)
    from (
        select distinct hashtext(folded(entity) || ' ' || folded(key)) & 63 as lock
        from facts
        where namespace = %(namespace)s and id = any(%(ids)s) and key is not null and value is not null
        order by lock
    ) as topic
"""


def values_differ(one: str, two: str) -> str:
    """Return SQL for whether the values of two rows of `facts` differ; null if one has none.

    Case counts where it does in statements: their hashes have a mark of the value. Those of earlier versions have none.
    """

    def folded(row: str) -> str:
        return rf"btrim(regexp_replace(lower(normalize({row}.value)), '\s+', ' ', 'g'))"

    def mark(row: str) -> str:
        return f"case when {row}.value <> '' then nullif(substr({row}.hash, {FIELDS[-1].start + 1}, {MARK}), '') end"

    return f"({folded(one)} <> {folded(two)} or coalesce({mark(one)} <> {mark(two)}, false))"


FIND_CONTRADICTIONS = f"""
    insert into contradictions (namespace, fact, other, found_at)
    select %(namespace)s, least(new.id, old.id), greatest(new.id, old.id), %(now)s
    from facts as new
    cross join lateral (
        select id from (
            select id, value, hash, created_at from facts
            where namespace = %(namespace)s and id <> new.id
                and entity is not null and forgotten_at is null and superseded_at is null
                and left(folded(entity), 200) = left(folded(new.entity), 200)
                and left(folded(key), 200) = left(folded(new.key), 200)
                and folded(entity) = folded(new.entity) and folded(key) = folded(new.key)
            order by created_at desc
            limit %(examined)s
        ) as newest
        where {values_differ("newest", "new")}
        order by created_at desc
        limit %(most)s
    ) as old
    where new.namespace = %(namespace)s and new.id = any(%(ids)s) and new.value is not null
        and new.forgotten_at is null and new.superseded_at is null
    on conflict do nothing
    returning fact, other
"""

STILL_DIFFER = f"""folded(one.entity) = folded(two.entity) and folded(one.key) = folded(two.key)
        and {values_differ("one", "two")}"""
"""Whether two facts still contradict each other; an edit may have changed an entity, a key or a value."""

# As to `offset 0`, see `server.OUTDATED`.
CONTRADICTING_AMONG = f"""
    select fact, other, one.key
    from contradictions
    cross join lateral (select * from facts where namespace = %(namespace)s and id = fact offset 0) as one
    cross join lateral (select * from facts where namespace = %(namespace)s and id = other offset 0) as two
    where contradictions.namespace = %(namespace)s and fact = any(%(ids)s) and other = any(%(ids)s)
        and accepted_at is null and {STILL_DIFFER}
"""

UPDATES_OF = f"""
    select found_at, two.id, coalesce(one.source_date, one.created_at) > coalesce(two.source_date, two.created_at)
    from contradictions as pair
    join facts as one on one.namespace = %(namespace)s and one.id = %(fact)s
    join facts as two on two.namespace = %(namespace)s
        and two.id = case when pair.fact = one.id then pair.other else pair.fact end
    where pair.namespace = %(namespace)s and (pair.fact = %(fact)s or pair.other = %(fact)s) and accepted_at is null
        and two.forgotten_at is null and two.superseded_at is null and {STILL_DIFFER}
    order by found_at, two.id
"""

# A live fact that is still true, with its activity, or none. As to `offset 0` and `coalesce`, see `server.OUTDATED`.
CURRENT = """
    cross join lateral (
        select facts.*, row(activity.*)::activity as activity
        from facts
        join activity on activity.namespace = facts.namespace and activity.fact = facts.id
        where facts.namespace = %(namespace)s and facts.id = {id}
            and coalesce(forgotten_at, superseded_at) is null and coalesce(valid_until > %(now)s, true)
        offset 0
    ) as {name}
"""

STILL_OPEN = f"""
    {CURRENT.format(id="pair.fact", name="one")}
    {CURRENT.format(id="pair.other", name="two")}
    where {STILL_DIFFER}
        and not has_ended(one.activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
        and not has_ended(two.activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
"""

# The pairs are in order before their facts are read, one by one, so that only those of the page are read.
CONTRADICTIONS = f"""
    select one.entity, one.key, found_at, array[one.id, two.id] as ids, array[one.value, two.value] as values,
        array[one.text, two.text] as texts, array[one.created_at, two.created_at] as created_at
    from (
        select fact, other, found_at from contradictions
        where namespace = %(namespace)s and accepted_at is null
            and (%(found_at)s::timestamptz is null or found_at < %(found_at)s
                or found_at = %(found_at)s and (fact, other) > (%(fact)s::uuid, %(other)s::uuid))
        order by found_at desc, fact, other
        offset 0
    ) as pair
    {STILL_OPEN}
    order by found_at desc, pair.fact, pair.other
    limit %(limit)s
"""

COUNT_CONTRADICTIONS = f"""
    select count(*)
    from (select fact, other from contradictions where namespace = %(namespace)s and accepted_at is null) as pair
    {STILL_OPEN}
"""

ACCEPT_CONTRADICTION = """
    update contradictions set accepted_at = coalesce(accepted_at, %(now)s)
    where namespace = %(namespace)s and fact = least(%(one)s, %(two)s) and other = greatest(%(one)s, %(two)s)
"""


@dataclass(frozen=True, slots=True)
class Pair:
    """Two facts about one key of an entity with different values; each list has one item a fact."""

    entity: str
    key: str
    found_at: datetime
    ids: list[UUID]
    values: list[str]
    texts: list[str]
    created_at: list[datetime]


@dataclass(frozen=True, slots=True)
class ContradictionCursor:
    """The position of a listing: the last pair."""

    found_at: datetime
    fact: UUID
    other: UUID


def find_contradictions(db: Connection, namespace: int, ids: Sequence[UUID], now: datetime) -> list[tuple[UUID, UUID]]:
    """Record the live facts that contradict these new ones; return the new pairs.

    Call it last in a transaction: it blocks other stores about the same topics until the commit.
    """
    if not ids:
        return []
    given = {"namespace": namespace, "ids": list(ids), "now": now, "most": MOST_OF_ONE, "examined": MOST_EXAMINED}
    db.execute(LOCK_TOPICS, given)
    return db.execute(FIND_CONTRADICTIONS, given).fetchall()


def contradictions(
    db: Connection, namespace: int, now: datetime, limit: int, behind: ContradictionCursor | None = None
) -> list[Pair]:
    """Return pairs of live facts that contradict each other, those found last first."""
    place = dict.fromkeys(("found_at", "fact", "other")) if behind is None else asdict(behind)
    return fetch_all(db, Pair, CONTRADICTIONS, {"namespace": namespace, "now": now, "limit": limit} | place)


def ask_contradicting(
    db: Connection, namespace: int, ids: Sequence[UUID]
) -> Callable[[], list[tuple[UUID, UUID, str]]]:
    """Send the query for the pairs among these facts that contradict each other, and their key, without accepted ones.

    Return its reader.
    """
    return db.execute(CONTRADICTING_AMONG, {"namespace": namespace, "ids": list(ids)}).fetchall


def updates_of(db: Connection, namespace: int, fact: UUID) -> list[tuple[datetime, UUID, bool]]:
    """Return (found at, other fact, whether this one is newer) of the live facts that contradict a fact."""
    return db.execute(UPDATES_OF, {"namespace": namespace, "fact": fact}).fetchall()


def count_contradictions(db: Connection, namespace: int, now: datetime) -> int:
    """Return the number of open contradictions."""
    return number(db, COUNT_CONTRADICTIONS, {"namespace": namespace, "now": now})


def accept_contradiction(db: Connection, namespace: int, one: UUID, two: UUID, now: datetime) -> bool:
    """Mark a contradiction as accepted, so that both facts hold; return false if there is no such pair."""
    return db.execute(ACCEPT_CONTRADICTION, {"namespace": namespace, "one": one, "two": two, "now": now}).rowcount > 0
