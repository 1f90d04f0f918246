"""Routes of recall, lookup and context, reports on a namespace, links and relations."""

from typing import Annotated, Any

from ebb.contract import documents, graph
from ebb.contract.graph import DECAY_RELATIONS, LINK, RELATE, RELATIONS, UNRELATE, Edge, Entity
from ebb.contract.operation import Operation
from ebb.contract.recall import CONTEXT, LOOKUP, RECALL, RECALL_MANY
from ebb.contract.reports import CONTRADICTIONS, FORECAST, RESOLVE, STATS, TIMELINE
from ebb.contract.values import MOST_QUESTIONS, MOST_RESULTS, Flag, Instant, Shallow
from fastapi import APIRouter, Response
from pydantic import BaseModel, Field

from api.http import operations
from api.http.dispatch import Admin, Reader, Session, Writer
from api.http.route import Route

routes = APIRouter(prefix="/memory", route_class=Route)


class ByKey(BaseModel):
    """What depends on the caller's key."""

    touch: bool | None = Field(None, description="whether this counts as use; if left out: with a key that may write")


class Questions(BaseModel):
    """Questions over HTTP are objects."""

    queries: list[Annotated[dict[str, Any], Shallow]] = Field(
        min_length=1, max_length=MOST_QUESTIONS, description="questions as `POST /memory/recall` takes them"
    )


class Ends(BaseModel):
    """The names of an edge's ends over HTTP."""

    source: Entity = Field(validation_alias="from", description="an entity, such as a person or a project")
    target: Entity = Field(validation_alias="to", description="the other entity")


class Observed(Ends):
    """The names of an observation over HTTP."""

    last_observed: Instant | None = Field(
        None, validation_alias="lastObserved", description="when it was observed, from which it fades; else now"
    )


class DryRun(BaseModel):
    """The name of a preview over HTTP."""

    dry_run: Flag = Field(default=False, validation_alias="dryRun", description="only report which edges would change")


class Listed(BaseModel):
    """Which edges are listed over HTTP."""

    decayed: Flag = Field(default=False, description="relations below the minimum weight, which recall does not use")


def touches(memory: Session, wanted: bool | None) -> bool:
    """Return whether a recall counts as use: as requested, by default if the caller may write.

    Raises:
        RefusedError: it is requested with a key without the scope write.
    """
    if wanted:
        memory.caller.check("write")
    return "write" in memory.caller.scopes if wanted is None else wanted


def _by_key(memory: Session, given: dict[str, Any]) -> dict[str, Any]:
    """Return a question with `touch` set by the caller's key.

    Raises:
        RefusedError: the key does not open all of the namespaces, or may not touch.
    """
    names = given.get("namespaces") or []
    if not isinstance(names, list) or any(name != memory.namespace for name in names):
        memory.caller.check("system")
    return given | {"touch": touches(memory, given.get("touch"))}


def _ask(operation: Operation) -> operations.Act:
    def act(memory: Session, given: dict[str, Any], _: Response) -> dict[str, Any]:
        own = {"limit": MOST_RESULTS} if operation is LOOKUP else {}
        return memory.perform(operation, own | _by_key(memory, given))

    return act


def _ask_many(memory: Session, given: dict[str, Any], _: Response) -> dict[str, Any]:
    """Answer many questions, or none if one is not allowed."""
    return memory.perform(RECALL_MANY, {"queries": [_by_key(memory, one) for one in given["queries"]]})


def _edges(memory: Session, given: dict[str, Any], response: Response) -> Any:
    """Return edges, with the next page in the header `Link`; only its path, as proxies change the host."""
    found = memory.perform(RELATIONS, given)
    if found["next"] is not None:
        following = memory.url.include_query_params(cursor=found["next"])
        response.headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'
    return found["edges"]


operations.add(routes, RECALL_MANY, Reader, _ask_many, own=Questions.model_fields, tags=["recall"])
for operation in (RECALL, LOOKUP, CONTEXT):
    operations.add(
        routes, operation, Reader, _ask(operation), own=ByKey.model_fields, tags=["recall"],
        problems=(404,) if operation in (RECALL, CONTEXT) else (),
    )  # fmt: skip
operations.add(routes, LINK, Writer, problems=(404,), tags=["graph"])
operations.add(
    routes, RELATIONS, Reader, _edges, route="GET /memory/graph/edges", own=Listed.model_fields,
    response_model=list[Edge], tags=["graph"],
    description=f"{RELATIONS.params.__doc__}\n\n"
    "Where there are more than `limit`, the header `Link` has the address of the next page (RFC 8288).",
)  # fmt: skip
operations.add(routes, RELATE, Writer, own=Observed.model_fields, tags=["graph"])
operations.add(routes, DECAY_RELATIONS, Admin, own=DryRun.model_fields, tags=["graph"])
for operation in (STATS, FORECAST, TIMELINE, CONTRADICTIONS):
    operations.add(routes, operation, Reader, tags=["reports"])
operations.add(routes, RESOLVE, Writer, problems=(404,), tags=["reports"])
operations.add(routes, UNRELATE, Writer, own=Ends.model_fields, tags=["graph"])
operations.add_others(routes, graph, tags=["graph"])
operations.add_others(routes, documents, tags=["documents"])
