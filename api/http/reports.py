"""Routes that tell what a namespace holds, what will come of it, and what contradicts itself there."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from api.http import schemas
from api.http.dispatch import ACCEPTED, Reader, Writer
from api.http.paging import Cursor, Limit
from api.http.problems import responses
from api.http.route import Route

routes = APIRouter(prefix="/memory", tags=["telling"], route_class=Route)


@routes.get("/stats", response_model=schemas.Stats)
def stats(memory: Reader) -> dict[str, Any]:
    """Return what the namespace holds, by tier, fidelity and decay class, and what is due."""
    return memory.stats()


@routes.get("/forecast", response_model=schemas.Forecast)
def forecast(
    memory: Reader,
    days: Annotated[int, Query(ge=1, le=366)] = 7,
    shown: Annotated[int, Query(ge=0, le=100, description="facts named for each day")] = 3,
) -> dict[str, Any]:
    """Return what passes will cool, shrink and forget on each of the coming days."""
    return memory.forecast(days, shown)


@routes.get("/contradictions", response_model=schemas.Contradictions)
def contradictions(memory: Reader, limit: Limit = 100, cursor: Cursor = None) -> dict[str, Any]:
    """Return pairs of facts with one entity and key but different values, found last first."""
    return memory.contradictions(limit, cursor)


@routes.post("/contradictions/resolve", response_model=schemas.Resolved, responses=ACCEPTED | responses(404))
def resolve(wish: schemas.ResolveRequest, memory: Writer) -> dict[str, Any]:
    """Settle a contradiction: one fact supersedes the others, or both of two hold."""
    given = wish.arguments()
    return memory.resolve(*given.pop("ids"), **given)
