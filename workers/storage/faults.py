"""Faults: facts whose rows in different tables do not fit together, and the statements that make them fit."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from workers.storage.connection import Connection

FOLLOWING = """
    select namespace, id from facts
    where (%(own)s::int is null or namespace = %(own)s) and (namespace, id) > (%(after)s, %(fact)s)
    order by namespace, id
    limit %(limit)s
"""

PARTS = """
    select facts.namespace, facts.id, forgotten_at is not null or superseded_at is not null as ended,
        activity.fidelity, coalesce(due_at < 'infinity', false) as due, retired, signatures.live, full_dims,
        vector_dims(embedding) as dims, date_part('epoch', due_at) as due_at, date_part('epoch', ends_at) as ends_at
    from facts
    left join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    left join vectors on vectors.namespace = facts.namespace and vectors.fact = facts.id
    left join signatures on signatures.namespace = facts.namespace and signatures.fact = facts.id
    where facts.namespace = %(namespace)s and facts.id = any(%(ids)b)
"""

# What a fact without activity was is lost, so it begins anew when it was stored, and the next pass looks at it.
ADD_ACTIVITY = """
    insert into activity (namespace, fact, segment, base, last_seen_at, last_confirmed_at, tier, fidelity, retired,
        due_at)
    select facts.namespace, facts.id, 0, 0.5, created_at, created_at, 0, 0,
        coalesce(forgotten_at, superseded_at) is not null,
        case when coalesce(forgotten_at, superseded_at) is null then %(now)s else 'infinity' end
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[]) as gone (namespace, id)
    join facts on facts.namespace = gone.namespace and facts.id = gone.id
    on conflict do nothing
"""

AWAIT_VECTOR = """
    update activity set fidelity = 0
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[]) as gone (namespace, id)
    where activity.namespace = gone.namespace and activity.fact = gone.id
"""

COUNT_OR_NOT = """
    update activity set retired = not retired
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[]) as gone (namespace, id)
    where activity.namespace = gone.namespace and activity.fact = gone.id
"""

SHOW_OR_HIDE = """
    update signatures set live = not live
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[]) as gone (namespace, id)
    where signatures.namespace = gone.namespace and signatures.fact = gone.id
"""


@dataclass(frozen=True, slots=True)
class Parts:
    """What the tables have of one fact, instants in epoch seconds; None where they have no row for it."""

    namespace: int
    id: UUID
    ended: bool
    fidelity: int | None
    due: bool
    retired: bool | None
    live: bool | None
    full_dims: int | None
    dims: int | None
    due_at: float | None
    ends_at: float | None


def following(db: Connection, namespace: int | None, after: tuple[int, UUID], limit: int) -> list[tuple[int, UUID]]:
    """Return the next facts of a namespace, or of all, behind a place."""
    given = {"own": namespace, "after": after[0], "fact": after[1], "limit": limit}
    return db.execute(FOLLOWING, given, binary=True).fetchall()


def parts(db: Connection, namespace: int, ids: Sequence[UUID]) -> dict[UUID, Parts]:
    """Return what there is of these facts."""
    with db.cursor(row_factory=class_row(Parts)) as cursor:
        found = cursor.execute(PARTS, {"namespace": namespace, "ids": list(ids)}, binary=True)
        return {one.id: one for one in found}


def add_activity(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID], now: datetime) -> None:
    """Give facts an activity that have none."""
    db.execute(ADD_ACTIVITY, {"namespaces": list(namespaces), "ids": list(ids), "now": now})


def await_vector(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> None:
    """Mark facts as without vector, so that they are embedded anew."""
    db.execute(AWAIT_VECTOR, {"namespaces": list(namespaces), "ids": list(ids)})


def count_or_not(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> None:
    """Turn round whether facts are counted among the live ones."""
    db.execute(COUNT_OR_NOT, {"namespaces": list(namespaces), "ids": list(ids)})


def show_or_hide(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> None:
    """Turn round whether signatures are found among those of live facts."""
    db.execute(SHOW_OR_HIDE, {"namespaces": list(namespaces), "ids": list(ids)})
