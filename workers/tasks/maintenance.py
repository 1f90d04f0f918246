"""The tasks by which the system looks after itself: missing vectors, counts of words, indexes, a review by an LLM."""

import logging
import time
from collections.abc import Callable
from typing import Any

from celery import Task

from workers import validation
from workers.admin import search_indexes
from workers.admin import stats as counting
from workers.admin import stats as coursing
from workers.admin import system as queueing
from workers.celery import app
from workers.coordination import signals
from workers.decay import review as reviewing
from workers.errors import EmbeddingError
from workers.memory import embed
from workers.tasks.graph import autolink
from workers.tasks.once import OnceTask
from workers.tasks.task import WORK_SECONDS, EbbTask, context, uuid_of, write_instant
from workers.validation import successors

REVIEW_SECONDS = 20.0
"""How long a task that asks an LLM goes on, whose last answer may take as long again."""

log = logging.getLogger(__name__)


@app.task(base=EbbTask, name="memory.embed_pending", ignore_result=True)
def embed_pending(after: Any = None) -> None:
    """Embed facts that still have no vector, batch by batch, one task at a time; then link what waited for that."""
    place = successors.fact_place(after, embed.START)
    with signals.only_one(context.redis, "embed_pending", WORK_SECONDS * 2) as alone:
        if not alone:
            return
        rest = _walk(lambda at: embed.embed_pending(context, at, context.now()), place)
    if rest is not None:
        embed_pending.apply_async(kwargs={"after": [rest[0], str(rest[1])]})
    _link()


def _link() -> None:
    """Have facts linked that had no vector when they were stored, and have one now."""
    for name, ids in signals.noted(context.redis).items():
        waiting = embed.waiting_among(context, name, ids)
        ready = [id_ for id_ in ids if id_ not in waiting]
        if ready:
            arguments = {"ids": [str(id_) for id_ in ready], "namespace": name, "now": context.now().isoformat()}
            autolink.apply_async(kwargs=arguments)
            signals.drop(context.redis, name, ready)


@app.task(base=OnceTask, bind=True, name="memory.prune_by_llm")
def prune_by_llm(
    self: Task, namespace: Any = "default", now: Any = None, run: Any = None, after: Any = None
) -> dict[str, Any]:
    """Have an LLM look for needless facts, if that is wanted; a task that follows goes on from there."""
    task_id, name = self.request.id or "", validation.namespace_name(namespace)
    at = write_instant(self, now)
    own_run = uuid_of(task_id) if run is None else validation.fact_id(run)
    place = None if after is None else validation.fact_id(after)
    done = reviewing.review(context, name, own_run, at, place, time.monotonic() + REVIEW_SECONDS)
    if done.rest is not None:
        rest = {"namespace": name, "now": at.isoformat(), "run": str(own_run), "after": str(done.rest)}
        prune_by_llm.apply_async(kwargs=rest)
    return {"reviewed": done.reviewed, "forgotten": done.forgotten, "goes_on": done.rest is not None}


@app.task(base=EbbTask, name="memory.lexemes", ignore_result=True)
def lexemes() -> None:
    """Count the words of namespaces that grew."""
    search_indexes.count_grown(context, context.now())


@app.task(base=EbbTask, name="memory.settle_tallies", ignore_result=True)
def settle_tallies() -> None:
    """Add what changed in the namespaces to their totals; a second delivery meanwhile leaves it to the first.

    How these are then, and how the queues are, is noted, so that their course can be told.
    """
    now = context.now()
    counting.settle(context, now)
    queueing.note(context, now)


@app.task(base=EbbTask, bind=True, name="memory.thin_course")
def thin_course(self: Task, now: Any = None) -> dict[str, Any]:
    """Let most of what namespaces held long ago go; once is as good as twice."""
    return {"removed": coursing.thin(context, write_instant(self, now))}


@app.task(base=EbbTask, name="memory.ann", ignore_result=True, soft_time_limit=7_000, time_limit=7_200)
def ann() -> None:
    """Give large namespaces a vector index of their own; a second delivery meanwhile finds it being built."""
    search_indexes.index_large_namespaces(context)


@app.task(base=EbbTask, name="memory.rebuild_indexes", soft_time_limit=7_000, time_limit=7_200)
def rebuild_indexes() -> dict[str, Any]:
    """Build bloated indexes anew; return which. A second delivery meanwhile finds it being done."""
    return {"rebuilt": search_indexes.rebuild_bloated_indexes(context)}


def _walk(step: Callable[[embed.Position], embed.Position | None], place: embed.Position) -> embed.Position | None:
    """Go on step by step until the end or for 30 seconds; return where to go on, if anywhere."""
    until = time.monotonic() + WORK_SECONDS
    at: embed.Position | None = place
    try:
        while at is not None and time.monotonic() < until:
            at = step(at)
    except EmbeddingError as error:
        log.warning("facts still wait for their vectors: %s", error)
        return None
    return at
