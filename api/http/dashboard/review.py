"""Pages of decisions: forgotten facts, held facts, contradictions; and last contexts."""

from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, get_args

from ebb.contract.values import MOST_RESULTS, Reason
from fastapi import Query, Request
from fastapi.responses import HTMLResponse

from api.http.dashboard.rendering import page, router
from api.http.dashboard.visitors import Reading
from api.http.door import door_of
from api.transport import AWAY
from workers.coordination import contexts
from workers.coordination.redis import explain
from workers.errors import UnavailableError

routes = router()

ROWS = 50
REASONS = get_args(Reason)


@routes.get("/dashboard/forgotten")
def forgotten(
    request: Request,
    memory: Reading,
    reason: Annotated[str, Query()] = "",
    cursor: Annotated[str, Query()] = "",
) -> HTMLResponse:
    """Show forgotten facts, newest first; those forgotten on request only with the scope write."""
    given: dict[str, Any] = {name: one for name, one in (("reason", reason), ("cursor", cursor)) if one}
    found = memory.forgotten(limit=ROWS, asked="write" in memory.caller.scopes, **given)
    held = memory.held(limit=ROWS) if not given else {"held": [], "total": 0}
    content: dict[str, Any] = {
        "found": found,
        "held": held,
        "reason": reason,
        "reasons": REASONS,
        "later": bool(cursor),
    }
    return page(request, "forgotten.html", **content)


@routes.get("/dashboard/contradictions")
def contradictions(request: Request, memory: Reading, cursor: Annotated[str, Query()] = "") -> HTMLResponse:
    """Show pairs of facts with different values for one entity and key."""
    found = memory.contradictions(limit=ROWS, **({"cursor": cursor} if cursor else {}))
    return page(request, "contradictions.html", found=found, later=bool(cursor))


@routes.get("/dashboard/contexts")
def last_contexts(request: Request, memory: Reading) -> HTMLResponse:
    """Show the recent questions of agents and the facts that they got."""
    door = door_of(request)
    since = (datetime.now(UTC) - timedelta(hours=door.settings.last_contexts_hours)).timestamp()
    try:
        found = contexts.latest(door.of(memory.namespace).redis, memory.namespace, since)
    except AWAY as error:
        raise UnavailableError(explain(error)) from None
    ids = list(dict.fromkeys(id_ for one in found for id_ in one.ids))[:MOST_RESULTS]
    texts = {one["id"]: one["text"] for one in (memory.facts(ids=ids)["facts"] if ids else ())}
    return page(request, "contexts.html", found=found, texts=texts, hours=door.settings.last_contexts_hours)
