"""Purge: what was forgotten long ago is erased, then from the pages of the database and from Redis."""

import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import psycopg

from workers.admin import search_indexes
from workers.context import Context
from workers.coordination import idempotency
from workers.coordination.redis import compact, drop_results
from workers.errors import UnavailableError
from workers.storage import maintenance, namespaces, tombstones
from workers.storage.connection import connect, transaction

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


TABLES_ARE_KEPT = "PostgreSQL's tables: they belong to another role than the one that Ebb connects as"
LOG_IS_KEPT = "PostgreSQL's write-ahead log: only a superuser may have it removed; it goes as the server recycles it"
REDIS_KEEPS = "Redis' file of changes: the server does not let it be rewritten; it goes when Redis does so by itself"
OUT_OF_REACH = "exports, backups, replicas, archived logs, and what Flower has seen since it was started"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Scrubbed:
    """What a scrub could not reach, in words."""

    left: list[str]


def clean(context: Context, now: datetime) -> bool:
    """Take what was erased since the last time out of tables, indexes, kept answers and Redis' file.

    Return whether anything was.
    """
    with connect(context.database_url, autocommit=True) as db:
        erased = tombstones.erasures(db)
        if not erased.ids:
            return False
        search_indexes.count_grown(context, now, erased.namespaces)
        try:
            maintenance.vacuum(db)
        except psycopg.errors.LockNotAvailable:
            log.warning(
                "not cleaned of what was erased, for a table is being indexed or vacuumed: the next cleaning does it"
            )
            return False
        idempotency.drop_quotes(context.redis)
        compact(context.redis)
        tombstones.drop_erasures(db, erased)
    return True


def scrub(context: Context, now: datetime) -> Scrubbed:
    """Rewrite tables, indexes and the file of Redis, and drop PostgreSQL's log; readers and writers wait for tables.

    Answers that were not fetched are dropped: of a write that was not waited for, `state` says that it has ended.

    Raises:
        UnavailableError: a server does not answer, or a table is in use for too long; try again.
    """
    with connect(context.database_url, autocommit=True) as db:
        erased = tombstones.erasures(db)
        search_indexes.count_grown(context, now, erased.namespaces)
        try:
            written, dropped = maintenance.rewrite(db), maintenance.drop_log(db)
        except psycopg.errors.LockNotAvailable:
            raise UnavailableError(
                "The tables are in use: somebody reads or writes them for long. Try again."
            ) from None
        idempotency.drop_quotes(context.redis)
        drop_results(context.settings.redis_url)
        done = {TABLES_ARE_KEPT: written, LOG_IS_KEPT: dropped, REDIS_KEEPS: compact(context.redis, wait=True)}
        if written:
            tombstones.drop_erasures(db, erased)
    return Scrubbed([*(said for said, reached in done.items() if not reached), OUT_OF_REACH])
