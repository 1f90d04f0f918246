"""Routes that ask: recall, lookup by name, and the context for a prompt."""

from typing import Any

from ebb.contract.operation import Operation
from ebb.contract.recall import CONTEXT, LOOKUP, RECALL
from ebb.contract.values import MOST_RESULTS
from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from api.http import operations
from api.http.dispatch import Reader, Session
from api.http.route import Route

routes = APIRouter(prefix="/memory", tags=["recall"], route_class=Route)


class ByKey(BaseModel):
    """What depends on the caller's key."""

    touch: bool | None = Field(None, description="whether this counts as use; if left out: with a key that may write")


def touches(memory: Session, wanted: bool | None) -> bool:
    """Return whether what is recalled counts as used: as wanted, else if the caller may write.

    Raises:
        RefusedError: it is wanted with a key that may not write.
    """
    if wanted:
        memory.caller.check("write")
    return "write" in memory.caller.scopes if wanted is None else wanted


def _ask(operation: Operation) -> operations.Act:
    def act(memory: Session, given: dict[str, Any], _: Response) -> dict[str, Any]:
        own = {"limit": MOST_RESULTS} if operation is LOOKUP else {}
        return memory.perform(operation, own | given | {"touch": touches(memory, given.get("touch"))})

    return act


operations.add(routes, RECALL, Reader, _ask(RECALL), own=ByKey.model_fields, problems=(404,))
operations.add(routes, LOOKUP, Reader, _ask(LOOKUP), own=ByKey.model_fields)
operations.add(routes, CONTEXT, Reader, _ask(CONTEXT), own=ByKey.model_fields)
