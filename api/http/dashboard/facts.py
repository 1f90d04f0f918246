"""The list of a namespace's facts, newest first, in pages."""

from typing import Annotated
from uuid import UUID

from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from api.http.dashboard.rendering import page, router
from api.http.dashboard.visitors import Reading

routes = router()

ROWS = 50


@routes.get("/dashboard/facts")
def facts(request: Request, memory: Reading, before: Annotated[UUID | None, Query()] = None) -> HTMLResponse:
    """Show one page of live facts without counting this as use."""
    found = memory.facts(ROWS + 1, before=None if before is None else str(before))["facts"]
    shown = found[:ROWS]
    next_ = shown[-1]["id"] if len(found) > ROWS else None
    return page(request, "facts.html", facts=shown, next=next_, later=before)
