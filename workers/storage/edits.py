"""Edits: what may be changed of a fact that is there, read and written."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import class_row
from psycopg.types.json import Json

from workers.core.fading import Faded
from workers.storage.activity import Activity
from workers.storage.connection import Connection

READ = """
    select id, kind, text, hash, category, entity, key, value, summary, source, metadata, tags, importance, session,
        turn, source_date, created_at, confidence, decay_class, decay_class_source
    from facts
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    where facts.namespace = %(namespace)s and id = any(%(ids)b) and forgotten_at is null and superseded_at is null
"""

# As json, not jsonb, so that metadata stay as they came.
WRITE = """
    update facts
    set hash = new.hash, category = new.category, entity = new.entity, key = new.key, value = new.value,
        summary = new.summary, source = new.source, metadata = new.metadata, tags = new.tags,
        importance = new.importance
    from json_populate_recordset(null::facts, %(rows)s) as new
    where facts.namespace = %(namespace)s and facts.id = new.id
"""

# A pin without end keeps the lifetime of the new class back.
WRITE_LIVES = """
    update activity
    set decay_class = nullif(new.decay_class, ''), decay_class_source = nullif(new.source, ''),
        confidence = new.confidence, branch = new.branch, last_confirmed_at = to_timestamp(new.confirmed_at),
        expires_at = to_timestamp(new.expires_at), halvings = 0, tier = new.tier, held = false, stale = new.stale,
        ends_at = to_timestamp(new.ends_at), due_at = to_timestamp(new.due_at),
        kept_lifetime = case when pinned_until = 'infinity' then nullif(new.lifetime, 'infinity') end
    from unnest(%(ids)b::uuid[], %(decay_classes)b::text[], %(sources)b::text[], %(confidence)b::float8[],
        %(branch)b::int[], %(confirmed_at)b::float8[], %(expires_at)b::float8[], %(tier)b::int[], %(stale)b::bool[],
        %(ends_at)b::float8[], %(due_at)b::float8[], %(lifetimes)b::float8[])
        as new (fact, decay_class, source, confidence, branch, confirmed_at, expires_at, tier, stale, ends_at, due_at,
            lifetime)
    where activity.namespace = %(namespace)s and activity.fact = new.fact
"""


@dataclass(frozen=True, slots=True)
class Editable:
    """What may be changed of a live fact, and what else a new statement of it may say."""

    id: UUID
    kind: str
    text: str
    hash: bytes
    category: str | None
    entity: str | None
    key: str | None
    value: str | None
    summary: str | None
    source: str | None
    metadata: dict[str, Any] | None
    tags: list[str]
    importance: float
    session: str | int | None
    turn: int | None
    source_date: datetime | None
    created_at: datetime
    confidence: float
    decay_class: str | None
    decay_class_source: str | None


def read(db: Connection, namespace: int, ids: Sequence[UUID]) -> dict[UUID, Editable]:
    """Return what may be changed of those of these facts that are neither forgotten nor superseded."""
    if not ids:
        return {}
    with db.cursor(row_factory=class_row(Editable)) as cursor:
        rows = cursor.execute(READ, {"namespace": namespace, "ids": list(ids)}, binary=True)
        return {row.id: row for row in rows}


def write(db: Connection, namespace: int, facts: Sequence[Mapping[str, Any]]) -> None:
    """Write facts as objects with an id, a hash and all that stands in `facts` and may be changed."""
    rows = [{**fact, "id": str(fact["id"]), "hash": f"\\x{fact['hash'].hex()}"} for fact in facts]
    db.execute(WRITE, {"namespace": namespace, "rows": Json(rows)})


def write_lives(
    db: Connection, namespace: int, rows: Activity, sources: Sequence[str], lifetimes: Sequence[float], faded: Faded
) -> None:
    """Write classes and confidence of locked facts, what follows from them, and their lifetimes in seconds."""
    given = {
        "namespace": namespace,
        "ids": rows.ids,
        "decay_classes": rows.decay_classes,
        "sources": list(sources),
        "confidence": rows.anchors.confidence.tolist(),
        "branch": rows.anchors.branch.tolist(),
        "confirmed_at": rows.anchors.confirmed_at.tolist(),
        "expires_at": rows.anchors.expires_at.tolist(),
        "tier": faded.tier.tolist(),
        "stale": faded.stale.tolist(),
        "ends_at": faded.ends_at.tolist(),
        "due_at": faded.due_at.tolist(),
        "lifetimes": list(lifetimes),
    }
    db.execute(WRITE_LIVES, given)
