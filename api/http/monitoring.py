"""Monitoring: the request log, spans of requests, and health checks."""

import logging
import time
from contextlib import AbstractContextManager, nullcontext
from http import HTTPStatus
from typing import TYPE_CHECKING, Literal

from ebb import headers
from fastapi import APIRouter, Request, Response
from prometheus_client import Histogram
from pydantic import BaseModel
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.door import Door, door_of
from api.transport import AWAY
from workers import tracing
from workers.coordination import signals
from workers.coordination.redis import explain
from workers.errors import EbbError, UnavailableError
from workers.queues import MAINTENANCE, QUEUES, RECALL, STORE

if TYPE_CHECKING:
    from opentelemetry.trace import Span

log = logging.getLogger(__name__)

REQUESTS = Histogram("ebb_http_request_seconds", "Answering a request", ["method", "route", "status"], registry=None)
NOISE = ("/health/", "/metrics")
"""Routes that are polled every few seconds and therefore not logged."""


class Watch:
    """Middleware that logs each request."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and measure its duration."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status = time.perf_counter(), 500

        async def noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            written = scope.get("state", {}).get("written")  # up to where a replica must have read to have it all
            if message["type"] == "http.response.start" and written is not None and written.lsn is not None:
                message["headers"] = [*message["headers"], (headers.HEADER.lower().encode(), written.lsn.encode())]
            await send(message)

        with _span(scope) as span:
            try:
                await self.app(scope, receive, noted)
            finally:
                _tell(scope, status, time.perf_counter() - began)
                _describe(span, scope, status)


def _span(scope: Scope) -> "AbstractContextManager[Span | None]":
    """Return the span of a request, below the one that its headers name; health checks have none."""
    if not tracing.is_on() or scope["path"].startswith(NOISE):
        return nullcontext()
    headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
    return tracing.span(scope["method"], "SERVER", {"http.request.method": scope["method"]}, headers)


def _describe(span: "Span | None", scope: Scope, status: int) -> None:
    """Name a request's span by its route, because paths may have entities in them."""
    if span is not None:
        route = getattr(scope.get("route"), "path", "none")
        namespace = getattr(scope.get("state", {}).get("caller"), "namespace", "")
        span.update_name(f"{scope['method']} {route}")
        span.set_attributes({"http.route": route, "http.response.status_code": status, "ebb.namespace": namespace})
        if status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            tracing.fail(span, str(status))


def _tell(scope: Scope, status: int, seconds: float) -> None:
    """Log and count a request by its route, as paths contain ids."""
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


routes = APIRouter(tags=["health"])

OK, UNKNOWN = "ok", "unknown"
NEEDED = ("redis", RECALL, STORE, "database")
ASK_SECONDS = 3.0
KNOWN_SECONDS = 2.0
"""How long the result of the checks is cached."""


class Live(BaseModel):
    """That this process answers."""

    status: Literal["live"] = "live"


class Ready(BaseModel):
    """Whether memory can be used, and what is down: `ready`, `degraded` (not all of it) or `down`."""

    status: Literal["ready", "degraded", "down"]
    checks: dict[str, str]


@routes.get("/health/live")
async def live() -> Live:
    """Answer that this process runs. This needs no thread, because all threads may wait for workers."""
    return Live()


@routes.get("/health/ready", responses={503: {"model": Ready}})
def ready(request: Request, response: Response) -> Ready:
    """Return the state of each part; 503 if storing or recalling is not possible."""
    found = checks(door_of(request))
    down = any(found[name] != OK for name in NEEDED)
    well = all(check == OK for check in found.values())
    response.status_code = HTTPStatus.SERVICE_UNAVAILABLE if down else HTTPStatus.OK
    return Ready(status="down" if down else "ready" if well else "degraded", checks=found)


def checks(door: Door) -> dict[str, str]:
    """Return the state of each part, as it was a moment ago; a part behind another that is down is unknown."""
    at, found = door.known_health
    if time.monotonic() - at > KNOWN_SECONDS:
        found = _checks(door)
        door.known_health = (time.monotonic(), found)
    return found


def _checks(door: Door) -> dict[str, str]:
    unknown = dict.fromkeys((*QUEUES, "database", "embedder"), UNKNOWN)
    try:
        alive = {queue for queue, _ in signals.live_workers(door.redis, door.client.seconds())}
        signals.try_write(door.redis)
    except UnavailableError as error:
        return unknown | {"redis": str(error)}
    except AWAY as error:
        return unknown | {"redis": explain(error)}
    workers = {queue: OK if queue in alive else "no worker takes from this queue" for queue in (RECALL, STORE)}
    upkeep = {MAINTENANCE: OK if MAINTENANCE in alive else "no worker takes from this queue: nothing fades"}
    return unknown | {"redis": OK} | workers | upkeep | (_asked(door) if workers[RECALL] == OK else {})


def _asked(door: Door) -> dict[str, str]:
    try:
        return dict(door.client.call("memory.health", {}, ASK_SECONDS))
    except EbbError as error:
        return {"database": str(error)}
