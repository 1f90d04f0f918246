"""The overview page: counts of a namespace and their time series; queues, workers and lag of the system."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from api.http.dashboard.rendering import page, router
from api.http.dashboard.visitors import Reading
from api.http.door import Door, door_of, reaching_redis
from workers.coordination import outbox, timings
from workers.coordination.timings import Histogram

routes = router()

DAYS = {1: "A day", 14: "Two weeks", 366: "A year"}
NEWEST = 8
PENDING = "pending"
"""Facts without a vector; this series is hidden if it is zero."""

TONES = {
    "tiers": ("hot", "warm", "cold"),
    "fidelity": ("full", "pooled", "fingerprint", "pending"),
    "classes": ("a", "b", "c", "d", "e", "f", "g", "h", "i"),
    "forgotten": ("g", "b", "c", "d", "e", "f", "a", "h", "i"),
    "due": ("sea",),
}
"""The colours of each chart's series, in order."""

TITLES = {
    "tiers": "By tier",
    "fidelity": "By fidelity",
    "classes": "By decay class",
    "forgotten": "Forgotten, by reason",
    "due": "Due",
}
ROWS = 40
"""Maximum rows of the table below a chart."""


@routes.get("/")
def overview(request: Request, memory: Reading, days: Annotated[int, Query(ge=1, le=366)] = 14) -> HTMLResponse:
    """Show the overview of a namespace, and with the scope `system` queues and lag."""
    stats = memory.stats()
    if not stats["facts"] and not stats["forgotten"]:
        return page(request, "nothing_yet.html", flower_url=_flower_url(request, memory))
    history = memory.time_series(days)
    course = {**history, "due": {"due": history["due"]}}
    whole = "system" in memory.caller.scopes
    return page(
        request,
        "overview.html",
        stats=stats,
        days=days,
        spans=DAYS,
        courses=[_course(name, course) for name in TITLES],
        newest=memory.facts(NEWEST)["facts"],
        system=figures(door_of(request)) if whole else None,
        kept_up=kept_up(memory.system_time_series(days)) if whole else [],
    )


def _flower_url(request: Request, memory: Reading) -> str:
    return door_of(request).settings.flower_url if "system" in memory.caller.scopes else ""


def _course(name: str, course: Mapping[str, Any]) -> dict[str, Any]:
    """Return the chart and table of one breakdown of facts."""
    lists = {one: values for one, values in course[name].items() if one != PENDING or any(values)}
    places = [place for place, one in enumerate(course[name]) if one in lists]
    tones = [TONES[name][place % len(TONES[name])] for place in places]
    now = {one: values[-1] for one, values in lists.items()}
    return _chart(TITLES[name], "", course["at"], lists, tones) | {"now": now, "tones": tones}


@dataclass(frozen=True, slots=True)
class Lag:
    """Seconds from a write until it can be read, median and 95th percentile; None before the first write."""

    writes: int
    half: float | None
    most: float | None


def figures(door: Door) -> dict[str, Any]:
    """Return the measures of queues, workers and writes in Redis.

    Raises:
        UnavailableError: Redis does not answer.
    """
    with reaching_redis():
        return {
            "queues": door.lanes(),
            "outbox": outbox.size(door.redis),
            "lag": lag(timings.read(door.redis).get(timings.WRITE)),
            "flower_url": door.settings.flower_url,
        }


def kept_up(found: Mapping[str, Any]) -> list[dict[str, Any]]:
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


def lag(writes: Histogram | None) -> Lag:
    """Return the lag from a histogram of writes."""
    counts = writes[0] if writes else []
    return Lag(counts[-1] if counts else 0, timings.quantile(counts, 0.5), timings.quantile(counts, 0.95))
