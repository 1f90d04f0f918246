"""The route that reports the state of a task that was accepted without waiting, or was late."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Path

from api.http import schemas
from api.http.dispatch import Reader
from api.http.problems import responses
from workers.errors import NotFoundError

routes = APIRouter(prefix="/tasks", tags=["tasks"])


@routes.get("/{id}", response_model=schemas.TaskState, responses=responses(404))
def state(id: Annotated[UUID, Path(description="the task's id, from 202 or 504")], memory: Reader) -> dict[str, Any]:  # noqa: A002
    """Return the state of a task of this namespace, and its result, which is kept for five minutes."""
    found = memory.state(str(id))
    if found is None:
        raise NotFoundError(f"id: no task {id} of this namespace was accepted in the last day.")
    return {"task": str(id), **found}
