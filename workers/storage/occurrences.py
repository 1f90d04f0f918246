"""Occurrences: the other sessions in which a fact was said."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, get_args
from uuid import UUID

from ebb.contract.values import Role
from psycopg.types.json import Jsonb

from workers.storage.candidates import as_stored
from workers.storage.connection import Connection, fetch_all

Occurrence: TypeAlias = tuple[UUID, UUID, str | int | None, int | None, str | None, datetime]
"""The fact, the id of the turn, its session if any, turn and role, and when it was said."""

AGAIN = "said again"
"""The entry in the history of a fact that was said again."""

OUTSIDE = f"""exists (
            select from events
            where events.namespace = {{0}}.namespace and events.fact = {{0}}.id and what = '{AGAIN}'
        )"""
"""Whether a fact that has a session was also said outside any."""

# One a session; the place that the fact itself has is none. As to `random`, see `imports`.
RECORD = """
    insert into occurrences (namespace, fact, id, session, turn, role, said_at)
    select %(namespace)s, new.fact, new.id, new.session, new.turn, new.role, new.said_at
    from unnest(%(facts)s::uuid[], %(ids)s::uuid[], %(sessions)s::jsonb[], %(turns)s::int[], %(roles)s::text[],
        %(said)s::timestamptz[]) as new (fact, id, session, turn, role, said_at)
    join facts on facts.namespace = %(namespace)s and facts.id = new.fact
    where (facts.session is distinct from new.session or facts.turn is distinct from new.turn) and random() >= 0
    order by new.fact, new.session, new.turn
    on conflict do nothing
"""

# A fact that was first said in a session and then outside any has an entry of its history, one however often.
RECORD_OUTSIDE = f"""
    insert into events (namespace, fact, at, what, details)
    select %(namespace)s, facts.id, said.at, '{AGAIN}', jsonb_strip_nulls(jsonb_build_object('role', said.role))
    from unnest(%(facts)s::uuid[], %(said)s::timestamptz[], %(roles)s::text[]) as said (fact, at, role)
    join facts on facts.namespace = %(namespace)s and facts.id = said.fact
    where session is not null and not {OUTSIDE.format("facts")}
    order by facts.id
"""

# Where merged facts were said, each by the fact that took it in, oldest first.
TAKEN_IN = f"""
    select new.kept, facts.id, session, turn, role, coalesce(source_date, created_at) as at
    from unnest(%(gone)s::uuid[], %(kept)s::uuid[]) as new (gone, kept)
    join facts on facts.namespace = %(namespace)s and facts.id = new.gone
    union all
    select new.kept, occurrences.id, session, turn, role, said_at
    from unnest(%(gone)s::uuid[], %(kept)s::uuid[]) as new (gone, kept)
    join occurrences on occurrences.namespace = %(namespace)s and occurrences.fact = new.gone
    union all
    select new.kept, events.fact, null, null, details ->> 'role', at
    from unnest(%(gone)s::uuid[], %(kept)s::uuid[]) as new (gone, kept)
    join events on events.namespace = %(namespace)s and events.fact = new.gone and what = '{AGAIN}'
    order by at
"""

OF = """
    select said_at, session, turn, role from occurrences
    where namespace = %(namespace)s and fact = %(fact)s and (%(since)s::timestamptz is null or said_at >= %(since)s)
    order by said_at, id
    limit %(most)s
"""

REPEATED = """
    select id, date_part('epoch', created_at) as created_at,
        date_part('epoch', (
            select max(at) from events
            where events.namespace = facts.namespace and events.fact = facts.id and what = 'stored again'
                and at <= %(until)s
        )) as stored_again_at,
        date_part('epoch', (
            select max(said_at) from occurrences
            where occurrences.namespace = facts.namespace and occurrences.fact = facts.id and said_at <= %(until)s
        )) as said_at
    from facts
    where namespace = %(namespace)s and id = any(%(ids)s)
"""

ELSEWHERE = f"""(
            {{0}}.session is null or {{0}}.session <> all(%(sessions)s::jsonb[]) or exists (
                select from occurrences
                where namespace = %(namespace)s and fact = {{0}}.id
                    and occurrences.session <> all(%(sessions)s::jsonb[])
            ) or {OUTSIDE}
        )"""
"""Whether a fact was also said elsewhere than in a session."""

TURN_OF = """
        from links
        join facts as turn on turn.namespace = links.namespace and turn.id = links.target
        where links.namespace = %(namespace)s and links.source = facts.id and links.type = 'PART_OF'
            and facts.metadata -> 'extracted' is not null
            and coalesce(turn.forgotten_reason not in ('asked', 'retracted', 'merged'), true)"""
"""Of a fact that was extracted: the turns that state it and were not forgotten on request."""

# A fact that was also said outside any session stays too, and what was extracted stays with its turn.
STAYING = f"""
    select id from facts
    where namespace = %(namespace)s and id = any(%(ids)s) and (
        {ELSEWHERE.format("facts")} or exists (select {TURN_OF} and {ELSEWHERE.format("turn")})
    )
"""

# Where the turns were said that state extracted facts, which have no turn of their own.
OF_TURNS = f"""
    select facts.id, place.id, place.session, null::int, place.role, place.at
    from facts
    cross join lateral (select turn.* {TURN_OF}) as turn
    cross join lateral (
        select turn.id, turn.session, turn.role, coalesce(turn.source_date, turn.created_at) as at
        union all
        select id, session, role, said_at from occurrences
        where occurrences.namespace = %(namespace)s and occurrences.fact = turn.id
    ) as place
    where facts.namespace = %(namespace)s and facts.id = any(%(ids)s)
        and place.session <> all(%(sessions)s::jsonb[])
    order by place.at, place.id
"""

# The fact takes the place that it had first in another session; without one it was said outside any.
MOVE = """
    update facts set session = next.session, turn = next.turn, role = coalesce(next.role, facts.role),
        source_date = next.said_at
    from (
        select distinct on (fact) fact, session, turn, role, said_at from occurrences
        where namespace = %(namespace)s and fact = any(%(ids)s) and session <> all(%(sessions)s::jsonb[])
        order by fact, said_at, id
    ) as next
    where facts.namespace = %(namespace)s and facts.id = next.fact and facts.session = any(%(sessions)s::jsonb[])
"""

# An imported entry of the history may name any role.
MOVE_OUTSIDE = """
    update facts set session = null, turn = null, role = coalesce(outside.role, facts.role), source_date = outside.at
    from (
        select distinct on (fact) fact, at,
            case when details ->> 'role' = any(%(roles)s) then details ->> 'role' end as role
        from events
        where namespace = %(namespace)s and fact = any(%(ids)s) and what = %(what)s
        order by fact, id
    ) as outside
    where facts.namespace = %(namespace)s and facts.id = outside.fact and facts.session = any(%(sessions)s::jsonb[])
"""

# What is left was extracted from turns that were said outside any session.
MOVE_REST = """
    update facts set session = null
    where namespace = %(namespace)s and id = any(%(ids)s) and session = any(%(sessions)s::jsonb[])
"""

LEAVE = """
    delete from occurrences
    where namespace = %(namespace)s and fact = any(%(ids)s) and session = any(%(sessions)s::jsonb[])
"""

NOTE_ERASURE = "insert into erasures (namespace) values (%(namespace)s)"


def take_over(db: Connection, namespace: int, gone: Sequence[UUID], kept: Sequence[UUID]) -> None:
    """Copy the places where merged facts were said to the facts that they were merged into."""
    given = {"namespace": namespace, "gone": list(gone), "kept": list(kept)}
    add(db, namespace, db.execute(TAKEN_IN, given).fetchall())


@dataclass(frozen=True, slots=True)
class Repeated:
    """When a fact was stored, last stored again, and last said in another session, if ever; in epoch seconds."""

    id: UUID
    created_at: float
    stored_again_at: float | None
    said_at: float | None


def repeated(db: Connection, namespace: int, ids: Sequence[UUID], until: datetime) -> dict[UUID, Repeated]:
    """Return when facts were stored and said for the last time until an instant."""
    found = fetch_all(db, Repeated, REPEATED, {"namespace": namespace, "ids": list(ids), "until": until})
    return {one.id: one for one in found}


def add(db: Connection, namespace: int, said: Sequence[Occurrence]) -> None:
    """Add occurrences of facts that exist; known ones stay as they are.

    Those outside any session are recorded of facts that have one, with the first instant given.
    """
    if places := [one for one in said if one[2] is not None]:
        known, ids, sessions, turns, roles, instants = map(list, zip(*places, strict=True))
        given = {"facts": known, "ids": ids, "sessions": list(map(Jsonb, sessions)), "turns": turns, "roles": roles}
        db.execute(RECORD, given | {"said": instants, "namespace": namespace})
    if first := {id_: (id_, role, at) for id_, _, session, _, role, at in reversed(said) if session is None}:
        known, roles, instants = map(list, zip(*first.values(), strict=True))
        given = {"facts": known, "roles": roles, "said": instants}
        db.execute(RECORD_OUTSIDE, given | {"namespace": namespace})


def of(
    db: Connection, namespace: int, fact: UUID, since: datetime | None, most: int | None
) -> list[tuple[datetime, tuple[str | int, int | None, str | None]]]:
    """Return when a fact was said again, and session, turn and role: the first `most` since an instant, in order."""
    rows = db.execute(OF, {"namespace": namespace, "fact": fact, "since": since, "most": most})
    return [(at, (session, turn, role)) for at, session, turn, role in rows]


def staying(db: Connection, namespace: int, ids: Sequence[UUID], session: str | int) -> set[UUID]:
    """Return the facts among these that were also said outside a session."""
    given = {"namespace": namespace, "ids": list(ids), "sessions": as_stored(session)}
    return {id_ for (id_,) in db.execute(STAYING, given)}


def leave(db: Connection, namespace: int, ids: Sequence[UUID], session: str | int, *, purge: bool) -> None:
    """Remove locked facts from a session outside which they were also said; `purge` has the pages cleaned."""
    given = {"namespace": namespace, "ids": list(ids), "sessions": as_stored(session)}
    add(db, namespace, db.execute(OF_TURNS, given).fetchall())
    db.execute(MOVE, given)
    db.execute(MOVE_OUTSIDE, given | {"what": AGAIN, "roles": list(get_args(Role))})
    db.execute(MOVE_REST, given)
    db.execute(LEAVE, given)
    if purge:
        db.execute(NOTE_ERASURE, {"namespace": namespace})
