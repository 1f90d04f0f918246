"""The page of decay runs: what each pass did and how long it took."""

from typing import Annotated

from ebb.contract.values import Instant
from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from api.http.dashboard.rendering import page, router
from api.http.dashboard.visitors import Reading

routes = router()

ROWS = 25

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
    request: Request,
    memory: Reading,
    before: Annotated[Instant | None, Query()] = None,
    everywhere: Annotated[bool | None, Query()] = None,
) -> HTMLResponse:
    """Show the latest passes; the counts of those over all namespaces need the scope `system`."""
    whole = "system" in memory.caller.scopes
    if everywhere:
        memory.caller.check("system")
    every = whole if everywhere is None else everywhere
    found = memory.runs(ROWS, None if before is None else before.isoformat(), everything=every)
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
