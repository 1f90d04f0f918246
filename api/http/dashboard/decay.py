"""Pages of decay: the forecast, and the passes."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from ebb.contract.values import Instant
from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from api.http.dashboard.rendering import instant, page, router
from api.http.dashboard.visitors import Reading

routes = router()

SPANS = {7: "A week", 30: "A month", 90: "Three months", 366: "A year"}
NAMED = 3
"""Facts listed for each day and change."""

MOST_DAYS = 60
"""Days whose facts are listed; the table has all days."""

CHANGES = {
    "warm": ("becomes warm", "warm"),
    "cold": ("becomes cold", "cold"),
    "compressed": ("vector pooled", "pooled"),
    "fingerprinted": ("reduced to its signature", "fingerprint"),
    "stale": ("becomes stale", "h"),
    "expired": ("forgotten: its lifetime is over", "d"),
    "faded": ("forgotten: its confidence faded", "f"),
    "culled": ("forgotten: never confirmed", "b"),
    "aged": ("forgotten: an episode of long ago", "i"),
    "crowded": ("forgotten: more than the capacity", "h"),
}
"""The changes of a fact, each with its label and colour."""

UNCHANGED = dict.fromkeys((*CHANGES, "held"), 0)
"""Defaults for answers of older workers, which lack some changes."""


@routes.get("/dashboard/forecast")
def forecast(request: Request, memory: Reading, days: Annotated[int, Query(ge=1, le=366)] = 30) -> HTMLResponse:
    """Show the forecast of a namespace."""
    ahead = [UNCHANGED | day for day in memory.forecast(days, NAMED)["days"]]
    busy = [day for day in ahead if any(day[name] for name in (*CHANGES, "held"))]
    totals = {name: sum(day[name] for day in ahead) for name in CHANGES}
    some = [name for name in CHANGES if totals[name]]
    return page(
        request,
        "forecast.html",
        days=days,
        spans=SPANS,
        changes=CHANGES,
        some=some,
        totals=totals,
        forgotten=sum(day["forgotten"] for day in ahead),
        held=max((day["held"] for day in ahead), default=0),
        busy=busy,
        listed=[{**day, "more": _unnamed(day)} for day in busy[:MOST_DAYS]],
        named=NAMED,
        quiet=len(ahead) - len(busy),
        chart_content=_chart(ahead, some),
    )


def _unnamed(day: Mapping[str, Any]) -> int:
    """Return how many changes of a day are not listed with their facts."""
    return int(sum(day[name] for name in CHANGES)) - len(day["facts"])


def _chart(ahead: Sequence[Mapping[str, Any]], some: Sequence[str]) -> dict[str, Any]:
    """Return the changes of each day for the stacked chart."""
    at = [found.timestamp() for day in ahead if (found := instant(day["at"]))]
    series = [{"name": name, "tone": CHANGES[name][1], "values": [day[name] for day in ahead]} for name in some]
    return {"at": at, "series": series}


PASSES = 25

COUNTED = {
    "processed": "Processed",
    "changed": "Changed",
    "compressed": "Compressed",
    "fingerprinted": "Fingerprinted",
    "forgotten": "Forgotten",
    "held": "Held",
}
"""The counters of a run and their column titles."""


@routes.get("/dashboard/runs")
def runs(
    request: Request, memory: Reading, before: Annotated[Instant | None, Query()] = None, everywhere: bool | None = None
) -> HTMLResponse:
    """Show the latest passes; the counts of those over all namespaces need the scope `system`."""
    whole = "system" in memory.caller.scopes
    if everywhere:
        memory.caller.check("system")
    every = whole if everywhere is None else everywhere
    found = memory.runs(PASSES, None if before is None else before.isoformat(), everything=every)
    return page(
        request,
        "runs.html",
        runs=found["runs"],
        counted=COUNTED,
        next=found["next"],
        later=before,
        everywhere=every,
        whole=whole,
    )
