"""Links: typed edges from fact to fact. They go with their facts, and are unseen while one of these is forgotten."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import class_row

from workers.storage.connection import Connection

# In the order of their keys, so that two that link the same wait for each other instead of deadlocking. A forgotten
# fact gets no new links.
ADD = """
    insert into links (namespace, source, target, type, strength, created_at)
    select %(namespace)s, source, target, %(type)s, strength, %(now)s
    from unnest(%(sources)s::uuid[], %(targets)s::uuid[], %(strengths)s::float8[]) as new (source, target, strength)
    order by source, target
    on conflict (namespace, source, target, type) do update set strength = excluded.strength
    returning id
"""

LINKABLE = """
    select id from facts
    where namespace = %(namespace)s and id = any(%(ids)s) and forgotten_at is null
"""

REMOVE = """
    delete from links
    where namespace = %(namespace)s and source = %(source)s and target = %(target)s
        and (%(type)s::text is null or type = %(type)s)
"""

OF = """
    select links.source, links.target, links.type, links.strength, links.created_at
    from links
    join facts on facts.namespace = links.namespace
        and facts.id = case when source = %(fact)s then target else source end
    where links.namespace = %(namespace)s and (source = %(fact)s or target = %(fact)s) and forgotten_at is null
    order by links.created_at, links.id
"""


@dataclass(frozen=True, slots=True)
class Link:
    """One fact's link to another."""

    source: UUID
    target: UUID
    type: str
    strength: float
    created_at: datetime


def linkable(db: Connection, namespace: int, ids: Sequence[UUID]) -> set[UUID]:
    """Return those of these facts that are there and not forgotten."""
    return {id_ for (id_,) in db.execute(LINKABLE, {"namespace": namespace, "ids": list(ids)})}


def add(
    db: Connection,
    namespace: int,
    pairs: Sequence[tuple[UUID, UUID]],
    kind: str,
    strengths: Sequence[float],
    now: datetime,
) -> list[UUID]:
    """Link each source with its target, or change the strength of a link that is there; return the links' ids."""
    given = {
        "namespace": namespace,
        "sources": [source for source, _ in pairs],
        "targets": [target for _, target in pairs],
        "type": kind,
        "strengths": list(strengths),
        "now": now,
    }
    return [id_ for (id_,) in db.execute(ADD, given)]


def remove(db: Connection, namespace: int, source: UUID, target: UUID, kind: str | None) -> int:
    """Remove the link of a type between two facts, or all of them; return how many there were."""
    given = {"namespace": namespace, "source": source, "target": target, "type": kind}
    return db.execute(REMOVE, given).rowcount


def of(db: Connection, namespace: int, fact: UUID) -> list[Link]:
    """Return a fact's links in both directions, oldest first, without those to forgotten facts."""
    with db.cursor(row_factory=class_row(Link)) as cursor:
        return cursor.execute(OF, {"namespace": namespace, "fact": fact}).fetchall()
