"""Pins: which facts are kept as they are, and until when."""

import math
from uuid import UUID

from workers.storage.connection import Connection

KEPT_LIFETIME = """
    select coalesce(kept_lifetime, 'infinity') from activity
    where namespace = %(namespace)s and fact = %(fact)s
"""

SET = """
    update activity set pinned_until = to_timestamp(%(until)s), kept_lifetime = %(kept_lifetime)s
    where namespace = %(namespace)s and fact = %(fact)s
"""


def kept_lifetime(db: Connection, namespace: int, fact: UUID) -> float:
    """Return the seconds to live that a fact's pin without end keeps back; infinity if it has no lifetime."""
    row = db.execute(KEPT_LIFETIME, {"namespace": namespace, "fact": fact}).fetchone()
    return float(row[0]) if row else math.inf


def set_until(db: Connection, namespace: int, fact: UUID, until: float, lifetime: float) -> None:
    """Pin a fact until an instant (epoch seconds, infinity for good); a pin without end keeps its lifetime back."""
    kept = lifetime if math.isinf(until) and math.isfinite(lifetime) else None
    db.execute(SET, {"namespace": namespace, "fact": fact, "until": until, "kept_lifetime": kept})
