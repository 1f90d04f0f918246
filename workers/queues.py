"""The queues and their routing. Users wait for tasks in `recall`, so other work uses other queues."""

from typing import Any

from ebb.broker import celery_configuration
from ebb.contract.operation import find
from kombu.entity import Exchange, Queue
from redis import Redis

from workers.coordination.shares import CLASSES

QUEUES = RECALL, STORE, MAINTENANCE = "recall", "store", "maintenance"
VISIBILITY_SECONDS = 120
CHORD_SECONDS = 3_600
"""How long a chord waits for its next part, which may be a long task of another program.

The answers of its parts so far are kept as long, also those that quote facts erased since; a scrub drops them.
"""

FIRST, FURTHER = CLASSES[:2]
"""Priorities in `maintenance`: of what beat sends and of dry runs, which a person waits for; and of other work, which
may be hours of it."""

SEPARATOR = "\x06\x16"
"""What Celery on Redis puts between a queue's name and a priority."""

SENT_AT = "ebb_sent_at"
"""Header with the time at which a task was sent, in epoch seconds."""

UNACKED = "ebb:unacked"
"""Hash of the messages that Ebb's workers hold.

The key is Ebb's own. Under kombu's, workers of other programs on the same Redis would redeliver these messages after
another time, and Ebb's workers would redeliver theirs.
"""

LSN = "ebb_lsn"
"""The header, and the field of a write's answer, that says up to where a replica must have replayed to show it."""

INTERNAL: dict[str, str] = (
    dict.fromkeys(("memory.publish_keys", "memory.add_key", "memory.change_key", "memory.health"), RECALL)
    | dict.fromkeys(("memory.slice", "memory.touch", "memory.record_touches", "memory.regenerate"), STORE)
    | dict.fromkeys((
        "memory.measure", "memory.autolink", "memory.extract", "memory.embed_pending", "memory.prune_by_llm",
        "memory.lexemes", "memory.notify_endings", "memory.analyze", "memory.settle_tallies",
        "memory.thin_course", "memory.consolidate_all", "memory.ann", "memory.rebuild_indexes", "memory.clean",
        "memory.read_folders", "memory.read_folder", "memory.sweep_outbox", "decay.apply",
    ), MAINTENANCE)
)  # fmt: skip
"""Queues of tasks that are not operations of the contract."""

# Bodies are encoded, so the pattern only matches headers; searching in Redis avoids transferring large messages.
OLDEST = """
    local oldest = false
    for _, key in ipairs(KEYS) do
        local at = string.match(redis.call('lindex', key, -1) or '', '"ebb_sent_at": ?([%d.]+)')
        if at and (not oldest or tonumber(at) < tonumber(oldest)) then oldest = at end
    end
    return oldest
"""


def queues() -> tuple[Queue, ...]:
    """Return the three queues, each with its own routing key: with the default key every message reaches all."""
    exchange = Exchange("ebb", type="direct")
    return tuple(Queue(name, exchange, routing_key=name) for name in QUEUES)


def length_of(broker: Redis, queue: str) -> int:
    """Return the number of tasks in a queue."""
    with broker.pipeline(transaction=False) as pipeline:
        for key in lists_of(queue):
            pipeline.llen(key)
        return sum(pipeline.execute())


def age_of(broker: Redis, queue: str, now: float) -> float:
    """Return the age of the oldest message with a sending time in a queue, in seconds; 0 if there is none."""
    lists = lists_of(queue)
    found: bytes | str | None = broker.eval(OLDEST, len(lists), *lists)
    return max(0.0, now - float(found)) if found else 0.0


def lists_of(queue: str) -> list[str]:
    """Return the Redis lists of a queue, one per priority."""
    return [f"{queue}{SEPARATOR}{priority}" if priority else queue for priority in CLASSES]


def route(name: str, *_: Any, **__: Any) -> dict[str, Any]:
    """Return the queue of a task: that of its operation, or else of internal tasks; and a priority for maintenance.

    Senders do not declare queues: workers do, and messages wait without. If Redis fails during a declaration, Celery
    continues with a closed channel and raises an `AttributeError`.
    """
    operation = None if name in INTERNAL else find(name)
    queue = operation.queue if operation is not None else INTERNAL.get(name, STORE)
    priority = {"priority": FURTHER} if queue == MAINTENANCE else {}
    return {"queue": queue, "routing_key": queue, "declare": (), **priority}


def configuration(redis_url: str) -> dict[str, Any]:
    """Return the configuration shared by workers and clients: servers, queues, JSON only."""
    transport = {
        "visibility_timeout": VISIBILITY_SECONDS,
        "unacked_key": UNACKED,
        "unacked_index_key": f"{UNACKED}_index",
        "unacked_mutex_key": f"{UNACKED}_mutex",
        "unacked_restore_interval": 1,
        "unacked_restore_throttle": 1,
        "unacked_mutex_expire": 10,
        "socket_timeout": 10,
        "socket_connect_timeout": 5,
        "health_check_interval": 10,
        "priority_steps": list(CLASSES),
    }
    servers = celery_configuration(redis_url)
    return servers | {
        "broker_transport_options": transport | servers["broker_transport_options"],
        "result_backend_transport_options": transport | servers["result_backend_transport_options"],
        # Celery's own two minutes for an answer about a result hold a worker while a server hangs, or its host is lost
        "redis_socket_timeout": 10.0,
        "redis_socket_connect_timeout": 5.0,
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
        "result_chord_expires": CHORD_SECONDS,
        "task_track_started": False,
        "task_send_sent_event": False,
        "timezone": "UTC",
    }
