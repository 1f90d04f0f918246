"""Occurrences: the other sessions in which a fact was said."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeAlias, get_args
from uuid import UUID

from ebb.contract.values import Role
from psycopg.types.json import Jsonb

from workers.storage.candidates import as_stored
from workers.storage.connection import Connection
from workers.storage.facts import Fact

Place: TypeAlias = tuple[str | int, int | None, str | None]
"""Session, turn and role."""

Occurrence: TypeAlias = tuple[UUID, UUID, str | int, int | None, str | None, datetime]
"""The fact, the id of the turn, its session, turn and role, and when it was said."""

AGAIN = "said again"
"""The entry in the history of a fact that was said again."""

OUTSIDE = f"""exists (
            select from events
            where events.namespace = facts.namespace and events.fact = facts.id and what = '{AGAIN}'
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
    where session is not null and not {OUTSIDE}
    order by facts.id
"""

# Where merged facts were said, each by the fact that took it in.
TAKEN_IN = """
    select new.kept, facts.id, facts.session, facts.turn, facts.role, coalesce(facts.source_date, facts.created_at)
    from unnest(%(gone)s::uuid[], %(kept)s::uuid[]) as new (gone, kept)
    join facts on facts.namespace = %(namespace)s and facts.id = new.gone
    where facts.session is not null
    union all
    select new.kept, occurrences.id, occurrences.session, occurrences.turn, occurrences.role, occurrences.said_at
    from unnest(%(gone)s::uuid[], %(kept)s::uuid[]) as new (gone, kept)
    join occurrences on occurrences.namespace = %(namespace)s and occurrences.fact = new.gone
"""

# When merged facts were said outside any session, oldest first.
TAKEN_IN_OUTSIDE = f"""
    select new.kept, coalesce(facts.source_date, facts.created_at) as at, facts.role
    from unnest(%(gone)s::uuid[], %(kept)s::uuid[]) as new (gone, kept)
    join facts on facts.namespace = %(namespace)s and facts.id = new.gone
    where facts.session is null
    union all
    select new.kept, events.at, details ->> 'role'
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

# A fact that was also said outside any session stays too.
STAYING = f"""
    select id from facts
    where namespace = %(namespace)s and id = any(%(ids)s) and (
        session is null or session <> all(%(sessions)s::jsonb[]) or exists (
            select from occurrences
            where namespace = %(namespace)s and fact = facts.id and occurrences.session <> all(%(sessions)s::jsonb[])
        ) or {OUTSIDE}
    )
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

LEAVE = """
    delete from occurrences
    where namespace = %(namespace)s and fact = any(%(ids)s) and session = any(%(sessions)s::jsonb[])
"""

NOTE_ERASURE = "insert into erasures (namespace) values (%(namespace)s)"


def record(db: Connection, namespace: int, said: Sequence[tuple[UUID, Fact]]) -> None:
    """Add where facts were said again, within sessions: the known fact of each, and the one that was not stored."""
    places = [
        (id_, one.id, one.session, one.turn, one.role, one.source_date or one.created_at)
        for id_, one in said
        if one.session is not None
    ]
    add(db, namespace, places)


def record_outside(db: Connection, namespace: int, said: Sequence[tuple[UUID, datetime, str | None]]) -> None:
    """Add when facts were said again outside any session, and the role of the speaker, to those that have one."""
    first = {id_: (id_, at, role) for id_, at, role in reversed(said)}
    if first:
        facts, instants, roles = zip(*first.values(), strict=True)
        given = {"facts": list(facts), "said": list(instants), "roles": list(roles)}
        db.execute(RECORD_OUTSIDE, given | {"namespace": namespace})


def take_over(db: Connection, namespace: int, gone: Sequence[UUID], kept: Sequence[UUID]) -> None:
    """Copy the places where merged facts were said to the facts that they were merged into."""
    given = {"namespace": namespace, "gone": list(gone), "kept": list(kept)}
    add(db, namespace, db.execute(TAKEN_IN, given).fetchall())
    record_outside(db, namespace, db.execute(TAKEN_IN_OUTSIDE, given).fetchall())


def add(db: Connection, namespace: int, places: Sequence[Occurrence]) -> None:
    """Add occurrences of facts that exist; known ones stay as they are."""
    if not places:
        return
    known, ids, sessions, turns, roles, said = zip(*places, strict=True)
    given = {
        "facts": list(known),
        "ids": list(ids),
        "sessions": [Jsonb(session) for session in sessions],
        "turns": list(turns),
        "roles": list(roles),
        "said": list(said),
    }
    db.execute(RECORD, given | {"namespace": namespace})


def of(
    db: Connection, namespace: int, fact: UUID, since: datetime | None, most: int | None
) -> list[tuple[datetime, Place]]:
    """Return when and where a fact was said again, oldest first: the first times since an instant, or all."""
    rows = db.execute(OF, {"namespace": namespace, "fact": fact, "since": since, "most": most})
    return [(at, (session, turn, role)) for at, session, turn, role in rows]


def staying(db: Connection, namespace: int, ids: Sequence[UUID], session: str | int) -> set[UUID]:
    """Return the facts among these that were also said outside a session."""
    given = {"namespace": namespace, "ids": list(ids), "sessions": as_stored(session)}
    return {id_ for (id_,) in db.execute(STAYING, given)}


def leave(db: Connection, namespace: int, ids: Sequence[UUID], session: str | int, *, purge: bool) -> None:
    """Remove locked facts from a session outside which they were also said; `purge` has the pages cleaned."""
    given = {"namespace": namespace, "ids": list(ids), "sessions": as_stored(session)}
    db.execute(MOVE, given)
    db.execute(MOVE_OUTSIDE, given | {"what": AGAIN, "roles": list(get_args(Role))})
    db.execute(LEAVE, given)
    if purge:
        db.execute(NOTE_ERASURE, {"namespace": namespace})
