"""Routes of single facts: store, read, edit, forget, restore, reinforce, pin, history."""

from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from ebb.contract import values
from ebb.contract.reports import FACT, FACTS
from fastapi import APIRouter, Path, Query, Response
from pydantic import BaseModel, Field

from api.http import operations, schemas
from api.http.dispatch import ACCEPTED, Reader, Writer
from api.http.paging import Cursor, Limit
from api.http.problems import RefusedError, responses
from api.http.route import Route
from workers.errors import NotFoundError

routes = APIRouter(prefix="/memory/facts", tags=["facts"], route_class=Route)

Id = Annotated[UUID, Path(description="the fact's id, as returned when it was stored", examples=[schemas.EXAMPLE_ID])]
MADE = ("added", "updated")


@routes.post("", response_model=schemas.Stored, responses=ACCEPTED | {201: {"model": schemas.Stored}})
def store(fact: schemas.StoreRequest, memory: Writer, response: Response) -> dict[str, Any]:
    """Store one fact: 201 if it is new, 200 if it was known or had been forgotten on request."""
    given = fact.arguments()
    memory.new_fact = given.setdefault("id", memory.new_id(given))
    answer = memory.store(**given)
    if answer["action"] in MADE and not answer.get("changed"):
        response.status_code = HTTPStatus.CREATED
        response.headers["Location"] = f"{routes.prefix}/{answer['id']}"
    return answer


class Paged(BaseModel):
    """How much of the list one answer over HTTP has."""

    limit: values.Limit = Field(100, description="how many at most")


operations.add(routes, FACTS, Reader, left_out=("before", "offset", "ids"), own=Paged.model_fields)


@routes.post("/batch", response_model=schemas.StoredMany, responses=ACCEPTED)
def store_many(batch: schemas.BatchRequest, memory: Writer) -> dict[str, Any]:
    """Store many facts as one task; each has its own answer, in order."""
    facts = [{"id": memory.new_id(fact, place), **fact} for place, fact in enumerate(batch.facts)]
    return memory.store_many(facts, touch=batch.touch, classify=batch.classify, count_turns=batch.count_turns)


operations.add(routes, FACT, Reader, problems=(404,))


@routes.patch("/{id}", response_model=schemas.Edited, responses=ACCEPTED | responses(404))
def edit(id: Id, changes: schemas.EditRequest, memory: Writer) -> dict[str, Any]:  # noqa: A002
    """Change the fields of a fact except its text; its history keeps the earlier values."""
    return memory.edit(str(id), **changes.arguments())


@routes.delete("/{id}", response_model=schemas.Fate, responses=ACCEPTED | responses(404, 409))
def forget(
    id: Id,  # noqa: A002
    memory: Writer,
    purge: Annotated[bool, Query(description="Erase it at once; needs the scope admin.")] = False,
) -> dict[str, Any]:
    """Forget a fact; until it is purged, it can be restored."""
    if purge:
        memory.caller.check("admin")
    return _fate(memory.forget([str(id)], purge=purge))


@routes.post("/{id}/restore", response_model=schemas.Fate, responses=ACCEPTED | responses(404, 409))
def restore(id: Id, memory: Writer) -> dict[str, Any]:  # noqa: A002
    """Restore a forgotten fact, whatever the reason."""
    return _fate(memory.restore([str(id)]))


@routes.post("/{id}/reinforce", response_model=schemas.Reinforced, responses=ACCEPTED | responses(404))
def reinforce(id: Id, memory: Writer, wish: schemas.ReinforceRequest | None = None) -> dict[str, Any]:  # noqa: A002
    """Strengthen and confirm a fact."""
    return memory.reinforce(str(id), (wish or schemas.ReinforceRequest()).boost)


@routes.get("/{id}/history", response_model=schemas.History, responses=responses(404))
def history(id: Id, memory: Reader, limit: Limit = schemas.MOST_RESULTS, cursor: Cursor = None) -> dict[str, Any]:  # noqa: A002
    """Return the history of a fact, live or forgotten, oldest event first."""
    return memory.history(str(id), limit, cursor)


@routes.post("/{id}/pin", response_model=schemas.Pinned, responses=ACCEPTED | responses(404))
def pin(id: Id, memory: Writer, wish: schemas.PinRequest | None = None) -> dict[str, Any]:  # noqa: A002
    """Pin a fact, without end or until an instant: it does not fade."""
    return memory.pin(str(id), until=(wish or schemas.PinRequest()).arguments().get("until"))


@routes.delete("/{id}/pin", response_model=schemas.Pinned, responses=ACCEPTED | responses(404))
def unpin(id: Id, memory: Writer) -> dict[str, Any]:  # noqa: A002
    """End a fact's pin; it fades from now on."""
    return memory.pin(str(id), off=True)


def _fate(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome for the one fact of a request."""
    (fate,) = answer["results"]
    if fate.get("action") == "unknown":
        raise NotFoundError(fate.get("error") or f"id: this namespace has no fact {fate['id']}, live or forgotten.")
    if "error" in fate:
        raise RefusedError(HTTPStatus.CONFLICT, fate["error"])
    return dict(fate)
