"""Routes of the two graphs: links between facts, and relations between entities."""

from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response

from api.http import schemas
from api.http.dispatch import ACCEPTED, Admin, Reader, Writer
from api.http.paging import Cursor, link_next
from api.http.problems import responses
from api.http.route import Route

routes = APIRouter(prefix="/memory", tags=["graph"], route_class=Route)


@routes.post("/links", response_model=schemas.Link, responses=ACCEPTED | responses(404))
def link(wish: schemas.LinkRequest, memory: Writer) -> dict[str, Any]:
    """Link two facts, or change their link's strength."""
    return memory.link(**wish.arguments())


@routes.get("/graph/edges", response_model=list[schemas.Edge])
def edges(
    memory: Reader,
    request: Request,
    response: Response,
    decayed: Annotated[
        bool, Query(description="Relations below the minimum weight, which recall does not use.")
    ] = False,
    entity: Annotated[str | None, Query(description="Only relations from or to this entity.")] = None,
    limit: Annotated[int, Query(ge=1, le=schemas.MOST_FACTS)] = 1_000,
    cursor: Cursor = None,
) -> list[dict[str, Any]]:
    """Return edges with their current weights, strongest first: those in use, or those below the minimum.

    Where there are more than `limit`, the header `Link` has the address of those that follow (RFC 8288).
    """
    found = memory.relations(decayed=decayed, entity=entity, limit=limit, cursor=cursor)
    link_next(request, response, found["next"])
    edges: list[dict[str, Any]] = found["edges"]
    return edges


@routes.post("/graph/edges", response_model=schemas.Edge, responses=ACCEPTED)
def relate(wish: schemas.EdgeRequest, memory: Writer) -> dict[str, Any]:
    """Record that two entities are related; a known relation counts as observed again."""
    given = wish.model_dump(exclude_unset=True)
    return memory.relate(given.pop("source"), given.pop("target"), given.pop("type"), **given)


@routes.post("/graph/decay", response_model=schemas.EdgesDecayed, responses=ACCEPTED)
def decay(memory: Admin, wish: schemas.EdgesDecayRequest | None = None) -> dict[str, Any]:
    """Update the stored weights of this namespace's relations, or report what would change."""
    return memory.decay_relations(dry_run=(wish or schemas.EdgesDecayRequest()).dry_run)
