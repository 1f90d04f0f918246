"""The queues: which tasks wait in which. Users wait for `recall`, so nothing else is in it."""

from typing import Any

from ebb.broker import celery_configuration
from ebb.contract.operation import find
from kombu.entity import Exchange, Queue
from redis import Redis

from workers.coordination.shares import CLASSES

RECALL, STORE, MAINTENANCE = "recall", "store", "maintenance"
VISIBILITY_SECONDS = 120
SEPARATOR = "\x06\x16"
"""What Celery on Redis puts between a queue's name and a priority."""

SENT_AT = "ebb_sent_at"
"""The header that says when a task was sent, in epoch seconds."""

INTERNAL = {
    "memory.publish_keys": RECALL,
    "memory.health": RECALL,
    "memory.measure": MAINTENANCE,
    "memory.autolink": MAINTENANCE,
    "memory.extract": MAINTENANCE,
    "memory.embed_pending": MAINTENANCE,
    "memory.prune_by_llm": MAINTENANCE,
    "memory.lexemes": MAINTENANCE,
    "memory.notify_endings": MAINTENANCE,
    "memory.estimate_again": MAINTENANCE,
    "memory.settle_tallies": MAINTENANCE,
    "memory.thin_course": MAINTENANCE,
    "memory.consolidate_all": MAINTENANCE,
    "memory.ann": MAINTENANCE,
    "memory.rebuild_indexes": MAINTENANCE,
    "memory.clean": MAINTENANCE,
    "memory.sweep_outbox": MAINTENANCE,
    "memory.slice": STORE,
    "memory.touch": STORE,
    "memory.regenerate": STORE,
    "decay.apply": MAINTENANCE,
}
"""Tasks that are no operations of the contract."""


# The text of a message is coded, so its headers are what matches; a large message does not leave Redis.
OLDEST = """
    local oldest = false
    for _, key in ipairs(KEYS) do
        local at = string.match(redis.call('lindex', key, -1) or '', '"ebb_sent_at": ?([%d.]+)')
        if at and (not oldest or tonumber(at) < tonumber(oldest)) then oldest = at end
    end
    return oldest
"""


def queues() -> tuple[Queue, ...]:
    """Return the three queues, each with a key of its own: with the default key every message reaches them all."""
    exchange = Exchange("ebb", type="direct")
    return tuple(Queue(name, exchange, routing_key=name) for name in (RECALL, STORE, MAINTENANCE))


def length_of(broker: Redis, queue: str) -> int:
    """Return how many tasks wait in a queue."""
    with broker.pipeline(transaction=False) as pipeline:
        for key in _lists(queue):
            pipeline.llen(key)
        return sum(pipeline.execute())


def age_of(broker: Redis, queue: str, now: float) -> float:
    """Return for how many seconds the first of the tasks of callers has waited in a queue, 0 if none waits."""
    lists = _lists(queue)
    found: bytes | str | None = broker.eval(OLDEST, len(lists), *lists)
    return max(0.0, now - float(found)) if found else 0.0


def _lists(queue: str) -> list[str]:
    """Return the lists of a queue, one for each priority."""
    return [f"{queue}{SEPARATOR}{priority}" if priority else queue for priority in CLASSES]


def route(name: str, *_: Any, **__: Any) -> dict[str, Any]:
    """Return where a task goes: to the queue of its operation, or else to that of internal tasks.

    No sender declares a queue: workers do, a message waits for them without, and where Redis is away for a moment just
    then, Celery goes on with the channel that it closed meanwhile, and fails with an `AttributeError`.
    """
    operation = None if name in INTERNAL else find(name)
    queue = operation.queue if operation is not None else INTERNAL.get(name, STORE)
    return {"queue": queue, "routing_key": queue, "declare": ()}


def configuration(redis_url: str) -> dict[str, Any]:
    """Return what every Celery process of Ebb shares, workers and clients: the servers, the queues, JSON only."""
    transport = {
        "visibility_timeout": VISIBILITY_SECONDS,
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
        "unacked_mutex_expire": 10,
        "socket_timeout": 10,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        "health_check_interval": 10,
        "priority_steps": list(CLASSES),
    }
    servers = celery_configuration(redis_url)
    return servers | {
        "broker_transport_options": transport | servers["broker_transport_options"],
        "result_backend_transport_options": transport | servers["result_backend_transport_options"],
        "broker_connection_retry_on_startup": True,
        "broker_connection_max_retries": None,
        "task_queues": queues(),
        "task_routes": (route,),
        "task_default_queue": STORE,
        "task_default_exchange": "ebb",
        "task_default_routing_key": STORE,
        "task_create_missing_queues": False,
        "task_serializer": "json",
        "result_serializer": "json",
        "accept_content": ["json"],
        "result_expires": 300,
        "task_track_started": False,
        "task_send_sent_event": False,
        "timezone": "UTC",
    }
