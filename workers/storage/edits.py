"""Edits: the mutable fields of facts, and decay classes that were derived from their words."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias
from uuid import UUID

from psycopg.rows import dict_row
from psycopg.types.json import Json

from workers.core.fading import Faded
from workers.storage.activity import ANCHORS, Activity, of_anchors, of_faded, of_keys, rows_of
from workers.storage.connection import Connection, fetch_all

# As to `+ 0` and `coalesce`, see `server.OUTDATED`.
READ = """
    select id, kind, text, hash, category, entity, key, value, summary, source, metadata, tags, importance, session,
        turn, role, source_date, created_at, valid_from, valid_until, confidence, decay_class, decay_class_source
    from facts
    join activity on activity.namespace = facts.namespace + 0 and activity.fact = facts.id
    where facts.namespace = %(namespace)s and id = any(%(ids)b) and coalesce(forgotten_at, superseded_at) is null
"""

# As json, not jsonb, so that metadata are stored unchanged.
WRITE = """
    update facts
    set hash = new.hash, category = new.category, entity = new.entity, key = new.key, value = new.value,
        summary = new.summary, source = new.source, metadata = new.metadata, tags = new.tags,
        importance = new.importance, role = new.role, valid_from = new.valid_from, valid_until = new.valid_until,
        -- depends on the role; null is estimated again in the background
        content_salience = case when facts.salience_given or facts.role is not distinct from new.role
            then facts.content_salience end
    from json_populate_recordset(null::facts, %(rows)s) as new
    where facts.namespace = %(namespace)s and facts.id = new.id
"""

# A pin without end saves the lifetime of the new class.
WRITE_DECAY_STATE = """
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

AS_JSON = partial(json.dumps, default=str)


@dataclass(frozen=True, slots=True)
class Editable:
    """The mutable fields of a live fact."""

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
    role: str | None
    source_date: datetime | None
    created_at: datetime
    valid_from: datetime
    valid_until: datetime | None
    confidence: float
    decay_class: str | None
    decay_class_source: str | None


def read(db: Connection, namespace: int, ids: Sequence[UUID]) -> dict[UUID, Editable]:
    """Return the mutable fields of the facts that are neither forgotten nor superseded, by id."""
    if not ids:
        return {}
    return {
        row.id: row for row in fetch_all(db, Editable, READ, {"namespace": namespace, "ids": list(ids)}, binary=True)
    }


def write(db: Connection, namespace: int, facts: Sequence[Mapping[str, Any]]) -> None:
    """Write the mutable columns of `facts`; each mapping has them all, with id and hash."""
    rows = [{**fact, "id": str(fact["id"]), "hash": f"\\x{fact['hash'].hex()}"} for fact in facts]
    db.execute(WRITE, {"namespace": namespace, "rows": Json(rows, dumps=AS_JSON)})


def write_decay_state(
    db: Connection, namespace: int, rows: Activity, sources: Sequence[str], lifetimes: Sequence[float], faded: Faded
) -> None:
    """Write decay classes, confidence and the resulting decay state of locked facts; lifetimes are in seconds."""
    given = of_keys(rows) | of_anchors(rows.anchors) | of_faded(faded) | {"namespace": namespace}
    own = {"decay_classes": rows.decay_classes, "sources": list(sources), "lifetimes": list(lifetimes)}
    db.execute(WRITE_DECAY_STATE, given | own)


Wording: TypeAlias = tuple[str | None, str | None, str | None, str]
"""Entity, key, value and text of a fact."""

# Another class does not bring ended facts back. Pinned facts keep their lifetime, and that of episodes follows from
# their durability. Locked in the same order as by a touch.
WITHOUT_EXPLICIT_CLASS = f"""
    {ANCHORS}
    where (%(namespace)s::int is null or namespace = %(namespace)s)
        and (namespace, fact) > (%(after)s, %(fact)s)
        and decay_class_source is distinct from 'explicit' and not is_over(ends_at, held, %(now)s)
        and pinned_until <= date_part('epoch', %(now)s) and branch not in (1, 2)
    order by namespace, fact
    limit %(limit)s
    for no key update
"""

# Read after the activity is locked, so that no fact is forgotten in between.
WORDINGS = """
    select facts.namespace, facts.id, entity, key, value, text
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[]) as wanted (namespace, id)
    join facts on facts.namespace = wanted.namespace and facts.id = wanted.id
    where coalesce(forgotten_at, superseded_at) is null and kind not in ('chunk', 'item')
"""

CLASSED = """
    select id, kind, decay_class_source as source, entity, key, value, text
    from facts
    join activity on activity.namespace = facts.namespace + 0 and activity.fact = facts.id
    where facts.namespace = %(namespace)s and id = any(%(ids)b)
"""

WRITE_CLASSES = """
    update activity
    set decay_class = new.decay_class, decay_class_source = 'auto', expires_at = to_timestamp(new.expires_at),
        halvings = new.halvings, tier = new.tier, ends_at = to_timestamp(new.ends_at),
        due_at = to_timestamp(new.due_at), held = held and to_timestamp(new.ends_at) <= %(now)s
    from unnest(%(namespaces)b::int[], %(ids)b::uuid[], %(decay_classes)b::text[], %(expires_at)b::float8[],
        %(halvings)b::int[], %(tier)b::int[], %(ends_at)b::float8[], %(due_at)b::float8[])
        as new (namespace, fact, decay_class, expires_at, halvings, tier, ends_at, due_at)
    where activity.namespace = new.namespace and activity.fact = new.fact
"""


@dataclass(frozen=True, slots=True)
class Classed:
    """The source of a fact's decay class (`explicit`, or `auto` for its words) and the text that it derives from.

    `reason` is set where it was just derived from that text.
    """

    kind: str
    source: str | None
    entity: str | None
    key: str | None
    value: str | None
    text: str
    reason: str | None = None


def classed(db: Connection, namespace: int, ids: Sequence[UUID]) -> dict[UUID, Classed]:
    """Return the sources of the facts' decay classes, by id."""
    if not ids:
        return {}
    with db.cursor(row_factory=dict_row) as cursor:
        rows = cursor.execute(CLASSED, {"namespace": namespace, "ids": list(ids)}, binary=True)
        return {row.pop("id"): Classed(**row) for row in rows}


def without_explicit_class(
    db: Connection, namespace: int | None, after: tuple[int, UUID], limit: int, now: datetime
) -> Activity:
    """Return the next facts of one namespace, or all, whose decay class is not explicit, and lock them.

    Some may be forgotten or superseded.
    """
    given = {"namespace": namespace, "after": after[0], "fact": after[1], "limit": limit, "now": now}
    return rows_of(db.execute(WITHOUT_EXPLICIT_CLASS, given))


def wordings(db: Connection, rows: Activity) -> dict[tuple[int, UUID], Wording]:
    """Return entity, key, value and text of the live facts, by namespace and id; chunks have no decay class."""
    found = db.execute(WORDINGS, of_keys(rows))
    return {(namespace, id_): (entity, key, value, text) for namespace, id_, entity, key, value, text in found}


def write_classes(db: Connection, rows: Activity, faded: Faded, now: datetime) -> None:
    """Write derived decay classes, expiry and the resulting decay state of facts at `now`.

    Held facts that have not ended by their new lifetime are released.
    """
    given = of_keys(rows) | of_anchors(rows.anchors) | of_faded(faded)
    db.execute(WRITE_CLASSES, given | {"now": now, "decay_classes": rows.decay_classes})
