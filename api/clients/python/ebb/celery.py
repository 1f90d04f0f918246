"""Celery programs: a task of Ebb that is sent by name reaches its queue, and its answer comes back.

>>> app = Celery(broker="redis://localhost:6379/0")
>>> configure(app)
>>> app.send_task("memory.recall", kwargs={"query": "Where is the key?", "namespace": "mira"}).get(timeout=5)
"""

from typing import TYPE_CHECKING, Any

from ebb.broker import celery_configuration
from ebb.contract.operation import find

if TYPE_CHECKING:
    from celery import Celery


def configure(app: "Celery", redis_url: str | None = None) -> None:
    """Route tasks of Ebb to their queues, others as before, and take answers from where Ebb's workers leave them.

    `redis_url` is the address of Ebb's broker, `EBB_REDIS_URL`; without it the app's own broker is Ebb's.

    Raises:
        ValueError: Ebb cannot use a broker at this address.
    """
    routes = app.conf.task_routes or ()
    app.conf.task_routes = (route, *(routes if isinstance(routes, list | tuple) else (routes,)))
    for name, value in celery_configuration(redis_url or app.conf.broker_url).items():
        app.conf[name] = app.conf[name] | value if isinstance(value, dict) else value


def route(name: str, *_: Any, **__: Any) -> dict[str, str] | None:
    """Return the queue of a task of Ebb, nothing for another."""
    operation = find(name)
    return {"queue": operation.queue} if operation is not None else None
