"""Routes of facts: store, read, edit, reinforce, pin, forget, restore and history."""

from http import HTTPStatus
from typing import Annotated, Any

from ebb.contract import conversation, facts, retention
from ebb.contract.reports import FACT, FACTS
from ebb.contract.values import MOST_FACTS, MOST_RESULTS, Flag, Limit, Shallow
from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from api.http import operations
from api.http.dispatch import Reader, Session, Writer
from api.http.problems import RefusedError
from api.http.route import Route
from workers.errors import NotFoundError

routes = APIRouter(prefix="/memory", tags=["facts"], route_class=Route)

MADE = ("added", "updated")


class Paged(BaseModel):
    """How much of the list one answer over HTTP has."""

    limit: Limit = Field(100, description="how many at most")


class PagedEvents(BaseModel):
    """How much of a history one answer over HTTP has."""

    limit: Limit = Field(MOST_RESULTS, description="how many events at most")


class Batch(BaseModel):
    """Facts over HTTP are objects."""

    facts: list[Annotated[dict[str, Any], Shallow]] = Field(
        min_length=1, max_length=MOST_FACTS, description="facts as `POST /memory/facts` takes them"
    )


class One(BaseModel):
    """The fact of a path."""

    id: retention.Id


class Forgetting(One):
    """The fact of a path, which is erased with a key that may do so."""

    purge: Flag = Field(False, description="erase it at once: no way back; needs the scope admin")


def store(memory: Session, given: dict[str, Any], response: Response) -> Any:
    """Store one fact; answer 201 with `Location` if it is new."""
    memory.new_fact = given.setdefault("id", memory.new_id(given))
    answer = memory.store(**given)
    if answer["action"] in MADE and not answer.get("changed"):
        response.status_code = HTTPStatus.CREATED
        response.headers["Location"] = f"{routes.prefix}/facts/{answer['id']}"
    return answer


def store_many(memory: Session, given: dict[str, Any], _: Response) -> Any:
    """Store facts, with ids derived from the idempotency key."""
    named = [{"id": memory.new_id(fact, place), **fact} for place, fact in enumerate(given["facts"])]
    return memory.store_many(**given | {"facts": named})


def edit(memory: Session, given: dict[str, Any], _: Response) -> Any:
    """Edit a fact; null removes a field."""
    return memory.edit(**given)


def forget(memory: Session, given: dict[str, Any], _: Response) -> Any:
    """Forget facts, or erase them at once, which needs the scope admin."""
    if given.get("purge"):
        memory.caller.check("admin")
    return memory.forget(**given)


def forget_one(memory: Session, given: dict[str, Any], response: Response) -> Any:
    """Forget or erase the fact of a path."""
    return _outcome(forget(memory, {"ids": [given.pop("id")], **given}, response))


def forgotten(memory: Session, given: dict[str, Any], _: Response) -> Any:
    """List forgotten facts; those forgotten on request only for callers with the scope write."""
    return memory.forgotten(**given | {"asked": given.get("asked", True) and "write" in memory.caller.scopes})


def restore(memory: Session, given: dict[str, Any], _: Response) -> Any:
    """Restore facts by ids or by a selection."""
    return memory.restore(**given)


def restore_one(memory: Session, given: dict[str, Any], _: Response) -> Any:
    """Restore the fact of a path."""
    return _outcome(memory.restore([given["id"]]))


def unpin(memory: Session, given: dict[str, Any], _: Response) -> Any:
    """End the pin of a fact."""
    return memory.pin(given["id"], off=True)


def _outcome(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome for the one fact of a request."""
    (one,) = answer["results"]
    if one.get("action") == "unknown":
        raise NotFoundError(one.get("error") or f"id: this namespace has no fact {one['id']}, live or forgotten.")
    if "error" in one:
        raise RefusedError(HTTPStatus.CONFLICT, one["error"])
    return dict(one)


operations.add(
    routes, facts.STORE, Writer, store, responses={201: {"model": facts.Stored}},
    description="Store one fact: 201 if it is new, 200 if it was known, and counts as used, or forgotten on request.",
)  # fmt: skip
operations.add(routes, FACTS, Reader, own=Paged.model_fields)
operations.add(routes, facts.STORE_MANY, Writer, store_many, own=Batch.model_fields)
operations.add(routes, FACT, Reader, problems=(404,))
operations.add(routes, facts.EDIT, Writer, edit, problems=(404,))
operations.add(
    routes, retention.FORGET, Writer, forget_one, route="DELETE /memory/facts/{id}",
    left_out=("ids", "dry_run", *retention.SUBJECT),
    own=Forgetting.model_fields, response_model=retention.Outcome, problems=(404, 409),
    description="Forget a fact; until it is purged, it can be restored.",
)  # fmt: skip
operations.add(
    routes, retention.RESTORE, Writer, restore_one, route="POST /memory/facts/{id}/restore",
    left_out=retention.RESTORE.parameters, own=One.model_fields, response_model=retention.Outcome, problems=(404, 409),
    description="Restore a forgotten fact, whatever the reason.",
)  # fmt: skip
operations.add(routes, retention.HISTORY, Reader, own=PagedEvents.model_fields, problems=(404,))
operations.add(routes, retention.PIN, Writer, problems=(404,))
operations.add(
    routes, retention.PIN, Writer, unpin, route="DELETE /memory/facts/{id}/pin", left_out=("off", "until"),
    problems=(404,), name="unpin", description="End a fact's pin; it fades from now on.",
)  # fmt: skip
operations.add(
    routes, retention.FORGOTTEN, Reader, forgotten,
    description="Return forgotten facts that can be restored, newest first.\n\n"
    "What was forgotten on request (`asked`, `retracted`) is shown to keys with the scope write, which may restore it.",
)  # fmt: skip
operations.add(routes, retention.RESTORE, Writer, restore)
operations.add(routes, retention.FORGET, Writer, forget)
operations.add_others(routes, retention)
operations.add_others(routes, conversation)
