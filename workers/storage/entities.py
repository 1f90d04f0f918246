"""Entities: the subjects of facts and the ends of relations, found by name, whatever their case."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from workers.storage.candidates import FILTERED, Scope, quoted
from workers.storage.connection import Connection
from workers.storage.relations import Fading

MOST_RELATED = 20
"""Of how many related entities facts are brought, the closest first."""

# Facts of the entities named, and of those related to them, with what each counts.
ABOUT = f"""
    with phrase as materialized (
        select distinct left(lower(phrase), 200) as name from unnest(%(phrases)b::text[]) as phrase
    ),
    edge as (
        select lower(target) as name,
            relation_weight(initial_weight, last_observed, pinned, %(instant)s, %(half_life)s) as weight
        from relations
        where namespace = %(namespace)s and lower(source) = any(array(select name from phrase))
        union all
        select lower(source),
            relation_weight(initial_weight, last_observed, pinned, %(instant)s, %(half_life)s)
        from relations
        where namespace = %(namespace)s and lower(target) = any(array(select name from phrase))
    ),
    entity as (
        select name, 1.0::float8 as weight, %(most_named)s as most from phrase
        union all
        (
            select name, max(weight), %(most_related)s from edge
            where weight >= %(minimum)s and name <> all(array(select name from phrase))
            group by name
            order by max(weight) desc, name
            limit %(related)s
        )
    )
    select fact.id, name, weight
    from entity
    cross join lateral (
        select id, created_at from facts
        where namespace = %(namespace)s and entity is not null and forgotten_at is null and superseded_at is null
            and left(lower(entity), 200) = name and lower(entity) = name
            and {FILTERED}
        order by created_at desc
        limit most
    ) as fact
    order by weight desc, fact.created_at desc
"""


@dataclass(frozen=True, slots=True)
class About:
    """Facts about entities that a text names or that are related to those, and what each entity counts, in [0, 1]."""

    ids: list[UUID]
    weights: Mapping[str, float]


NO_FACTS = About([], {})


def about(
    db: Connection, namespace: int, phrases: Sequence[str], scope: Scope, fading: Fading, *, named: int, related: int
) -> About:
    """Return the newest live facts of entities named by a phrase, and of those related to one.

    `named` and `related` are how many of each entity at most. A named entity counts 1, a related one what their
    relation weighs, unless that is below the minimum, which excludes it.
    """
    given = {
        "namespace": namespace,
        "phrases": list(phrases),
        "instant": _instant(scope),
        "half_life": fading.half_life,
        "minimum": fading.minimum,
        "most_named": named,
        "most_related": related,
        "related": MOST_RELATED,
    }
    given |= scope.parameters()
    rows = db.execute(ABOUT, given, binary=True).fetchall()
    return About([id_ for id_, _, _ in rows], {name: weight for _, name, weight in rows})


def _instant(scope: Scope) -> datetime:
    return scope.as_of or scope.now


OF_ENTITY = """
    select id from facts
    where namespace = %(namespace)s and entity is not null and forgotten_at is null and superseded_at is null
        and left(lower(entity), 200) = left(lower(%(entity)s), 200) and lower(entity) = lower(%(entity)s)
        and (%(key)s::text is null
            or left(lower(key), 200) = left(lower(%(key)s), 200) and lower(key) = lower(%(key)s))
"""

# What was superseded or forgotten since stands in no index of entities, but its words are still in that of texts, which
# has those of entities, too; `+ 0` as in `candidates.MATCHES`.
OF_ENTITY_EVER = """
    select id from facts
    where namespace + 0 = %(namespace)s and search @@ %(words)s::tsquery
        and lower(entity) = lower(%(entity)s) and (%(key)s::text is null or lower(key) = lower(%(key)s))
"""


def of_entity(db: Connection, namespace: int, entity: str, key: str | None) -> list[UUID]:
    """Return the live facts about an entity, or about one key of it, whatever their case."""
    given = {"namespace": namespace, "entity": entity, "key": key}
    return [id_ for (id_,) in db.execute(OF_ENTITY, given)]


def of_entity_ever(db: Connection, namespace: int, entity: str, key: str | None, words: Sequence[str]) -> list[UUID]:
    """Return all facts that ever were about an entity, or one key of it; `words` are the lexemes of its name."""
    wanted = " & ".join(map(quoted, [f"namespace {namespace}", *words]))
    given = {"namespace": namespace, "entity": entity, "key": key, "words": wanted}
    return [id_ for (id_,) in db.execute(OF_ENTITY_EVER, given)]
