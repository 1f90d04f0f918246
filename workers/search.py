"""Search: the indexes' upkeep. Words are counted for BM25, and large namespaces get an index of their own."""

import logging
from datetime import datetime

from workers.context import Context
from workers.storage import lexemes, namespaces, signatures
from workers.storage.connection import connect, transaction

log = logging.getLogger(__name__)


def count_lexemes(context: Context, namespace: str, now: datetime) -> int:
    """Count a namespace's words anew; return how many live facts it has. Repeating it changes nothing."""
    with transaction(context.database_url) as db:
        tenant = namespaces.find(db, namespace)
        return 0 if tenant is None else lexemes.count(db, tenant.id, now)


def index_large_namespaces(context: Context) -> list[int]:
    """Give each namespace above the threshold an HNSW index over its signatures; return who got one.

    Nobody who stores or recalls waits for it. An index whose building died is dropped and built again.
    """
    with connect(context.database_url, autocommit=True) as db:
        db.execute("set statement_timeout = 0; set lock_timeout = 0; set maintenance_work_mem = '1GB'")
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
