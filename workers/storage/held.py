"""Held: facts that are over but stay visible, because the forget limit holds them back."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from workers.storage.connection import Connection

# Held facts alone stand in the index that serves this.
PAGE = """
    select id, text, decay_class, activity.ends_at as ended_at, created_at
    from activity
    join facts on facts.namespace = activity.namespace and facts.id = activity.fact
    where activity.namespace = %(namespace)s and held and not retired
        and (%(ended_at)s::timestamptz is null or (activity.ends_at, id) > (%(ended_at)s, %(id)s))
    order by activity.ends_at, id
    limit %(limit)s
"""

COUNT = "select count(*) from activity where namespace = %(namespace)s and held and not retired"

WAITING = """
    select name, count(*) from activity
    join namespaces on namespaces.id = namespace
    where held and not retired
    group by name
    order by name
"""

AMONG = """
    select fact from activity
    where namespace = %(namespace)s and held and not retired and (%(ids)s::uuid[] is null or fact = any(%(ids)s))
    order by fact
    limit %(limit)s
"""

SETTLED = """
    update namespaces set held_since = null
    where id = %(namespace)s and held_since is not null
        and not exists (select from activity where namespace = %(namespace)s and held and not retired)
"""


@dataclass(frozen=True, slots=True)
class Held:
    """A held fact: what it says, when it was stored, and when it was over."""

    id: UUID
    text: str
    decay_class: str | None
    ended_at: datetime
    created_at: datetime


def page(db: Connection, namespace: int, limit: int, after: tuple[datetime, UUID] | None) -> list[Held]:
    """Return held facts of a namespace behind a place, or the first, in the order in which they were over."""
    ended_at, id_ = after or (None, None)
    given = {"namespace": namespace, "limit": limit, "ended_at": ended_at, "id": id_}
    with db.cursor(row_factory=class_row(Held)) as cursor:
        return cursor.execute(PAGE, given).fetchall()


def count(db: Connection, namespace: int) -> int:
    """Return how many facts of a namespace are held."""
    row = db.execute(COUNT, {"namespace": namespace}).fetchone()
    return int(row[0]) if row else 0


def waiting(db: Connection) -> dict[str, int]:
    """Return how many facts are held in each namespace that has any, by its name."""
    return dict(db.execute(WAITING).fetchall())


def among(db: Connection, namespace: int, ids: Sequence[UUID] | None, limit: int) -> list[UUID]:
    """Return which of these facts are held, or the first of all that are."""
    given = {"namespace": namespace, "ids": None if ids is None else list(ids), "limit": limit}
    return [id_ for (id_,) in db.execute(AMONG, given)]


def settle(db: Connection, namespace: int) -> None:
    """Note that nothing is held any more in a namespace, if that is so."""
    db.execute(SETTLED, {"namespace": namespace})
