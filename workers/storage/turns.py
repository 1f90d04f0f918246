"""Turns of conversations, and the values stated for a property over time."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from workers.storage.connection import Connection

# Preceding turns are included to resolve pronouns.
TURNS = """
    with new as (
        select id, session, turn from facts
        where namespace = %(namespace)s and id = any(%(ids)s) and forgotten_at is null and superseded_at is null
    ),
    first as (select session, min(turn) as turn from new where turn is not null group by session)
    select id, text, role, session, source, source_date, coalesce(source_date, created_at) as said_at,
        id in (select id from new) as asked_for
    from facts
    where namespace = %(namespace)s and forgotten_at is null and superseded_at is null and (
        id in (select id from new)
        or turn is not null and exists (
            select from first
            where first.session = facts.session and facts.turn < first.turn and facts.turn >= first.turn - %(before)s
        )
    )
    order by facts.session, facts.turn, array_position(%(ids)s::uuid[], id), id
"""

STATED = """
    select facts.id, value, coalesce(source_date, created_at) as said_at, valid_until,
        pinned_until is not null as pinned
    from facts
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    where facts.namespace = %(namespace)s and entity is not null and forgotten_at is null
        and left(folded(entity), 200) = left(folded(%(entity)s), 200) and folded(entity) = folded(%(entity)s)
        and left(folded(key), 200) = left(folded(%(key)s), 200) and folded(key) = folded(%(key)s) and value is not null
    order by said_at desc, id desc
    limit 100
"""


# Facts that other turns state too are left out.
DRAWN_FROM = """
    select facts.id
    from links
    join facts on facts.namespace = links.namespace and facts.id = links.source
    where links.namespace = %(namespace)s and links.target = any(%(ids)s) and links.type = 'PART_OF'
        and facts.metadata -> 'extracted' is not null and not exists (
            select from links as other
            join facts as turn on turn.namespace = other.namespace and turn.id = other.target
            where other.namespace = %(namespace)s and other.source = facts.id and other.type = 'PART_OF'
                and other.target <> all(%(ids)s) and turn.forgotten_at is null
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
    source_date: datetime | None
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


def read(db: Connection, namespace: int, ids: Sequence[UUID], before: int) -> list[Turn]:
    """Return the live facts in order, and up to `before` turns before the first one of each session."""
    with db.cursor(row_factory=class_row(Turn)) as cursor:
        return cursor.execute(TURNS, {"namespace": namespace, "ids": list(ids), "before": before}).fetchall()


def drawn_from(db: Connection, namespace: int, ids: Sequence[UUID]) -> list[UUID]:
    """Return the facts that were extracted from these turns only."""
    return [id_ for (id_,) in db.execute(DRAWN_FROM, {"namespace": namespace, "ids": list(ids)})]


def stated(db: Connection, namespace: int, entity: str, key: str) -> list[Value]:
    """Return the stated values of an entity's property, including superseded ones, newest first."""
    with db.cursor(row_factory=class_row(Value)) as cursor:
        return cursor.execute(STATED, {"namespace": namespace, "entity": entity, "key": key}).fetchall()
