"""Search: the indexes' upkeep. Words are counted, large namespaces get an index of their own, bloat is removed."""

import logging
from collections.abc import Sequence
from datetime import datetime

import psycopg

from workers.context import Context
from workers.coordination import signals
from workers.storage import index_sizes, lexemes, namespaces, signatures
from workers.storage.connection import Connection, connect, transaction
from workers.storage.index_sizes import Size

log = logging.getLogger(__name__)

LEAST_BLOATED_BYTES = 1024 * 1024
"""Smaller indexes are read as a whole anyway."""

MOST_BLOAT = 2.0
"""How many times as large as need be an index may become; pages that are much written are half full."""


def count_lexemes(context: Context, namespace: str, now: datetime) -> int:
    """Count a namespace's words anew; return how many live facts it has. Repeating it changes nothing."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        return 0 if tenant is None else lexemes.count(db, tenant.id, now)


def count_grown(context: Context, now: datetime, others: Sequence[str] = ()) -> None:
    """Count the words of namespaces that have other facts than when they were counted last, and of those named."""
    for name in sorted({*signals.take_grown(context.redis), *others}):
        count_lexemes(context, name, now)
        signals.note_counted(context.redis, name)


def index_large_namespaces(context: Context) -> list[int]:
    """Give each namespace above the threshold an HNSW index over its signatures; return who got one.

    Nobody who stores or recalls waits for it. An index whose building died is dropped and built again.
    """
    with connect(context.database_url, autocommit=True) as db:
        db.execute("set statement_timeout = 0; set lock_timeout = 0")
        if not signatures.claim_building(db):
            return []
        there = signatures.indexes(db)
        large = signatures.large_namespaces(db, context.settings.ann_threshold)
        wanting = [tenant for tenant in large if not there.get(signatures.index_name(tenant))]
        for tenant in wanting:
            signatures.drop_index(db, signatures.index_name(tenant))
            signatures.build_index(db, tenant)
            log.info("built the vector index of namespace %d", tenant)
    return wanting


def rebuild_bloated_indexes(context: Context) -> list[str]:
    """Build anew each index that takes more than twice the pages that its entries need; return which.

    Nobody who stores or recalls waits for it. What a building that died has left behind is dropped.
    """
    with connect(context.database_url, autocommit=True) as db:
        db.execute("set statement_timeout = 0; set lock_timeout = 0; set maintenance_work_mem = '1GB'")
        if not signatures.claim_building(db):
            return []
        index_sizes.drop_left_over(db)
        found = index_sizes.sizes(db, LEAST_BLOATED_BYTES)
        return [one.name for one in found if one.bytes > MOST_BLOAT * one.needed and _rebuilt(db, one)]


def _rebuilt(db: Connection, size: Size) -> bool:
    """Build one index anew; false where that fails, which makes nothing wrong, only large."""
    try:
        index_sizes.rebuild(db, size.name)
    except psycopg.Error as error:
        log.warning("the index %s stays as large as it is: %s", size.name, error)
        return False
    log.info("built the index %s anew, which had %d bytes for %d", size.name, size.bytes, size.needed)
    return True
