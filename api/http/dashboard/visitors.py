"""Visitors of the dashboard: sign-in, sessions, and the choice of a namespace."""

import secrets
from collections.abc import AsyncIterator
from http import HTTPStatus
from typing import Annotated, Any

from ebb.contract.values import NAMESPACE as NAME
from fastapi import Depends, Form, Query, Request, Response
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.security import HTTPAuthorizationCredentials

from api.http.callers import API_KEY, BEARER, Caller, NamespaceHeader, identify
from api.http.dashboard.rendering import COOKIES, SESSION, form_token, page, router
from api.http.dispatch import Session
from api.http.door import door_of, reaching_redis
from api.http.problems import RefusedError
from workers.coordination import key_ring
from workers.coordination.key_ring import Scope
from workers.errors import UnavailableError
from workers.queues import RECALL
from workers.validation import namespace_name

NAMESPACE = "ebb_namespace"
ENDED = "ended"
"""Digest of an ended session, which opens nothing."""

PAGE_SECONDS = 30.0
"""Time that a page waits for workers."""


def visitor(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)],
    api_key: Annotated[str | None, Depends(API_KEY)],
    namespace: NamespaceHeader = None,
) -> Caller:
    """Return the visitor, who needs the scope `read`; a key in a header takes precedence over the cookie.

    Raises:
        RefusedError: the key is missing, invalid or lacks the scope.
    """
    given = bearer.credentials if bearer else api_key
    signed_in = _signed_in(request) if given is None else None
    if given is None and signed_in is None and namespace is None:
        chosen = request.cookies.get(NAMESPACE, "")
        namespace = chosen if NAME.fullmatch(chosen) else None  # any server at this host may have set the cookie
    who = identify(request, given, namespace, signed_in=signed_in)
    who.check("read")
    return who


async def turn(request: Request, who: Annotated[Caller, Depends(visitor)]) -> AsyncIterator[Caller]:
    """Yield the visitor when it is the turn of its namespace at the threads, which pages share with other routes.

    Raises:
        BusyError: too many requests of this namespace wait.
    """
    async with door_of(request).turns.turn(who.namespace):
        yield who


def session(request: Request, who: Annotated[Caller, Depends(turn, scope="function")]) -> Session:
    """Return the client of a page for the visitor's namespace.

    Raises:
        UnavailableError: no worker runs.
    """
    door = door_of(request).of(who.namespace)
    if not door.client.is_served(RECALL):
        raise UnavailableError("No worker serves the queue 'recall'. Check `ebb status` and start workers.")
    return Session(door, who, timeout=PAGE_SECONDS)


Reading = Annotated[Session, Depends(session)]


def _with(scope: Scope) -> Any:
    """Return the dependency that yields the client of a visitor whose key has this scope."""

    def checked(memory: Reading) -> Session:
        memory.caller.check(scope)
        return memory

    return Depends(checked)


Writing = Annotated[Session, _with("write")]
Administering = Annotated[Session, _with("admin")]


FOREIGN_FORM = (
    "This form was sent by a page of another site; open it here. If it was this page, the proxy in front of Ebb has to "
    "pass on the header Host as the browser sends it."
)


def check_origin(request: Request) -> None:
    """Raise `RefusedError` if a form was sent by a page of another site."""
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "same-origin")
    foreign = origin is not None and origin.partition("://")[2] != request.url.netloc
    if foreign or site not in ("same-origin", "none"):
        raise RefusedError(HTTPStatus.FORBIDDEN, FOREIGN_FORM)


def check_token(request: Request, _: Annotated[Caller, Depends(visitor)], token: Annotated[str, Form()] = "") -> None:
    """Raise `RefusedError` if a form lacks this visitor's CSRF token, or its page was of another namespace."""
    if not secrets.compare_digest(token.encode(), form_token(request).encode()):
        raise RefusedError(HTTPStatus.FORBIDDEN, "This form has expired; open its page again.")


def _signed_in(request: Request) -> str | None:
    """Return the digest of the session's key; None if no keys exist any more."""
    token, door = request.cookies.get(SESSION), door_of(request)
    if not token:
        return None
    with reaching_redis():
        digest = key_ring.session_key(door.redis, token)
    return (digest or ENDED) if door.look_up(digest).any_key else None


routes = router()

MOST_NAMES = 100
FORM = [Depends(check_origin)]


@routes.get("/dashboard/sign-in")
def ask(request: Request, next: str = "/") -> HTMLResponse:  # noqa: A002 - the usual name
    """Show the form for a key."""
    return page(request, "sign_in.html", said="", next=here(next))


@routes.post("/dashboard/sign-in", dependencies=FORM)
def sign_in(
    request: Request,
    key: Annotated[str, Form()] = "",
    next: Annotated[str, Form()] = "/",  # noqa: A002 - the usual name
) -> Response:
    """Start a session with a key that has the scope `read`, or show the form again."""
    try:
        identify(request, None, None, signed_in=key_ring.digest(key.strip()).hex()).check("read")
    except RefusedError as error:
        return page(request, "sign_in.html", error.status, said=str(error), next=here(next))
    response = RedirectResponse(here(next), HTTPStatus.SEE_OTHER)
    response.set_cookie(**start_session(request, key.strip()))
    return response


def start_session(request: Request, key: str) -> dict[str, Any]:
    """Start a session with a key for this request and later ones, in place of the one before; return its cookie."""
    key_ring.end_session(door_of(request).redis, request.cookies.get(SESSION, ""))
    token = request.cookies[SESSION] = key_ring.start_session(door_of(request).redis, key)
    return {"key": SESSION, "value": token, "secure": request.url.scheme == "https", **COOKIES}


@routes.post("/dashboard/sign-out", dependencies=FORM)
def sign_out(request: Request) -> Response:
    """End the session."""
    key_ring.end_session(door_of(request).redis, request.cookies.get(SESSION, ""))
    response = RedirectResponse("/dashboard/sign-in", HTTPStatus.SEE_OTHER)
    response.delete_cookie(SESSION, **COOKIES)  # type: ignore[arg-type]  # options of several types
    return response


@routes.get("/dashboard/namespaces")
def namespaces(request: Request, memory: Reading, prefix: Annotated[str, Query(max_length=128)] = "") -> HTMLResponse:
    """List the namespaces; a key shows only its own."""
    if memory.caller.key is not None:
        return page(request, "namespaces.html", names=[memory.namespace], prefix="", more=False, new="")
    prefix = prefix.strip()
    found = memory.namespaces(prefix, MOST_NAMES + 1)["namespaces"]
    shown = {"names": found[:MOST_NAMES], "prefix": prefix, "more": len(found) > MOST_NAMES}
    return page(request, "namespaces.html", **shown, new=prefix if NAME.fullmatch(prefix) else "mira")


@routes.post("/dashboard/namespaces", dependencies=FORM)
def choose(memory: Reading, namespace: Annotated[str, Form()] = "") -> Response:
    """Choose another namespace, if no key is used."""
    name = namespace_name(namespace.strip())
    if memory.caller.key is not None and name != memory.namespace:
        raise RefusedError(HTTPStatus.FORBIDDEN, f"Your key opens the namespace {memory.namespace!r} only.")
    response = RedirectResponse("/", HTTPStatus.SEE_OTHER)
    response.set_cookie(NAMESPACE, name, **COOKIES)  # type: ignore[arg-type]  # options of several types
    return response


def here(path: str) -> str:
    """Return a path of this dashboard, or the overview for any other target."""
    own = path == "/" or (path.startswith(("/?", "/dashboard/")) and "\\" not in path and "\n" not in path)
    return path if own else "/"
