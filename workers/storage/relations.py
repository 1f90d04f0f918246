"""Relations: weighted edges between entities, whose weights decay since they were last observed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, TypeAlias

from workers.storage.connection import Connection, fetch_all, fetch_one
from workers.storage.occurrences import NOTE_ERASURE

CHANGED = 1e-3
"""Smallest change of a weight that a pass writes; smaller ones accumulate."""

OF_NAMES = """
    where namespace = %(namespace)s and folded(source) = folded(%(source)s) and folded(target) = folded(%(target)s)
        and type = %(type)s
"""

SPELLING = f"select source, target from relations {OF_NAMES} order by id limit 1"

# Two observations at once would otherwise make two relations, with a spelling each.
LOCK = "select pg_advisory_xact_lock(%(namespace)s, 65)"

# A late observation changes nothing, so that a redelivery cannot undo newer ones. A pinned relation keeps its weight
# unless another one is given.
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
"""A relation with its weight at an instant."""

FIND = f"{RELATION} {OF_NAMES} order by id limit 1"

REMOVE = f"delete from relations {OF_NAMES}"

LIST = f"""
    select source, target, type, last_observed, pinned, weight, total
    from (
        select *, count(*) over () as total
        from (
            {RELATION}
            where namespace = %(namespace)s
                and (%(entity)s::text is null or folded(%(entity)s) in (folded(source), folded(target)))
        ) as weighed
        where %(decayed)s::boolean is null or (weight < %(minimum)s) = %(decayed)s
    ) as listed
    where %(weight)s::float8 is null or weight < %(weight)s or weight = %(weight)s
        and (lower(source), lower(target), type) > (lower(%(source)s::text), lower(%(target)s::text), %(type)s::text)
    order by weight desc, lower(source), lower(target), type
    limit %(limit)s
"""

# One batch of a pass, in key order, and the last key.
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
        count(*) filter (where weight < %(minimum)s and was >= %(minimum)s and was - weight > %(changed)s)
            as newly_below,
        count(*) filter (where pinned) as pinned,
        (select array[namespace, id] from batch order by namespace desc, id desc limit 1) as last
    from batch
"""

OUTDATED = """
    where (%(only)s::int is null or namespace = %(only)s)
        and (namespace, id) > (%(after)s::int, %(after_id)s::bigint)
        and (namespace, id) <= (%(last)s::int, %(last_id)s::bigint)
        and not pinned
        and abs(relation_weight(initial_weight, last_observed, pinned, %(now)s, %(half_life)s) - weight) > %(changed)s
"""

# Computed from the row's current columns, so that concurrent observations are kept.
MATERIALISE = f"""
    update relations
    set weight = relation_weight(initial_weight, last_observed, pinned, %(now)s, %(half_life)s)
    {OUTDATED}
"""

PREVIEW = f"{RELATION} {OUTDATED} order by namespace, id limit %(limit)s"

Place: TypeAlias = tuple[int, int]
"""The key of a relation: namespace and id."""

START: Place = (0, 0)


@dataclass(frozen=True, slots=True)
class Fading:
    """The decay of relations: half-life in days, and the minimum weight to be used."""

    half_life: float
    minimum: float


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation with its weight at an instant."""

    source: str
    target: str
    type: str
    weight: float
    last_observed: datetime
    pinned: bool


@dataclass(frozen=True, slots=True)
class Listed(Relation):
    """A relation of a listing, with the total number."""

    total: int


@dataclass(frozen=True, slots=True)
class Cursor:
    """The position of a listing: the last relation, and the instant of the weights."""

    at: datetime
    weight: float
    source: str
    target: str
    type: str


@dataclass(frozen=True, slots=True)
class Step:
    """Counts of one batch of a pass over relations, and its last key."""

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
    """Record an observation of a relation, whose names are kept as they were first spelt.

    A worker of an earlier version may add one in another spelling beside it. The default weight is 1, and `pinned` is
    unchanged by default.
    """
    given = {"namespace": namespace, "source": source, "target": target, "type": kind}
    db.execute(LOCK, given)
    if kept := db.execute(SPELLING, given).fetchone():
        given |= dict(zip(("source", "target"), kept, strict=True))
    db.execute(OBSERVE, given | {"weight": weight, "pinned": pinned, "now": now})


def find(
    db: Connection, namespace: int, source: str, target: str, kind: str, now: datetime, fading: Fading
) -> Relation | None:
    """Return a relation with its weight at `now`; names are compared as `folded` has them."""
    given = {"namespace": namespace, "source": source, "target": target, "type": kind, "now": now}
    return fetch_one(db, Relation, FIND, given | asdict(fading))


def remove(db: Connection, namespace: int, source: str, target: str, kind: str) -> int:
    """Erase a relation, in each spelling that an earlier version kept apart; return the number of rows."""
    removed = db.execute(REMOVE, {"namespace": namespace, "source": source, "target": target, "type": kind}).rowcount
    if removed:
        db.execute(NOTE_ERASURE, {"namespace": namespace})
    return removed


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
    """Return relations of a namespace or entity; `decayed` selects those below the minimum weight, or the others."""
    given: dict[str, object] = {"namespace": namespace, "entity": entity, "decayed": decayed, "limit": limit}
    given |= dict.fromkeys(("weight", "source", "target", "type")) if behind is None else asdict(behind)
    given |= {"now": now if behind is None else behind.at}
    return fetch_all(db, Listed, LIST, given | asdict(fading))


def examine(db: Connection, namespace: int | None, after: Place, now: datetime, fading: Fading, limit: int) -> Step:
    """Return the counts of the next batch of relations after a key, in one namespace or all."""
    given = _range(namespace, after, now, fading) | {"limit": limit}
    row = fetch_one(db, dict[str, Any], EXAMINE, given)
    assert row is not None  # noqa: S101 - an aggregate always has a row
    last = row.pop("last")
    return Step(**row, last=(last[0], last[1]) if last else None)


def materialise(db: Connection, namespace: int | None, after: Place, last: Place, now: datetime, fading: Fading) -> int:
    """Update the stored weights between two keys; return how many changed."""
    given = _range(namespace, after, now, fading) | {"last": last[0], "last_id": last[1]}
    return db.execute(MATERIALISE, given).rowcount


def preview(
    db: Connection, namespace: int | None, after: Place, last: Place, now: datetime, fading: Fading, limit: int
) -> Sequence[Relation]:
    """Return the relations between two keys whose stored weights are outdated."""
    given = _range(namespace, after, now, fading) | {"last": last[0], "last_id": last[1], "limit": limit}
    return fetch_all(db, Relation, PREVIEW, given)


def _range(namespace: int | None, after: Place, now: datetime, fading: Fading) -> dict[str, object]:
    return {"only": namespace, "after": after[0], "after_id": after[1], "now": now, "changed": CHANGED} | asdict(fading)
