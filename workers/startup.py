"""Signal handlers of a worker: checks before it takes work, heartbeats, and cleanup."""

import gc
import logging
import time
from contextlib import ExitStack, suppress
from typing import Any

from celery.signals import (
    heartbeat_sent,
    task_postrun,
    task_prerun,
    worker_init,
    worker_process_init,
    worker_process_shutdown,
    worker_ready,
)
from celery.worker import state
from redis import Redis
from redis.exceptions import RedisError

from workers import tracing
from workers.admin.search_indexes import check_language
from workers.celery import app
from workers.coordination import bulk, outbox, signals, timings
from workers.coordination.redis import RefusedError, explain
from workers.decay import forget_limit
from workers.errors import EbbError, EmbeddingError, SettingsError, UnavailableError
from workers.memory.embed import check_embedder
from workers.queues import MAINTENANCE, RECALL, STORE
from workers.settings import differences
from workers.storage import replicas, schema
from workers.storage.connection import close_pools, transaction
from workers.tasks.bulk import send_slices
from workers.tasks.decay import prune
from workers.tasks.recall import send_touches
from workers.tasks.task import context

log = logging.getLogger(__name__)

HEARTBEAT_SECONDS = 2.0

CARRIED = ("traceparent", "tracestate", "baggage")
"""Message headers with the parent span of the task."""

own: dict[str, Any] = {"children": 1, "measured": float("-inf"), "database": "", "settings": {}}
"""State of this worker's main process."""


@worker_init.connect
def check_worker(**__: Any) -> None:
    """Refuse to start if the database has another version, language or embedder than configured.

    An unreachable embedder is no reason to refuse: facts are stored and get their vectors later.
    """
    try:
        schema.verify_at(context.database_url, context.settings.shards)
        with suppress(UnavailableError):  # what needs this address will say so
            schema.verify_direct(context.database_url, context.direct_database_url)
        if context.replicas:
            replicas.verify(context.replicas)
        _refuse_other_databases()
        if context.settings.asks_llm:
            _ = context.chat  # refuses unusable settings; the LLM is not called yet
        if context.settings.rerank_url:
            _ = context.reranker  # likewise
        for _ in context.each_shard():
            check_language(context)
            with transaction(context.database_url) as db:  # readers apply the limits before the first pass
                forget_limit.publish(context, db)
        own["settings"] = context.settings.shared
        for _ in context.each_shard():
            check_embedder(context)
        own["settings"] |= {"the embedder": context.embedder.name}
    except EmbeddingError as error:
        log.warning("started without embedder; facts wait for their vectors: %s", error)
    except EbbError as error:
        raise SystemExit(f"ebb: {error}") from None
    finally:
        context.close()


def _refuse_other_databases() -> None:
    """Refuse to start while workers of another database take tasks from the same Redis.

    Each write would be stored in one of the databases by chance, and be missing in the other. A worker that has ended
    sends no further heartbeat.

    Raises:
        SettingsError: a worker of another database has sent a heartbeat meanwhile.
        RefusedError: Redis lacks a database or a right that Ebb needs.
    """
    with transaction(context.database_url) as db:
        own["database"] = schema.identity(db)
    try:
        known = others = _other_databases()
        while others and not (renewed := [name for name, at in others.items() if at > known.get(name, 0.0)]):
            time.sleep(HEARTBEAT_SECONDS)
            others = _other_databases()
    except RefusedError:
        raise
    except RedisError as error:  # Celery waits until it answers
        log.warning("whether other workers use the same database is not known: %s", explain(error))
        return
    if others:
        raise SettingsError(
            f"This worker uses the database {own['database']}, and others at the same Redis use {renewed[0]}: each "
            "would store a part of what is sent. Correct EBB_DATABASE_URL, or give each system a Redis of its own "
            "with EBB_REDIS_URL."
        )


def _other_databases() -> dict[str, float]:
    found = signals.databases_of_workers(context.redis, context.seconds())
    return {name: at for name, at in found.items() if name != own["database"]}


@worker_init.connect
def share_with_children(**_: Any) -> None:
    """Exclude everything loaded so far from garbage collection, so that children share its memory.

    A collection writes to each object that it visits, which copies its page: some 45 MiB per child.
    """
    gc.collect()
    gc.freeze()


@worker_ready.connect
def publish_bounds(**_: Any) -> None:
    """Publish the operator's limits to all senders; a full Redis keeps the previous ones."""
    given = context.settings
    bounds = outbox.Bounds(given.max_outbox_writes, given.max_outbox_bytes, given.max_requests)
    with suppress(RefusedError):
        outbox.publish_bounds(context.redis, bounds)


@worker_ready.connect
def warn_of_other_settings(sender: Any, **_: Any) -> None:
    """Log which settings differ from those of running workers: facts are stored and fade by those of any worker."""
    with suppress(RedisError):
        given = signals.settings_of_workers(context.redis, context.seconds())
        if found := differences(given | {sender.hostname: own["settings"]}):
            log.warning("workers have different settings until all are restarted with the same: %s", "; ".join(found))


@worker_ready.connect
def note_children(sender: Any, **_: Any) -> None:
    """Record the number of this worker's children for the bulk lane."""
    own["children"] = int(sender.controller.concurrency or 1)
    _offer_slots(context.redis, sender.hostname, context.seconds())
    _use_slots()


@worker_ready.connect
def prune_at_start(**_: Any) -> None:
    """Forget what expired while the system was off, if this worker serves the maintenance queue."""
    if MAINTENANCE in prune.app.amqp.queues.consume_from:
        prune.apply_async(kwargs={"soft": False, "startup": True, "everywhere": True})


@heartbeat_sent.connect
def send_heartbeat(sender: Any, **_: Any) -> None:
    """Record a heartbeat of this worker, for readiness checks; its last one lets a worker of another database start.

    In one trip to Redis, as the process takes no messages meanwhile.
    """
    node = sender.eventer.hostname
    try:
        if _is_ending():
            signals.end_heartbeats(context.redis, node, own["database"])
            return
        now = context.seconds()
        with context.redis.pipeline(transaction=False) as pipeline:
            signals.note_heartbeat(pipeline, node, app.amqp.queues.consume_from, now, own["database"])
            signals.note_settings(pipeline, node, own["settings"])
            _offer_slots(pipeline, node, now)
            pipeline.execute()
        _use_slots()
        _note_usage(node)
    except RefusedError as error:
        log.warning("%s", error)


def _is_ending() -> bool:
    """Return whether the worker takes no more tasks."""
    exit_codes = state.should_stop, state.should_terminate
    return any(code is not None and code is not False for code in exit_codes)


def _note_usage(node: str) -> None:
    now = context.seconds()
    if now - own["measured"] >= timings.NOTED_SECONDS:
        own["measured"] = now
        publish_bounds()  # again, as Redis may have been emptied or replaced
        timings.note_usage(context.redis, node, timings.measure_usage(now))


def _offer_slots(redis: Redis, node: str, now: float) -> None:
    """Offer children to the bulk lane, but one for interactive work."""
    queues = app.amqp.queues.consume_from
    if STORE in queues:
        bulk.note_slots(redis, node, int(own["children"]), int(RECALL in queues), now)


def _use_slots() -> None:
    """Send slices and touches that wait."""
    if STORE in app.amqp.queues.consume_from:
        send_slices()
        send_touches()


@worker_process_init.connect
def trace_tasks(**_: Any) -> None:
    """Start tracing the tasks of a worker's child, if configured."""
    if tracing.start("ebb-worker"):
        task_prerun.connect(begin_span)
        task_postrun.connect(end_span)


def begin_span(task: Any, **_: Any) -> None:
    """Start a task's span, below the parent in its message."""
    request = task.request
    named = {name: request.get(name) for name in CARRIED if isinstance(request.get(name), str)}
    about = {
        "messaging.system": "celery",
        "messaging.operation.type": "process",
        "messaging.message.id": request.id,
        "messaging.destination.name": (request.delivery_info or {}).get("routing_key"),
        "ebb.namespace": (request.kwargs or {}).get("namespace"),
    }
    request.span = ExitStack()
    request.span.enter_context(tracing.span(task.name, "CONSUMER", about, named))


def end_span(task: Any, retval: Any, **_: Any) -> None:
    """End a task's span, with the task's error if it raised one."""
    span = task.request.get("span")
    if span is not None:
        error = retval if isinstance(retval, BaseException) else None
        span.__exit__(type(error) if error else None, error, None)


@worker_process_shutdown.connect
def close_connections(**_: Any) -> None:
    """Close the connections of a worker's child."""
    close_pools()
    tracing.stop()
