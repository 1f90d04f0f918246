"""Routes of branches: older copies of a namespace, on which passes show the effect of time."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from api.http import schemas
from api.http.dispatch import ACCEPTED, Admin, Reader
from api.http.problems import responses
from workers.validation import MOST_DAYS

routes = APIRouter(prefix="/memory/branches", tags=["branches"])

Days = Annotated[int | None, Query(ge=1, le=MOST_DAYS, description="only the branch that is this many days older")]


@routes.get("", response_model=schemas.Branches)
def branches(memory: Reader) -> dict[str, Any]:
    """Return the branches of this namespace."""
    return memory.branches()


@routes.post("", response_model=schemas.Branched, responses=ACCEPTED | responses(404))
def branch(wish: schemas.BranchRequest, memory: Admin) -> dict[str, Any]:
    """Copy this namespace with every instant this many days earlier; the original does not change."""
    return memory.branch(wish.days)


@routes.delete("", response_model=schemas.BranchesDropped, responses=ACCEPTED | responses(404))
def drop(memory: Admin, days: Days = None) -> dict[str, Any]:
    """Erase the branches of this namespace, or the one of this age."""
    return memory.drop_branch(days)
