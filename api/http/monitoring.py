"""Monitoring: the request log, spans of requests, health checks, and the metrics for Prometheus."""

import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any, Literal

from ebb import headers
from fastapi import APIRouter, Depends, Request, Response
from prometheus_client import CollectorRegistry, Histogram, ProcessCollector, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from pydantic import BaseModel
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from api.http.callers import Caller, caller
from api.http.door import Door, door_of, reaching_redis
from api.http.problems import without_addresses
from api.http.route import own_name
from api.transport import AWAY
from workers import tracing
from workers.coordination import bulk, outbox, pause, signals, timings
from workers.coordination.redis import condition, explain
from workers.errors import EbbError, LateError, UnavailableError
from workers.queues import MAINTENANCE, QUEUES, RECALL, STORE, age_of

if TYPE_CHECKING:
    from opentelemetry.trace import Span

log = logging.getLogger(__name__)

REQUESTS = Histogram("ebb_http_request_seconds", "Answering a request", ["method", "route", "status"], registry=None)
METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
"""Methods that are counted by name: a client may invent others without end, and each would be kept."""

NOISE = ("/health/", "/metrics")
"""Routes that are polled every few seconds and therefore not logged."""


class Watch:
    """Middleware that logs each request. The app sees HEAD as GET; the server leaves out the body of the answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on and measure its duration."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, seen = time.perf_counter(), 500, scope
        if scope["method"] == "HEAD":
            seen = {**scope, "method": "GET"}

        async def noted(message: Message) -> None:
            nonlocal status
            status = message.get("status", status)
            written = seen.get("state", {}).get("written")  # up to where a replica must have read to have it all
            if message["type"] == "http.response.start":
                added = []
                if written is not None and written.lsn is not None:
                    added.append((headers.HEADER.lower().encode(), written.lsn.encode()))
                if "caller" in seen.get("state", {}) and b"cache-control" not in dict(message["headers"]):
                    added.append((b"cache-control", b"no-store"))  # proxies may not know `x-api-key`
                message["headers"] = [*message["headers"], *added]
            await send(message)

        with _span(scope) as span:
            try:
                await self.app(seen, receive, noted)
            finally:
                asked = {**seen, "method": scope["method"]}
                _tell(asked, status, time.perf_counter() - began)
                _describe(span, asked, status)


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
    method = scope["method"] if scope["method"] in METHODS else "other"
    REQUESTS.labels(method, route, str(status)).observe(seconds)
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


routes = APIRouter(tags=["health"], generate_unique_id_function=own_name)

OK, UNKNOWN = "ok", "unknown"
NEEDED = ("redis", RECALL, STORE, "database")
ASK_SECONDS = 3.0
LATE = (
    f"not known: no worker said within {ASK_SECONDS:g} s how PostgreSQL is, so they are busy, or PostgreSQL is slow or "
    "does not answer"
)
"""State of the database while requests may still be answered; after some seconds workers know whether it is away."""

KNOWN_SECONDS = 2.0
"""How long the result of the checks is cached."""

OLD_SECONDS = 60.0
"""Maximum age of a result with which a request is answered while another check runs."""


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
    down = any(found[name] not in {OK, LATE} for name in NEEDED)
    well = all(check == OK for check in found.values())
    response.status_code = HTTPStatus.SERVICE_UNAVAILABLE if down else HTTPStatus.OK
    shown = {part: without_addresses(said) for part, said in found.items()}
    return Ready(status="down" if down else "ready" if well else "degraded", checks=shown)


def checks(door: Door) -> dict[str, str]:
    """Return the state of each part, as it was a moment ago; a part behind another that is down is unknown.

    Requests that come while a check runs get the result of the one before, and wait only if there is none.
    """
    known = at, found = door.known_health
    age = time.monotonic() - at
    if age <= KNOWN_SECONDS or not door.checking.acquire(blocking=age > OLD_SECONDS):
        return found
    try:
        if door.known_health is known:  # else another request has checked meanwhile
            door.known_health = (time.monotonic(), _checks(door))
        return door.known_health[1]
    finally:
        door.checking.release()


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
    except LateError:
        return {"database": LATE}
    except EbbError as error:
        return {"database": str(error)}


MEASURE_SECONDS = 3.0
"""Time that a scrape waits for the database's first measures."""

FRESH_SECONDS = 15.0
"""Age from which measures are taken again for the next scrape."""


@routes.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}})
def metrics(request: Request, who: Annotated[Caller, Depends(caller)]) -> Response:
    """Return the figures of the whole system, all namespaces together, in the format of Prometheus."""
    who.check("system")
    registry = CollectorRegistry()
    registry.register(_System(door_of(request)))
    registry.register(REQUESTS)
    ProcessCollector(registry=registry)
    with reaching_redis():
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)


class _System:
    """The collector that runs at each scrape."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def collect(self) -> Iterator[Metric]:
        parts = {part: float(said == OK) for part, said in checks(self._door).items() if said != UNKNOWN}
        yield _gauge("ebb_ok", "Whether a part of the system is well", parts, "part")
        yield from self._waiting()
        yield from self._processes()
        yield from self._pause()
        yield from self._timings()
        yield from self._counted()
        measured = self._measured()
        if measured is not None:
            yield from _facts(measured)
            yield from _passes(measured)
            yield from _replicas(measured.get("replicas", {}))  # workers of an earlier version measure none

    def _waiting(self) -> Iterator[Metric]:
        door, now = self._door, self._door.client.seconds()
        lanes = door.lanes()
        queues = {one["name"]: one["waiting"] for one in lanes}
        yield _gauge("ebb_queue_tasks", "Tasks that wait", queues, "queue")
        ages = {queue: age_of(door.broker, queue, now) for queue in queues}
        yield _gauge("ebb_queue_seconds", "For how long the first of them has waited", ages, "queue")
        yield _gauge("ebb_outbox_writes", "Writes accepted and not yet committed", outbox.size(door.redis))
        lane = bulk.waiting(door.redis)
        yield _gauge("ebb_bulk_batches", "Large batches and costly tasks in the bulk lane", lane["batches"])
        yield _gauge("ebb_bulk_bytes", "Their bytes", lane["bytes"])
        yield _gauge("ebb_http_waiting", "Requests that wait for a thread", door.turns.waiting)
        yield _gauge("ebb_limit", "What each namespace may have under way", door.settings.limits, "setting")
        workers = {one["name"]: one["workers"] for one in lanes}
        yield _gauge("ebb_workers", "Workers that live", workers, "queue")

    def _processes(self) -> Iterator[Metric]:
        now, redis = self._door.client.seconds(), self._door.redis
        sent, found = signals.beat_sent(redis), condition(redis)
        if sent is not None:
            yield _gauge("ebb_beat_timestamp_seconds", "When beat last sent a task", sent)
        yield _gauge("ebb_redis_memory_bytes", "Memory that Redis uses", found.memory_used)
        yield _gauge("ebb_redis_memory_limit_bytes", "Most that it may use; 0: no limit", found.memory_limit)
        used = timings.read_usage(redis, now)
        memory = {name: one.memory_bytes for name, one in used.items()}
        yield _gauge("ebb_worker_memory_bytes", "Memory of a worker with its children", memory, "worker")
        cpu = {name: one.cpu_seconds for name, one in used.items()}
        yield _counter("ebb_worker_cpu_seconds", "CPU time of a worker with its children", cpu, "worker")

    def _counted(self) -> Iterator[Metric]:
        regrets = sum(signals.counted(self._door.redis, signals.REGRETS).values())
        yield _counter(
            "ebb_regrets", "Questions whose best answer had ended by itself and lies in deep memory", regrets
        )
        failures = signals.counted(self._door.redis, signals.FAILURES)
        yield _counter("ebb_task_failures", "Tasks that failed for another reason than their input", failures, "task")

    def _pause(self) -> Iterator[Metric]:
        for name, model in pause.MODELS.items():
            found = pause.state(self._door.redis, model)
            said = f"For how long the {name} is not asked any more, because it did not answer; 0 while it is"
            yield _gauge(f"ebb_{model.key}_pause_seconds", said, found.seconds)
            yield _gauge(f"ebb_{model.key}_failures", "How often in a row it did not answer", found.failures)

    def _timings(self) -> Iterator[Metric]:
        recalls = HistogramMetricFamily("ebb_recall_seconds", "A recall in a worker, and its parts", labels=["arm"])
        writes = HistogramMetricFamily("ebb_write_to_readable_seconds", "From sending a write until it can be read")
        for what, (counts, total) in sorted(timings.read(self._door.redis).items()):
            buckets = [
                ("+Inf" if bound == float("inf") else str(bound), count)
                for bound, count in zip(timings.BUCKETS, counts, strict=True)
            ]
            kind, _, arm = what.partition(" ")
            if kind == timings.RECALL:
                recalls.add_metric([arm], buckets, total)
            elif kind == timings.WRITE:
                writes.add_metric([], buckets, total)
        yield recalls
        yield writes

    def _measured(self) -> dict[str, Any] | None:
        """Return the latest measures of the database; old ones are refreshed for the next scrape."""
        known = signals.measured(self._door.redis)
        client = self._door.client
        try:
            if known is None:
                return client.call("memory.measure", {}, MEASURE_SECONDS)
            if client.seconds() - known["at"] > FRESH_SECONDS:
                client.send("memory.measure", {}, expires=FRESH_SECONDS, ignore_result=True)
        except EbbError:
            return known
        return known


def _facts(measured: dict[str, Any]) -> Iterator[Metric]:
    for label in ("tiers", "fidelity"):
        name = label.removesuffix("s")
        yield _gauge(f"ebb_facts_by_{name}", f"Live facts by {name}", measured[label], name)
    yield _gauge("ebb_forgotten_facts", "Forgotten facts by reason", measured["forgotten"], "reason")
    # workers of an earlier version measure neither
    yield _gauge("ebb_held_facts", "Facts that the forget limit keeps", measured.get("held", 0))
    yield _gauge("ebb_database_bytes", "Bytes of the database", measured.get("bytes", 0))
    yield _gauge("ebb_due_facts", "Facts that a pass would take now", measured["due"])
    yield _gauge("ebb_oldest_due_seconds", "For how long the first of them is due", measured["oldest_due_seconds"])
    yield _gauge("ebb_measured_timestamp_seconds", "When the database said all this", measured["at"])


def _passes(measured: dict[str, Any]) -> Iterator[Metric]:
    last = measured["last_pass"]
    if last is not None:
        yield _gauge("ebb_pass_seconds", "The last pass, from its plan to its end", last["seconds"])
        yield _gauge("ebb_pass_work_seconds", "What its tasks worked together", last["worked_ms"] / 1000)
        yield _gauge("ebb_pass_timestamp_seconds", "When it ended", last["at"])


def _replicas(measured: dict[str, dict[str, float]]) -> Iterator[Metric]:
    if measured:
        lag = {name: one["seconds"] for name, one in measured.items()}
        yield _gauge("ebb_replica_lag_seconds", "By how much a replica was behind at its last answer", lag, "replica")
        readable = {name: float(one["readable"]) for name, one in measured.items()}
        yield _gauge("ebb_replica_readable", "Whether reads go to a replica", readable, "replica")


def _family(kind: Any, name: str, said: str, values: float | Mapping[str, float], label: str = "") -> Metric:
    """Return a metric with one value, or with one for each value of a label."""
    found: GaugeMetricFamily | CounterMetricFamily = kind(name, said, labels=[label] if label else [])
    for own, value in values.items() if isinstance(values, Mapping) else [("", values)]:
        found.add_metric([own] if label else [], value)
    return found


_gauge, _counter = partial(_family, GaugeMetricFamily), partial(_family, CounterMetricFamily)
