"""Tracing with OpenTelemetry: spans of requests, tasks and statements with names, ids and times, but no texts.

Configured by the standard variables: `OTEL_EXPORTER_OTLP_ENDPOINT` turns it on; otherwise no exporter is imported.
Instrumentation packages are not used, because they record error messages and URL queries, which may quote a fact. For
the same reason the provider is not set globally, where other packages would find it.
"""

import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Literal

from workers.threads import within

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span

log = logging.getLogger(__name__)

ENDPOINTS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")

STOP_SECONDS = 2.0

Kind = Literal["SERVER", "CLIENT", "CONSUMER"]

_own: dict[str, "TracerProvider"] = {}
"""The provider of this process while it traces."""


def start(service: str) -> bool:
    """Start tracing if a collector is configured; return whether it is.

    Spans name `service` unless OTEL_SERVICE_NAME does. The provider has a thread, so a process calls this after
    forking.
    """
    off = os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or os.environ.get("OTEL_TRACES_EXPORTER") == "none"
    if off or not any(os.environ.get(name) for name in ENDPOINTS):
        return False
    try:
        _own["provider"] = _provider(service)
    except ImportError:
        log.warning("%s is set, but nothing is traced without the extra: install ebb-server[otel]", ENDPOINTS[1])
    return bool(_own)


def _provider(service: str) -> "TracerProvider":
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # only if wanted
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    resource = Resource({"service.name": service}).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    return provider


def stop() -> None:
    """Send the remaining spans, and stop tracing; an unreachable collector does not delay the end of a process."""
    if _own:
        with suppress(TimeoutError):
            within(STOP_SECONDS, _own.pop("provider").shutdown)


def is_on() -> bool:
    """Return whether this process is tracing."""
    return bool(_own)


@contextmanager
def span(
    name: str, kind: Kind, attributes: Mapping[str, Any], carrier: Mapping[str, str] | None = None
) -> Iterator["Span | None"]:
    """Yield the span of the block, below the parent in `carrier` or else the current one; None if tracing is off.

    Only the class of an error is recorded.
    """
    provider = _own.get("provider")
    if provider is None:
        yield None
        return
    from opentelemetry.propagate import extract
    from opentelemetry.trace import SpanKind

    with provider.get_tracer("ebb").start_as_current_span(
        name,
        extract(carrier) if carrier else None,
        SpanKind[kind],
        {key: value for key, value in attributes.items() if value is not None},
        record_exception=False,
        set_status_on_exception=False,
    ) as own:
        try:
            yield own
        except BaseException as error:
            fail(own, type(error).__qualname__)
            raise


def fail(own: "Span", kind: str) -> None:
    """Mark a span as failed by an error of this kind."""
    from opentelemetry.trace import StatusCode

    own.set_attribute("error.type", kind)
    own.set_status(StatusCode.ERROR)


@contextmanager
def statement(query: Any) -> Iterator[None]:
    """Trace a statement, without its values; within a pipeline, the time of sending it."""
    text = " ".join(query.split()) if isinstance(query, str) else ""
    name = text.partition(" ")[0].upper() or "SQL"
    with span(name, "CLIENT", {"db.system.name": "postgresql", "db.operation.name": name, "db.query.text": text}):
        yield
