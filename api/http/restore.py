"""Routes that undo forgetting: list forgotten facts, and restore many of them at once."""

from typing import Annotated, Any
from uuid import UUID

from ebb.contract.values import Instant
from fastapi import APIRouter, Query

from api.http import schemas
from api.http.dispatch import ACCEPTED, Reader, Writer
from api.http.paging import Cursor, Limit
from workers.validation.archived import Reason

routes = APIRouter(prefix="/memory", tags=["facts"])


@routes.get("/forgotten", response_model=schemas.Forgotten)
def forgotten(
    memory: Reader,
    since: Annotated[Instant | None, Query(description="forgotten at this instant or later")] = None,
    until: Annotated[Instant | None, Query(description="forgotten before this instant")] = None,
    reason: Annotated[Reason | None, Query(description="forgotten for this reason")] = None,
    run: Annotated[UUID | None, Query(description="forgotten by this pass or other run")] = None,
    limit: Limit = 100,
    cursor: Cursor = None,
) -> dict[str, Any]:
    """Return forgotten facts that can be restored, newest first.

    What was forgotten on request (`asked`, `retracted`) is shown to keys with the scope write, which may restore it.
    """
    asked = "write" in memory.caller.scopes
    chosen = {"since": since, "until": until, "run": run}
    given = {name: None if value is None else str(value) for name, value in chosen.items()}
    return memory.forgotten(limit, cursor=cursor, asked=asked, reason=reason, **given)


@routes.post("/restore", response_model=schemas.Restored, responses=ACCEPTED)
def restore(wish: schemas.RestoreRequest, memory: Writer) -> dict[str, Any]:
    """Restore facts by their ids, or all that were forgotten in a period, for a reason or by a run.

    A time or a run alone matches what ended by itself; give `reason` for what was forgotten on request.
    """
    return memory.restore(**wish.arguments())
