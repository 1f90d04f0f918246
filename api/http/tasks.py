"""The route that says how a task stands that was accepted without waiting, or was not done in time."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path

from api.http import schemas
from api.http.dispatch import Reader
from api.http.problems import responses
from workers.errors import NotFoundError

routes = APIRouter(prefix="/tasks", tags=["tasks"])


@routes.get("/{id}", response_model=schemas.TaskState, responses=responses(404))
def state(id: Annotated[UUID, Path(description="as the 202 or 504 said it")], memory: Reader) -> dict[str, Any]:  # noqa: A002
    """Say how a task of this namespace stands, and its result, which is kept for five minutes."""
    found = memory.state(str(id))
    if found is None:
        raise NotFoundError(f"id: no task {id} of this namespace was accepted in the last day.")
    return {"task": str(id), **found}
