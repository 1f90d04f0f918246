"""Routes of operators: passes, near-duplicates, the janitor, held facts, branches, settings, and accepted tasks."""

from typing import Annotated, Any
from uuid import UUID

from ebb.contract import admin, decay, reports
from ebb.contract.operation import TaskState
from ebb.contract.values import MOST_DAYS
from fastapi import APIRouter, Path, Response
from pydantic import BaseModel, Field

from api.http import operations
from api.http.dispatch import Admin, Reader, Session, System, Writer
from api.http.problems import responses
from api.http.route import Route
from workers.errors import NotFoundError

routes = APIRouter(route_class=Route)


class Everywhere(BaseModel):
    """The scope of a list of passes, as this door calls it."""

    everywhere: bool = Field(False, description="passes over all namespaces, with their counts; needs `system`")


def _runs(memory: Session, given: dict[str, Any], _: Response) -> dict[str, Any]:
    """List passes, all that they did only for callers with the scope system."""
    everything = given.pop("everywhere", False)
    return memory.perform(decay.RUNS, given | {"everything": everything})


operations.add(routes, decay.DECAY, Admin, tags=["decay"], name="decay")
operations.add(routes, decay.RUNS, Reader, _runs, left_out=("everything",), own=Everywhere.model_fields, tags=["decay"])
operations.add(routes, decay.CONSOLIDATE, Admin, tags=["hygiene"])
operations.add(routes, decay.JANITOR_SNAPSHOT, Reader, tags=["hygiene"])
operations.add(routes, decay.JANITOR, Admin, tags=["hygiene"])
operations.add(routes, decay.HELD, Reader, tags=["reports"])
operations.add(routes, decay.LET_GO, Writer, tags=["reports"])
operations.add(routes, decay.KEEP, Writer, tags=["reports"])
for operation in (reports.TIME_SERIES, reports.CURVE, reports.NEIGHBOURS):
    operations.add(routes, operation, Reader, problems=(404,), tags=["reports"])
operations.add(routes, reports.NAMESPACES, System, tags=["system"])
operations.add_others(routes, decay, tags=["decay"])


class Age(BaseModel):
    """By how many days the copy of this namespace is older."""

    days: int = Field(ge=1, le=MOST_DAYS, examples=[365], description="by how many days its instants are earlier")


class AnyAge(BaseModel):
    """Which branches are meant."""

    days: int | None = Field(None, ge=1, le=MOST_DAYS, description="only the branch that is this many days older")


def _branch(memory: Session, given: dict[str, Any], _: Response) -> dict[str, Any]:
    return memory.perform(admin.BRANCH, {"older": given["days"]})


def _drop(memory: Session, given: dict[str, Any], _: Response) -> dict[str, Any]:
    return memory.perform(admin.DROP_BRANCH, {"older": given.get("days")})


BRANCHES: dict[str, Any] = {"tags": ["branches"]}
operations.add(routes, admin.BRANCHES, Reader, **BRANCHES)
operations.add(
    routes, admin.BRANCH, Admin, _branch, left_out=("older",), own=Age.model_fields, problems=(404,), **BRANCHES
)
operations.add(
    routes, admin.DROP_BRANCH, Admin, _drop, left_out=("older",), own=AnyAge.model_fields, problems=(404,), **BRANCHES
)
operations.add(
    routes,
    admin.SETTINGS,
    Reader,
    route="GET /memory/settings",
    left_out=("set", "unset"),
    tags=["settings"],
    description="Return the effective settings of the namespace, and which of them are its own.",
)
operations.add(routes, admin.SETTINGS, Admin, tags=["settings"])
operations.add_others(routes, admin, tags=["system"])


@routes.get(
    "/tasks/{id}",
    response_model=TaskState,
    response_model_exclude_unset=True,
    responses=responses(404),
    tags=["tasks"],
)
def state(id: Annotated[UUID, Path(description="the task's id, from 202 or 504")], memory: Reader) -> dict[str, Any]:  # noqa: A002
    """Return the state of a task of this namespace, and its result, which is kept for five minutes."""
    found = memory.state(str(id))
    if found is None:
        raise NotFoundError(f"id: no task {id} of this namespace was accepted in the last day.")
    return {"task": str(id), **found}
