"""The page of keys, limits and lanes: keys are created, given an expiry, and revoked.

A key is made here and shown once; its digest alone is sent to the workers.
"""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import Annotated, Any, Literal
from uuid import UUID

from fastapi import Form, Request, Response
from fastapi.responses import HTMLResponse
from uuid_utils.compat import uuid7

from api.http.dashboard.rendering import page, router
from api.http.dashboard.review import OWN_FORM, back
from api.http.dashboard.visitors import FORM, Administering, check_token, start_session
from api.http.dispatch import Session
from api.http.door import Door, door_of, reaching_redis
from api.http.problems import RefusedError
from workers.coordination import bulk, key_ring, outbox, shares
from workers.coordination.key_ring import LONGEST_LABEL, SCOPES, Grant
from workers.errors import InvalidInputError, NotFoundError, UnavailableError
from workers.queues import MAINTENANCE, RECALL, STORE
from workers.settings import PREFIX, Settings

routes = router()

SECONDS = 10.0
PURPOSES = {
    "read": "recall and look at memory",
    "write": "store, change and forget facts",
    "admin": "erase, run passes, and manage the keys of this namespace",
    "system": "metrics, and the other scopes in every namespace",
}
EXPIRIES = {"": "never", "7": "in 7 days", "30": "in 30 days", "90": "in 90 days", "365": "in a year"}
LANES = {
    RECALL: "what callers wait for: recall, context, lists",
    STORE: "what is stored, changed and forgotten",
    MAINTENANCE: "passes, indexes, and other work that no caller waits for",
}
BULK = "large batches, in slices, one namespace after the other"

TOKEN, BY_KEY = "access token", "use an API key with the scope admin, or `ebb keys create`"
MADE_BEFORE = "This form made a key before, which was shown once. Open the page again for another."
EARLIER = "choose an earlier end, or ask for a key that lasts longer"

Expires = Annotated[Literal["", "7", "30", "90", "365"], Form()]


@routes.get("/dashboard/keys")
def keys(request: Request, memory: Administering) -> HTMLResponse:
    """Show the API keys of the namespace, without the keys themselves, its limits, and the lanes."""
    return _page(request, memory)


@routes.post("/dashboard/keys", dependencies=FORM)
def create(
    request: Request,
    memory: Administering,
    id: Annotated[UUID, Form()],
    scopes: Annotated[tuple[str, ...], Form()] = (),
    label: Annotated[str, Form(max_length=LONGEST_LABEL)] = "",
    expires: Expires = "",
    token: Annotated[str, Form()] = "",
) -> Response:
    """Create a key with scopes that the visitor has, and show it; the form's id keeps a reload from making another.

    The first key of all ends the access without one, so it becomes the key of the visitor's session.
    """
    if str(id) in _keys(request, memory):
        raise InvalidInputError(MADE_BEFORE)  # before the token, which differs in the session of the first key
    check_token(request, memory.caller, token)
    _check_scopes(memory, scopes)
    _check_end(memory, expires)
    first, key = not door_of(request).look_up(None).any_key, key_ring.new_key()
    given = {"id": str(id), "digest": key_ring.digest(key).hex(), "scopes": list(scopes)}
    owner = {"namespace": memory.namespace, "label": label.strip() or None, "ends": end_in(expires, memory.seconds())}
    done = memory.call("memory.add_key", given | owner, SECONDS)
    if not done["added"]:
        raise InvalidInputError(MADE_BEFORE)
    cookie = start_session(request, key) if first and "read" in scopes else None
    response = _page(
        request, memory, made={"id": str(id), "key": key, "unpublished": done.get("unpublished")}, first=first
    )
    if cookie:
        response.set_cookie(**cookie)
    return response


@routes.post("/dashboard/keys/{id}/{action}", dependencies=OWN_FORM)
def change(
    request: Request,
    memory: Administering,
    id: UUID,
    action: Literal["expire", "revoke"],
    expires: Expires = "",
) -> Response:
    """Set when a key expires, or revoke it, and redirect to the page."""
    known = _keys(request, memory).get(str(id))
    if known is None:
        raise NotFoundError(f"id: no key {id} is in namespace {memory.namespace!r}.")
    _check_scopes(memory, known.scopes)
    if action == "expire":
        _check_end(memory, expires)
    ends = {"revoke": True} if action == "revoke" else {"ends": end_in(expires, memory.seconds())}
    done = memory.call("memory.change_key", {"namespace": memory.namespace, "id": str(id)} | ends, SECONDS)
    if done.get("unpublished"):
        raise UnavailableError(done["unpublished"])
    own = "own-" if ends.get("ends") and str(id) == memory.caller.key else ""
    return back("/dashboard/keys", f"{action}-{own}key", str(id))


def _check_scopes(memory: Session, scopes: tuple[str, ...]) -> None:
    """Raise `RefusedError` unless the visitor has all these scopes, so that no key grants more than its maker has."""
    for scope in SCOPES:
        if scope in scopes:
            memory.caller.check(scope)


def _keys(request: Request, memory: Session) -> dict[str, Grant]:
    with reaching_redis():
        redis = door_of(request).of(memory.namespace).redis
        return {key.id: key for key in key_ring.of_namespace(redis, memory.namespace)}


def end_in(days: str, now: float) -> str | None:
    """Return the end of a key that expires in so many days by Redis' clock, which is that of keys; none if never."""
    return (datetime.fromtimestamp(now, UTC) + timedelta(days=int(days))).isoformat() if days else None


def _check_end(memory: Session, days: str) -> None:
    """Raise `RefusedError` if a key would end later than the visitor's own key or token, or never though that ends."""
    if not _ends_before(memory, days):
        own = datetime.fromtimestamp(memory.caller.ends or 0, UTC)
        what, remedy = (TOKEN, BY_KEY) if memory.caller.has_token else ("key", EARLIER)
        raise RefusedError(
            HTTPStatus.FORBIDDEN,
            f"expires: your own {what} ends at {own:%Y-%m-%d %H:%M} UTC, and no key may end after that of its maker; "
            f"{remedy}.",
        )


def _ends_before(memory: Session, days: str) -> bool:
    """Return whether a key of so many days ends no later than the visitor's own."""
    own, end = memory.caller.ends, end_in(days, memory.seconds())
    return own is None or (end is not None and datetime.fromisoformat(end).timestamp() <= own)


def _page(
    request: Request, memory: Session, *, made: Mapping[str, Any] | None = None, first: bool = False
) -> HTMLResponse:
    door, scopes = door_of(request).of(memory.namespace), memory.caller.scopes
    with reaching_redis():
        now = door.client.seconds()
        found = key_ring.of_namespace(door.redis, memory.namespace)
        content: dict[str, Any] = {
            "keys": [asdict(key) | {"opens": key.opens(now)} for key in reversed(found)],
            "any_key": door.look_up(None).any_key,
            "limits": _limits(door, memory.namespace, now),
            "lanes": _lanes(door) if "system" in scopes else [],
        }
    own = {scope: PURPOSES[scope] for scope in SCOPES if scope in scopes}
    content["longest_label"] = LONGEST_LABEL
    content["expiries"] = {days: said for days, said in EXPIRIES.items() if _ends_before(memory, days)}
    return page(request, "keys.html", made=made, first=first, new_id=uuid7(), scopes=own, **content)


def _limits(door: Door, namespace: str, now: float) -> list[dict[str, Any]]:
    """Return the limits of a namespace: variable, highest and current value, if it is measured, and description."""
    held = {
        "EBB_MAX_REQUESTS": shares.held(door.redis, namespace, now),
        "EBB_MAX_OUTBOX_WRITES": outbox.held(door.redis, namespace),
        "EBB_MAX_OUTBOX_BYTES": outbox.held_bytes(door.redis, namespace) + bulk.held_bytes(door.redis, namespace),
    }
    fields = {name: Settings.model_fields[name.removeprefix(PREFIX).lower()] for name in door.settings.limits}
    return [
        {"name": name, "held": held.get(name), "most": most, "said": fields[name].description}
        for name, most in door.settings.limits.items()
    ]


def _lanes(door: Door) -> list[dict[str, Any]]:
    """Return the lanes of work: name, purpose, waiting tasks or batches, and workers."""
    queues = [lane | {"said": LANES[lane["name"]]} for lane in door.lanes()]
    return [*queues, {"name": "bulk", "said": BULK, "waiting": bulk.waiting(door.redis)["batches"], "workers": None}]
