"""Purge: what was forgotten long ago is erased with all that belongs to it; until then it can be brought back."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from workers.context import Context
from workers.storage import namespaces, tombstones
from workers.storage.connection import transaction

BATCH = 1_000
"""Facts erased in one transaction."""


@dataclass(frozen=True, slots=True)
class Purged:
    """What one batch erased, and whose facts these were."""

    facts: int
    namespaces: list[str]


def purge_batch(context: Context, now: datetime, namespace: str | None, *, in_gaps: bool = True) -> Purged:
    """Erase the next facts of a namespace, or of all, whose time is over at `now`; none are left when it erased none.

    Without `in_gaps` it leaves namespaces alone in which no pass came for long, until that is confirmed.

    Raises:
        UnavailableError: the database does not answer.
    """
    with transaction(context.database_url) as db:
        tenant = None if namespace is None else namespaces.find(db, namespace)
        if namespace is not None and tenant is None:
            return Purged(0, [])
        own = tenant.id if tenant else None
        claimed = tombstones.claim_old(
            db, before(context, now), BATCH, own, in_gaps=in_gaps, simulated=context.settings.time_travel
        )
        tenants, ids = [tenant for tenant, _ in claimed], [id_ for _, id_ in claimed]
        erased = tombstones.erase(db, tenants, ids) if claimed else 0
        return Purged(erased, namespaces.names(db, sorted(set(tenants))))


def waiting(context: Context, now: datetime, namespace: str | None) -> int:
    """Return how many facts of a namespace, or of all, a purge at `now` would erase."""
    with transaction(context.database_url) as db:
        tenant = None if namespace is None else namespaces.find(db, namespace)
        if namespace is not None and tenant is None:
            return 0
        return tombstones.count_old(
            db, before(context, now), tenant.id if tenant else None, simulated=context.settings.time_travel
        )


def before(context: Context, now: datetime) -> datetime:
    """Return the instant before which something must be forgotten to be purged at `now`."""
    beginning = datetime.min.replace(tzinfo=UTC)
    return now - min(timedelta(days=context.settings.retention_days), now - beginning)
