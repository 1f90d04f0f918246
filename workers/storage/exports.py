"""Exports: every row of a namespace."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from workers.storage import deep
from workers.storage.candidates import ITEM_ENDS
from workers.storage.connection import Connection, fetch_all, number
from workers.storage.deep import Deep

NAMED = "(%(namespace)s::text is null and position(' ' in namespaces.name) = 0 or namespaces.name = %(namespace)s)"
"""One namespace or all, without the rows that a move to another shard left."""

COLUMNS = """
    select facts.id, namespaces.name as namespace, facts.kind, facts.text, facts.summary, facts.category,
        facts.entity, facts.key, facts.value, facts.source, facts.metadata, facts.tags, facts.importance, facts.session,
        facts.turn, facts.role, facts.content_salience, facts.salience_given, facts.source_date, facts.created_at,
        encode(substring(facts.hash for 32), 'hex') as normalized_hash, base, coactivations,
        recall_count, last_accessed_at, date_part('epoch', last_accessed_at) as last_accessed,
        date_part('epoch', last_seen_at) as last_seen_at, confidence,
        date_part('epoch', last_confirmed_at) as confirmed_at,
        date_part('epoch', activity.expires_at) as expires_at, decay_class, decay_class_source, fidelity,
        date_part('epoch', due_at) as due_at, coalesce(date_part('epoch', pinned_until), '-infinity') as pinned_until,
        forgotten_at, forgotten_reason, forgotten_by, tombstone_at, valid_from, valid_until, superseded_at,
        superseded_by, supersedes_id, full_dims, vector_dims(embedding) as dims, settings,
        case branch when 1 then 'persistent' when 2 then 'permanent' end as durability, occurred, branch, halvings,
        coalesce(date_part('epoch', encoded_at), '-infinity') as encoded_at,
        coalesce(date_part('epoch', outrun_at), 'infinity') as outrun_at, retired,
        date_part('epoch', greatest(encoded_at, last_seen_at, last_accessed_at)) as silent_since,
        to_jsonb(activity) - array[
            'namespace', 'fact', 'segment', 'tier', 'fidelity', 'ends_at', 'due_at', 'retired', 'worth', 'asked'
        ] as state
"""

FROM = f"""
    from facts
    join namespaces on namespaces.id = facts.namespace
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    left join vectors on vectors.namespace = facts.namespace and vectors.fact = facts.id
    where {NAMED}
        and (%(ids)s::uuid[] is null or facts.id = any(%(ids)s))
        and (%(seen_at)s::timestamptz is null or (forgotten_at is null and not has_ended(
            row(activity.*)::activity, (select outlook_of(id, %(seen_at)s) from namespaces where name = %(namespace)s),
            %(seen_at)s
        ) and coalesce({ITEM_ENDS} > %(seen_at)s, true)))
    order by facts.namespace, facts.id
"""

SAID_AGAIN = """
        (
            select jsonb_agg(
                jsonb_build_object('session', said.session, 'turn', said.turn, 'role', said.role, 'said_at', said_at)
                order by said_at, said.id
            )
            from occurrences as said
            where said.namespace = facts.namespace and said.fact = facts.id
                and (said.session, said.turn) is distinct from (facts.session, facts.turn)
        ) as said_again
"""

ROWS = f"{COLUMNS}{FROM}"

SHOWN = f"{COLUMNS}, {SAID_AGAIN} {FROM}"

DEEP_ROWS = deep.UNPACKED + ROWS

WITHOUT_ACTIVITY = f"""
    select count(*) from facts
    join namespaces on namespaces.id = facts.namespace
    where {NAMED}
        and not exists (select from activity where activity.namespace = facts.namespace and activity.fact = facts.id)
"""

EVENTS = """
    select wanted.place::int - 1, at, what, details
    from unnest(%(namespaces)b::text[], %(ids)b::uuid[]) with ordinality as wanted (name, id, place)
    join namespaces on namespaces.name = wanted.name
    join events on events.namespace = namespaces.id and events.fact = wanted.id
    order by place, events.id
"""


def events(
    db: Connection, namespaces: Sequence[str], ids: Sequence[UUID]
) -> list[tuple[int, datetime, str, dict[str, Any]]]:
    """Return the events of n facts as (index of the fact, when, what, details), oldest first."""
    return db.execute(EVENTS, {"namespaces": list(namespaces), "ids": list(ids)}).fetchall()


def without_activity(db: Connection, namespace: str | None) -> int:
    """Return the number of facts of one namespace, or all, without activity, which `rows` leaves out."""
    return number(db, WITHOUT_ACTIVITY, {"namespace": namespace})


def rows(db: Connection, namespace: str | None, batch: int = 1000) -> Iterator[dict[str, Any]]:
    """Yield every fact of one namespace, or all, with its activity, from a server-side cursor of `batch` rows."""
    with db.cursor("export", row_factory=dict_row) as cursor:
        cursor.itersize = batch
        yield from cursor.execute(ROWS, {"namespace": namespace, "ids": None, "seen_at": None})


def unpacked(db: Connection, those: Sequence[Deep]) -> list[dict[str, Any]]:
    """Return facts of deep memory with their activity, in the given order."""
    given = deep.parameters(those) | {"namespace": None, "ids": None, "seen_at": None}
    return fetch_all(db, dict[str, Any], DEEP_ROWS, given)


def shown(db: Connection, namespace: str, ids: Sequence[UUID], now: datetime) -> dict[UUID, dict[str, Any]]:
    """Return the live facts among these, with their activity and the other sessions in which they were said."""
    given = {"namespace": namespace, "ids": list(ids), "seen_at": now}
    return {row["id"]: row for row in fetch_all(db, dict[str, Any], SHOWN, given)}


OTHERS = {
    "link": ("links", "source, target, type, strength, links.created_at", "source, target, type"),
    "contradiction": ("contradictions", "fact, other, found_at, accepted_at", "fact, other"),
    "likeness": ("likenesses", "fact, other, similarity, found_at, apart_at", "fact, other"),
    "occurrence": ("occurrences", "fact, occurrences.id, session, turn, role, said_at", "fact, session"),
    "document": ("documents", "path, folder, digest::text as digest, read_at", "path"),
    "relation": (
        "relations",
        "source, target, type, initial_weight, last_observed, pinned, relations.created_at",
        "source, target, type",
    ),
    "wish": ("forgotten_hashes", "salt, encode(digest, 'hex') as digest, fact, forgotten_at, reason", "digest"),
}
"""Tables that are exported, their columns and their order, by the kind of the records."""

OTHER = f"""
    select namespaces.name as namespace, {{columns}}
    from {{table}} join namespaces on namespaces.id = {{table}}.namespace
    where {NAMED}
    order by {{table}}.namespace, {{order}}
"""

# Only namespaces with settings, turns or deletion requests.
OWN = f"""
    select name as namespace, salt, turns, settings from namespaces
    where {NAMED}
        and (
            settings <> '{{}}'
            or turns > 0
            or exists (select from forgotten_hashes where forgotten_hashes.namespace = namespaces.id)
        )
    order by id
"""


def own_records(db: Connection, namespace: str | None, batch: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (`own`, row) of one namespace or all, from a server-side cursor."""
    yield from _records(db, "own", OWN, namespace, batch)


def other_records(db: Connection, namespace: str | None, batch: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (kind, row) of everything but namespaces and facts, of one namespace or all, from server-side cursors."""
    for kind, (table, columns, order) in OTHERS.items():
        yield from _records(db, kind, OTHER.format(table=table, columns=columns, order=order), namespace, batch)


def _records(
    db: Connection, kind: str, statement: str, namespace: str | None, batch: int
) -> Iterator[tuple[str, dict[str, Any]]]:
    with db.cursor(f"export_{kind}", row_factory=dict_row) as cursor:
        cursor.itersize = batch
        for row in cursor.execute(statement.encode(), {"namespace": namespace}):
            yield kind, row
