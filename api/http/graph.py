"""Routes of the two graphs: links between facts, and relations between entities."""

from typing import Any

from ebb.contract.graph import DECAY_RELATIONS, LINK, RELATE, RELATIONS, Edge, Entity
from ebb.contract.values import Flag
from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from api.http import operations
from api.http.dispatch import Admin, Reader, Session, Writer
from api.http.paging import link_next
from api.http.route import Route

routes = APIRouter(prefix="/memory", tags=["graph"], route_class=Route)


class Ends(BaseModel):
    """The names of an edge's ends over HTTP."""

    source: Entity = Field(validation_alias="from", description="an entity, such as a person or a project")
    target: Entity = Field(validation_alias="to", description="the other entity")


class DryRun(BaseModel):
    """The name of a preview over HTTP."""

    dry_run: Flag = Field(default=False, validation_alias="dryRun", description="only report which edges would change")


class Listed(BaseModel):
    """Which edges are listed over HTTP."""

    decayed: Flag = Field(default=False, description="relations below the minimum weight, which recall does not use")


def edges(memory: Session, given: dict[str, Any], response: Response) -> Any:
    """Where there are more than `limit`, the header `Link` has the address of the next page (RFC 8288)."""
    found = memory.perform(RELATIONS, given)
    link_next(memory.url, response, found["next"])
    return found["edges"]


operations.add(routes, LINK, Writer, problems=(404,))
operations.add(
    routes, RELATIONS, Reader, edges, own=Listed.model_fields, response_model=list[Edge],
    description=f"{RELATIONS.params.__doc__}\n\n{edges.__doc__}",
)  # fmt: skip
operations.add(routes, RELATE, Writer, own=Ends.model_fields)
operations.add(routes, DECAY_RELATIONS, Admin, own=DryRun.model_fields, left_out=("everywhere",))
