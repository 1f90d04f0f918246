"""A trace from a caller's span through request and task to SQL, as received by an OTLP collector on loopback."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import chain
from typing import Any
from uuid import uuid4

import pytest
import redis
from ebb import Memory, headers
from ebb.contract.facts import Store
from live_api import serving
from live_system import LiveSystem, eventually
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from opentelemetry.sdk.trace import Tracer, TracerProvider

from api.up import servers
from workers.coordination import outbox

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

REQUEST = "ebb-api", "POST /memory/recall"
SECRET = "The spare key is under the blue flowerpot"


class Collector(ThreadingHTTPServer):
    """Receives spans over OTLP, protobuf over HTTP."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Receiver)
        self.received: list[bytes] = []

    def spans(self, trace_id: int) -> list[tuple[str, Span]]:
        """Return the spans of a trace, each with its service."""
        requests = [ExportTraceServiceRequest.FromString(one) for one in [*self.received]]
        return [
            (resource.resource.attributes[0].value.string_value, span)
            for resource in chain.from_iterable(request.resource_spans for request in requests)
            for scope in resource.scope_spans
            for span in scope.spans
            if int.from_bytes(span.trace_id) == trace_id
        ]


class _Receiver(BaseHTTPRequestHandler):
    server: Collector

    def do_POST(self) -> None:
        assert self.path == "/v1/traces"
        self.server.received.append(self.rfile.read(int(self.headers["content-length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Keep the tests' output clean."""


@pytest.fixture(scope="module")
def collector() -> Iterator[Collector]:
    with Collector() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def traced(
    module_database: str, redis_server: servers.Redis, collector: Collector, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[LiveSystem]:
    settings = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        "OTEL_BSP_SCHEDULE_DELAY": "100",
    }
    with redis.Redis.from_url(redis_server.url()) as keys:
        keys.flushall()
    system = LiveSystem(module_database, redis_server.url(), tmp_path_factory.mktemp("traced"), settings)
    try:
        system.start("all")
        yield system
    finally:
        system.stop()


@pytest.fixture(scope="module")
def tracer() -> Iterator[Tracer]:
    provider = TracerProvider(shutdown_on_exit=False)
    yield provider.get_tracer("tests")
    provider.shutdown()


@contextmanager
def library(system: LiveSystem, namespace: str) -> Iterator[Memory]:
    with serving(system) as client, Memory(str(client.base_url), namespace=namespace) as memory:
        yield memory


def named(spans: list[tuple[str, Span]], service: str, start: str) -> list[Span]:
    return [span for own, span in spans if own == service and span.name.startswith(start)]


def traced_as(
    collector: Collector, tracer: Tracer, act: Callable[[], Any], *wanted: tuple[str, str]
) -> tuple[bytes, list[tuple[str, Span]]]:
    """Return the id of a caller's span in which something is done, and its trace once the `wanted` spans are there."""
    with tracer.start_as_current_span("caller") as caller:
        act()
    own = caller.get_span_context()
    for one in wanted:  # each process sends its own
        eventually(lambda one=one: named(collector.spans(own.trace_id), *one), f"a span of {one}")  # type: ignore[misc]
    return own.span_id.to_bytes(8), collector.spans(own.trace_id)


def test_a_recall_is_one_trace_from_the_caller_to_sql(
    traced: LiveSystem, collector: Collector, tracer: Tracer, namespace: str
) -> None:
    with library(traced, namespace) as memory:
        memory.store(SECRET)
        caller, spans = traced_as(
            collector,
            tracer,
            lambda: memory.recall("Where is the spare key?"),
            ("ebb-worker", "memory.recall"),
            REQUEST,
        )
    (request,) = named(spans, *REQUEST)
    (task,) = named(spans, "ebb-worker", "memory.recall")
    selects = [one for one in named(spans, "ebb-worker", "SELECT") if one.parent_span_id == task.span_id]
    assert request.parent_span_id == caller
    assert task.parent_span_id == request.span_id
    assert selects
    assert {"db.system.name", "db.query.text"} <= {one.key for one in selects[0].attributes}
    assert not any(SECRET.encode() in one or b"Where is the spare key" in one for one in collector.received)


def test_a_task_sent_by_name_and_what_it_sends_are_in_the_callers_trace(
    traced: LiveSystem, collector: Collector, tracer: Tracer, namespace: str
) -> None:
    def recall() -> None:
        arguments = {"query": "Where is the spare key?", "namespace": namespace}
        result = traced.control.send_task("memory.recall", kwargs=arguments, headers=headers.of_trace())
        assert result.get()["results"]

    with traced.client(namespace) as client:
        client.store(SECRET)
    _, spans = traced_as(
        collector, tracer, recall, ("ebb-worker", "memory.record_touches"), ("ebb-worker", "memory.recall")
    )
    (task,) = named(spans, "ebb-worker", "memory.recall")
    (touch,) = named(spans, "ebb-worker", "memory.record_touches")
    assert touch.parent_span_id == task.span_id


def is_below(span: Span, ancestor: Span, spans: list[tuple[str, Span]]) -> bool:
    """Return whether a span is the ancestor, or below it at any depth."""
    by_id = {one.span_id: one for _, one in spans}
    while span.span_id != ancestor.span_id and span.parent_span_id in by_id:
        span = by_id[span.parent_span_id]
    return span.span_id == ancestor.span_id


def test_a_write_accepted_without_waiting_is_in_the_callers_trace(
    traced: LiveSystem, collector: Collector, tracer: Tracer, namespace: str
) -> None:
    wanted = ("ebb-worker", "memory.store"), ("ebb-api", "POST /memory/facts")
    with library(traced, namespace) as memory:
        _, spans = traced_as(collector, tracer, lambda: memory.accept(Store(text=SECRET)), *wanted)
    (request,), (task,) = named(spans, *wanted[1]), named(spans, *wanted[0])
    assert task.parent_span_id == request.span_id
    assert any(one.parent_span_id == task.span_id for one in named(spans, "ebb-worker", "INSERT"))


def test_a_write_whose_message_was_lost_is_in_the_callers_trace(
    traced: LiveSystem, collector: Collector, tracer: Tracer, namespace: str
) -> None:
    def accept_and_lose() -> None:
        given = {"text": SECRET, "namespace": namespace}
        entry = outbox.Entry(str(uuid4()), "memory.store", given, 0.0, namespace=namespace, trace=headers.of_trace())
        outbox.put(traced.own_keys, entry)

    with tracer.start_as_current_span("caller") as caller:
        accept_and_lose()
    traced.send("memory.sweep_outbox", {})
    own = caller.get_span_context()
    eventually(lambda: named(collector.spans(own.trace_id), "ebb-worker", "memory.store"), "the write is traced")
    (task,) = named(collector.spans(own.trace_id), "ebb-worker", "memory.store")
    assert task.parent_span_id == own.span_id.to_bytes(8)


def test_the_slices_of_a_batch_are_in_its_trace_alone(
    traced: LiveSystem, collector: Collector, tracer: Tracer, namespace: str
) -> None:
    def store(name: str) -> tuple[bytes, list[tuple[str, Span]]]:
        facts = [{"text": f"Boat {place} has {place} sails."} for place in range(1_000)]
        with library(traced, name) as memory:
            wanted = ("ebb-worker", "memory.slice"), ("ebb-worker", "memory.store_many")
            return traced_as(collector, tracer, lambda: memory.store_many(facts), *wanted)

    names = [f"{namespace}-{place}" for place in range(2)]
    with ThreadPoolExecutor() as threads:
        traces = [spans for _, spans in threads.map(store, names)]
    for name, spans in zip(names, traces, strict=True):
        (batch,) = named(spans, "ebb-worker", "memory.store_many")
        slices = named(spans, "ebb-worker", "memory.slice")
        assert all(is_below(one, batch, spans) for one in slices)
        assert {text(one, "ebb.namespace") for one in slices} == {name}
        written = [one for one in named(spans, "ebb-worker", "INSERT") if one.parent_span_id == slices[0].span_id]
        assert written


def text(span: Span, attribute: str) -> str:
    return {one.key: one.value.string_value for one in span.attributes}[attribute]


def test_a_failed_task_names_its_error_and_quotes_nothing(
    traced: LiveSystem, collector: Collector, tracer: Tracer, namespace: str
) -> None:
    def fail() -> None:
        arguments = {"text": SECRET, "tags": [SECRET * 20], "namespace": namespace}
        result = traced.control.send_task("memory.store", kwargs=arguments, headers=headers.of_trace())
        with pytest.raises(Exception, match="tags"):
            result.get()

    _, spans = traced_as(collector, tracer, fail, ("ebb-worker", "memory.store"))
    (task,) = named(spans, "ebb-worker", "memory.store")
    assert task.status.code == Status.STATUS_CODE_ERROR
    assert text(task, "error.type") == "InvalidInputError"
    assert not any(SECRET.encode() in one for one in collector.received)
