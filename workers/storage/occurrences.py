"""Occurrences: the other sessions in which a fact was said."""

from collections.abc import Sequence
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from psycopg.types.json import Jsonb

from workers.storage.candidates import as_stored
from workers.storage.connection import Connection
from workers.storage.facts import Fact

Place: TypeAlias = tuple[str | int, int | None, str | None]
"""Session, turn and role."""

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

OF = """
    select said_at, session, turn, role from occurrences
    where namespace = %(namespace)s and fact = %(fact)s
    order by said_at, id
"""

# A fact that was also said outside any session stays too.
STAYING = """
    select id from facts
    where namespace = %(namespace)s and id = any(%(ids)s) and (
        session is null or session <> all(%(sessions)s::jsonb[]) or exists (
            select from occurrences
            where namespace = %(namespace)s and fact = facts.id and occurrences.session <> all(%(sessions)s::jsonb[])
        )
    )
"""

# The fact takes the place that it had first in another session.
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

LEAVE = """
    delete from occurrences
    where namespace = %(namespace)s and fact = any(%(ids)s) and session = any(%(sessions)s::jsonb[])
"""

NOTE_ERASURE = "insert into erasures (namespace) values (%(namespace)s)"


def record(db: Connection, namespace: int, said: Sequence[tuple[UUID, Fact]]) -> None:
    """Add where facts were said again: the known fact of each, and the one that was not stored, with a session."""
    given = {
        "facts": [id_ for id_, _ in said],
        "ids": [one.id for _, one in said],
        "sessions": [Jsonb(one.session) for _, one in said],
        "turns": [one.turn for _, one in said],
        "roles": [one.role for _, one in said],
        "said": [one.source_date or one.created_at for _, one in said],
    }
    db.execute(RECORD, given | {"namespace": namespace})


def of(db: Connection, namespace: int, fact: UUID) -> list[tuple[datetime, Place]]:
    """Return when and where a fact was said again, oldest first."""
    rows = db.execute(OF, {"namespace": namespace, "fact": fact})
    return [(at, (session, turn, role)) for at, session, turn, role in rows]


def staying(db: Connection, namespace: int, ids: Sequence[UUID], session: str | int) -> set[UUID]:
    """Return the facts among these that were also said outside a session."""
    given = {"namespace": namespace, "ids": list(ids), "sessions": as_stored(session)}
    return {id_ for (id_,) in db.execute(STAYING, given)}


def leave(db: Connection, namespace: int, ids: Sequence[UUID], session: str | int, *, purge: bool) -> None:
    """Remove locked facts from a session outside which they were also said; `purge` has the pages cleaned."""
    given = {"namespace": namespace, "ids": list(ids), "sessions": as_stored(session)}
    db.execute(MOVE, given)
    db.execute(LEAVE, given)
    if purge:
        db.execute(NOTE_ERASURE, {"namespace": namespace})
