"""Formats of numbers, instants and spans of time on pages."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from markupsafe import Markup, escape

MINUTE, HOUR, DAY = 60.0, 3_600.0, 86_400.0
MONTH, YEAR = 30.44 * DAY, 365.25 * DAY
SPANS = ((YEAR, "year"), (MONTH, "month"), (DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"))
A_MOMENT = 45.0
DASH = "\N{EN DASH}"


def number(value: float | None) -> str:
    """Return a number with separated thousands, or a dash for None."""
    if value is None:
        return DASH
    return f"{value:,.0f}" if float(value).is_integer() else f"{value:,.2f}"


def share(value: float | None) -> str:
    """Return a share in [0, 1] as a percentage."""
    return DASH if value is None else f"{value * 100:.0f} %"


def milliseconds(value: float | None) -> str:
    """Return a duration in milliseconds or in a larger unit."""
    if value is None:
        return DASH
    return f"{value:,.0f} ms" if value < 1_000 else span(value / 1_000)  # noqa: PLR2004


def span(seconds: float) -> str:
    """Return a span of time in one unit, such as `3 days`."""
    for length, name in SPANS:
        if seconds >= length:
            times = int(seconds / length)
            return f"{times} {name}" if times == 1 else f"{times} {name}s"
    return f"{int(seconds)} s" if seconds >= 10 else f"{seconds:.2g} s"  # noqa: PLR2004


def instant(value: Any) -> datetime | None:
    """Return the instant of an ISO 8601 string or of epoch seconds."""
    if value is None or isinstance(value, datetime):
        return value
    return datetime.fromtimestamp(value, UTC) if isinstance(value, int | float) else datetime.fromisoformat(value)


def when(value: Any) -> Markup:
    """Return an instant to the minute in UTC; the browser converts it to its own zone."""
    at = instant(value)
    if at is None:
        return escape(DASH)
    return Markup('<time datetime="{}">{}</time>').format(at.isoformat(), f"{at.astimezone(UTC):%Y-%m-%d %H:%M} UTC")


def ago(value: Any) -> Markup:
    """Return the away of an instant from now, with the instant as its title."""
    at = instant(value)
    if at is None:
        return escape(DASH)
    seconds = (datetime.now(UTC) - at).total_seconds()
    away = "just now" if abs(seconds) < A_MOMENT else f"{span(seconds)} ago" if seconds > 0 else f"in {span(-seconds)}"
    exact = f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
    return Markup('<time datetime="{}" title="{}">{}</time>').format(at.isoformat(), exact, away)


def elapsed(run: Mapping[str, Any]) -> str:
    """Return the duration of a run from its plan to its end, or a dash."""
    began, ended = instant(run["started_at"]), instant(run["finished_at"])
    return DASH if began is None or ended is None else milliseconds((ended - began).total_seconds() * 1_000)


FILTERS: dict[str, Callable[..., Any]] = {
    "number": number,
    "share": share,
    "milliseconds": milliseconds,
    "span": span,
    "elapsed": elapsed,
    "when": when,
    "ago": ago,
}
