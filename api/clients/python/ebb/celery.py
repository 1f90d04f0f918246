"""Celery programs: send tasks of Ebb by name.

>>> app = Celery(broker="redis://localhost:6379/0")
>>> configure(app)
>>> app.send_task("memory.recall", kwargs={"query": "Where is the key?", "namespace": "mira"}).get(timeout=5)
"""

import os
from typing import TYPE_CHECKING, Any

import ebb.errors  # noqa: F401 - Celery finds the classes of errors only in modules that are loaded
from ebb.broker import celery_configuration, is_same
from ebb.contract.operation import find

if TYPE_CHECKING:
    from celery import Celery

JSON = "json"
PRIORITIES, SEPARATOR = {0, 3, 6, 9}, "\x06\x16"
"""The priorities whose lists Ebb's workers read, and the separator in the names of these lists: Celery's defaults."""

PATIENCE = {"socket_timeout": 10, "socket_connect_timeout": 5}
"""Celery's own wait for the broker has no end while its host is lost or hangs."""

OF_RESULTS = {"redis_socket_timeout": (120.0, 10.0), "redis_socket_connect_timeout": (None, 5.0)}
"""Celery's own waits for the server of results, to which a send subscribes first, and those that take their place."""

VARIABLES = {
    "CELERY_BROKER_URL": "broker_url",
    "CELERY_BROKER_READ_URL": "broker_url",
    "CELERY_BROKER_WRITE_URL": "broker_url",
    "CELERY_RESULT_BACKEND": "result_backend",
}
"""Variables of the environment that Celery prefers to the settings of an app."""


def configure(app: "Celery", redis_url: str | None = None) -> None:
    """Configure an app so that tasks of Ebb are routed to their queues and their results are found.

    `redis_url` is Ebb's broker, `EBB_REDIS_URL`; by default the app's own. The app's broker and result backend become
    those of Ebb, also for its own tasks: if it has others, make a second app for Ebb.

    Raises:
        ValueError: the URL is not supported, or the app has none, a prefix for its keys, other lists for its
            priorities, or results that are not JSON; or the environment names other servers for every app.
    """
    address = redis_url or app.conf.broker_url
    if address is None or isinstance(address, list | tuple):
        raise ValueError("The app has no broker, or several; give Ebb's as `redis_url`, such as EBB_REDIS_URL.")
    for options in (app.conf.broker_transport_options, app.conf.result_backend_transport_options):
        if options.get("global_keyprefix"):
            raise ValueError("The app has a global_keyprefix, by which it and Ebb miss each other; make a second app.")
    lists = app.conf.broker_transport_options
    if lists.get("sep", SEPARATOR) != SEPARATOR or not PRIORITIES.issuperset(lists.get("priority_steps", ())):
        raise ValueError(
            "The app has a sep, or priority_steps other than 0, 3, 6 and 9, by which it sends tasks with a priority to "
            "lists that Ebb's workers do not read; make a second app."
        )
    if (form := app.conf.result_serializer) != JSON:
        raise ValueError(f"The app reads results as {form}, and Ebb writes JSON; make a second app.")
    servers = celery_configuration(address)
    for variable, name in VARIABLES.items():
        own = (address, servers[name]) if name == "broker_url" else (servers[name],)
        if (given := os.environ.get(variable)) and not any(is_same(given, one) for one in own):
            raise ValueError(
                f"{variable} is set, which Celery prefers to the settings of each app, and differs from Ebb's address"
                f"{' of results' if name == 'result_backend' else ''}: write that there, or rename the variable, and "
                "give its value to the app that needs it."
            )
    routes = app.conf.task_routes or ()
    # An app that has sent a task has read its routes already; after `update` it reads them again.
    app.conf.update(task_routes=(route, *(routes if isinstance(routes, list | tuple) else (routes,))))
    app.conf.broker_transport_options = PATIENCE | app.conf.broker_transport_options
    app.conf.update({name: ours for name, (default, ours) in OF_RESULTS.items() if app.conf[name] == default})
    urls = dict.fromkeys(("broker_read_url", "broker_write_url"), servers["broker_url"])
    for name, value in (servers | urls).items():
        app.conf[name] = app.conf[name] | value if isinstance(value, dict) else value
    app.conf.result_accept_content = [*(app.conf.result_accept_content or app.conf.accept_content), JSON]


def route(name: str, *_: Any, **__: Any) -> dict[str, str] | None:
    """Return the queue of a task of Ebb and JSON, which its workers read alone; None for other tasks."""
    operation = find(name)
    return {"queue": operation.queue, "serializer": JSON} if operation is not None else None
