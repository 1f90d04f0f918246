"""Tasks of maintenance: missing vectors, word counts, indexes, the purge, and the doctor."""

import logging
import time
from collections import Counter
from datetime import datetime
from typing import Any

from celery import Task
from ebb.contract import admin, decay
from ebb.contract.operation import Params, Scoped
from ebb.contract.values import Count, Flag, Name

from workers.admin import doctor, search_indexes, shard_moves
from workers.admin import purge as purging
from workers.admin import stats as counting
from workers.celery import settings
from workers.coordination import redis, signals
from workers.decay import forget_limit, passes
from workers.errors import EmbeddingError, InvalidInputError
from workers.memory import embed, estimate
from workers.memory import touch as touching
from workers.tasks.answers import shown
from workers.tasks.decay import answered, hand_over
from workers.tasks.graph import autolink
from workers.tasks.operation import Place, Upkeep, going_on, internal, plain, shards_of, task_of, walk
from workers.tasks.task import HOURS, WORK_SECONDS, OnceTask, context, instant, write_instant

log = logging.getLogger(__name__)


class EmbedPart(Params):
    """A batch of facts without a vector, from the first or after a position."""

    after: Place | None = None
    shard: Count = 0


class PurgePart(decay.Purge):
    """A purge, possibly sent by beat; then a successor continues with the rest."""

    scheduled: Flag = False


class ExaminePart(admin.Examine):
    """An examination, or the rest of one."""

    after: Place | None = None
    shard: Count = 0
    so_far: admin.Examined | None = None
    asked_by: Name | None = None


@internal("memory.embed_pending", EmbedPart, ignore_result=True)
def embed_pending(self: Task, asked: EmbedPart) -> None:
    """Embed facts without a vector, one task at a time; then link facts that waited for their vectors."""
    with signals.try_lock(context.redis, "embed_pending", WORK_SECONDS * 2, task_id=self.request.id) as alone:
        if not alone:
            return
        rest = _embed_all(asked)
    if rest is not None:
        embed_pending.apply_async(kwargs=going_on(rest))
    _link()


def _embed_all(asked: EmbedPart) -> tuple[int, embed.Position] | None:
    """Embed facts to the end or for 30 seconds; return the position to continue from, if any."""

    def step(place: embed.Position) -> embed.Position | None:
        return embed.embed_pending(context, place, context.now())

    try:
        return walk(asked, step, time.monotonic() + WORK_SECONDS, everywhere=True, start=embed.START, own=True)
    except EmbeddingError as error:
        log.warning("facts still wait for their vectors: %s", error)
        return None


def _link() -> None:
    """Send the linking of facts that had no vector when they were stored and have one now."""
    for name, ids in signals.unlinked(context.redis).items():
        waiting = embed.waiting_among(context, name, ids)
        ready = [id_ for id_ in ids if id_ not in waiting]
        if ready:
            arguments = {"ids": [str(id_) for id_ in ready], "namespace": name, "now": context.now().isoformat()}
            autolink.apply_async(kwargs=arguments)
            signals.drop_unlinked(context.redis, name, ready)


@internal("memory.lexemes", Params, ignore_result=True, **HOURS)
def lexemes(__: Task, ___: Params) -> None:
    """Count the words of namespaces that grew, and estimate the salience of facts that need it.

    If Redis lost which ones grew, the words of all are counted. A task of its own analyzes a namespace that the planner
    does not know. Facts without salience are estimated, and then those of namespaces that have grown tenfold. What is
    not begun within 30 seconds is left to the next minute, so that other maintenance is not kept waiting.
    """
    began = time.monotonic()
    search_indexes.find_grown(context)
    for name in search_indexes.count_grown(context, context.now(), until=began + WORK_SECONDS / 2):
        analyze_new(name)
    until = began + WORK_SECONDS
    for _ in context.each_shard(own=True):
        while time.monotonic() < until and estimate.fill(context):
            pass
        estimate.estimate_grown(context, context.now(), until)


@internal("memory.analyze", Scoped, ignore_result=True, **HOURS)
def analyze(_: Task, asked: Scoped) -> None:
    """Have PostgreSQL's planner know a namespace that has many facts. Idempotent."""
    search_indexes.refresh_statistics(context, asked.namespace)


def analyze_new(namespace: str) -> None:
    """Send `memory.analyze`, at most once a minute, if the planner does not know a namespace that has many facts."""
    if search_indexes.statistics_lack(context, namespace) and signals.may_analyze(context.redis, namespace):
        analyze.apply_async(kwargs={"namespace": namespace})


@internal("memory.settle_tallies", Params, ignore_result=True)
def settle_tallies(__: Task, ___: Params) -> None:
    """Add changes to the tallies, and record tallies and queue lengths for the time series."""
    now = context.now()
    for _ in context.each_shard(own=True):
        counting.settle_tallies(context, now)
    if context.settings.group == 0:  # counters of several Redis would not make one series
        counting.record_load(context, now)


@internal("memory.thin_course", Upkeep)
def thin_time_series(self: Task, asked: Upkeep) -> dict[str, Any]:
    """Reduce the resolution of old time series. Idempotent."""
    at = write_instant(self, asked.now)
    return {"removed": sum(counting.thin_time_series(context, at) for _ in context.each_shard(own=True))}


@internal("memory.ann", Params, ignore_result=True, **HOURS)
def ann(__: Task, ___: Params) -> None:
    """Build the vector indexes of large namespaces; a concurrent delivery does nothing."""
    for _ in context.each_shard(own=True):
        search_indexes.index_large_namespaces(context)


@internal("memory.rebuild_indexes", Params, **HOURS)
def rebuild_indexes(__: Task, ___: Params) -> dict[str, Any]:
    """Rebuild bloated indexes; return their names. A concurrent delivery does nothing."""
    shards = context.each_shard(own=True)
    return {"rebuilt": [name for _ in shards for name in search_indexes.rebuild_bloated_indexes(context)]}


@internal("memory.clean", Params, ignore_result=True, **HOURS)
def clean(__: Task, ___: Params) -> None:
    """Vacuum erased facts out of pages and indexes, one task at a time on a shard, and delete old ids of uses."""
    for _ in context.each_shard(own=True):
        touching.drop_old_uses(context)
        purging.clean(context, context.now())
    if settings.shards > 1:
        shard_moves.finish(context)


@task_of(decay.PURGE, PurgePart)
def purge(self: Task, asked: PurgePart) -> dict[str, Any]:
    """Erase facts whose retention is over, for up to 30 seconds; return how many are left.

    A successor continues a scheduled purge; other callers repeat the request.
    """
    at, until = instant(self, asked, writes=not asked.dry_run), time.monotonic() + WORK_SECONDS
    if not asked.scheduled:
        return _purge(self, asked, at)
    for _ in shards_of(asked):
        forget_limit.check_for_gap(context, everywhere=False)
    with signals.try_lock(context.redis, "purge", WORK_SECONDS * 2, task_id=self.request.id) as alone:
        done = _purge(self, asked, at, in_gaps=False) if alone else {"skipped": "another purge is at work"}
    sunk = int(done.get("sunk", 0))
    if (done.get("purged") and done["left"]) or sunk >= purging.BATCH or (sunk and time.monotonic() >= until):
        scope = {"namespace": asked.namespace, "everywhere": asked.everywhere}
        purge.apply_async(kwargs=scope | {"scheduled": True})
    return done


def _purge(task: Task, asked: PurgePart, at: datetime, *, in_gaps: bool = True) -> dict[str, Any]:
    """Purge for up to 30 seconds; return the counts, with those of a delivery that was broken off."""
    until, task_id = time.monotonic() + WORK_SECONDS, task.request.id or ""
    done = Counter({} if asked.dry_run else signals.progress(context.redis, task_id))
    for _ in () if asked.dry_run else shards_of(asked):
        if asked.everywhere:
            passes.drop_old_runs(context)
        done += purging.purge(context, at, asked.scope, task_id, until, in_gaps=in_gaps)
    given = context.settings
    return {
        "purged": done["purged"],
        "left": sum(purging.waiting(context, at, asked.scope) for _ in shards_of(asked)),
        "forgotten_before": shown(purging.days_before(at, given.retention_days)),
        "superseded_before": None if given.history_days is None else shown(purging.days_before(at, given.history_days)),
        "ended_before": None if given.deep_days is None else shown(purging.days_before(at, given.deep_days)),
        "sunk": done["sunk"],
    }


@task_of(admin.DOCTOR, ExaminePart, base=OnceTask)
def examine(self: Task, asked: ExaminePart) -> dict[str, Any]:
    """Examine facts; return their faults and the condition of Redis; the last successor answers."""
    until = time.monotonic() + WORK_SECONDS
    at = instant(self, asked, writes=asked.mend)
    examined, faults = (asked.so_far.examined, asked.so_far.faults) if asked.so_far else (0, [])
    found = admin.Examined(examined=examined, faults=faults, mended=asked.mend)
    if unknown := [one.fault for one in faults if one.fault not in doctor.FAULTS]:
        raise InvalidInputError(f"so_far: {unknown[0]!r} is no fault; known are {', '.join(doctor.FAULTS)}.")

    def step(place: embed.Position) -> embed.Position | None:
        nonlocal found
        rest, found = doctor.examine(context, asked.scope, place, at, found)
        return rest

    rest = walk(asked, step, until, everywhere=asked.everywhere, start=embed.START)
    answer = plain(found)
    if rest is not None:
        going = going_on(rest) | {"so_far": answer, "now": at.isoformat()}
        hand_over(self, asked, going, f"{found.examined} facts so far")
    if asked.mend and any(one.fault in doctor.LACKING for one in found.faults):
        embed_pending.apply_async()
    return answered(asked, answer | {"redis": redis.condition(context.redis).answer()})
