"""Routes of decay: passes and earlier ones, near-duplicates, the janitor, and held facts."""

from typing import Any

from ebb.contract import decay
from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from api.http import operations
from api.http.dispatch import Admin, Reader, Session, Writer
from api.http.route import Route

routes = APIRouter(prefix="/memory", route_class=Route)


class Everywhere(BaseModel):
    """The scope of a list of passes, as this door calls it."""

    everywhere: bool = Field(False, description="passes over all namespaces, with their counts; needs `system`")


def _decay(memory: Session, given: dict[str, Any], _: Response) -> dict[str, Any]:
    """Run a pass, over all namespaces only for callers with the scope system."""
    if given.get("everywhere"):
        memory.caller.check("system")
    return memory.perform(decay.DECAY, given)


def _runs(memory: Session, given: dict[str, Any], _: Response) -> dict[str, Any]:
    """List passes, all that they did only for callers with the scope system."""
    everything = given.pop("everywhere", False)
    if everything:
        memory.caller.check("system")
    return memory.perform(decay.RUNS, given | {"everything": everything})


NOW = {"now": decay.Decay.model_fields["now"]}
operations.add(routes, decay.DECAY, Admin, _decay, own=NOW, in_query=("everywhere",), tags=["decay"], name="decay")
operations.add(routes, decay.RUNS, Reader, _runs, left_out=("everything",), own=Everywhere.model_fields, tags=["decay"])
operations.add(routes, decay.CONSOLIDATE, Admin, left_out=("everywhere",), tags=["hygiene"])
operations.add(routes, decay.JANITOR_SNAPSHOT, Reader, tags=["hygiene"])
NOW = {"now": decay.RunJanitor.model_fields["now"]}
operations.add(routes, decay.JANITOR, Admin, left_out=("everywhere",), own=NOW, tags=["hygiene"])
operations.add(routes, decay.HELD, Reader, tags=["reports"])
operations.add(routes, decay.LET_GO, Writer, tags=["reports"])
operations.add(routes, decay.KEEP, Writer, tags=["reports"])
