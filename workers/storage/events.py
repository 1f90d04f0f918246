"""Events: the append-only history of a fact, deleted with it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.types.json import Jsonb

from workers.storage.candidates import ITEM_ENDS
from workers.storage.connection import Connection, fetch_one, number

ADD_MANY = """
    insert into events (namespace, fact, at, what, details)
    select %(namespace)s, fact, %(now)s, what, details
    from unnest(%(facts)s::uuid[], %(what)s::text[], %(details)s::jsonb[]) as new (fact, what, details)
    order by fact
"""

ADD_ALL = """
    insert into events (namespace, fact, at, what)
    select namespace, fact, %(now)s, %(what)s
    from unnest(%(namespaces)s::int[], %(facts)s::uuid[]) as new (namespace, fact)
"""

# The facts are locked. Entries of one kind are one unless something else was done to the fact in between; `seconds` is
# the time from the first to the last of them, which a branch of another age keeps. A query of its own computes them, as
# Citus accepts no function of columns in an update.
ADD_USE = """
    with earlier as (
        select distinct on (fact) fact, id,
            greatest(at, %(now)s) as until,
            case when at > %(now)s then %(details)s || details else details || %(details)s end
                || jsonb_build_object(
                    'times', coalesce((details ->> 'times')::bigint, 1) + 1,
                    'seconds', date_part('epoch', greatest(at, %(now)s) - least(
                        at - make_interval(secs => coalesce((details ->> 'seconds')::float8, 0)), %(now)s
                    ))
                ) as merged
        from events
        where namespace = %(namespace)s and fact = any(%(facts)s) and what = %(what)s and not exists (
            select from events as later
            where later.namespace = %(namespace)s and later.fact = events.fact and later.id > events.id
                and later.what <> all(%(uses)s)
        )
        order by fact, id desc
    ),
    repeated as (
        update events
        set at = earlier.until, details = earlier.merged
        from earlier
        where namespace = %(namespace)s and events.fact = earlier.fact and events.id = earlier.id
    )
    insert into events (namespace, fact, at, what, details)
    select %(namespace)s, fact, %(now)s, %(what)s, %(details)s
    from unnest(%(facts)s::uuid[]) as given (fact)
    where fact not in (select fact from earlier)
"""
USES = ("used", "reinforced", "stored again")
"""Kinds of events of which consecutive ones are one entry."""

OF = """
    select at, what, details from events
    where namespace = %(namespace)s and fact = %(fact)s and (%(since)s::timestamptz is null or at >= %(since)s)
    order by at, id
    limit %(most)s
"""

EDITED = """
    select details -> 'was' from events
    where namespace = %(namespace)s and fact = %(fact)s and what = 'edited' and details -> 'was' ?| %(fields)s
    order by id
"""

# What a recall or an import restores along the way was not asked for, and does not count.
LATER = """
    select fact, max(at) from events
    where namespace = %(namespace)s and fact = any(%(facts)s) and what = any(%(what)s) and at > %(now)s
        and details ->> 'by' is null
    group by fact
"""

# An imported entry may say anything, so only lists of fields and of tags are read.
EDITED_LATER = """
    select fact, max(at), array_agg(distinct field), array(
        select jsonb_array_elements_text(details -> 'was' -> 'tags') from events as other
        where other.namespace = %(namespace)s and other.fact = events.fact and what = 'edited' and at > %(now)s
            and jsonb_typeof(details -> 'was' -> 'tags') = 'array'
    )
    from events cross join lateral jsonb_object_keys(details -> 'is') as field
    where namespace = %(namespace)s and fact = any(%(facts)s) and what = 'edited' and at > %(now)s
        and jsonb_typeof(details -> 'is') = 'object'
    group by fact
"""

DONE_AT = """
    select fact from events
    where namespace = %(namespace)s and (%(facts)s::uuid[] is null or fact = any(%(facts)s))
        and what = %(what)s and at = %(now)s
"""

# Events of earlier versions have no reason; the preceding event says why the fact was forgotten.
RESTORATIONS = """
    select restored.fact, coalesce(restored.details ->> 'reason', before.details ->> 'reason', '')
    from events as restored
    left join lateral (
        select details from events
        where namespace = %(namespace)s and fact = restored.fact and what = 'forgotten' and id < restored.id
        order by id desc
        limit 1
    ) as before on restored.details ->> 'reason' is null
    where restored.namespace = %(namespace)s and restored.fact = any(%(facts)s) and restored.what = 'restored'
        and restored.details ->> 'by' is null
"""

# An imported entry may say anything, so only ids are read.
NAMED = """
    select distinct (details ->> 'id')::uuid from events
    where namespace = %(namespace)s and fact = any(%(facts)s) and what = %(what)s
        and details ->> 'id' ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$'
"""

# Of a fact that was restored and merged again, the last merge counts.
STILL_MERGED = """
    select id, kept::uuid
    from facts
    cross join lateral (
        select details ->> 'id' as kept from events
        where events.namespace = %(namespace)s and events.fact = facts.id and what = 'merged into'
        order by events.id desc
        limit 1
    ) as last
    where namespace = %(namespace)s and id = any(%(facts)s) and forgotten_reason = 'merged'
        and kept = any(%(into)s::uuid[]::text[])
"""

PRUNED_SINCE = """
    select count(*) from events
    where namespace = %(namespace)s and at > %(since)s and what = 'forgotten' and details ->> 'reason' = 'pruned'
"""

# A fact is over from its end on, whether or not a pass has run, unless it is held.
STATE = f"""case
            when forgotten_at is not null then 'forgotten: ' || forgotten_reason
            when superseded_at is not null then 'superseded'
            when has_ended(row(activity.*)::activity, (select outlook_of(%(namespace)s, %(now)s)), %(now)s)
                or {ITEM_ENDS} <= %(now)s then 'over'
            else 'live'
        end as state"""
"""The state of a fact, for statements on facts and their activity."""

ACCOUNT = f"""
    select text, source, role, content_salience, created_at,
        supersedes_id, superseded_at, superseded_by, recall_count, last_accessed_at,
        coalesce((
            select older.superseded_at from facts as older
            where older.namespace = facts.namespace
                and older.id = facts.supersedes_id and older.superseded_by = facts.id
        ), (
            select created_at where not exists (
                select from events where events.namespace = facts.namespace and events.fact = facts.id
                    and what = 'superseded another' and details ->> 'id' = supersedes_id::text
            )
        )) as superseded_another_at,
        {STATE},
        coalesce(pinned_until > %(now)s, false) as pinned,
        case when pinned_until > %(now)s and isfinite(pinned_until) then pinned_until end as pinned_until
    from facts
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    where facts.namespace = %(namespace)s and facts.id = %(fact)s
"""


@dataclass(frozen=True, slots=True)
class Account:
    """The columns of a fact that describe its past, and its state at an instant."""

    text: str
    source: str | None
    role: str | None
    content_salience: float | None
    created_at: datetime
    supersedes_id: UUID | None
    superseded_at: datetime | None
    superseded_by: UUID | None
    recall_count: int
    last_accessed_at: datetime | None
    superseded_another_at: datetime | None
    state: str
    pinned: bool
    pinned_until: datetime | None


@dataclass(frozen=True, slots=True)
class Edits:
    """The time of the last of some edits, the fields that they changed, and the tags that the fact had before them."""

    at: datetime
    fields: frozenset[str]
    tags: frozenset[str]


def account(db: Connection, namespace: int, fact: UUID, now: datetime) -> Account | None:
    """Return the account of a fact, if the namespace has it."""
    return fetch_one(db, Account, ACCOUNT, {"namespace": namespace, "fact": fact, "now": now})


def add_many(db: Connection, namespace: int, now: datetime, noted: Sequence[tuple[UUID, str, dict[str, Any]]]) -> None:
    """Add events as (fact, what, details)."""
    given = {
        "namespace": namespace,
        "now": now,
        "facts": [fact for fact, _, _ in noted],
        "what": [what for _, what, _ in noted],
        "details": [Jsonb(details) for _, _, details in noted],
    }
    db.execute(ADD_MANY, given)


def add_all(db: Connection, namespaces: Sequence[int], facts: Sequence[UUID], now: datetime, what: str) -> None:
    """Add the same event to facts of any namespaces."""
    if facts:
        db.execute(ADD_ALL, {"namespaces": list(namespaces), "facts": list(facts), "now": now, "what": what})


def add_use(
    db: Connection, namespace: int, facts: Sequence[UUID], now: datetime, what: str, details: dict[str, Any]
) -> None:
    """Add an event of `USES` to locked facts; consecutive ones are one entry with their number and the last instant."""
    given = {"namespace": namespace, "facts": list(facts), "now": now, "what": what, "details": Jsonb(details)}
    if facts:
        db.execute(ADD_USE, given | {"uses": [*USES]})


def of(
    db: Connection, namespace: int, fact: UUID, since: datetime | None, most: int | None
) -> list[tuple[datetime, str, dict[str, Any]]]:
    """Return a fact's events as (when, what, details), oldest first: the first ones since a time, or all."""
    return db.execute(OF, {"namespace": namespace, "fact": fact, "since": since, "most": most}).fetchall()


def edited(db: Connection, namespace: int, fact: UUID, fields: Sequence[str]) -> dict[str, Any]:
    """Return the values that those of some fields of a fact that were edited had at first."""
    given = {"namespace": namespace, "fact": fact, "fields": list(fields)}
    first: dict[str, Any] = {}
    for (was,) in db.execute(EDITED, given):
        first = was | first if isinstance(was, dict) else first  # an imported entry may say anything
    return first


def later(
    db: Connection, namespace: int, facts: Sequence[UUID], what: Sequence[str], now: datetime
) -> dict[UUID, datetime]:
    """Return the facts with an event of these kinds after `now` that was asked for, and the time of the last one."""
    given = {"namespace": namespace, "facts": list(facts), "what": list(what), "now": now}
    return dict(db.execute(LATER, given).fetchall())


def edited_later(db: Connection, namespace: int, facts: Sequence[UUID], now: datetime) -> dict[UUID, Edits]:
    """Return the edits of facts after `now`; facts without any are left out."""
    rows = db.execute(EDITED_LATER, {"namespace": namespace, "facts": list(facts), "now": now})
    return {fact: Edits(at, frozenset(fields), frozenset(tags)) for fact, at, fields, tags in rows}


def done_at(db: Connection, namespace: int, facts: Sequence[UUID] | None, what: str, now: datetime) -> set[UUID]:
    """Return those of the facts, or of all, with an event `what` of exactly this instant, as by an earlier delivery."""
    given = {"namespace": namespace, "facts": None if facts is None else list(facts), "what": what, "now": now}
    return {fact for (fact,) in db.execute(DONE_AT, given)}


def restorations(db: Connection, namespace: int, facts: Sequence[UUID]) -> dict[UUID, list[str]]:
    """Return the reasons for which each fact had been forgotten before an owner restored it.

    Restorations by an import do not count; facts without any are left out.
    """
    reasons: dict[UUID, list[str]] = {}
    for fact, reason in db.execute(RESTORATIONS, {"namespace": namespace, "facts": list(facts)}):
        reasons.setdefault(fact, []).append(reason)
    return reasons


def merged_into(db: Connection, namespace: int, facts: Collection[UUID]) -> list[UUID]:
    """Return the facts into which these were ever merged."""
    return _named(db, namespace, facts, "merged into")


def took_in(db: Connection, namespace: int, facts: Collection[UUID]) -> list[UUID]:
    """Return the facts that were ever merged into these."""
    return _named(db, namespace, facts, "took in")


def _named(db: Connection, namespace: int, facts: Collection[UUID], what: str) -> list[UUID]:
    return [id_ for (id_,) in db.execute(NAMED, {"namespace": namespace, "facts": list(facts), "what": what})]


def still_merged(db: Connection, namespace: int, facts: Collection[UUID], into: Collection[UUID]) -> dict[UUID, UUID]:
    """Return the facts among these that are tombstones because they were merged `into` one of others, with that one."""
    given = {"namespace": namespace, "facts": list(facts), "into": list(into)}
    return dict(db.execute(STILL_MERGED, given).fetchall())


def pruned_since(db: Connection, namespace: int, since: datetime) -> int:
    """Return the number of facts that LLM reviews forgot since an instant, including restored ones."""
    return number(db, PRUNED_SINCE, {"namespace": namespace, "since": since})
