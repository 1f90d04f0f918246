"""Exports: whole namespaces, read as they stand."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import dict_row

from workers.storage.connection import Connection

ROWS = """
    select facts.id, namespaces.name as namespace, facts.kind, facts.text, facts.summary, facts.category,
        facts.entity, facts.key, facts.value, facts.source, facts.tags, facts.importance, facts.session, facts.turn,
        facts.source_date, facts.created_at, encode(facts.hash, 'hex') as normalized_hash, base, coactivations,
        recall_count, last_accessed_at, date_part('epoch', last_accessed_at) as last_accessed,
        date_part('epoch', last_seen_at) as last_seen_at, confidence,
        date_part('epoch', last_confirmed_at) as confirmed_at,
        date_part('epoch', activity.expires_at) as expires_at, decay_class, decay_class_source, fidelity,
        date_part('epoch', due_at) as due_at, coalesce(date_part('epoch', pinned_until), '-infinity') as pinned_until,
        forgotten_at, forgotten_reason, valid_from, valid_until, superseded_at, superseded_by, supersedes_id, full_dims,
        vector_dims(embedding) as dims
    from facts
    join namespaces on namespaces.id = facts.namespace
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    left join vectors on vectors.namespace = facts.namespace and vectors.fact = facts.id
    where (%(namespace)s::text is null or namespaces.name = %(namespace)s)
        and (%(id)s::uuid is null or facts.id = %(id)s)
        and (%(seen_at)s::timestamptz is null or (forgotten_at is null and (held or ends_at > %(seen_at)s)))
    order by facts.namespace, facts.id
"""


def rows(db: Connection, namespace: str | None, batch: int = 1000) -> Iterator[dict[str, Any]]:
    """Yield every fact of a namespace, or of all, with its activity; at most `batch` are in memory at once."""
    with db.cursor("export", row_factory=dict_row) as cursor:
        cursor.itersize = batch
        yield from cursor.execute(ROWS, {"namespace": namespace, "id": None, "seen_at": None})


def shown(db: Connection, namespace: str, id_: UUID, now: datetime) -> dict[str, Any] | None:
    """Return one fact with its activity, as long as readers see it."""
    with db.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(ROWS, {"namespace": namespace, "id": id_, "seen_at": now}).fetchone()
