"""Search indexes: word counts, statistics, vector indexes of large namespaces, index bloat, and the language."""

import logging
import math
import random
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial

import psycopg

from workers.context import Context
from workers.coordination import signals
from workers.errors import LanguageMismatchError, SettingsError
from workers.storage import deep, namespaces, server, signatures, words
from workers.storage.connection import (
    Connection,
    again_after_deadlock,
    connect,
    lift_limits,
    limit_statements,
    transaction,
)
from workers.storage.server import IndexSize

log = logging.getLogger(__name__)

LEAST_BLOATED_BYTES = 1024 * 1024
"""Minimum size of an index that is rebuilt."""

MOST_BLOAT = 2.0
"""Allowed ratio of size to needed size; pages with many writes are half full."""

QUICK_SECONDS = 5.0
"""Time after which the words of a namespace are counted after those of all others."""

COUNTING_SECONDS = 600.0
"""Time after which another call may count large namespaces, although one that did not end may still do so."""

MOST_COUNTING = 0.1
"""Maximum share of the time for which the words of one large namespace are counted: a count reads all of its facts."""


def count_lexemes(context: Context, namespace: str, now: datetime) -> int:
    """Count the words of a namespace again, however long that takes; return its number of live facts. Idempotent."""
    with context.at(namespace), transaction(context.database_url) as db:
        lift_limits(db)
        return words.count(db, namespaces.id_of(db, namespace), now)


def find_grown(context: Context) -> None:
    """Have the words of all namespaces counted again if Redis lost the names of those that changed.

    Changes of a namespace are noted in the Redis of its group, also if it was moved to a shard of another group, whose
    Redis has what passes and purges there change.
    """
    if signals.growth_is_known(context.redis):
        return
    names, own_shards = list[str](), {*context.each_shard(own=True)}
    for shard in context.each_shard():
        with transaction(context.database_url) as db:
            names += [name for name in namespaces.all_names(db) if shard in own_shards or context.settings.owns(name)]
    signals.mark_all_grown(context.redis, names)


def count_grown(context: Context, now: datetime, others: Sequence[str] = (), until: float = math.inf) -> list[str]:
    """Count the words of namespaces that changed since the last count, and of `others`; return those counted.

    Large namespaces, which take up to minutes, are counted last, by one call at a time. While another call counts
    some, or if a count has just taken long, or after `until` on the monotonic clock, those that changed are left to a
    later call; `others` are counted at once, or when the other call has ended.
    """
    grown = signals.take_grown(context.redis)
    names = list({*grown}.difference(signals.deferred_counts(context.redis, grown)) | {*others})
    random.shuffle(names)  # if there is never time for all, none is always left
    quick, slow = list[str](), list[str]()
    for name in names:
        if name in others or time.monotonic() < until:
            (quick if _counted_quickly(context, name, now) else slow).append(name)
    if not slow:
        return sorted(quick)
    with signals.try_lock(context.redis, "lexemes", COUNTING_SECONDS, COUNTING_SECONDS if others else 0.0) as alone:
        counted = slow if alone else [name for name in slow if name in others]
        for name in counted:
            began = time.monotonic()
            count_lexemes(context, name, now)
            signals.note_counted(context.redis, name)
            signals.defer_count(context.redis, name, (time.monotonic() - began) / MOST_COUNTING)
    return sorted([*quick, *counted])


def _counted_quickly(context: Context, namespace: str, now: datetime) -> bool:
    """Try to count the words of a namespace within `QUICK_SECONDS`; return whether they were counted."""
    try:
        with context.at(namespace), transaction(context.database_url) as db:
            limit_statements(db, QUICK_SECONDS)
            words.count(db, namespaces.id_of(db, namespace), now)
    except psycopg.errors.QueryCanceled:
        return False
    signals.note_counted(context.redis, namespace)
    return True


def statistics_lack(context: Context, namespace: str) -> bool:
    """Return whether PostgreSQL plans for one fact of a namespace that has many, which makes joins very slow."""
    with context.at(namespace), transaction(context.database_url) as db:
        return bool(server.without_statistics(db, namespaces.id_of(db, namespace)))


def refresh_statistics(context: Context, namespace: str) -> None:
    """Analyze the namespaces of all tables if the statistics lack this one. Idempotent."""
    with context.at(namespace), connect(context.direct_database_url, autocommit=True) as db:
        db.execute("set statement_timeout = 0")
        if tables := server.without_statistics(db, namespaces.id_of(db, namespace)):
            server.analyze(db, tables)
            log.info("analyzed the tables: their statistics lacked the namespace %s", namespace)


def index_large_namespaces(context: Context) -> list[int]:
    """Build an HNSW index for each namespace above the threshold; return those that got one.

    Stores and recalls are not blocked. An index of an interrupted build is dropped and built again; one of a namespace
    that no longer exists is dropped.
    """
    with connect(context.direct_database_url, autocommit=True) as db:
        db.execute("set statement_timeout = 0; set lock_timeout = 0")
        if not signatures.claim_building(db):
            return []
        there = signatures.indexes(db)
        large = signatures.large_namespaces(db, context.settings.ann_threshold)
        for name in there:
            if not namespaces.names(db, [signatures.indexed_namespace(name)]):
                signatures.drop_index(db, name)
        wanting = [tenant for tenant in large if not there.get(signatures.index_name(tenant))]
        return [tenant for tenant in wanting if _built(db, tenant)]


def _built(db: Connection, tenant: int) -> bool:
    """Build the vector index of a namespace; return false if that fails, which leaves it for the next time."""
    try:
        _build(db, partial(_build_vector_index, db, tenant))
    except psycopg.Error as error:
        if db.closed:
            raise
        log.warning("the vector index of namespace %d could not be built: %s", tenant, error)
        return False
    log.info("built the vector index of namespace %d", tenant)
    return True


def _build_vector_index(db: Connection, tenant: int) -> None:
    signatures.drop_index(db, signatures.index_name(tenant))
    signatures.build_index(db, tenant)


def _build(db: Connection, build: Callable[[], None]) -> None:
    """Build an index, in one process if several lack shared memory, of which containers have 64 MiB by default."""
    try:
        build()
    except psycopg.errors.DiskFull as error:
        log.warning("an index is built again by one process, as several found no room: %s", error)
        server.drop_unfinished_indexes(db)
        db.execute("set max_parallel_maintenance_workers = 0")
        build()


def rebuild_bloated_indexes(context: Context) -> list[str]:
    """Rebuild each index of more than twice its needed size; return their names.

    Stores and recalls are not blocked. Indexes of interrupted builds are dropped.
    """
    with connect(context.direct_database_url, autocommit=True) as db:
        db.execute("set statement_timeout = 0; set lock_timeout = 0; set maintenance_work_mem = '1GB'")
        if not signatures.claim_building(db):
            return []
        server.drop_unfinished_indexes(db)
        found = server.index_sizes(db, LEAST_BLOATED_BYTES)
        return [one.name for one in found if one.bytes > MOST_BLOAT * one.needed and _rebuilt(db, one)]


def _rebuilt(db: Connection, size: IndexSize) -> bool:
    """Rebuild one index; return false if that fails, which leaves the index valid."""
    try:
        _build(db, partial(server.rebuild_index, db, size.name))
    except psycopg.Error as error:
        log.warning("the index %s stays as large as it is: %s", size.name, error)
        return False
    log.info("rebuilt the index %s, which had %d bytes for %d", size.name, size.bytes, size.needed)
    return True


def check_language(context: Context) -> None:
    """Set the language of an empty database, and verify that of others.

    Raises:
        SettingsError: the server has no such text search configuration; the message lists those that it has.
        LanguageMismatchError: stored facts are stemmed in another language; the message says what to do.
    """
    own = context.settings.language
    with transaction(context.database_url) as db:
        _check_installed(db, own)
        if words.language(db) == own:
            return
        stored = words.language(db, lock=True)
        if stored != own and words.holds_facts(db):
            raise LanguageMismatchError(
                f"The database's words are stemmed as {stored}; configured is {own}. Set EBB_LANGUAGE back to "
                f"{stored}, or rebuild the text index: `ebb reindex`, or `ebb up --reindex` where nothing runs."
            )
        words.choose_language(db, own)
        log.info("words are stemmed as %s", own)


def reindex(context: Context, now: datetime, on_counted: Callable[[int, int], None] = lambda *_: None) -> int:
    """Rebuild the text index of all facts in the configured language, and count words; return the number of live facts.

    Reads and writes are blocked during the rebuild, not during the counting.

    Raises:
        SettingsError: the server has no such text search configuration, or is a Citus cluster; nothing was changed.
    """
    names = [name for _ in context.each_shard() for name in again_after_deadlock(partial(_rebuilt_words, context))]
    facts = 0
    for place, name in enumerate(names, start=1):
        facts += count_lexemes(context, name, now)
        on_counted(place, len(names))
    return facts


def _rebuilt_words(context: Context) -> list[str]:
    """Rebuild the words of all facts of a shard; return its namespaces, whose words are to be counted.

    A fact that sinks into deep memory meanwhile can cause a deadlock.
    """
    with transaction(context.database_url) as db:
        lift_limits(db)
        _check_installed(db, context.settings.language)
        _refuse_citus(db)
        words.language(db, lock=True)
        deep.lock(db)  # before facts, as facts that leave deep memory are locked in this order
        words.choose_language(db, context.settings.language)
        words.rebuild(db)
        for tenant in namespaces.all_ids(db):
            deep.stem(db, tenant)
        names = namespaces.all_names(db)
        for name in names:  # before the commit, so that they are counted although this process ends
            signals.mark_grown(context.redis, name)
        return names


def _refuse_citus(db: Connection) -> None:
    if namespaces.is_on_citus(db):
        raise SettingsError(
            "On Citus the words of facts cannot be rebuilt. Run `ebb migrate` for another schema, start a worker there "
            "with this EBB_LANGUAGE, and bring the facts with `ebb export` and `ebb import`."
        )


def _check_installed(db: Connection, name: str) -> None:
    known = words.installed_languages(db)
    if name not in known:
        raise SettingsError(
            f"EBB_LANGUAGE={name!r} is not allowed: the server has no such text search configuration. "
            f"It has {', '.join(known)}."
        )
