"""Faults: facts whose rows in different tables are inconsistent, orphaned rows, and their repair."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from workers.storage.connection import Connection, fetch_all

FOLLOWING = """
    select namespace, id from facts
    where (%(own)s::int is null or namespace = %(own)s) and (namespace, id) > (%(after)s, %(fact)s)
    order by namespace, id
    limit %(limit)s
"""

# As to `+ 0`, see `server.OUTDATED`.
PARTS = """
    select facts.namespace, facts.id, forgotten_at is not null or superseded_at is not null as ended,
        activity.fidelity, coalesce(due_at < 'infinity', false) as due, retired, signatures.live, full_dims,
        vector_dims(embedding) as dims, date_part('epoch', due_at) as due_at, date_part('epoch', ends_at) as ends_at
    from facts
    left join activity on activity.namespace = facts.namespace + 0 and activity.fact = facts.id
    left join vectors on vectors.namespace = facts.namespace + 0 and vectors.fact = facts.id
    left join signatures on signatures.namespace = facts.namespace + 0 and signatures.fact = facts.id
    where facts.namespace = %(namespace)s and facts.id = any(%(ids)b)
"""

# The decay state is lost, so it starts from the time of storing; the next pass recomputes it.
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

MARK_PENDING = """
    update activity set fidelity = 0
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[]) as gone (namespace, id)
    where activity.namespace = gone.namespace and activity.fact = gone.id
"""

TOGGLE_RETIRED = """
    update activity set retired = not retired
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[]) as gone (namespace, id)
    where activity.namespace = gone.namespace and activity.fact = gone.id
"""

TOGGLE_LIVE = """
    update signatures set live = not live
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[]) as gone (namespace, id)
    where signatures.namespace = gone.namespace and signatures.fact = gone.id
"""


@dataclass(frozen=True, slots=True)
class Parts:
    """The rows of one fact in different tables, times in epoch seconds; None where a row is missing."""

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
    """Return (namespace, id) of the next facts of one namespace, or all, after a position."""
    given = {"own": namespace, "after": after[0], "fact": after[1], "limit": limit}
    return db.execute(FOLLOWING, given, binary=True).fetchall()


def parts(db: Connection, namespace: int, ids: Sequence[UUID]) -> dict[UUID, Parts]:
    """Return the parts of each fact, by id."""
    return {one.id: one for one in fetch_all(db, Parts, PARTS, {"namespace": namespace, "ids": list(ids)}, binary=True)}


def add_activity(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID], now: datetime) -> None:
    """Add default activity to facts that have none."""
    db.execute(ADD_ACTIVITY, {"namespaces": list(namespaces), "ids": list(ids), "now": now})


def mark_pending(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> None:
    """Mark facts as having no vector, so that they are embedded again."""
    db.execute(MARK_PENDING, {"namespaces": list(namespaces), "ids": list(ids)})


def toggle_retired(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> None:
    """Invert whether facts count as live."""
    db.execute(TOGGLE_RETIRED, {"namespaces": list(namespaces), "ids": list(ids)})


def toggle_live(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> None:
    """Invert whether signatures belong to live facts."""
    db.execute(TOGGLE_LIVE, {"namespaces": list(namespaces), "ids": list(ids)})


Range = tuple[int, UUID, UUID]
"""A namespace, and a range of its fact ids: after the first, up to the second."""

# Each table has an index on namespace and fact; a range is as long as one batch of the doctor.
LEFTOVERS = """
    with wanted as materialized (
        select * from unnest(%(namespaces)b::int[], %(after)b::uuid[], %(upto)b::uuid[])
            as wanted (namespace, after, upto)
    ),
    named as (
        select activity.namespace, activity.fact from wanted
        join activity on activity.namespace = wanted.namespace and fact > after and fact <= upto
        union all
        select vectors.namespace, vectors.fact from wanted
        join vectors on vectors.namespace = wanted.namespace and fact > after and fact <= upto
        union all
        select signatures.namespace, signatures.fact from wanted
        join signatures on signatures.namespace = wanted.namespace and fact > after and fact <= upto
        union all
        select events.namespace, events.fact from wanted
        join events on events.namespace = wanted.namespace and fact > after and fact <= upto
        union all
        select occurrences.namespace, occurrences.fact from wanted
        join occurrences on occurrences.namespace = wanted.namespace and fact > after and fact <= upto
        union all
        select links.namespace, source from wanted
        join links on links.namespace = wanted.namespace and source > after and source <= upto
        union all
        select links.namespace, target from wanted
        join links on links.namespace = wanted.namespace and target > after and target <= upto
        union all
        select contradictions.namespace, fact from wanted
        join contradictions on contradictions.namespace = wanted.namespace and fact > after and fact <= upto
        union all
        select contradictions.namespace, other from wanted
        join contradictions on contradictions.namespace = wanted.namespace and other > after and other <= upto
        union all
        select likenesses.namespace, fact from wanted
        join likenesses on likenesses.namespace = wanted.namespace and fact > after and fact <= upto
        union all
        select likenesses.namespace, other from wanted
        join likenesses on likenesses.namespace = wanted.namespace and other > after and other <= upto
    )
    select distinct namespace, fact from named
    where not exists (select from facts where facts.namespace = named.namespace and facts.id = named.fact)
    order by namespace, fact
"""

DELETE_LEFTOVERS = """
    with gone as (select * from unnest(%(namespaces)b::int[], %(ids)b::uuid[]) as gone (namespace, id)),
    of_vectors as (
        delete from vectors using gone where vectors.namespace = gone.namespace and fact = gone.id
    ),
    of_signatures as (
        delete from signatures using gone where signatures.namespace = gone.namespace and fact = gone.id
    ),
    of_events as (
        delete from events using gone where events.namespace = gone.namespace and fact = gone.id
    ),
    of_occurrences as (
        delete from occurrences using gone where occurrences.namespace = gone.namespace and fact = gone.id
    ),
    of_links as (
        delete from links using gone where links.namespace = gone.namespace and gone.id in (source, target)
    ),
    of_contradictions as (
        delete from contradictions using gone
        where contradictions.namespace = gone.namespace and gone.id in (fact, other)
    ),
    of_likenesses as (
        delete from likenesses using gone where likenesses.namespace = gone.namespace and gone.id in (fact, other)
    )
    delete from activity using gone where activity.namespace = gone.namespace and fact = gone.id
"""

EMPTY = """
    select id from namespaces
    where (%(own)s::int is null or id = %(own)s)
        and not exists (select from facts where facts.namespace = namespaces.id)
    order by id
"""


def leftovers(db: Connection, ranges: Sequence[Range]) -> list[tuple[int, UUID]]:
    """Return (namespace, id) of the facts in these ranges that do not exist but have rows in other tables."""
    given = {
        "namespaces": [namespace for namespace, _, _ in ranges],
        "after": [after for _, after, _ in ranges],
        "upto": [upto for _, _, upto in ranges],
    }
    return db.execute(LEFTOVERS, given, binary=True).fetchall()


def delete_leftovers(db: Connection, gone: Sequence[tuple[int, UUID]]) -> None:
    """Delete orphaned rows of these facts."""
    db.execute(DELETE_LEFTOVERS, {"namespaces": [tenant for tenant, _ in gone], "ids": [id_ for _, id_ in gone]})


def empty_namespaces(db: Connection, own: int | None) -> list[int]:
    """Return the namespaces without facts, of one or all."""
    return [id_ for (id_,) in db.execute(EMPTY, {"own": own})]
