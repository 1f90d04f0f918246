"""Routes of operations: each as the contract declares it, with what is particular over HTTP."""

from collections.abc import Callable
from copy import copy
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from ebb.contract import admin, decay, documents, facts, graph, reports, retention
from ebb.contract.graph import RELATIONS, Edge
from ebb.contract.operation import Operation, TaskState, operations
from ebb.contract.recall import CONTEXT, LOOKUP, RECALL, RECALL_MANY
from ebb.contract.values import MOST_DAYS, MOST_RESULTS, Flag, Limit, Shallow, split_names, text_as
from fastapi import APIRouter, Path, Response
from pydantic import WithJsonSchema
from pydantic.fields import FieldInfo

from api.http.dispatch import Reader, Session
from api.http.operations import Act, add, field
from api.http.problems import RefusedError, responses
from api.http.route import Route, own_name
from workers.errors import NotFoundError

routes = APIRouter(route_class=Route, generate_unique_id_function=own_name)

MADE = ("added", "updated")

GROUPS = {"retention": "facts", "admin": "system"}
"""The groups of operations in the OpenAPI document, by the modules of the contract where the names differ."""

OWN_GROUPS = {
    reports.FACT: "facts", reports.FACTS: "facts", reports.NAMESPACES: "system",
    decay.CONSOLIDATE: "hygiene", decay.JANITOR: "hygiene", decay.JANITOR_SNAPSHOT: "hygiene",
    decay.HELD: "reports", decay.LET_GO: "reports", decay.KEEP: "reports",
    admin.BRANCH: "branches", admin.BRANCHES: "branches", admin.DROP_BRANCH: "branches", admin.SETTINGS: "settings",
}  # fmt: skip
MAY_MISS = (
    RECALL, CONTEXT, graph.LINK, reports.RESOLVE, reports.TIME_SERIES, admin.BRANCH, admin.DROP_BRANCH, admin.MOVE,
)  # fmt: skip
"""Operations that answer 404 although their path names no fact."""

AGE = {"ge": 1, "le": MOST_DAYS}
OR_TEXT = WithJsonSchema({"anyOf": [{"type": "object", "additionalProperties": True}, {"type": "string"}]})
OWN_ROUTES: set[Operation] = set()
"""Operations whose own route was added."""


def store(memory: Session, given: dict[str, Any], response: Response) -> Any:
    """Store one fact; answer 201 with `Location` if it is new."""
    memory.new_fact = given.setdefault("id", memory.new_id(given))
    answer = memory.store(**given)
    if answer["action"] in MADE and not answer.get("changed"):
        response.status_code = HTTPStatus.CREATED
        response.headers["Location"] = f"{memory.url.path}/{answer['id']}"
    return answer


def store_many(memory: Session, given: dict[str, Any], _: Response) -> Any:
    """Store facts, with ids derived from the idempotency key."""
    facts = enumerate(given["facts"])
    named = [{"id": memory.new_id(fact, i), **fact} if isinstance(fact, dict) else fact for i, fact in facts]
    return memory.store_many(**given | {"facts": named})


def import_records(memory: Session, given: dict[str, Any], _: Response) -> Any:
    """Import records of an archive; settings of the namespace among them need the scope admin."""
    own = [one.get("own") for one in given["records"] if isinstance(one, dict)]
    if any(isinstance(one, dict) and one.get("settings") for one in own):
        memory.caller.check("admin")
    return memory.perform(admin.IMPORT, given)


def forget(memory: Session, given: dict[str, Any], _: Response) -> Any:
    """Forget facts, or erase them at once, which needs the scope admin."""
    if given.get("purge"):
        memory.caller.check("admin")
    return memory.forget(**given)


def forget_one(memory: Session, given: dict[str, Any], response: Response) -> Any:
    """Forget or erase the fact of a path."""
    return outcome(forget(memory, {"ids": [given.pop("id")], **given}, response))


def forgotten(memory: Session, given: dict[str, Any], _: Response) -> Any:
    """List forgotten facts; those forgotten on request only for callers with the scope write."""
    return memory.forgotten(**given | {"asked": given.get("asked", True) and "write" in memory.caller.scopes})


def outcome(answer: dict[str, Any]) -> dict[str, Any]:
    """Return the outcome for the one fact of a request."""
    (one,) = answer["results"]
    if one.get("action") == "unknown":
        raise NotFoundError(one.get("error") or f"id: this namespace has no fact {one['id']}, live or forgotten.")
    if "error" in one:
        raise RefusedError(HTTPStatus.CONFLICT, one["error"])
    return dict(one)


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
    names = split_names(given.get("namespaces") or [])  # within a batch it may be text
    if not isinstance(names, list) or any(name != memory.namespace for name in names):
        memory.caller.check("system")
    return given | {"touch": touches(memory, given.get("touch"))}


def _ask(operation: Operation) -> Act:
    own = {"limit": MOST_RESULTS} if operation is LOOKUP else {}
    return lambda memory, given, _: memory.perform(operation, own | _by_key(memory, given))


def _of_each(prepared: Callable[[Session, dict[str, Any]], dict[str, Any]], operation: Operation) -> Act:
    """Return the handler of many questions, of which none is asked if one is not allowed."""
    return lambda memory, given, _: memory.perform(
        operation, {"queries": [prepared(memory, one) if isinstance(one, dict) else one for one in given["queries"]]}
    )


def _refreshing(memory: Session, given: dict[str, Any]) -> dict[str, Any]:
    """Return a query for items that counts as use only if the caller may write.

    Clients ask for this by default, so it is no reason to refuse a key that only reads.
    """
    return given | {"refresh": given.get("refresh", True) and "write" in memory.caller.scopes}


def _also_writes(operation: Operation) -> Act:
    """Return the handler of an operation of the whole system that also writes to the namespace of the request."""

    def act(memory: Session, given: dict[str, Any], _: Response) -> dict[str, Any]:
        memory.caller.check("write")
        return memory.perform(operation, given)

    return act


def _edges(memory: Session, given: dict[str, Any], response: Response) -> Any:
    """Return edges, with the next page in the header `Link`; only its path, as proxies change the host."""
    found = memory.perform(RELATIONS, given)
    if found["next"] is not None:
        following = memory.url.include_query_params(cursor=found["next"])
        response.headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'
    return found["edges"]


def _add(
    operation: Operation, act: Act | None = None, *, path: str = "", problems: tuple[int, ...] = (), **how: Any
) -> None:
    """Add a route of an operation, by default the one that it declares."""
    module = operation.params.__module__.rpartition(".")[2]
    tag = OWN_GROUPS.get(operation) or GROUPS.get(module, module)
    missing = (404,) if operation in MAY_MISS or "{id}" in (path or operation.route) else ()
    if not path:
        OWN_ROUTES.add(operation)
    add(routes, operation, act, route=path, problems=(*missing, *problems), tags=[tag], **how)


def _members(operation: Operation, name: str, *, text: str = "") -> dict[str, FieldInfo]:
    """Return the list of a batch; over HTTP its members are shallow.

    A text may stand for an object in which it is the `text`. The task answers each wrong member by itself.
    """
    listed = copy(operation.params.model_fields[name])
    one: Any = Annotated[Any, Shallow, text_as(text), OR_TEXT] if text else Annotated[Any, Shallow]
    listed.annotation = list[one]
    return {name: listed}


_add(
    facts.STORE, store, responses={201: {"model": facts.Stored}},
    description="Store one fact: 201 if it is new, 200 if it was known, and counts as used, or forgotten on request.",
)  # fmt: skip
_add(facts.STORE_MANY, store_many, own=_members(facts.STORE_MANY, "facts", text="text"))
_add(facts.REMEMBER, own=_members(facts.REMEMBER, "messages"))
_add(reports.FACTS, own={"limit": field(Limit, 100, description="how many at most")})
_add(
    retention.FORGET, forget_one, path="DELETE /memory/facts/{id}", name="forget_fact",
    left_out=("ids", "dry_run", *retention.SUBJECT),
    own={
        "id": field(retention.Id),
        "purge": field(Flag, False, description="erase it at once, for good; needs the scope admin"),
    },
    response_model=retention.Outcome, problems=(409,),
    description="Forget a fact; until it is purged, it can be restored.",
)  # fmt: skip
_add(
    retention.RESTORE, lambda memory, given, _: outcome(memory.restore([given["id"]])),
    path="POST /memory/facts/{id}/restore", name="restore_fact", left_out=retention.RESTORE.parameters,
    own={"id": field(retention.Id)}, response_model=retention.Outcome, problems=(409,),
    description="Restore a forgotten fact, whatever the reason.",
)  # fmt: skip
_add(
    retention.PIN, lambda memory, given, _: memory.pin(given["id"], off=True),
    path="DELETE /memory/facts/{id}/pin", left_out=("off", "until"), name="unpin",
    description="End a fact's pin; it fades from now on.",
)  # fmt: skip
_add(retention.HISTORY, own={"limit": field(Limit, MOST_RESULTS, description="how many events at most")})
_add(
    retention.FORGOTTEN, forgotten,
    description="Return forgotten facts that can be restored, newest first.\n\n"
    "What was forgotten on request (`asked`) is shown to keys with the scope write, which may restore it.",
)  # fmt: skip
_add(retention.RESTORE, lambda memory, given, _: memory.restore(**given))
_add(documents.ITEMS, lambda memory, given, _: memory.perform(documents.ITEMS, _refreshing(memory, given)))
_add(documents.MANY_ITEMS, _of_each(_refreshing, documents.MANY_ITEMS))
_add(admin.IMPORT, import_records, own=_members(admin.IMPORT, "records"))
_add(retention.FORGET, forget)
_add(RECALL_MANY, _of_each(_by_key, RECALL_MANY), own=_members(RECALL_MANY, "queries", text="query"))
BY_KEY = "whether this counts as use; if left out: with a key that may write"
for question in (RECALL, LOOKUP, CONTEXT):
    _add(question, _ask(question), own={"touch": field(bool | None, None, description=BY_KEY)})
_add(
    RELATIONS, _edges, path="GET /memory/graph/edges", name="edges", response_model=list[Edge],
    own={"decayed": field(Flag, False, description="relations below the minimum weight, which recall does not use")},
    description=f"{RELATIONS.params.__doc__}\n\n"
    "Where there are more than `limit`, the header `Link` has the address of the next page (RFC 8288).",
)  # fmt: skip
_add(graph.DECAY_RELATIONS, own={"dry_run": field(Flag, False, description="only report which edges would change")})
_add(
    decay.RUNS,
    own={"everything": field(bool, False, description="passes over all namespaces, with their counts; needs `system`")},
)
for change in (documents.REGISTER_FOLDER, documents.UNREGISTER_FOLDER):
    _add(change, _also_writes(change))
_add(
    admin.BRANCH,
    own={"older": field(int, **AGE, examples=[365], description="by how many days its instants are earlier")},
)
_add(
    admin.DROP_BRANCH,
    own={"older": field(int | None, None, **AGE, description="only the branch that is this many days older")},
)
_add(
    admin.SETTINGS, path="GET /memory/settings", session=Reader, left_out=("set", "unset"),
    description="Return the effective settings of the namespace, and which of them are its own.",
)  # fmt: skip
_add(admin.SETTINGS, name="change_settings")
for other in operations().values():
    if other.route and other not in OWN_ROUTES:
        _add(other)


@routes.get(
    "/tasks/{id}", response_model=TaskState, response_model_exclude_unset=True, responses=responses(404), tags=["tasks"]
)
def state(id: Annotated[UUID, Path(description="the task's id, from 202 or 504")], memory: Reader) -> dict[str, Any]:
    """Return the state of a task of this namespace, and its result, which is kept for five minutes."""
    found = memory.state(str(id))
    if found is None:
        raise NotFoundError(f"id: no task {id} of this namespace was accepted in the last day.")
    return {"task": str(id), **found}
