"""Measures of the whole system: health, totals of the database, and the time series of queues and latencies."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from ebb.contract.admin import ShowSystemTimeSeries

from workers.context import Context
from workers.coordination import embedder_pause, signals, timings
from workers.coordination.redis import open_redis
from workers.core import fidelity
from workers.core.tiers import Tier
from workers.errors import EbbError
from workers.queues import QUEUES, length_of
from workers.storage import due, schema, server, time_series
from workers.storage.connection import outside_pool, transaction
from workers.storage.replicas import Replica

OK = "ok"


def health(context: Context) -> dict[str, str]:
    """Return `ok` or the error, of the database, of its replicas and of the embedder."""
    known = {"database": _database(context), "embedder": _embedder(context)}
    replicas = "; ".join(str(one) for one in _replicas(context) if one.fault) or OK
    return known | ({"replicas": replicas} if context.replicas else {})


def _replicas(context: Context) -> list[Replica]:
    return context.replicas.look() if context.replicas else []


def _database(context: Context) -> str:
    """Check the schema and try a write, on a connection outside the pool, which would wait for the server."""
    try:
        for _ in context.each_shard():
            with outside_pool(context.database_url) as db:
                schema.check(db)
                server.try_write(db)
    except EbbError as error:
        return str(error)
    return OK


def _embedder(context: Context) -> str:
    """Embed a word, at most once a minute, as it may cost money, and not during a pause."""
    pause = embedder_pause.state(context.redis)
    if pause.seconds:
        return embedder_pause.describe(pause)
    known = signals.embedder_state(context.redis)
    if known is not None:
        return known
    try:
        context.embedder.embed(["health"], retry=False)
        said = OK
    except EbbError as error:
        said = str(error)
    signals.note_embedder(context.redis, said)
    return said


def measure(context: Context, now: datetime) -> dict[str, Any]:
    """Return the totals of facts by tier, fidelity and reason, due facts, and the last pass.

    It only reads tallies and indexes, so it may be called often.
    """
    rows, waiting, since, passes = [], 0, [now], []
    for _ in context.each_shard():
        with transaction(context.database_url) as db:
            rows += server.fact_totals(db)
            waiting += sum(due.segments(db, now).values())
            since.append(server.oldest_due(db, now) or now)
            passes.append(server.last_pass(db))
            size = server.size(db)
    last = max((one for one in passes if one), default=None)
    return {
        "at": now.timestamp(),
        **_totals(rows),
        "bytes": size,
        "due": waiting,
        "replicas": {one.name: {"seconds": one.seconds, "readable": not one.fault} for one in _replicas(context)},
        "oldest_due_seconds": (now - min(since)).total_seconds(),
        "last_pass": None if last is None else {"at": last[0].timestamp(), "seconds": last[1], "worked_ms": last[2]},
    }


def _totals(rows: Sequence[tuple[int | None, int | None, str | None, bool, int]]) -> dict[str, Any]:
    """Return the totals by tier, fidelity and reason of rows of `server.fact_totals`."""
    tiers = {tier.name.lower(): 0 for tier in Tier}
    kept = dict.fromkeys(fidelity.NAMES, 0)
    forgotten, held = Counter[str](), 0
    for tier, code, reason, is_held, facts in rows:
        held += facts if is_held else 0
        if reason is not None:
            forgotten[reason] += facts
        elif tier is not None and code is not None:
            tiers[Tier(tier).name.lower()] += facts
            kept[fidelity.name(code)] += facts
    return {"tiers": tiers, "fidelity": kept, "forgotten": dict(forgotten), "held": held}


def record(context: Context, now: datetime) -> None:
    """Record the queue lengths and the cumulative histogram of write latencies."""
    with open_redis(context.settings.redis_url) as broker:
        lengths = {queue: length_of(broker, queue) for queue in QUEUES}
    writes, _ = timings.read(context.redis).get(timings.WRITE, ([0] * len(timings.BUCKETS), 0.0))
    with transaction(context.database_url) as db:
        time_series.record_system(db, lengths, writes, now)


def load_over_time(context: Context, asked: ShowSystemTimeSeries, now: datetime) -> dict[str, Any]:
    """Return the time series of queue lengths and write latencies over the last days.

    `at` are instants in epoch seconds; the other lists have the same length: `waiting` for each queue, the maximum of
    five minutes; `half` and `most`, the median and 95th percentile in seconds, None without writes.
    """
    with transaction(context.database_url) as db:
        noted = time_series.system_since(db, now - timedelta(days=asked.days), now)
    sums = [counts for _, _, counts in noted]
    histograms = [[0] * len(timings.BUCKETS) for _ in sums[:1]] + [_between(*pair) for pair in pairwise(sums)]
    return {
        "at": [at.timestamp() for at, _, _ in noted],
        "waiting": {queue: [int(waiting.get(queue, 0)) for _, waiting, _ in noted] for queue in QUEUES},
        "half": [timings.quantile(counts, 0.5) for counts in histograms],
        "most": [timings.quantile(counts, 0.95) for counts in histograms],
    }


def _between(before: list[int], after: list[int]) -> list[int]:
    """Return the difference of two cumulative counts, or the later one if Redis was emptied in between."""
    rose = [later - earlier for earlier, later in zip(before, after, strict=True)]
    return rose if min(rose) >= 0 else after
