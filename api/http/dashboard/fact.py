"""The page of one fact: what it says, how it fades, what happened to it, and what it is linked with."""

from typing import Any
from uuid import UUID

from fastapi import Request
from fastapi.responses import HTMLResponse

from api.http.dashboard.linkage import drawing
from api.http.dashboard.rendering import page, router
from api.http.dashboard.visitors import Reading
from api.http.sending import Session
from workers.errors import NotFoundError

routes = router()

MOST_NEIGHBOURS = 20
LINKED = "linked"
"""What the history says of links, which the page draws."""


@routes.get("/dashboard/facts/{id}")
def fact(request: Request, memory: Reading, id: UUID) -> HTMLResponse:  # noqa: A002 - the contract's name
    """Show a fact, live or forgotten; looking at it is no use of it."""
    name = str(id)
    history = memory.history(name)
    happened = [one for one in reversed(history["events"]) if one["what"] != LINKED]
    return page(
        request,
        "fact.html",
        history=history,
        happened=happened,
        fact=_live(memory, name),
        curve=memory.curve(name),
        drawing=drawing(name, memory.neighbours(name, MOST_NEIGHBOURS)),
    )


def _live(memory: Session, name: str) -> dict[str, Any] | None:
    """Return a fact as it is now; none where readers do not see it any more."""
    try:
        return memory.fact(name)
    except NotFoundError:
        return None
