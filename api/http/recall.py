"""Routes that ask: recall, lookup by name, and the context for a prompt."""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from api.http import schemas
from api.http.dispatch import Reader
from api.http.paging import Cursor, Limit
from api.http.problems import responses
from api.http.route import Route

routes = APIRouter(prefix="/memory", tags=["recall"], route_class=Route)


@routes.post("/recall", response_model=schemas.Recalled, responses=responses(404))
def recall(question: schemas.RecallRequest, memory: Reader) -> dict[str, Any]:
    """Return the facts that fit best. That is use, and strengthens them, unless the key may only read.

    404 is for `why` asked of a fact that this namespace does not have.
    """
    return memory.recall(**question.arguments() | {"touch": touches(memory, question.touch)})


@routes.get("/lookup", response_model=schemas.LookedUp)
def lookup(
    memory: Reader,
    entity: Annotated[str, Query(min_length=1, description="whom or what facts are about")],
    key: Annotated[str | None, Query(description="which of its properties; else all")] = None,
    tag: str | None = None,
    as_of: Annotated[str | None, Query(description="what was true then, ISO 8601 with zone or a date")] = None,
    known_as_of: Annotated[str | None, Query(description="what had been told by then")] = None,
    limit: Limit = schemas.MOST_RESULTS,
    cursor: Cursor = None,
    touch: Annotated[bool | None, Query(description="whether this counts as use")] = None,
) -> dict[str, Any]:
    """Return the facts about an entity, or one key of it, the most confident first, then the newest.

    Nothing is embedded. That is use, and strengthens them, unless the key may only read.
    """
    options = {"tag": tag, "as_of": as_of, "known_as_of": known_as_of, "limit": limit, "cursor": cursor}
    given: Any = {name: value for name, value in options.items() if value is not None}
    return memory.lookup(entity, key, touch=touches(memory, touch), **given)


@routes.post("/context", response_model=schemas.Injected)
def context(question: schemas.ContextRequest, memory: Reader) -> dict[str, Any]:
    """Return what fits a prompt, as a block of text to put before it; only what is in it counts as used."""
    return memory.context(**question.arguments() | {"touch": touches(memory, question.touch)})


def touches(memory: Reader, wished: bool | None) -> bool:
    """Return whether what is recalled counts as used: as wished, else if the caller may write.

    Raises:
        RefusedError: it was wished with a key that may not write.
    """
    if wished:
        memory.caller.check("write")
    return "write" in memory.caller.scopes if wished is None else wished
