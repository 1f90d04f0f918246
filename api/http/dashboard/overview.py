"""Pages of a whole namespace: counts and their time series, with the system's queues and lag; forecast; and passes."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from ebb.contract.values import Instant
from fastapi import Query, Request
from fastapi.responses import HTMLResponse, RedirectResponse

from api.http.dashboard.rendering import instant, page, router
from api.http.dashboard.visitors import Reading
from api.http.door import Door, door_of, reaching_redis
from workers.coordination import outbox, timings
from workers.coordination.timings import Histogram

routes = router()

DAYS = {1: "A day", 14: "Two weeks", 366: "A year"}
NEWEST = 8
PENDING = "pending"
"""Facts without a vector; this series is hidden if it is zero."""

CHARTS = {
    "tiers": ("Facts by tier", ("hot", "warm", "cold")),
    "fidelity": ("Facts by fidelity", ("full", "pooled", "fingerprint", "pending")),
    "classes": ("Facts by decay class", ("a", "b", "c", "d", "e", "f", "g", "h", "i")),
    "forgotten": ("Forgotten facts by reason", ("g", "b", "c", "d", "e", "f", "a", "h", "i")),
    "due": ("Due facts", ("sea",)),
}
"""The charts of facts, each with its title and the colours of its series, in order."""

ROWS = 40
"""Maximum rows of the table below a chart."""


@routes.get("/dashboard/")
@routes.get("/dashboard")
def first_page() -> RedirectResponse:
    """Redirect to the overview."""
    return RedirectResponse("/")


@routes.get("/")
def overview(request: Request, memory: Reading, days: Annotated[int, Query(ge=1, le=366)] = 14) -> HTMLResponse:
    """Show the overview of a namespace, and with the scope `system` queues and lag."""
    stats, whole = memory.stats(), "system" in memory.caller.scopes
    if not stats["facts"] and not stats["forgotten"]:
        return page(request, "nothing_yet.html", flower_url=door_of(request).settings.flower_url if whole else "")
    history = memory.time_series(days)
    course = {**history, "due": {"due": history["due"]}}
    return page(
        request,
        "overview.html",
        stats=stats,
        days=days,
        spans=DAYS,
        courses=[_course(name, course) for name in CHARTS],
        newest=memory.facts(NEWEST)["facts"],
        system=_figures(door_of(request)) if whole else None,
        kept_up=_kept_up(memory.system_time_series(days)) if whole else [],
    )


def _course(name: str, course: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chart and table of one breakdown of facts."""
    title, colours = CHARTS[name]
    lists = {one: values for one, values in course[name].items() if one != PENDING or any(values)}
    places = [place for place, one in enumerate(course[name]) if one in lists]
    tones = [colours[place % len(colours)] for place in places]
    now = {one: values[-1] for one, values in lists.items()}
    return _chart(title, "", course["at"], lists, tones) | {"now": now, "tones": tones}


def _figures(door: Door) -> dict[str, Any]:
    with reaching_redis():
        return {
            "queues": door.lanes(),
            "outbox": outbox.size(door.redis),
            "lag": _lag(timings.read(door.redis).get(timings.WRITE)),
            "flower_url": door.settings.flower_url,
        }


def _kept_up(found: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the charts and tables of queues and of lag in milliseconds."""
    lags = {"median": found["half"], "95 %": found["most"]}
    milliseconds = {name: [None if one is None else one * 1000 for one in values] for name, values in lags.items()}
    return [
        _chart("Waiting tasks", "", found["at"], found["waiting"], ("a", "b", "c")),
        _chart("Write to readable", " ms", found["at"], milliseconds, ("e", "f")),
    ]


def _chart(
    title: str, unit: str, at: Sequence[float], lists: Mapping[str, Sequence[float | None]], tones: Sequence[str]
) -> dict[str, Any]:
    series = [
        {"name": name, "tone": tone, "values": values}
        for (name, values), tone in zip(lists.items(), tones, strict=True)
    ]
    shown = range(len(at) - 1, -1, -max(1, -(-len(at) // ROWS)))
    return {
        "title": title,
        "unit": unit,
        "chart": {"at": at, "unit": unit, "series": series},
        "rows": [(at[i], [one["values"][i] for one in series]) for i in shown],
    }


def _lag(writes: Histogram | None) -> dict[str, float | None]:
    """Return the number of writes, and the median and 95th percentile of the seconds until they could be read."""
    counts = writes[0] if writes else []
    quantiles = {"half": timings.quantile(counts, 0.5), "most": timings.quantile(counts, 0.95)}
    return {"writes": counts[-1] if counts else 0, **quantiles}


AHEAD = {7: "A week", 30: "A month", 90: "Three months", 366: "A year"}
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

LABELS = {name: label for name, (label, _) in CHANGES.items()} | {"held": "held: it stays until you decide"}

UNCHANGED = dict.fromkeys((*CHANGES, "held"), 0)
"""Defaults for answers of older workers, which lack some changes."""


@routes.get("/dashboard/forecast")
def forecast(request: Request, memory: Reading, days: Annotated[int, Query(ge=1, le=366)] = 30) -> HTMLResponse:
    """Show the forecast of a namespace."""
    ahead = [UNCHANGED | day for day in memory.forecast(days, NAMED)["days"]]
    busy = [day for day in ahead if any(map(day.get, UNCHANGED))]
    totals = {name: sum(day[name] for day in ahead) for name in (*CHANGES, "forgotten")}
    some = [name for name in CHANGES if totals[name]]
    return page(
        request,
        "forecast.html",
        days=days,
        spans=AHEAD,
        changes=CHANGES,
        labels=LABELS,
        some=some,
        totals=totals,
        held=sum(day["held"] for day in ahead),
        busy=busy,
        listed=[
            {**day, "more": sum(day[name] for name in LABELS) - len(day["facts"])}  # changes without their facts
            for day in busy[:MOST_DAYS]
        ],
        named=NAMED,
        quiet=len(ahead) - len(busy),
        chart_content=_ahead(ahead, some),
    )


def _ahead(ahead: Sequence[Mapping[str, Any]], some: Sequence[str]) -> dict[str, Any]:
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
