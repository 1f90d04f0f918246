"""Entities: the subjects of facts and the ends of relations, found by name, ignoring case."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from ebb.contract.reports import Statement

from workers.core.arrays import Floats, Key
from workers.storage import columns
from workers.storage.candidates import FILTERED, HIDDEN, PINNED_UNTIL, Scope, quoted
from workers.storage.connection import Connection, Cursor, fetch_all
from workers.storage.events import STATE
from workers.storage.relations import Fading

MOST_RELATED = 20
"""Number of related entities whose facts are returned, closest first."""

KNOWN = "(%(known_as_of)s::timestamptz is null or created_at <= %(known_as_of)s)"
"""Whether a relation had been recorded."""

# Facts of the named entities and of those related to them, with the weight of each entity.
ABOUT_AMONG = f"""
    with phrase as materialized (
        select distinct left(folded(phrase), 200) as name from unnest(%(phrases)b::text[]) as phrase
    ),
    edge as (
        select folded(target) as name,
            relation_weight(initial_weight, last_observed, pinned, %(instant)s, %(half_life)s) as weight
        from relations
        where namespace = %(namespace)s and folded(source) = any(array(select name from phrase)) and {KNOWN}
        union all
        select folded(source),
            relation_weight(initial_weight, last_observed, pinned, %(instant)s, %(half_life)s)
        from relations
        where namespace = %(namespace)s and folded(target) = any(array(select name from phrase)) and {KNOWN}
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
    select uuid_send(fact.id), name, weight
    from entity
    cross join lateral (
        select id, created_at from facts
        where namespace = %(namespace)s and entity is not null and forgotten_at is null and superseded_at is null
            and left(folded(entity), 200) = name and folded(entity) = name
            and (%(ever)s or coalesce(valid_until > %(now)s, true))
            and {FILTERED}
        order by created_at desc
        limit most
    ) as fact
    order by weight desc, fact.created_at desc, fact.id desc
"""
# Without filters it needs no plan for its values, which takes ten times as long as the query.
ABOUT = ABOUT_AMONG.replace(f"and {FILTERED}", "")


@dataclass(frozen=True, slots=True)
class About:
    """Facts about entities that a text names and about related entities, and each entity's weight in [0, 1]."""

    ids: list[Key]
    weights: Mapping[str, float]


NO_FACTS = About([], {})


def ask_about(
    db: Connection, namespace: int, phrases: Sequence[str], scope: Scope, fading: Fading, *, named: int, related: int
) -> Callable[[], About]:
    """Send the query for the newest live facts of entities named by a phrase, and of related ones; return its reader.

    `named` and `related` limit the facts of each entity. A named entity has weight 1, a related one the weight of the
    relation; weights below `fading.minimum` are excluded.
    """
    given = {
        "namespace": namespace,
        "phrases": list(phrases),
        "instant": scope.as_of or scope.now,
        "most_named": named,
        "most_related": related,
        "related": MOST_RELATED,
    }
    given |= asdict(fading) | scope.parameters
    filtered = scope.selects
    cursor = db.execute(ABOUT_AMONG if filtered else ABOUT, given, binary=True, prepare=False if filtered else None)
    return partial(_about, cursor)


def _about(cursor: Cursor) -> About:
    rows = cursor.fetchall()
    return About([id_ for id_, _, _ in rows], {name: weight for _, name, weight in rows})


LIVE_OF_ENTITY = """entity is not null and forgotten_at is null and superseded_at is null
        and left(folded(entity), 200) = left(folded(%(entity)s), 200) and folded(entity) = folded(%(entity)s)
        and (%(key)s::text is null
            or left(folded(key), 200) = left(folded(%(key)s), 200) and folded(key) = folded(%(key)s))"""

OF_ENTITY = f"""
    select id from facts
    where namespace = %(namespace)s and {LIVE_OF_ENTITY}
    order by created_at desc
    limit %(newest)s
"""

# The index on entities has only live facts, but the text index has all facts and includes the words of entities; `+ 0`
# as in `candidates.MATCHES`.
OF_ENTITY_EVER = """
    select id from facts
    where namespace + 0 = %(namespace)s and search @@ %(words)s::tsquery
        and folded(entity) = folded(%(entity)s) and (%(key)s::text is null or folded(key) = folded(%(key)s))
"""

# Stems differ by accents, as they are removed after stemming: `andr` of Andre, `andre` of André. Written forms do not.
WRITTEN = "select tsvector_to_array(as_written(readable(folded(%(entity)s::text)), ''::tsvector))"


def of_entity(db: Connection, namespace: int, entity: str, key: str | None, *, newest: int) -> list[UUID]:
    """Return the newest live facts about an entity, or one key of it, ignoring case, ended ones too."""
    given = {"namespace": namespace, "entity": entity, "key": key, "newest": newest}
    return [id_ for (id_,) in db.execute(OF_ENTITY, given)]


def of_entity_with_past(
    db: Connection, namespace: int, entity: str, key: str | None, words: Sequence[str]
) -> list[UUID]:
    """Return all facts about an entity, or one key of it, past ones too; `words` are the lexemes of its name."""
    given = {"namespace": namespace, "entity": entity, "key": key}
    (written,) = db.execute(WRITTEN, given).fetchone() or ([],)
    wanted = quoted(f"namespace {namespace}")
    if words and written:
        either = (" & ".join(map(quoted, lexemes)) for lexemes in (words, written))
        wanted += f" & ({' | '.join(either)})"
    return [id_ for (id_,) in db.execute(OF_ENTITY_EVER, given | {"words": wanted})]


# Of an entity with many facts the newest tell its keys.
KEYS = """
    with phrase as materialized (
        select distinct left(folded(phrase), 200) as name from unnest(%(phrases)b::text[]) as phrase
    )
    select (array_agg(entity order by created_at desc))[1], array_agg(distinct lower(key))
    from phrase
    cross join lateral (
        select entity, key, created_at from facts
        where namespace = %(namespace)s and entity is not null and forgotten_at is null and superseded_at is null
            and left(folded(entity), 200) = name and folded(entity) = name and key is not null
        order by created_at desc
        limit %(newest)s
    ) as fact
    group by name
    order by max(created_at) desc
    limit %(entities)s
"""

NEWEST_WITH_KEY = 1_000
"""Number of an entity's facts whose keys are read."""


def keys_of(db: Connection, namespace: int, phrases: Sequence[str], entities: int) -> dict[str, list[str]]:
    """Return the keys of live facts, in lower case, by the entities that are named by a phrase, at most `entities`."""
    given = {"namespace": namespace, "phrases": list(phrases), "newest": NEWEST_WITH_KEY, "entities": entities}
    return dict(db.execute(KEYS, given).fetchall())


# Only what the order of a lookup needs. As to `+ 0`, see `server.OUTDATED`.
VISIBLE_AMONG = f"""
    select uuid_send(facts.id), array_send(array[
        date_part('epoch', coalesce(source_date, facts.created_at)), confidence,
        date_part('epoch', greatest(last_confirmed_at, {PINNED_UNTIL})), date_part('epoch', activity.expires_at)
    ]::float8[])
    from facts
    join activity on activity.namespace = facts.namespace + 0 and activity.fact = facts.id
    where facts.namespace = %(namespace)s and facts.id = any(%(ids)b::uuid[])
        and (%(tag)s::text is null or tags @> array[%(tag)s::text])
        and {HIDDEN} is null
"""
VISIBLE = VISIBLE_AMONG.replace("facts.id = any(%(ids)b::uuid[])", LIVE_OF_ENTITY)


def visible(
    db: Connection, namespace: int, entity: str, key: str | None, words: Sequence[str], scope: Scope
) -> tuple[list[Key], Floats]:
    """Return the n visible facts about an entity, or one key of it, with the scope's tag, if any.

    With them (4, n) numbers: when each was stated, its confidence, when it was confirmed, and when it expires, in epoch
    seconds. `words` are the lexemes of the name.
    """
    given: dict[str, Any] = scope.parameters | {"namespace": namespace, "entity": entity, "key": key}
    if scope.looks_back:
        given["ids"] = columns.uuids(of_entity_with_past(db, namespace, entity, key, words))
    rows = db.execute(VISIBLE_AMONG if scope.looks_back else VISIBLE, given, binary=True).fetchall()
    return [id_ for id_, _ in rows], columns.floats_of([numbers for _, numbers in rows], 4).T


# What was merged into another fact is said by that one.
STATED = f"""
    select facts.id, text, value, valid_from, valid_until, coalesce(source_date, created_at) as said_at, role, source,
        session, turn, superseded_by, {STATE}
    from facts
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    where facts.namespace = %(namespace)s and facts.id = any(%(ids)s) and facts.kind <> 'item'
        and coalesce(forgotten_reason, '') not in ('asked', 'retracted', 'merged')
        and (%(after)s::uuid is null or (valid_from, facts.id) > (%(at)s, %(after)s))
    order by valid_from, facts.id
    limit %(limit)s
"""


def stated(
    db: Connection,
    namespace: int,
    ids: Sequence[UUID],
    now: datetime,
    limit: int,
    after: tuple[datetime, UUID] | None = None,
) -> list[Statement]:
    """Return the statements of these facts by the time when they became true, without those forgotten on request."""
    at, last = after or (None, None)
    given = {"namespace": namespace, "ids": list(ids), "now": now, "limit": limit, "at": at, "after": last}
    return fetch_all(db, Statement, STATED, given)
