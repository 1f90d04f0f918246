"""The request log: one line for each request, with its duration, namespace and task."""

import logging
import time

from prometheus_client import Histogram
from starlette.types import ASGIApp, Message, Receive, Scope, Send

log = logging.getLogger(__name__)

REQUESTS = Histogram("ebb_http_request_seconds", "Answering a request", ["method", "route", "status"], registry=None)
NOISE = ("/health/", "/metrics")
"""Routes that are polled every few seconds and therefore not logged."""


class Watch:
    """Middleware that logs each request."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, and measure the time until its answer."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            await send(message)

        try:
            await self.app(scope, receive, noted)
        finally:
            _tell(scope, status, time.perf_counter() - began)


def _tell(scope: Scope, status: int, seconds: float) -> None:
    """Log a request under its route, because there are as many paths as facts."""
    route = getattr(scope.get("route"), "path", "none")
    REQUESTS.labels(scope["method"], route, str(status)).observe(seconds)
    state = scope.get("state", {})
    caller = state.get("caller")
    about = {
        "method": scope["method"],
        "path": scope["path"],
        "status": status,
        "milliseconds": round(seconds * 1000, 1),
        "namespace": getattr(caller, "namespace", None),
        "key": getattr(caller, "key", None),
        "task": state.get("task"),
    }
    level = logging.DEBUG if scope["path"].startswith(NOISE) else logging.INFO
    log.log(level, "%s %s %d in %.1f ms", scope["method"], scope["path"], status, seconds * 1000, extra=about)
