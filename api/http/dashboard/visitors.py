"""Visitors: who looks at a page, by the key in their cookie, or on this machine by the namespace that they chose."""

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
"""How long a page waits for workers before it says that they are late."""


def visitor(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)],
    api_key: Annotated[str | None, Depends(API_KEY)],
    namespace: NamespaceHeader = None,
) -> Caller:
    """Return who looks at a page, which needs the scope `read`; a key in a header goes before the cookie.

    Raises:
        RefusedError: nobody who may.
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
    """One page's client, which may ask several times: unlike a request to the API it is more than one task."""

    def call(
        self, task: str, arguments: dict[str, Any], seconds: float, *, task_id: str | None = None
    ) -> dict[str, Any]:
        """Send a task and return its result."""
        return super().call(task, arguments, seconds, task_id=task_id or str(uuid7()))


def session(request: Request, who: Annotated[Caller, Depends(visitor)]) -> Session:
    """Return what a page asks the visitor's memory through.

    Raises:
        UnavailableError: nobody would answer.
    """
    door = door_of(request)
    _check_workers(door)
    return Visit(door, who, timeout=PAGE_SECONDS)


Visitor = Annotated[Caller, Depends(visitor)]
Reading = Annotated[Session, Depends(session)]


def sign_in(request: Request, response: Response, key: str) -> None:
    """Let the browser keep a key, out of reach of scripts and of other sites."""
    response.set_cookie(KEY, key, secure=request.url.scheme == "https", **COOKIES)  # type: ignore[arg-type]


def sign_out(response: Response) -> None:
    """Let the browser forget the key."""
    response.delete_cookie(KEY, **COOKIES)  # type: ignore[arg-type]


def choose(response: Response, namespace: str) -> None:
    """Let the browser keep whose memory is looked at where no key says it."""
    response.set_cookie(NAMESPACE, namespace, **COOKIES)  # type: ignore[arg-type]


def check_origin(request: Request) -> None:
    """Refuse a form that another site's page has sent.

    Raises:
        RefusedError: it was.
    """
    origin = request.headers.get("origin")
    site = request.headers.get("sec-fetch-site", "same-origin")
    foreign = origin is not None and urlsplit(origin).netloc != request.url.netloc
    if foreign or site not in ("same-origin", "none"):
        raise RefusedError(HTTPStatus.FORBIDDEN, "This form was sent by a page from elsewhere; open it here.")


def _signed_in(request: Request) -> str | None:
    """Return the key in the cookie; where there is no key at all any more it counts for nothing."""
    kept = request.cookies.get(KEY)
    return kept if kept and door_of(request).look_up(kept).any_key else None


def _check_workers(door: Door) -> None:
    """Tell at once that no worker is there, rather than after having waited for one."""
    try:
        queues = {queue for queue, _ in signals.alive(door.redis, door.client.seconds())}
    except AWAY as error:
        raise UnavailableError(trouble(error)) from None
    if RECALL not in queues:
        raise UnavailableError(
            "No worker takes from the queue 'recall'. See `ebb status` for what runs, and start workers again."
        )
