"""Callers: who asks, whose memory that is, and what they may do with it."""

from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, get_args
from urllib.parse import urlsplit

from fastapi import Depends, Header, Request
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer

from api.http.door import Door, door_of, is_loopback
from api.http.problems import RefusedError
from workers.coordination.key_ring import Scope
from workers.validation import namespace_name

ALL_SCOPES: frozenset[str] = frozenset(get_args(Scope))
BEARER = HTTPBearer(auto_error=False, description="a key that `ebb keys create` printed")
API_KEY = APIKeyHeader(name="x-api-key", auto_error=False, description="the same")

NamespaceHeader = Annotated[
    str | None,
    Header(
        alias="X-Ebb-Namespace",
        description="Whose memory, where no key says it; else EBB_NAMESPACE. A key opens its own namespace only.",
    ),
]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: one namespace, and the scopes that are open there."""

    namespace: str
    scopes: frozenset[str]
    key: str | None = None

    def check(self, scope: Scope) -> None:
        """Raise `RefusedError` unless this scope is open."""
        if scope not in self.scopes:
            raise RefusedError(
                HTTPStatus.FORBIDDEN,
                f"This needs a key with the scope {scope!r}; yours has {', '.join(sorted(self.scopes))}.",
            )


def caller(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)],
    api_key: Annotated[str | None, Depends(API_KEY)],
    namespace: NamespaceHeader = None,
) -> Caller:
    """Return who asks, by what the headers say, which is known already where a body was read."""
    known: Caller | None = getattr(request.state, "caller", None)
    return known or identify(request, bearer.credentials if bearer else api_key, namespace)


def identify(request: Request, key: str | None, namespace: str | None) -> Caller:
    """Return who asks: by key, or on this machine anybody as long as there is no key at all.

    Raises:
        RefusedError: nobody who may.
    """
    door = door_of(request)
    found = door.look_up(key)
    if key is not None and found.grant is None:
        raise RefusedError(HTTPStatus.UNAUTHORIZED, "This key is none, or was revoked; see `ebb keys list`.")
    if found.grant is None:
        _check_local(request, any_key=found.any_key)
        who = Caller(_named(namespace, door), ALL_SCOPES)
    else:
        who = Caller(found.grant.namespace, frozenset(found.grant.scopes), found.grant.id)
        if namespace not in (None, who.namespace):
            raise RefusedError(
                HTTPStatus.FORBIDDEN,
                f"Your key opens the namespace {who.namespace!r} only; leave out X-Ebb-Namespace, or name that.",
            )
    request.state.caller = who
    return who


def allowed(scope: Scope) -> Callable[[Caller], Caller]:
    """Return a dependency that gives the caller, if this scope is open to them."""

    def checked(who: Annotated[Caller, Depends(caller)]) -> Caller:
        who.check(scope)
        return who

    return checked


def _named(namespace: str | None, door: Door) -> str:
    return namespace_name(door.settings.namespace if namespace is None else namespace)


def _check_local(request: Request, *, any_key: bool) -> None:
    """Let in without key who is on this machine, while there is no key, and not by way of a page from elsewhere."""
    addresses = [request.scope.get(end) for end in ("server", "client")]
    local = all(not address or address[1] is None or is_loopback(address[0]) for address in addresses)
    if any_key or not local:
        raise RefusedError(
            HTTPStatus.UNAUTHORIZED,
            "Give a key as `Authorization: Bearer …` or `x-api-key`; `ebb keys create` makes one.",
        )
    origin = request.headers.get("origin")
    names = [request.url.hostname, *([urlsplit(origin).hostname] if origin else [])]
    if not all(name and is_loopback(name) for name in names):
        raise RefusedError(
            HTTPStatus.FORBIDDEN,
            "Without keys only programs and pages of this machine are answered, at 127.0.0.1 or localhost.",
        )
