"""OpenMemory's HTTP API for its unmodified clients (EBB_OPENMEMORY_API).

Scopes are as on other routes. A `user_id` names a namespace, see `api.contrib.foreign`; a key allows only its own,
or with the scope `system` each. Memories get no decay class: they fade, and are forgotten on request only.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from http import HTTPStatus
from importlib.metadata import version
from itertools import islice
from typing import Annotated, Any

from ebb.contract.reports import FACT
from fastapi import APIRouter, Depends, Path, Query, Request

from api.contrib.foreign import namespace_of, user_of
from api.http import listings
from api.http import openmemory_shapes as shapes
from api.http.callers import Caller, caller
from api.http.dispatch import Session
from api.http.door import Door, door_of
from api.http.problems import RefusedError, responses
from api.http.route import Route
from api.http.routes import touches
from workers.coordination.key_ring import Scope
from workers.errors import InvalidInputError, NotFoundError
from workers.validation import BRANCH, fact_id

MARK = "~"
"""Separates a fact's id from a namespace other than the caller's, and replaces `/` in it, so that it fits in a path.

Names of namespaces do not contain it.
"""


@dataclass(frozen=True, slots=True)
class Memories:
    """The namespaces that a caller may use."""

    door: Door
    caller: Caller

    def of(self, user: str | None, scope: Scope) -> Session:
        """Return a session for a user's namespace, or by default the caller's.

        Raises:
            RefusedError: the caller's key does not open the namespace or lacks the scope, or the user is named as a
                branch is.
        """
        who = self.caller
        who.check(scope)
        namespace = namespace_of(user) if user else who.namespace
        if namespace != who.namespace:
            if who.key is not None and "system" not in who.scopes:
                raise RefusedError(
                    HTTPStatus.FORBIDDEN,
                    f"user_id: your key opens the memory of {who.namespace!r} only; leave user_id out, or use a key "
                    f"to {namespace!r} (`ebb keys create --namespace`) or one with the scope `system`.",
                )
            if BRANCH.fullmatch(namespace):
                raise RefusedError(
                    HTTPStatus.FORBIDDEN,
                    f"user_id: {namespace!r} is the name of a branch; leave user_id out, and use a key to it.",
                )
            who = replace(who, namespace=namespace)
        return Session(self.door, who, timeout=None)

    def name(self, id_: str, memory: Session) -> str:
        """Return a fact's id for clients, with the namespace if it is not the caller's."""
        name = memory.namespace.replace("/", MARK)
        return id_ if memory.namespace == self.caller.namespace else f"{id_}{MARK}{name}"

    def find(self, id_: str, user: str | None, scope: Scope) -> tuple[Session, dict[str, Any]]:
        """Return the session for a memory's namespace, and its current fact, following updates.

        Raises:
            NotFoundError: it is forgotten, never existed, or is not of the user that the request names.
        """
        given, _, namespace = id_.partition(MARK)
        owner = user_of(namespace.replace(MARK, "/")) or user
        if user and owner and namespace_of(owner) != namespace_of(user):
            raise NotFoundError(f"id: {id_!r} is no memory of {user!r}; leave user_id out, or give the one it is of.")
        memory = self.of(owner, scope)
        try:
            wanted = str(fact_id(given))
        except InvalidInputError:
            raise NotFoundError(f"id: {id_!r} is no memory's; give one that /memory/add answered.") from None
        asked = {"namespace": memory.namespace, "id": wanted, "latest": True}
        return memory, memory.call(FACT.name, asked, FACT.seconds)


def memories(request: Request, who: Annotated[Caller, Depends(caller)]) -> Memories:
    """Return the namespaces that the caller may use."""
    return Memories(door_of(request), who)


routes = APIRouter(tags=["OpenMemory"], route_class=Route)

MOST = 10_000
PAGE = 1_000
BEYOND = 5
"""Factor of additional results that are recalled if filters are applied here."""

Mine = Annotated[Memories, Depends(memories)]
Limit = Annotated[int | None, Query(ge=0, le=MOST)]
Offset = Annotated[int | None, Query(ge=0)]
Named = Annotated[str | None, Query()]
Of = Annotated[str, Path(min_length=1)]
"""The user in a path, whose name is not left out as elsewhere: `/users//memories` must not mean the caller's own."""

MAY_MISS = responses(404)


def paging(
    limit: Limit = None,
    offset: Offset = None,
    l: Limit = None,  # noqa: E741 - OpenMemory's own name
    u: Offset = None,
) -> tuple[int, int]:
    """Return how many memories are wanted, and how many are skipped."""
    limits, offsets = (limit, l, shapes.DEFAULT_LIMIT), (offset, u, 0)
    return next(one for one in limits if one is not None), next(one for one in offsets if one is not None)


Paging = Annotated[tuple[int, int], Depends(paging)]


@routes.get("/health")
def health(_: Annotated[Caller, Depends(caller)]) -> dict[str, Any]:
    """Say that the API answers."""
    return {"ok": True, "version": version("ebb-server")}


@routes.get("/sectors")
def sectors(mine: Mine, user_id: Named = None) -> dict[str, Any]:
    """Return the sectors, and how many memories of the caller or of a user each has.

    OpenMemory counts the memories of all users together here, which would cross namespaces.
    """
    configs = {name: {"name": name} for name in shapes.SECTORS}
    return {
        "sectors": list(shapes.SECTORS),
        "configs": configs,
        "stats": shapes.stats(_every(mine.of(user_id, "read"))),
    }


@routes.post("/memory/add")
def add(wish: shapes.AddRequest, mine: Mine) -> dict[str, Any]:
    """Remember something; what was said before is strengthened instead."""
    memory = mine.of(wish.user_id, "write")
    done = memory.store(wish.content, classify=False, again=True, **wish.fact())
    sector = shapes.named_sector(wish.metadata) or shapes.classified(wish.content)
    known = done["action"] == "duplicate" or bool(done.get("changed"))  # tags or metadata of a known memory
    if known:
        sector = shapes.sector(memory.fact(done["id"]))
    added = {"id": mine.name(done["id"], memory), "primary_sector": sector, "sectors": [sector]}
    return added | ({"deduplicated": True} if known else {"chunks": 1})


@routes.post("/memory/query")
def query(wish: shapes.QueryRequest, mine: Mine) -> dict[str, Any]:
    """Return the memories that fit best, which strengthens them if the caller may write."""
    memory = mine.of(wish.user(), "read")
    most, narrow, uses = wish.k or shapes.DEFAULT_K, wish.narrow(), touches(memory, None)
    limit = most * BEYOND if narrow else most
    found = memory.recall(wish.query, limit=limit, touch=uses and not narrow)["results"]
    taken = ((fact, score) for fact, score in _scored(memory, found) if wish.takes(fact, score))
    wanted = list(islice(taken, most))
    if wanted and uses and narrow:  # what a filter left out was not used
        ids = [fact["id"] for fact, _ in wanted]
        memory.send("memory.touch", {"ids": ids, "namespace": memory.namespace, "at": memory.clock()})
    matches = [shapes.match(fact, score, mine.name(fact["id"], memory)) for fact, score in wanted]
    return {"query": wish.query, "matches": matches}


def _scored(memory: Session, found: Sequence[Mapping[str, Any]]) -> Iterator[tuple[dict[str, Any], float]]:
    """Yield the facts of results, each with its score, unless they were forgotten meanwhile."""
    scores = {one["id"]: one["score"] for one in found}
    return ((fact, scores[fact["id"]]) for fact in listings.each(memory, list(scores)))


@routes.post("/memory/reinforce", responses=MAY_MISS)
def reinforce(wish: shapes.StrengthenRequest, mine: Mine) -> dict[str, Any]:
    """Strengthen a memory."""
    memory, fact = mine.find(wish.id, None, "write")
    memory.reinforce(fact["id"], shapes.BOOST if wish.boost is None else wish.boost)
    return {"ok": True}


@routes.get("/memory/all")
def all_(mine: Mine, page: Paging, sector: Named = None, user_id: Named = None) -> dict[str, Any]:
    """Return memories, the newest first."""
    return {"items": _listed(mine, user_id, *page, sector)}


@routes.get("/users/{user_id:path}/memories")
def of_user(mine: Mine, user_id: Of, page: Paging) -> dict[str, Any]:
    """Return a user's memories, the newest first."""
    return {"user_id": user_id, "items": _listed(mine, user_id, *page, None)}


@routes.get("/users/{user_id:path}/summary")
def summary(mine: Mine, user_id: Of) -> dict[str, Any]:
    """Return what is remembered of a user, in a sentence; it is made at each request."""
    facts = _every(mine.of(user_id, "read"))
    seen_at = [shapes.milliseconds(fact["last_seen_at"]) for fact in facts]
    return {
        "user_id": user_id,
        "summary": shapes.summary(facts),
        "reflection_count": 0,
        "updated_at": max(seen_at, default=0),
    }


@routes.post("/users/{user_id:path}/summary/regenerate")
def regenerate_summary(mine: Mine, user_id: Of) -> dict[str, Any]:
    """Return a user's summary, which is never old."""
    return {"ok": True} | summary(mine, user_id)


@routes.delete("/users/{user_id:path}/memories")
def forget_user(mine: Mine, user_id: Of) -> dict[str, Any]:
    """Forget all memories of a user; they can be restored until they are purged."""
    memory, deleted = mine.of(user_id, "write"), 0
    last: str | None = None
    while ids := [fact["id"] for fact in listings.page(memory, PAGE, before=last)["facts"]]:
        outcomes, last = memory.forget(ids)["results"], ids[-1]
        deleted += sum(one.get("action") == "forgotten" for one in outcomes)
    return {"ok": True, "deleted": deleted}


@routes.get("/memory/{id}", responses=MAY_MISS)
def show(id: str, mine: Mine, user_id: Named = None) -> dict[str, Any]:
    """Return one memory."""
    _, fact = mine.find(id, user_id, "read")
    return shapes.item(fact, id) | {"sectors": [shapes.sector(fact)]}


@routes.patch("/memory/{id}", responses=MAY_MISS)
def update(id: str, wish: shapes.UpdateRequest, mine: Mine) -> dict[str, Any]:
    """Change a memory: a former content is superseded, and the id still leads to what it is.

    OpenMemory would have two memories with one content; here that is an error, and neither is changed.
    """
    memory, fact = mine.find(id, wish.user_id, "write")
    if wish.is_empty():
        return {"id": id, "updated": False}
    if not wish.keeps(fact):
        changed = wish.changed(fact, memory.clock())
        memory.store(classify=False, again=True, apart=True, supersedes=fact["id"], **changed)
    elif fields := wish.fields():
        memory.edit(fact["id"], **fields)
    return {"id": id, "updated": True}


@routes.delete("/memory/{id}", responses=MAY_MISS)
def forget(id: str, mine: Mine, user_id: Named = None) -> dict[str, Any]:
    """Forget a memory; it can be restored until it is purged."""
    memory, fact = mine.find(id, user_id, "write")
    memory.forget([fact["id"]])
    return {"ok": True}


def _every(memory: Session) -> list[dict[str, Any]]:
    """Return what statistics need of the newest memories of a namespace, at most about `MOST`."""
    briefs: list[dict[str, Any]] = []
    last: str | None = None
    while len(briefs) < MOST and (page := listings.page(memory, PAGE, before=last)["facts"]):
        briefs += [shapes.brief(fact) for fact in page]
        last = page[-1]["id"]
    return briefs


def _listed(mine: Memories, user: str | None, limit: int, offset: int, sector: str | None) -> list[dict[str, Any]]:
    """Return a page of a user's memories, or of those of one sector among them, as OpenMemory does it."""
    memory = mine.of(user, "read")
    facts = memory.facts(limit, offset=offset)["facts"] if limit else []
    return [
        shapes.item(fact, mine.name(fact["id"], memory))
        for fact in facts
        if sector is None or shapes.sector(fact) == sector
    ]
