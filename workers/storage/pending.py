"""Pending: facts that still have no vector."""

from collections.abc import Sequence
from uuid import UUID

from workers.storage.connection import Connection

NEXT = """
    select activity.namespace, activity.fact, text
    from activity
    join facts on facts.namespace = activity.namespace and facts.id = activity.fact
    where fidelity = 0 and forgotten_at is null and superseded_at is null
        and (activity.namespace, activity.fact) > (%(after)s, %(fact)s)
    order by activity.namespace, activity.fact
    limit %(limit)s
"""

COUNT = """
    select count(*) from activity
    join facts on facts.namespace = activity.namespace and facts.id = activity.fact
    where fidelity = 0 and forgotten_at is null and superseded_at is null
"""

AMONG = """
    select fact from activity where namespace = %(namespace)s and fact = any(%(ids)b) and fidelity = 0
"""

FORGET_VECTORS = "update activity set fidelity = 0, compared = false where fidelity <> 0"


def following(db: Connection, after: tuple[int, UUID], limit: int) -> list[tuple[int, UUID, str]]:
    """Return (namespace, fact, text) of facts that still have no vector, behind the place `after`."""
    return db.execute(NEXT, {"after": after[0], "fact": after[1], "limit": limit}).fetchall()


def count(db: Connection) -> int:
    """Return how many live facts of all namespaces have no vector yet."""
    row = db.execute(COUNT).fetchone()
    return int(row[0]) if row else 0


def among(db: Connection, namespace: int, ids: Sequence[UUID]) -> set[UUID]:
    """Return those of these facts that still have no vector."""
    return {fact for (fact,) in db.execute(AMONG, {"namespace": namespace, "ids": list(ids)})}


def forget_vectors(db: Connection) -> int:
    """Mark every fact as without vector; return how many had one."""
    return db.execute(FORGET_VECTORS).rowcount
