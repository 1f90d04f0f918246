"""Capacity: forget the least valuable facts of a namespace over its capacity, within the forget limit."""

from uuid import UUID

from workers.context import Context
from workers.memory.forget import forget_within
from workers.storage import capacity, limits
from workers.storage.connection import Connection
from workers.storage.runs import Part

REASON = "crowded"


def forget_least_valuable(context: Context, db: Connection, run: UUID, part: Part) -> int:
    """Forget a batch of facts in the first namespace over capacity; return how many.

    A dry run only counts, for all namespaces at once.
    """
    now, most, gone = part.planned_for, context.settings.decay_batch, 0
    for tenant, excess in capacity.over(db, part.namespace, now).items():
        if part.dry_run:
            gone += len(capacity.least(db, tenant, _granted(db, tenant, excess, part), now))
            continue
        limits.lock(db, tenant)
        wanted = _granted(db, tenant, min(excess, most), part)
        ids = capacity.claim(db, tenant, wanted, now) if wanted else []
        if ids:
            forget_within(db, [tenant] * len(ids), ids, [REASON] * len(ids), now, run)
            if not part.force:
                limits.count_ended(db, tenant, len(ids), now)
            return len(ids)
    return gone


def _granted(db: Connection, tenant: int, wanted: int, part: Part) -> int:
    left = None if part.force else limits.remaining(db, tenant, part.planned_for)
    return wanted if left is None else min(wanted, left)
