"""Decay classes: the facts whose class nobody chose, and what becomes of them by another one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias
from uuid import UUID

from workers.core.fading import Faded
from workers.storage.activity import Activity, rows_of
from workers.storage.connection import Connection

Said: TypeAlias = tuple[str | None, str | None, str | None, str]
"""Entity, key, value and text of a fact."""

# What is over already stays so: no other class brings it back. What is pinned keeps its lifetime meanwhile, and what
# episodes live is said by their durability. Locked in the order in which a touch locks.
UNCHOSEN = """
    select namespace, fact, base, coactivations, last_seen_at, confidence, confirmed_at, expires_at, decay_class, tier,
        fidelity, last_accessed_at, held, pinned_until, halvings, branch, encoded_at, occurred, outrun_at, stale,
        decay_class_source
    from anchors
    where (%(namespace)s::int is null or namespace = %(namespace)s)
        and (namespace, fact) > (%(after)s, %(fact)s)
        and decay_class_source is distinct from 'explicit' and not is_over(ends_at, held, %(now)s)
        and pinned_until <= date_part('epoch', %(now)s) and branch not in (1, 2)
    order by namespace, fact
    limit %(limit)s
    for no key update
"""

# Read once the activity is locked, so that nobody forgets a fact between the two.
SAID = """
    select facts.namespace, facts.id, entity, key, value, text
    from unnest(%(namespaces)s::int[], %(ids)s::uuid[]) as wanted (namespace, id)
    join facts on facts.namespace = wanted.namespace and facts.id = wanted.id
    where forgotten_at is null and superseded_at is null and kind <> 'chunk'
"""

CLASSED = """
    select id, kind, decay_class_source as source, entity, key, value, text
    from facts
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    where facts.namespace = %(namespace)s and id = any(%(ids)b)
"""

WRITE = """
    update activity
    set decay_class = new.decay_class, decay_class_source = 'auto', expires_at = to_timestamp(new.expires_at),
        halvings = new.halvings, tier = new.tier, ends_at = to_timestamp(new.ends_at),
        due_at = to_timestamp(new.due_at)
    from unnest(%(namespaces)s::int[], %(ids)s::uuid[], %(decay_classes)s::text[], %(expires_at)s::float8[],
        %(halvings)s::int[], %(tier)s::int[], %(ends_at)s::float8[], %(due_at)s::float8[])
        as new (namespace, fact, decay_class, expires_at, halvings, tier, ends_at, due_at)
    where activity.namespace = new.namespace and activity.fact = new.fact
"""


@dataclass(frozen=True, slots=True)
class Classed:
    """What gave a fact its decay class: who chose it (`explicit`, or `auto` for its words), and what it says."""

    kind: str
    source: str | None
    entity: str | None
    key: str | None
    value: str | None
    text: str


def classed(db: Connection, namespace: int, ids: Sequence[UUID]) -> dict[UUID, Classed]:
    """Return what gave these facts their decay classes, by id."""
    if not ids:
        return {}
    rows = db.execute(CLASSED, {"namespace": namespace, "ids": list(ids)}, binary=True)
    return {id_: Classed(*said) for id_, *said in rows}


def unchosen(db: Connection, namespace: int | None, after: tuple[int, UUID], limit: int, now: datetime) -> Activity:
    """Return facts of a namespace, or of all, behind a place, whose decay class nobody chose; locked.

    Some may be forgotten or superseded.
    """
    given = {"namespace": namespace, "after": after[0], "fact": after[1], "limit": limit, "now": now}
    return rows_of(db.execute(UNCHOSEN, given).fetchall())


def said(db: Connection, rows: Activity) -> dict[tuple[int, UUID], Said]:
    """Return what those of these facts that are live are about and say, by namespace and id; chunks have no class."""
    found = db.execute(SAID, {"namespaces": rows.namespaces.tolist(), "ids": rows.ids})
    return {(namespace, id_): (entity, key, value, text) for namespace, id_, entity, key, value, text in found}


def write(db: Connection, rows: Activity, faded: Faded) -> None:
    """Write the decay classes that facts have by their own words, their expiry, and what follows from it."""
    given = {
        "namespaces": rows.namespaces.tolist(),
        "ids": rows.ids,
        "decay_classes": rows.decay_classes,
        "expires_at": rows.anchors.expires_at.tolist(),
        "halvings": faded.halvings.tolist(),
        "tier": faded.tier.tolist(),
        "ends_at": faded.ends_at.tolist(),
        "due_at": faded.due_at.tolist(),
    }
    db.execute(WRITE, given)
