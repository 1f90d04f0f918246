"""Scrub: what was erased leaves the servers' files, too, where the rows that readers see are not all there is.

Erased rows stand in PostgreSQL's pages, indexes and statistics until they are cleaned, which workers do within an hour.
After that only bytes are left, which nothing reads: in pages until their room is used again, words in their index until
that is made anew, and in the write-ahead log until its segments are written over, at the earliest after the next
checkpoint. Redis has answers for five minutes at most, or under an idempotency key until the next cleaning, and its
file what was told until it is written anew, which cleaning does. A scrub takes all of that away at once. Before either,
the words of what changed are counted anew, or those of erased facts alone would still stand there.
"""

import logging
from dataclasses import dataclass
from datetime import datetime

import psycopg

from workers.admin import search_indexes
from workers.context import Context
from workers.coordination import idempotency
from workers.coordination.redis import compact, drop_results
from workers.errors import UnavailableError
from workers.storage import erasures, pages
from workers.storage.connection import connect

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
        erased = erasures.waiting(db)
        if not erased.ids:
            return False
        search_indexes.count_grown(context, now, erased.namespaces)
        try:
            pages.clean(db)
        except psycopg.errors.LockNotAvailable:
            log.warning(
                "not cleaned of what was erased, for a table is being indexed or vacuumed: the next cleaning does it"
            )
            return False
        idempotency.drop_quotes(context.redis)
        compact(context.redis)
        erasures.note_cleaned(db, erased)
    return True


def scrub(context: Context, now: datetime) -> Scrubbed:
    """Write tables, indexes and Redis' file anew, and drop PostgreSQL's log; readers and writers wait for tables.

    Answers that nobody has fetched are dropped: of a write that was not waited for, `state` says that it has ended.

    Raises:
        UnavailableError: a server does not answer, or somebody works on a table for too long; do it again.
    """
    with connect(context.database_url, autocommit=True) as db:
        erased = erasures.waiting(db)
        search_indexes.count_grown(context, now, erased.namespaces)
        try:
            written, dropped = pages.rewrite(db), pages.drop_log(db)
        except psycopg.errors.LockNotAvailable:
            raise UnavailableError(
                "The tables are in use: somebody reads or writes them for long. Try again."
            ) from None
        idempotency.drop_quotes(context.redis)
        drop_results(context.settings.redis_url)
        done = {TABLES_ARE_KEPT: written, LOG_IS_KEPT: dropped, REDIS_KEEPS: compact(context.redis, wait=True)}
        if written:
            erasures.note_cleaned(db, erased)
    return Scrubbed([*(said for said, reached in done.items() if not reached), OUT_OF_REACH])
