"""Purge: erase facts forgotten on request, also from pages and Redis; move those that decay forgot to deep memory."""

import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

import psycopg
from redis.exceptions import RedisError

from workers.admin import search_indexes
from workers.context import Context
from workers.coordination import idempotency, signals
from workers.coordination.redis import compact, drop_results, own_keys
from workers.errors import UnavailableError
from workers.storage import deep, namespaces, server, tombstones
from workers.storage.connection import Connection, connect, transaction

BATCH = 1_000
"""Facts erased or packed in one transaction."""

PORTION, PACKING_SECONDS = 50, 5.0
"""Facts that are packed at once, and time after which a transaction packs no more: long texts take memory and time."""

SINKS_AFTER_DAYS = 1.0
"""Days before a fact is packed, for reads as of an earlier instant and late uses."""

SINKS_UNSIGNED_AFTER_DAYS = 7.0
"""Days before a fact without a signature is packed; in deep memory it is then found by its words only."""


@dataclass(frozen=True, slots=True)
class Purged:
    """The number of facts that a batch erased, and their namespaces."""

    facts: int
    namespaces: list[str]


def purge(
    context: Context, now: datetime, namespace: str | None, task_id: str, until: float, *, in_gaps: bool = True
) -> Counter[str]:
    """Erase and pack facts batch by batch until `until` on the monotonic clock; return how many, `purged` and `sunk`.

    Each batch is counted for the task, for its next delivery if this one is broken off.
    """
    done = Counter[str]()
    sunk, batch = 1, Purged(1, [])
    while (sunk or batch.facts) and time.monotonic() < until:
        # Finding that none are left reads all tombstones that wait for the other step, so it is done once.
        sunk = sunk and demote_batch(context, now, namespace, in_gaps=in_gaps)
        batch = purge_batch(context, now, namespace, in_gaps=in_gaps) if batch.facts else batch
        did = {"purged": batch.facts, "sunk": sunk}
        signals.note_progress(context.redis, task_id, did)
        done.update(did)
        for grown in batch.namespaces:
            signals.mark_grown(context.redis, grown)
    return done


def purge_batch(context: Context, now: datetime, namespace: str | None, *, in_gaps: bool = True) -> Purged:
    """Erase the next facts of one namespace, or all, whose retention is over at `now`.

    `in_gaps` includes namespaces with an unconfirmed gap between passes.
    """
    simulated = context.settings.time_travel
    with transaction(context.database_url) as db:
        own = namespaces.id_within(db, namespace)
        claimed = []
        for statement, before in (
            (tombstones.CLAIM_OLD, days_before(now, context.settings.retention_days)),
            (tombstones.CLAIM_SUPERSEDED, days_before(now, context.settings.history_days)),
        ):
            claimed += tombstones.claim(db, statement, before, BATCH, own, in_gaps=in_gaps, simulated=simulated)
        tenants, ids = [tenant for tenant, _ in claimed], [id_ for _, id_ in claimed]
        erased = tombstones.erase(db, tenants, ids) if claimed else 0
        tenants += deep.erase(db, days_before(now, context.settings.deep_days), BATCH, own, in_gaps=in_gaps)
        return Purged(len(tenants) - len(ids) + erased, namespaces.names(db, sorted(set(tenants))))


def demote_batch(context: Context, now: datetime, namespace: str | None, *, in_gaps: bool = True) -> int:
    """Move the next facts that decay forgot a day before `now` into deep memory; return how many.

    Those that wait for their vector do so for a week, or until they are erased. `in_gaps` includes namespaces with an
    unconfirmed gap between passes.
    """
    deep_days = context.settings.deep_days
    most = SINKS_UNSIGNED_AFTER_DAYS if deep_days is None else min(deep_days, SINKS_UNSIGNED_AFTER_DAYS)
    with transaction(context.database_url) as db:
        own, simulated = namespaces.id_within(db, namespace), context.settings.time_travel
        claimed = tombstones.claim(
            db,
            tombstones.CLAIM_DECAYED,
            days_before(now, SINKS_AFTER_DAYS),
            BATCH,
            own,
            in_gaps=in_gaps,
            simulated=simulated,
            unsigned_before=days_before(now, most),
        )
        return _demote(db, claimed)


def _demote(db: Connection, claimed: Sequence[tuple[int, UUID]]) -> int:
    """Move locked tombstones into deep memory, for `PACKING_SECONDS`; return how many."""
    sunk, until = 0, time.monotonic() + PACKING_SECONDS
    for begin in range(0, len(claimed), PORTION):
        portion = claimed[begin : begin + PORTION]
        sunk += deep.demote(db, [tenant for tenant, _ in portion], [id_ for _, id_ in portion])
        if time.monotonic() >= until:
            break
    return sunk


def waiting(context: Context, now: datetime, namespace: str | None) -> int:
    """Return how many facts of one namespace, or all, a purge at `now` would erase."""
    with transaction(context.database_url) as db:
        own, simulated = namespaces.id_within(db, namespace), context.settings.time_travel
        asked = tombstones.count(
            db, tombstones.COUNT_OLD, days_before(now, context.settings.retention_days), own, simulated=simulated
        )
        superseded = tombstones.count(
            db, tombstones.COUNT_SUPERSEDED, days_before(now, context.settings.history_days), own, simulated=simulated
        )
        return asked + superseded + deep.count_old(db, days_before(now, context.settings.deep_days), own)


def days_before(now: datetime, days: float | None) -> datetime:
    """Return the instant so many days before `now`; None goes back to the beginning of time, so nothing is older."""
    beginning = datetime.min.replace(tzinfo=UTC)
    return beginning if days is None else now - min(timedelta(days=days), now - beginning)


TABLES_ARE_KEPT = "PostgreSQL's tables: they belong to another role than the one that Ebb connects as"
LOG_IS_KEPT = "PostgreSQL's write-ahead log: only a superuser may have it removed; it goes as the server recycles it"
REDIS_KEEPS = "Redis' file of changes: the server does not let it be rewritten; it goes when Redis does so by itself"
GROUP_IS_AWAY = "the Redis of group {}: it does not answer; the next cleaning reaches it"
OUT_OF_REACH = (
    "exports, backups, replicas, archived logs, files that a crash of PostgreSQL left in its data folder, and what "
    "Flower has seen since it was started"
)

log = logging.getLogger(__name__)


def clean(context: Context, now: datetime) -> bool:
    """Remove erased facts from tables, indexes, stored answers and Redis' file; return whether that was done.

    Without erased facts there is nothing to do, nor while another caller does it; what is in use or away is left for
    the next cleaning.
    """
    with connect(context.direct_database_url, autocommit=True) as db:
        if not tombstones.claim_cleaning(db):
            return False
        erased, names = tombstones.erasures(db)
        if not erased:
            return False
        search_indexes.count_grown(context, now, names)
        try:
            server.vacuum(db)
        except psycopg.errors.LockNotAvailable:
            log.warning(
                "not cleaned of what was erased, for a table is being indexed or vacuumed, or a long transaction may "
                "still read it: the next cleaning does it"
            )
            return False
        _, away = _clean_redis(context)
        if away:
            log.warning("not cleaned of what was erased: %s; the next cleaning does it", "; ".join(away))
            return False
        tombstones.drop_erasures(db, erased)
    return True


def scrub(context: Context, now: datetime) -> list[str]:
    """Rewrite tables, indexes and Redis' file, and drop PostgreSQL's log; readers and writers of tables are blocked.

    Results that were not fetched are dropped, and those that chords keep, which then fail. Return descriptions of what
    was not reached.

    Raises:
        UnavailableError: a server does not answer, or a table is in use for too long.
    """
    left: list[str] = []
    for _ in context.each_shard():
        left += _scrub(context, now)
    return [*dict.fromkeys(left), OUT_OF_REACH]


def _scrub(context: Context, now: datetime) -> list[str]:
    """Rewrite the files of one shard; return what was not reached."""
    with connect(context.direct_database_url, autocommit=True) as db:
        erased, names = tombstones.erasures(db)
        search_indexes.count_grown(context, now, names)
        try:
            written, dropped = server.rewrite(db), server.drop_log(db)
        except psycopg.errors.LockNotAvailable:
            raise UnavailableError("The tables are in use by a long transaction. Try again later.") from None
        compacted, away = _clean_redis(context, fully=True)
        done = {TABLES_ARE_KEPT: written, LOG_IS_KEPT: dropped, REDIS_KEEPS: compacted}
        if written and not away:
            tombstones.drop_erasures(db, erased)
    return [*(said for said, reached in done.items() if not reached), *away]


def _clean_redis(context: Context, *, fully: bool = False) -> tuple[bool, list[str]]:
    """Drop what the Redis of every group quotes, `fully` with all results; return whether all rewrite, and who is away.

    A namespace's group follows from its name, so any group may quote facts of any shard.

    Raises:
        RedisError: the Redis of this process's own group does not answer.
    """
    compacted, away = True, []
    for number, url in enumerate(context.settings.broker_urls):
        try:
            with own_keys(url) as redis:
                quoting = idempotency.drop_quotes(redis)
                drop_results(url, None if fully else quoting)
                compacted = compact(redis, wait=fully) and compacted
        except RedisError:
            if url == context.settings.redis_url:
                raise
            away.append(GROUP_IS_AWAY.format(number))
    return compacted, away
