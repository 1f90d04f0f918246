"""The page of the forecast: what the passes of the days to come will cool, shrink and forget, and which facts."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from api.http.dashboard.formats import instant
from api.http.dashboard.rendering import page, router
from api.http.dashboard.visitors import Reading

routes = router()

SPANS = {7: "A week", 30: "A month", 90: "Three months", 366: "A year"}
NAMED = 3
"""Facts that are named for each day and change."""

MOST_DAYS = 60
"""Days whose facts are named; the table has all."""

CHANGES = {
    "warm": ("cools to warm", "warm"),
    "cold": ("cools to cold", "cold"),
    "compressed": ("vector shrinks", "pooled"),
    "fingerprinted": ("signature alone stays", "fingerprint"),
    "stale": ("gets stale", "h"),
    "expired": ("forgotten: its lifetime is over", "d"),
    "faded": ("forgotten: lost its confidence", "f"),
    "culled": ("forgotten: nobody confirmed it", "b"),
    "aged": ("forgotten: an episode of long ago", "i"),
}
"""What can become of a fact, in words and in a colour."""


@routes.get("/dashboard/forecast")
def forecast(request: Request, memory: Reading, days: Annotated[int, Query(ge=1, le=366)] = 30) -> HTMLResponse:
    """Show what will come of a namespace if nobody uses or tells anything meanwhile."""
    told = memory.forecast(days, NAMED)["days"]
    busy = [day for day in told if any(day[name] for name in (*CHANGES, "held"))]
    totals = {name: sum(day[name] for day in told) for name in CHANGES}
    some = [name for name in CHANGES if totals[name]]
    return page(
        request,
        "forecast.html",
        days=days,
        spans=SPANS,
        changes=CHANGES,
        some=some,
        totals=totals,
        forgotten=sum(day["forgotten"] for day in told),
        held=max((day["held"] for day in told), default=0),
        busy=busy,
        told=[{**day, "more": _unnamed(day)} for day in busy[:MOST_DAYS]],
        named=NAMED,
        quiet=len(told) - len(busy),
        chart_content=_chart(told, some),
    )


def _unnamed(day: Mapping[str, Any]) -> int:
    """Return how many changes of a day are not named with their facts."""
    return int(sum(day[name] for name in CHANGES)) - len(day["facts"])


def _chart(told: Sequence[Mapping[str, Any]], some: Sequence[str]) -> dict[str, Any]:
    """Return what changes on each day, one upon the other."""
    at = [found.timestamp() for day in told if (found := instant(day["at"]))]
    series = [{"name": name, "tone": CHANGES[name][1], "values": [day[name] for day in told]} for name in some]
    return {"at": at, "series": series}
