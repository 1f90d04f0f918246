"""Visitors of pages, identified by the key in their cookie, or on this machine by the namespace they chose."""

from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import urlsplit

from fastapi import Depends, Request, Response
from fastapi.security import HTTPAuthorizationCredentials
from uuid_utils.compat import uuid7

from api.http.callers import API_KEY, BEARER, Caller, NamespaceHeader, identify
from api.http.dispatch import Session
from api.http.door import Door, door_of
from api.http.problems import RefusedError
from api.transport import AWAY
from workers.coordination import signals
from workers.coordination.redis import trouble
from workers.errors import UnavailableError
from workers.queues import RECALL

KEY = "ebb_key"
NAMESPACE = "ebb_namespace"
COOKIES = {"path": "/", "httponly": True, "samesite": "strict"}

PAGE_SECONDS = 10.0
"""Seconds that a page waits for workers."""


def visitor(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)],
    api_key: Annotated[str | None, Depends(API_KEY)],
    namespace: NamespaceHeader = None,
) -> Caller:
    """Return the visitor, who needs the scope `read`; a key in a header precedes the cookie.

    Raises:
        RefusedError: the key is missing, invalid or lacks the scope.
    """
    given = bearer.credentials if bearer else api_key
    if given is None:
        given = _signed_in(request)
    if given is None and namespace is None:
        namespace = request.cookies.get(NAMESPACE)
    who = identify(request, given, namespace)
    who.check("read")
    return who


class Visit(Session):
    """The client of one page, which may send several tasks."""

    def call(
        self, task: str, arguments: dict[str, Any], seconds: float, *, task_id: str | None = None
    ) -> dict[str, Any]:
        """Send a task and return its result."""
        return super().call(task, arguments, seconds, task_id=task_id or str(uuid7()))


def session(request: Request, who: Annotated[Caller, Depends(visitor)]) -> Session:
    """Return the client of a page for the visitor's namespace.

    Raises:
        UnavailableError: no worker would answer.
    """
    door = door_of(request)
    _check_workers(door)
    return Visit(door, who, timeout=PAGE_SECONDS)


Visitor = Annotated[Caller, Depends(visitor)]
Reading = Annotated[Session, Depends(session)]


def sign_in(request: Request, response: Response, key: str) -> None:
    """Store a key in a cookie that scripts and other sites cannot read."""
    response.set_cookie(KEY, key, secure=request.url.scheme == "https", **COOKIES)  # type: ignore[arg-type]


def sign_out(response: Response) -> None:
    """Delete the cookie with the key."""
    response.delete_cookie(KEY, **COOKIES)  # type: ignore[arg-type]


def choose(response: Response, namespace: str) -> None:
    """Store the chosen namespace in a cookie, for use without keys."""
    response.set_cookie(NAMESPACE, namespace, **COOKIES)  # type: ignore[arg-type]


def check_origin(request: Request) -> None:
    """Refuse a form that a page of another site has sent.

    Raises:
        RefusedError: the form comes from another site.
    """
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "same-origin")
    foreign = origin is not None and urlsplit(origin).netloc != request.url.netloc
    if foreign or site not in ("same-origin", "none"):
        raise RefusedError(HTTPStatus.FORBIDDEN, "This form was sent by a page of another site; open it here.")


def _signed_in(request: Request) -> str | None:
    """Return the key in the cookie; it is ignored if no keys exist any more."""
    kept = request.cookies.get(KEY)
    return kept if kept and door_of(request).look_up(kept).any_key else None


def _check_workers(door: Door) -> None:
    """Fail at once if no worker runs, instead of waiting for one."""
    try:
        queues = {queue for queue, _ in signals.alive(door.redis, door.client.seconds())}
    except AWAY as error:
        raise UnavailableError(trouble(error)) from None
    if RECALL not in queues:
        raise UnavailableError("No worker serves the queue 'recall'. Check `ebb status` and start workers.")
