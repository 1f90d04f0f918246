"""The page of decay runs: what each pass did, and how long it took."""

from typing import Annotated

from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from api.http.dashboard.rendering import page, router
from api.http.dashboard.visitors import Reading
from workers.validation.values import Instant

routes = router()

ROWS = 25

COUNTED = {
    "processed": "Took up",
    "changed": "Changed",
    "compressed": "Compressed",
    "fingerprinted": "Fingerprinted",
    "forgotten": "Forgotten",
    "held": "Held back",
}
"""What a run counts, and how the page calls it."""


@routes.get("/dashboard/runs")
def runs(
    request: Request,
    memory: Reading,
    before: Annotated[Instant | None, Query()] = None,
    everywhere: Annotated[bool | None, Query()] = None,
) -> HTMLResponse:
    """Show the latest passes; of those over all namespaces what they did only to whom the whole system is open."""
    whole = "system" in memory.caller.scopes
    if everywhere:
        memory.caller.check("system")
    every = whole if everywhere is None else everywhere
    told = memory.runs(ROWS, None if before is None else before.isoformat(), everything=every)
    return page(
        request,
        "runs.html",
        runs=told["runs"],
        counted=COUNTED,
        next=told["next"],
        later=before,
        everywhere=every,
        whole=whole,
    )
