"""Traces: the current span's context, which a request or message carries on."""

import sys


def headers() -> dict[str, str]:
    """Return the headers that carry the current trace on, such as `traceparent`; none without OpenTelemetry.

    A process that has not loaded OpenTelemetry has no current span, so it is not loaded here either.
    """
    if "opentelemetry.trace" not in sys.modules:
        return {}
    from opentelemetry.propagate import inject  # noqa: PLC0415 - see above

    carrier: dict[str, str] = {}
    inject(carrier)
    return carrier
