"""Routes of decay: run a pass, and list earlier ones."""

from typing import Annotated, Any

from ebb.contract.values import Instant
from fastapi import APIRouter, Query

from api.http import schemas
from api.http.dispatch import ACCEPTED, Admin, Reader
from api.http.route import Route

routes = APIRouter(prefix="/memory/decay", tags=["decay"], route_class=Route)

Everywhere = Annotated[bool, Query(description="All namespaces; needs the scope system.")]


@routes.post("", response_model=schemas.Decayed, responses=ACCEPTED)
def decay(memory: Admin, wish: schemas.DecayRequest | None = None, everywhere: Everywhere = False) -> dict[str, Any]:
    """Run a pass over the due facts of this namespace, and return its counts."""
    if everywhere:
        memory.caller.check("system")
    return memory.decay(**(wish or schemas.DecayRequest()).arguments(), everywhere=everywhere)


@routes.get("/runs", response_model=schemas.Runs)
def runs(
    memory: Reader,
    limit: Annotated[int, Query(ge=1, le=schemas.MOST_RESULTS)] = 20,
    before: Annotated[Instant | None, Query(description="the `next` of the page before")] = None,
    everywhere: Everywhere = False,
) -> dict[str, Any]:
    """Return the latest passes; the counts of a pass over all namespaces only with `everywhere`."""
    if everywhere:
        memory.caller.check("system")
    return memory.runs(limit, None if before is None else before.isoformat(), everything=everywhere)
