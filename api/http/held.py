"""Routes of held facts: they have ended but stay visible because of the forget limit."""

from typing import Any

from fastapi import APIRouter

from api.http import schemas
from api.http.dispatch import ACCEPTED, Reader, Writer
from api.http.paging import Cursor, Limit

routes = APIRouter(prefix="/memory/held", tags=["reports"])


@routes.get("", response_model=schemas.HeldFacts)
def held(memory: Reader, limit: Limit = 100, cursor: Cursor = None) -> dict[str, Any]:
    """Return held facts, those that ended first first."""
    return memory.held(limit, cursor)


@routes.post("/let-go", response_model=schemas.Decided, responses=ACCEPTED)
def let_go(wish: schemas.DecideRequest, memory: Writer) -> dict[str, Any]:
    """Forget held facts, which can be restored. If `left` is not 0, call again for the rest."""
    return memory.let_go(wish.named(), everything=wish.everything)


@routes.post("/keep", response_model=schemas.Decided, responses=ACCEPTED)
def keep(wish: schemas.DecideRequest, memory: Writer) -> dict[str, Any]:
    """Keep held facts, as if they had been stored now. If `left` is not 0, call again for the rest."""
    return memory.keep(wish.named(), everything=wish.everything)
