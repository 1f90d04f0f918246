"""Tombstones: facts that are hidden and can be brought back, until they are erased."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import psycopg
from psycopg.rows import class_row

from workers.errors import UnavailableError
from workers.storage.connection import Connection

STANDINGS = """
    select id, hash, forgotten_at, forgotten_reason as reason, superseded_at is not null as superseded
    from facts
    where namespace = %(namespace)s and id = any(%(ids)s)
"""

REVIVE = """
    with back as (
        update facts set forgotten_at = null, forgotten_reason = null
        where namespace = %(namespace)s and id = any(%(ids)s) and forgotten_at is not null
        returning id
    )
    insert into events (namespace, fact, at, what)
    select %(namespace)s, id, %(now)s, 'restored' from back
"""

# Activity first, as everybody locks it. What somebody works on is left for the next batch.
CLAIM_OLD = """
    select activity.namespace, activity.fact
    from facts
    join activity on activity.namespace = facts.namespace and activity.fact = facts.id
    where forgotten_at < %(before)s
    order by forgotten_at
    limit %(limit)s
    for no key update of activity skip locked
"""

COUNT_OLD = "select count(*) from facts where forgotten_at < %(before)s"

# All other tables' rows of a fact go with it.
ERASE = """
    delete from facts
    using unnest(%(namespaces)s::int[], %(ids)s::uuid[]) as gone (namespace, id)
    where facts.namespace = gone.namespace and facts.id = gone.id and forgotten_at is not null
"""


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a fact is forgotten, when and why, and whether another has replaced it."""

    id: UUID
    hash: bytes
    forgotten_at: datetime | None
    reason: str | None
    superseded: bool

    @property
    def live(self) -> bool:
        """Return whether readers see the fact, unless it is over."""
        return self.forgotten_at is None and not self.superseded


def standings(db: Connection, namespace: int, ids: Sequence[UUID]) -> dict[UUID, Standing]:
    """Return how those of these facts stand that exist."""
    with db.cursor(row_factory=class_row(Standing)) as cursor:
        rows = cursor.execute(STANDINGS, {"namespace": namespace, "ids": list(ids)})
        return {standing.id: standing for standing in rows}


def revive(db: Connection, namespace: int, ids: Sequence[UUID], now: datetime) -> int:
    """Take the tombstones off facts, and note it; return off how many.

    Raises:
        UnavailableError: somebody has just stored what one of them says; the transaction is lost.
    """
    try:
        return db.execute(REVIVE, {"namespace": namespace, "ids": list(ids), "now": now}).rowcount
    except psycopg.errors.UniqueViolation:
        raise UnavailableError("A fact that says the same was stored at this very moment: try again.") from None


def claim_old(db: Connection, before: datetime, limit: int) -> list[tuple[int, UUID]]:
    """Return (namespace, fact) of what was forgotten before an instant, oldest first, locked until the commit."""
    return db.execute(CLAIM_OLD, {"before": before, "limit": limit}).fetchall()


def count_old(db: Connection, before: datetime) -> int:
    """Return how many facts of all namespaces were forgotten before an instant."""
    row = db.execute(COUNT_OLD, {"before": before}).fetchone()
    return int(row[0]) if row else 0


def erase(db: Connection, namespaces: Sequence[int], ids: Sequence[UUID]) -> int:
    """Remove forgotten facts for good, with all that belongs to them; return how many there were."""
    return db.execute(ERASE, {"namespaces": list(namespaces), "ids": list(ids)}).rowcount
