"""Relations: which entities have to do with each other, and how much, as of when that was last observed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TypeAlias

from psycopg.rows import class_row, dict_row

from workers.storage.connection import Connection

CHANGED = 1e-3
"""A pass writes a weight only where it differs by more, so that small steps add up and are counted then."""

# An observation that comes late changes nothing, so that a repeat cannot undo what was observed since. A pinned
# relation keeps its weight unless another one is given.
OBSERVE = """
    insert into relations (namespace, source, target, type, initial_weight, weight, last_observed, created_at, pinned)
    values (%(namespace)s, %(source)s, %(target)s, %(type)s, coalesce(%(weight)s::float8, 1),
        coalesce(%(weight)s::float8, 1), %(now)s, %(now)s, coalesce(%(pinned)s::boolean, false))
    on conflict (namespace, lower(source), lower(target), type) do update
    set initial_weight = coalesce(%(weight)s::float8, case when relations.pinned then relations.initial_weight end, 1),
        weight = coalesce(%(weight)s::float8, case when relations.pinned then relations.initial_weight end, 1),
        last_observed = excluded.last_observed,
        pinned = coalesce(%(pinned)s::boolean, relations.pinned)
    where relations.last_observed <= excluded.last_observed
"""

RELATION = """
    select source, target, type, last_observed, pinned,
        relation_weight(initial_weight, last_observed, pinned, %(now)s, %(half_life)s) as weight
    from relations
"""
"""A relation as it is at an instant."""

FIND = f"""
    {RELATION}
    where namespace = %(namespace)s and lower(source) = lower(%(source)s) and lower(target) = lower(%(target)s)
        and type = %(type)s
"""

REMOVE = """
    delete from relations
    where namespace = %(namespace)s and lower(source) = lower(%(source)s) and lower(target) = lower(%(target)s)
        and type = %(type)s
"""

LIST = f"""
    select source, target, type, last_observed, pinned, weight, total
    from (
        select *, count(*) over () as total
        from (
            {RELATION}
            where namespace = %(namespace)s
                and (%(entity)s::text is null or lower(source) = lower(%(entity)s) or lower(target) = lower(%(entity)s))
        ) as weighed
        where %(decayed)s::boolean is null or (weight < %(minimum)s) = %(decayed)s
    ) as listed
    where %(weight)s::float8 is null or weight < %(weight)s or weight = %(weight)s
        and (lower(source), lower(target), type) > (lower(%(source)s::text), lower(%(target)s::text), %(type)s::text)
    order by weight desc, lower(source), lower(target), type
    limit %(limit)s
"""

# One step of a pass: so many relations in the order of their keys, and where it ended.
EXAMINE = """
    with batch as (
        select namespace, id, pinned, weight as was,
            relation_weight(initial_weight, last_observed, pinned, %(now)s, %(half_life)s) as weight
        from relations
        where (%(only)s::int is null or namespace = %(only)s)
            and (namespace, id) > (%(after)s::int, %(after_id)s::bigint)
        order by namespace, id
        limit %(limit)s
    )
    select count(*) as processed, count(*) filter (where not pinned and abs(weight - was) > %(changed)s) as decayed,
        count(*) filter (where weight < %(minimum)s) as below_minimum,
        count(*) filter (where weight < %(minimum)s and was >= %(minimum)s) as newly_below,
        count(*) filter (where pinned) as pinned,
        (select array[namespace, id] from batch order by namespace desc, id desc limit 1) as last
    from batch
"""

# By the columns of the row itself, which count as they are when it is written: what is observed meanwhile stays.
MATERIALISE = """
    update relations
    set weight = relation_weight(initial_weight, last_observed, pinned, %(now)s, %(half_life)s)
    where (%(only)s::int is null or namespace = %(only)s)
        and (namespace, id) > (%(after)s::int, %(after_id)s::bigint)
        and (namespace, id) <= (%(last)s::int, %(last_id)s::bigint)
        and not pinned
        and abs(relation_weight(initial_weight, last_observed, pinned, %(now)s, %(half_life)s) - weight) > %(changed)s
"""

PREVIEW = f"""
    {RELATION}
    where (%(only)s::int is null or namespace = %(only)s)
        and (namespace, id) > (%(after)s::int, %(after_id)s::bigint)
        and (namespace, id) <= (%(last)s::int, %(last_id)s::bigint)
        and not pinned
        and abs(relation_weight(initial_weight, last_observed, pinned, %(now)s, %(half_life)s) - weight) > %(changed)s
    order by namespace, id
    limit %(limit)s
"""

Place: TypeAlias = tuple[int, int]
"""The key of a relation: its namespace, and its number."""

START: Place = (0, 0)


@dataclass(frozen=True, slots=True)
class Fading:
    """By what relations fade: days until half is left, and the weight below which they are not used."""

    half_life: float
    minimum: float


@dataclass(frozen=True, slots=True)
class Relation:
    """One entity's relation to another as it is at an instant."""

    source: str
    target: str
    type: str
    weight: float
    last_observed: datetime
    pinned: bool


@dataclass(frozen=True, slots=True)
class Listed(Relation):
    """One of `total` relations."""

    total: int


@dataclass(frozen=True, slots=True)
class Cursor:
    """Where a listing goes on: behind a relation, weighed at the instant at which the listing began."""

    at: datetime
    weight: float
    source: str
    target: str
    type: str


@dataclass(frozen=True, slots=True)
class Step:
    """How many relations a part of a pass examined, and how many changed, are below the minimum, newly, or pinned."""

    processed: int
    decayed: int
    below_minimum: int
    newly_below: int
    pinned: int
    last: Place | None


def observe(
    db: Connection,
    namespace: int,
    source: str,
    target: str,
    kind: str,
    now: datetime,
    *,
    weight: float | None = None,
    pinned: bool | None = None,
) -> None:
    """Note that a relation was observed, with a weight or the full one; pinned or not, or as it is."""
    given = {"namespace": namespace, "source": source, "target": target, "type": kind}
    db.execute(OBSERVE, given | {"weight": weight, "pinned": pinned, "now": now})


def find(
    db: Connection, namespace: int, source: str, target: str, kind: str, now: datetime, fading: Fading
) -> Relation | None:
    """Return a relation as it is at `now`, whatever the case of its entities."""
    given = {"namespace": namespace, "source": source, "target": target, "type": kind, "now": now}
    with db.cursor(row_factory=class_row(Relation)) as cursor:
        return cursor.execute(FIND, given | {"half_life": fading.half_life}).fetchone()


def remove(db: Connection, namespace: int, source: str, target: str, kind: str) -> bool:
    """Remove a relation for good, because its owner asks for it; return whether there was one."""
    given = {"namespace": namespace, "source": source, "target": target, "type": kind}
    return db.execute(REMOVE, given).rowcount > 0


def among(
    db: Connection,
    namespace: int,
    now: datetime,
    fading: Fading,
    *,
    decayed: bool | None,
    entity: str | None,
    limit: int,
    behind: Cursor | None = None,
) -> list[Listed]:
    """Return the relations of a namespace, or of one entity, that are below the minimum weight or not, or all."""
    given: dict[str, object] = {"namespace": namespace, "entity": entity, "decayed": decayed, "limit": limit}
    given |= dict.fromkeys(("weight", "source", "target", "type")) if behind is None else asdict(behind)
    given |= {"now": now if behind is None else behind.at}
    with db.cursor(row_factory=class_row(Listed)) as cursor:
        rows = cursor.execute(LIST, given | {"half_life": fading.half_life, "minimum": fading.minimum})
        return rows.fetchall()


def examine(db: Connection, namespace: int | None, after: Place, now: datetime, fading: Fading, limit: int) -> Step:
    """Return what has become of the next relations behind a place, in one namespace or in all."""
    given = _range(namespace, after, now, fading) | {"minimum": fading.minimum, "limit": limit}
    with db.cursor(row_factory=dict_row) as cursor:
        row = cursor.execute(EXAMINE, given).fetchone()
    assert row is not None  # noqa: S101 - an aggregate always has a row
    last = row.pop("last")
    return Step(**row, last=(last[0], last[1]) if last else None)


def materialise(db: Connection, namespace: int | None, after: Place, last: Place, now: datetime, fading: Fading) -> int:
    """Bring stored weights between two places up to date; return how many have changed."""
    given = _range(namespace, after, now, fading) | {"last": last[0], "last_id": last[1]}
    return db.execute(MATERIALISE, given).rowcount


def preview(
    db: Connection, namespace: int | None, after: Place, last: Place, now: datetime, fading: Fading, limit: int
) -> Sequence[Relation]:
    """Return the relations between two places whose stored weights are outdated."""
    given = _range(namespace, after, now, fading) | {"last": last[0], "last_id": last[1], "limit": limit}
    with db.cursor(row_factory=class_row(Relation)) as cursor:
        return cursor.execute(PREVIEW, given).fetchall()


def _range(namespace: int | None, after: Place, now: datetime, fading: Fading) -> dict[str, object]:
    return {
        "only": namespace,
        "after": after[0],
        "after_id": after[1],
        "now": now,
        "half_life": fading.half_life,
        "changed": CHANGED,
    }
