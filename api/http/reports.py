"""Routes of reports: statistics, forecast and contradictions of a namespace."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from api.http import schemas
from api.http.dispatch import ACCEPTED, Reader, Writer
from api.http.paging import Cursor, Limit
from api.http.problems import responses
from api.http.route import Route

routes = APIRouter(prefix="/memory", tags=["reports"], route_class=Route)


@routes.get("/stats", response_model=schemas.Stats)
def stats(memory: Reader) -> dict[str, Any]:
    """Return what the namespace holds, by tier, fidelity and decay class, and what is due."""
    return memory.stats()


@routes.get("/forecast", response_model=schemas.Forecast)
def forecast(
    memory: Reader,
    days: Annotated[int, Query(ge=1, le=366)] = 7,
    shown: Annotated[int, Query(ge=0, le=100, description="facts listed for each day and change")] = 3,
) -> dict[str, Any]:
    """Return what passes will do on each of the coming days."""
    return memory.forecast(days, shown)


@routes.get("/contradictions", response_model=schemas.Contradictions)
def contradictions(memory: Reader, limit: Limit = 100, cursor: Cursor = None) -> dict[str, Any]:
    """Return pairs of facts with one entity and key but different values, newest pair first."""
    return memory.contradictions(limit, cursor)


@routes.post("/contradictions/resolve", response_model=schemas.Resolved, responses=ACCEPTED | responses(404))
def resolve(wish: schemas.ResolveRequest, memory: Writer) -> dict[str, Any]:
    """Settle a contradiction: one fact supersedes the others, or both of two are accepted."""
    given = wish.arguments()
    return memory.resolve(*given.pop("ids"), **given)
