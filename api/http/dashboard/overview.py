"""The overview page: what a namespace holds, how this has changed, and how far behind the system is."""

from collections.abc import Mapping
from typing import Annotated, Any

from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from api.http.dashboard import system
from api.http.dashboard.rendering import page, router
from api.http.dashboard.visitors import Reading
from api.http.door import door_of

routes = router()

DAYS = {1: "A day", 14: "Two weeks", 366: "A year"}
NEWEST = 8
PENDING = "pending"
"""Facts without a vector; this series is shown only if it has any."""

TONES = {
    "tiers": ("hot", "warm", "cold"),
    "fidelity": ("full", "pooled", "fingerprint", "pending"),
    "classes": ("a", "b", "c", "d", "e", "f", "g", "h", "i"),
    "forgotten": ("g", "b", "c", "d", "e", "f", "a", "h", "i"),
    "due": ("sea",),
}
"""The colours of each chart's series, in their order."""

TITLES = {
    "tiers": "By tier",
    "fidelity": "By fidelity",
    "classes": "By decay class",
    "forgotten": "Forgotten, by reason",
    "due": "Due",
}
ROWS = 40
"""Rows of the table below a chart; longer series are thinned out."""


@routes.get("/")
def overview(request: Request, memory: Reading, days: Annotated[int, Query(ge=1, le=366)] = 14) -> HTMLResponse:
    """Show a namespace at a glance, and with the scope `system` queues and lag as well."""
    stats = memory.stats()
    if not stats["facts"] and not stats["forgotten"]:
        return page(request, "nothing_yet.html", flower_url=_flower_url(request, memory))
    history = memory.course(days)
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
        system=system.figures(door_of(request)) if whole else None,
        kept_up=system.course(memory.system_course(days)) if whole else [],
    )


def _flower_url(request: Request, memory: Reading) -> str:
    return door_of(request).settings.flower_url if "system" in memory.caller.scopes else ""


def _course(name: str, course: Mapping[str, Any]) -> dict[str, Any]:
    """Return one breakdown of the facts, for its chart and its table."""
    tones, at = TONES[name], course["at"]
    series = [
        {"name": one, "tone": tones[place % len(tones)], "values": values}
        for place, (one, values) in enumerate(course[name].items())
        if one != PENDING or any(values)
    ]
    shown = range(len(at) - 1, -1, -max(1, -(-len(at) // ROWS)))
    return {
        "title": TITLES[name],
        "now": {one["name"]: one["values"][-1] for one in series},
        "tones": [one["tone"] for one in series],
        "chart": {"at": at, "series": series},
        "rows": [(at[i], [one["values"][i] for one in series]) for i in shown],
    }
