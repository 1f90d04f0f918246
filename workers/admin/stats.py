"""Statistics: the counts of a namespace and of the whole system, their time series, and the health of its parts."""

import logging
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

from ebb.contract.admin import ShowSystemTimeSeries
from ebb.contract.reports import Gap, ShowStats, ShowTimeSeries, Stats

from workers.context import Context
from workers.coordination import pause, signals, timings
from workers.coordination.redis import open_redis
from workers.core import fidelity
from workers.core.episodes import DURABILITIES, durability
from workers.core.tiers import Tier
from workers.errors import EbbError
from workers.queues import QUEUES, length_of
from workers.storage import branches, due, limits, namespaces, schema, server, supersession, tallies, turns
from workers.storage.connection import transaction
from workers.storage.replicas import Replica
from workers.storage.tallies import Tally

log = logging.getLogger(__name__)

UNCLASSED = "none"
DUE = "due"
*KEPT, PENDING = fidelity.NAMES
TIERS = [tier.name.lower() for tier in Tier]
SOURCES = ("auto", "explicit", UNCLASSED)
BATCH = 50_000
"""Changes added to the totals in one transaction."""


def stats(context: Context, asked: ShowStats, now: datetime) -> Stats:
    """Return a namespace's counts as of its last pass; ended and due facts are as of `now`.

    Its cost depends on the number of due facts and of distinct counts, not on the size of the namespace.
    """
    with transaction(context.database_url) as db:
        tenant, own = namespaces.id_of(db, asked.namespace), branches.find(db, asked.namespace)
        counted, gap = tallies.read(db, tenant), limits.gaps(db, [tenant]).get(tenant)
        due, ended = tallies.due(db, tenant, now)
        pinned, stored_turns = tallies.pinned(db, tenant, now), turns.count_turns(db, tenant)
        contradictions = supersession.count_contradictions(db, tenant, now)
    forgotten = _sums([one for one in counted if one.forgotten_reason], lambda one: one.reason)
    return Stats(
        **_of_live([one for one in counted if one.forgotten_reason is None]),
        expired_pending=ended,
        forgotten=forgotten.total(),
        forgotten_by_reason=dict(sorted(forgotten.items())),
        due=due,
        contradictions=contradictions,
        pinned=pinned,
        turns=stored_turns,
        deep=sum(one.facts for one in counted if one.deep),
        regretted=signals.counted(context.redis, signals.REGRETS).get(asked.namespace, 0),
        gap=None if gap is None else Gap(**{"from": gap.began, "until": gap.ended}),
        branch_of=own.original if own else None,
    )


def _of_live(live: Sequence[Tally]) -> dict[str, Any]:
    """Return the counts of live facts, by the names of `Stats`."""
    tiers = _sums(live, lambda one: Tier(one.tier or 0).name.lower())
    kept = _sums(live, lambda one: fidelity.name(one.fidelity or 0))
    durabilities = _sums(live, lambda one: durability(one.branch or 0))
    return {
        "facts": tiers.total(),
        "tiers": _of(tiers, TIERS),
        "fidelity": _of(kept, KEPT),
        "decay_classes": dict(sorted(_sums(live, lambda one: one.decay_class).items())),
        "decay_class_sources": _of(_sums(live, lambda one: one.decay_class_source), SOURCES),
        "pending_embeddings": kept[PENDING],
        "held": sum(one.facts for one in live if one.held),
        "episodes": _of(durabilities, DURABILITIES) | {"stale": sum(one.facts for one in live if one.stale)},
    }


def _of(sums: Counter[str], names: Iterable[str]) -> dict[str, int]:
    """Return the sums of these names, also where they are 0."""
    return {name: sums[name] for name in names}


def _sums(counted: Sequence[Tally], name: Callable[[Tally], str | None]) -> Counter[str]:
    sums = Counter[str]()
    for one in counted:
        sums[name(one) or UNCLASSED] += one.facts
    return sums


def settle_tallies(context: Context, now: datetime) -> int:
    """Add changes to the tallies of all namespaces in batches, and record the time series; return how many changes.

    A change is a row that is deleted in the transaction that adds it, so nothing is lost or counted twice.
    """
    settled = 0
    while True:
        with transaction(context.database_url) as db:
            taken, whose = tallies.settle(db, BATCH)
            if whose is not None:
                tallies.record_tallies(db, whose, now)
                limits.correct_held(db, whose, now)
        settled += taken
        if taken < BATCH:
            return settled


def counts_over_time(context: Context, asked: ShowTimeSeries, now: datetime) -> dict[str, Any]:
    """Return the time series of a namespace's counts over the last days.

    `at` are instants of changes in epoch seconds, the last one `now`; the other lists, for each tier, fidelity, decay
    class and reason, and for due facts, have the same length.
    """
    with context.namespace(asked.namespace) as (db, tenant):
        noted = tallies.tallies_since(db, tenant, now - timedelta(days=asked.days), now)
        counted = tallies.read(db, tenant)
        due, _ = tallies.due(db, tenant, now)
    if tenant:
        noted = [*noted, (now, _named(counted) | {DUE: due})]
    series = [(at.timestamp(), _sums_by_kind(counts)) for at, counts in noted]
    return {
        "at": [at for at, _ in series],
        "tiers": _lists(series, "tier", TIERS),
        "fidelity": _lists(series, "fidelity", fidelity.NAMES),
        "classes": _lists(series, "class", []),
        "forgotten": _lists(series, "forgotten", []),
        "due": [sums[DUE, ""] for _, sums in series],
    }


def thin_time_series(context: Context, now: datetime) -> int:
    """Reduce the resolution of old time series, of namespaces and of the system; return how many rows were deleted."""
    with transaction(context.database_url) as db:
        return tallies.thin_tallies(db, now) + tallies.thin_system(db, now)


def _named(counted: Sequence[tallies.Tally]) -> dict[str, int]:
    """Return tallies by the names used in the time series."""
    sums = Counter[str]()
    for one in counted:
        if one.forgotten_reason is not None:
            sums[f"forgotten {one.forgotten_reason}"] += one.facts
        else:
            for what, code in (("tier", one.tier), ("fidelity", one.fidelity), ("class", one.decay_class or UNCLASSED)):
                sums[f"{what} {code}"] += one.facts
    return sums


def _sums_by_kind(counts: Mapping[str, int]) -> Counter[tuple[str, str]]:
    """Return sums by (kind, name), where all poolings of vectors have one name."""
    sums = Counter[tuple[str, str]]()
    for name, facts in counts.items():
        what, _, code = name.partition(" ")
        if what == "tier":
            code = Tier(int(code)).name.lower()
        elif what == "fidelity":
            code = fidelity.name(int(code))
        elif what == "forgotten":
            code = code.removeprefix(tallies.DEEP)
        sums[what, code] += facts
    return sums


def _lists(
    series: Sequence[tuple[float, Counter[tuple[str, str]]]], what: str, names: Sequence[str]
) -> dict[str, list[int]]:
    """Return a list for each name, the given names first, then others."""
    more = sorted({name for _, sums in series for kind, name in sums if kind == what} - set(names))
    return {name: [sums[what, name] for _, sums in series] for name in [*names, *more]}


OK = "ok"

HEALTH_WAIT_SECONDS = 0.5
"""Timeout for a connection; the reason why there is none takes two seconds more, and the API waits for three."""


def health(context: Context) -> dict[str, str]:
    """Return `ok` or the error, of the database, of its replicas and of the embedder."""
    known = {"database": _database(context), "embedder": _embedder(context)}
    replicas = "; ".join(str(one) for one in _replicas(context) if one.fault) or OK
    return known | ({"replicas": replicas} if context.replicas else {})


def _replicas(context: Context) -> list[Replica]:
    return context.replicas.look() if context.replicas else []


def _database(context: Context) -> str:
    """Check the schema and try a write, on a connection of the pool, as a distant server takes long for a new one."""
    try:
        for _ in context.each_shard():
            with transaction(context.database_url, wait=HEALTH_WAIT_SECONDS) as db:
                schema.check(db)
                server.try_write(db)
    except EbbError as error:
        return str(error)
    return OK


def _embedder(context: Context) -> str:
    """Embed a word in the time of a query: at most once a minute, as it may cost money, and not during a pause.

    What the server says of an error goes to the log alone, as health checks are answered without a key.
    """
    found = pause.state(context.redis)
    if found.seconds:
        return pause.describe(found)
    known = signals.embedder_state(context.redis)
    if known is not None:
        return known
    try:
        context.embedder.embed_queries(["health"])
        said = OK
    except EbbError as error:
        log.warning("the embedder does not embed a word: %s", error)
        said = f"It does not embed a word: {type(error).__name__}. See the log of the workers."
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
        "replicas": {
            one.name: {"seconds": one.seconds, "readable": one.is_read}
            for one in _replicas(context)
            if not one.is_primary
        },
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
            forgotten[reason.removeprefix(tallies.DEEP)] += facts
        elif tier is not None and code is not None:
            tiers[Tier(tier).name.lower()] += facts
            kept[fidelity.name(code)] += facts
    return {"tiers": tiers, "fidelity": kept, "forgotten": dict(forgotten), "held": held}


def record_load(context: Context, now: datetime) -> None:
    """Record the queue lengths and the cumulative histogram of write latencies."""
    with open_redis(context.settings.redis_url) as broker:
        lengths = {queue: length_of(broker, queue) for queue in QUEUES}
    writes, _ = timings.read(context.redis).get(timings.WRITE, ([0] * len(timings.BUCKETS), 0.0))
    with transaction(context.database_url) as db:
        tallies.record_system(db, lengths, writes, now)


def load_over_time(context: Context, asked: ShowSystemTimeSeries, now: datetime) -> dict[str, Any]:
    """Return the time series of queue lengths and write latencies over the last days.

    `at` are instants in epoch seconds; the other lists have the same length: `waiting` for each queue, the maximum of
    five minutes; `half` and `most`, the median and 95th percentile in seconds, None without writes.
    """
    with transaction(context.database_url) as db:
        noted = tallies.system_since(db, now - timedelta(days=asked.days), now)
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
