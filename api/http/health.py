"""Routes of health checks: that this process answers, and the state of each part."""

import time
from http import HTTPStatus
from typing import Literal

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from api.http.door import Door, door_of
from api.transport import AWAY
from workers.coordination import signals
from workers.coordination.redis import trouble
from workers.errors import EbbError, UnavailableError
from workers.queues import MAINTENANCE, RECALL, STORE

routes = APIRouter(prefix="/health", tags=["health"])

OK = "ok"
NEEDED = ("redis", RECALL, STORE, "database")
ASK_SECONDS = 3.0
KNOWN_SECONDS = 2.0
"""Seconds for which the result of the checks is cached."""


class Live(BaseModel):
    """That this process answers."""

    status: Literal["live"] = "live"


class Ready(BaseModel):
    """Whether memory can be used, and what is down: `ready`, `degraded` (not all of it) or `down`."""

    status: Literal["ready", "degraded", "down"]
    checks: dict[str, str]


@routes.get("/live")
async def live() -> Live:
    """Answer that this process runs. This needs no thread, because all threads may wait for workers."""
    return Live()


@routes.get("/ready", responses={503: {"model": Ready}})
def ready(request: Request, response: Response) -> Ready:
    """Return the state of each part; 503 if storing or recalling is not possible."""
    door = door_of(request)
    at, checks = door.known_health
    if time.monotonic() - at > KNOWN_SECONDS:
        checks = _checks(door)
        door.known_health = (time.monotonic(), checks)
    down = any(checks[name] != OK for name in NEEDED)
    well = all(check == OK for check in checks.values())
    response.status_code = HTTPStatus.SERVICE_UNAVAILABLE if down else HTTPStatus.OK
    return Ready(status="down" if down else "ready" if well else "degraded", checks=checks)


def _checks(door: Door) -> dict[str, str]:
    """Return the state of each part; a part behind another that is down is unknown."""
    unknown = dict.fromkeys((RECALL, STORE, MAINTENANCE, "database", "embedder"), "unknown")
    try:
        alive = {queue for queue, _ in signals.alive(door.redis, door.client.seconds())}
        signals.try_write(door.redis)
    except UnavailableError as error:
        return unknown | {"redis": str(error)}
    except AWAY as error:
        return unknown | {"redis": trouble(error)}
    workers = {queue: OK if queue in alive else "no worker takes from this queue" for queue in (RECALL, STORE)}
    upkeep = {MAINTENANCE: OK if MAINTENANCE in alive else "no worker takes from this queue: nothing fades"}
    return unknown | {"redis": OK} | workers | upkeep | (_asked(door) if workers[RECALL] == OK else {})


def _asked(door: Door) -> dict[str, str]:
    try:
        return dict(door.client.call("memory.health", {}, ASK_SECONDS))
    except EbbError as error:
        return {"database": str(error)}
