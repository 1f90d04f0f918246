"""Routes of hygiene: near-duplicates, and the janitor."""

from typing import Any

from fastapi import APIRouter

from api.http import schemas
from api.http.dispatch import ACCEPTED, Admin, Reader
from api.http.route import Route

routes = APIRouter(prefix="/memory", tags=["hygiene"], route_class=Route)


@routes.post("/consolidate", response_model=schemas.Consolidated, responses=ACCEPTED)
def consolidate(memory: Admin, wish: schemas.ConsolidateRequest | None = None) -> dict[str, Any]:
    """Return near-duplicates; with `apply` they are merged, which `restore` undoes."""
    return memory.consolidate(**(wish or schemas.ConsolidateRequest()).arguments())


@routes.get("/janitor", response_model=schemas.Janitor)
def janitor_snapshot(memory: Reader) -> dict[str, Any]:
    """Return the report of the janitor's last run; `totalRuns` is 0 before the first."""
    return memory.janitor_snapshot()


@routes.post("/janitor", response_model=schemas.Janitor, responses=ACCEPTED)
def janitor(memory: Admin, wish: schemas.JanitorRequest | None = None) -> dict[str, Any]:
    """Run the janitor on this namespace, and return what was culled or became stale since its last run."""
    return memory.janitor(**(wish or schemas.JanitorRequest()).arguments())
