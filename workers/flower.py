"""Flower with access control: it requires a password, and answers only to its own host names.

Flower can stop workers and shows who uses which namespace. It is started by Celery's command, which loads this module
with the app.
"""

import sys
from functools import cache
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click
from celery.signals import import_modules

if TYPE_CHECKING:
    from tornado.httputil import HTTPServerRequest

RESULT = "/api/task/result/"
"""Route that would return the result of a task."""

SENDING = ("/api/task/send-task/", "/api/task/async-apply/", "/api/task/apply/")
"""Routes that would send a task: one makes an API key for any namespace, others erase facts."""


@import_modules.connect  # type: ignore[untyped-decorator]  # Celery comes without types
def require_password(**_: Any) -> None:
    """Exit if Flower would listen on a port without authentication."""
    command = click.get_current_context(silent=True)
    if command is None or command.info_name != "flower":
        return
    from tornado.options import options  # workers do not need it

    if not (options.unix_socket or options.basic_auth or options.auth):
        raise SystemExit(
            f"ebb: Flower at {options.address or 'every address'} is not allowed without authentication: it can stop "
            "workers and names every namespace. Set FLOWER_BASIC_AUTH=user:password in its environment, where "
            "other users do not see it."
        )


def guard(flower_url: str) -> None:
    """Make the loaded command of Flower reject foreign host names, show no results and send no tasks."""
    command: Any = sys.modules.get("flower.command")
    if command is not None:
        command.Flower = _guarded(command.Flower, urlsplit(flower_url).hostname)


def is_own_host(host: str, own: str | None) -> bool:
    """Return whether a Host header names this Flower: an address, localhost, or its configured name.

    A foreign page can resolve its own name to this machine (DNS rebinding), but not an address.
    """
    name = host.strip("[]").lower()
    if name == "localhost" or (own is not None and name == own.lower()):
        return True
    try:
        return bool(ip_address(name))
    except ValueError:
        return False


def _guarded(original: Any, own: str | None) -> Any:
    from tornado.web import RequestHandler  # workers do not need it

    class Refused(RequestHandler):
        """Answers 403 to every method."""

        def initialize(self, why: str) -> None:
            self.why = why

        def check_xsrf_cookie(self) -> None:
            """Let forged requests be refused as others are."""

        def prepare(self) -> None:
            self.set_status(403)
            self.finish(f"{self.why}\n")

    class Guarded(original):  # type: ignore[misc]  # a base found at run time
        """Flower that checks the Host and path of each request."""

        def find_handler(self, request: "HTTPServerRequest", **options: Any) -> Any:
            why = _fault(request, own)
            if why is None:
                return super().find_handler(request, **options)
            return self.get_handler_delegate(request, Refused, {"why": why})

        def get_handler_delegate(
            self, request: "HTTPServerRequest", target_class: Any, *given: Any, **named: Any
        ) -> Any:
            return super().get_handler_delegate(request, _closed(target_class), *given, **named)

    return Guarded


@cache
def _closed(handler: Any) -> Any:
    """Return a handler whose pages no other page may show in a frame: a click there could stop workers.

    Flower itself would show its metrics, with the names of workers and tasks, without authentication.
    """
    from flower.views.monitor import Metrics  # type: ignore[import-untyped]  # workers do not need it
    from tornado.web import authenticated

    class Closed(handler):  # type: ignore[misc]  # a base found at run time
        if issubclass(handler, Metrics):
            get = authenticated(handler.get)

        def set_default_headers(self) -> None:
            super().set_default_headers()
            self.set_header("X-Frame-Options", "DENY")

    return Closed


def _fault(request: "HTTPServerRequest", own: str | None) -> str | None:
    """Return why a request is refused, if it is."""
    if not is_own_host(request.host_name, own):
        return "Flower answers to its address, to localhost, and to the host of EBB_FLOWER_URL."
    if RESULT in request.path:
        return "What tasks returned is not shown here; ask the API of Ebb."
    if any(path in request.path for path in SENDING):
        return "Tasks are not sent from here; ask the API of Ebb, or send them with Celery."
    return None
