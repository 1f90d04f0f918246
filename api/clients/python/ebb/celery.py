"""Celery programs: a task of Ebb that is sent by name reaches its queue, and its answer comes back.

>>> app = Celery(broker="redis://localhost:6379/0")
>>> configure(app)
>>> app.send_task("memory.recall", kwargs={"query": "Where is the key?", "namespace": "mira"}).get(timeout=5)
"""

from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

from ebb.contract.operation import find

if TYPE_CHECKING:
    from celery import Celery

RESULTS_AFTER = 1


def configure(app: "Celery") -> None:
    """Route tasks of Ebb to their queues, others as before, and take answers from where Ebb's workers leave them."""
    routes = app.conf.task_routes or ()
    app.conf.task_routes = (route, *(routes if isinstance(routes, list | tuple) else (routes,)))
    app.conf.result_backend = results_url(app.conf.broker_url)


def route(name: str, *_: Any, **__: Any) -> dict[str, str] | None:
    """Return the queue of a task of Ebb, nothing for another."""
    operation = find(name)
    return {"queue": operation.queue} if operation is not None else None


def results_url(redis_url: str) -> str:
    """Return the address of the results: the database behind that of the messages."""
    return database_after(redis_url, RESULTS_AFTER)


def database_after(redis_url: str, distance: int) -> str:
    """Return the address of another database of the same Redis."""
    parts = urlsplit(redis_url)
    number = parts.path.strip("/")
    return urlunsplit(parts._replace(path=f"/{(int(number) if number else 0) + distance}"))
