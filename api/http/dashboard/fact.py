"""The page of one fact: its text, curve, history and links."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from fastapi import Request
from fastapi.responses import HTMLResponse

from api.http.dashboard.neighbours import drawing
from api.http.dashboard.rendering import page, router
from api.http.dashboard.visitors import Reading
from api.http.dispatch import Session
from workers.errors import NotFoundError

routes = router()

MOST_NEIGHBOURS = 20
MOST_EVENTS = 100
"""At most this many events are shown, the newest."""


@routes.get("/dashboard/facts/{id}")
def fact(request: Request, memory: Reading, id: UUID) -> HTMLResponse:  # noqa: A002 - the contract's name
    """Show a fact, live or forgotten, without counting this as use."""
    name = str(id)
    history, curve = memory.history(name, links=False), memory.curve(name)
    events = history["events"]
    return page(
        request,
        "fact.html",
        history=history,
        happened=events[: -MOST_EVENTS - 1 : -1],
        earlier=max(len(events) - MOST_EVENTS, 0),
        fact=_live(memory, name),
        curve=curve,
        before=_part(curve, curve["from"], curve["now"]) if curve["hits"] else None,
        after=_part(curve, curve["since"], curve["until"]),
        drawing=drawing(name, memory.neighbours(name, MOST_NEIGHBOURS)),
    )


def _part(curve: Mapping[str, Any], begins: float, over: float) -> dict[str, Any]:
    """Return the part of a curve between two instants: years to come would leave no room for the past."""
    inside = [i for i, at in enumerate(curve["at"]) if begins <= at <= over]
    numbered = [{**one, "number": number} for number, one in enumerate(curve["changes"], start=1)]
    return {
        "now": curve["now"],
        **{name: [curve[name][i] for i in inside] for name in ("at", "salience", "confidence")},
        "hits": [hit for hit in curve["hits"] if begins <= hit["at"] <= over],
        "changes": [one for one in numbered if begins <= one["at"] <= over],
        "tiers": [
            {**band, "from": max(band["from"], begins), "until": min(band["until"], over)}
            for band in curve["tiers"]
            if band["from"] < over and band["until"] > begins
        ],
    }


def _live(memory: Session, name: str) -> dict[str, Any] | None:
    """Return a fact as it is now; None if it is not live."""
    try:
        return memory.fact(name)
    except NotFoundError:
        return None
