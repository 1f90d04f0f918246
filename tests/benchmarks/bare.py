"""A plain Celery app with Ebb's reliability settings: the minimum cost of an empty task."""

import os

from celery import Celery
from ebb.broker import database_after
from kombu.entity import Exchange, Queue

from workers.queues import configuration

BARE_AFTER = 3
"""Its messages stand apart from Ebb's three databases, its results in the next one."""

QUEUE = "bare"
VARIABLE = "BENCH_BARE_REDIS_URL"
SAFETY = {
    "task_acks_late": True,
    "task_reject_on_worker_lost": True,
    "task_retry_on_worker_lost": True,
    "task_acks_on_failure": True,
    "task_acks_on_timeout": True,
    "task_soft_time_limit": 45,
    "task_time_limit": 60,
    "worker_prefetch_multiplier": 1,
    "worker_cancel_long_running_tasks_on_connection_loss": False,
    "worker_max_memory_per_child": 400_000,
    "worker_send_task_events": True,
    "worker_hijack_root_logger": False,
    "result_backend_always_retry": True,
    "result_backend_max_retries": 200,
}


def bare_app(redis_url: str) -> Celery:
    """Return the app; its queue has no priorities, and its tasks have no routes of Ebb."""
    app = Celery("bare", set_as_current=False)
    own = configuration(database_after(redis_url, BARE_AFTER)) | SAFETY
    own["broker_transport_options"] = {
        name: value for name, value in own["broker_transport_options"].items() if name != "priority_steps"
    }
    queue = Queue(QUEUE, Exchange(QUEUE, type="direct"), routing_key=QUEUE)
    app.conf.update(own | {"task_queues": (queue,), "task_default_queue": QUEUE, "task_routes": ()})
    return app


if VARIABLE in os.environ:  # as Celery's own command imports it
    app = bare_app(os.environ[VARIABLE])
