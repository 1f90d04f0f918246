"""Routes of the two graphs: links between facts, and edges between entities, which fade unless observed again."""

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
        bool, Query(description="Those that faded below the minimum, and are recalled no more.")
    ] = False,
    entity: Annotated[str | None, Query(description="Only those from or to this one.")] = None,
    limit: Annotated[int, Query(ge=1, le=schemas.MOST_FACTS)] = 1_000,
    cursor: Cursor = None,
) -> list[dict[str, Any]]:
    """Return edges with their current weights, strongest first: those in use, or those below the minimum (R18).

    Where there are more than `limit`, the header `Link` has the address of those that follow (RFC 8288).
    """
    found = memory.relations(decayed=decayed, entity=entity, limit=limit, cursor=cursor)
    link_next(request, response, found["next"])
    edges: list[dict[str, Any]] = found["edges"]
    return edges


@routes.post("/graph/edges", response_model=schemas.Edge, responses=ACCEPTED)
def relate(wish: schemas.EdgeRequest, memory: Writer) -> dict[str, Any]:
    """Observe that an entity has to do with another: the edge begins, or begins anew (R24)."""
    given = wish.model_dump(exclude_unset=True)
    return memory.relate(given.pop("source"), given.pop("target"), given.pop("type"), **given)


@routes.post("/graph/decay", response_model=schemas.EdgesDecayed, responses=ACCEPTED)
def decay(memory: Admin, wish: schemas.EdgesDecayRequest | None = None) -> dict[str, Any]:
    """Bring the stored weights of this namespace's edges up to date, or say what that would change (R20, R21)."""
    return memory.decay_relations(dry_run=(wish or schemas.EdgesDecayRequest()).dry_run)
