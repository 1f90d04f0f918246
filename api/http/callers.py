"""Callers: the namespace and the scopes of a request, by its key or its origin."""

import re
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Annotated, get_args
from urllib.parse import urlsplit

from anyio import to_thread
from ebb.contract.values import NAMESPACE_SCHEMA
from fastapi import Depends, Header, Request
from fastapi.security import APIKeyHeader, HTTPAuthorizationCredentials, HTTPBearer
from pydantic import WithJsonSchema

from api.http.door import door_of, is_loopback
from api.http.problems import RefusedError
from workers.coordination import key_ring
from workers.coordination.key_ring import Scope
from workers.validation import namespace_name

OF_PROXIES = ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via")
"""Headers that proxies add."""

PORT = re.compile(r":\d{1,5}$")
ALL_SCOPES: frozenset[str] = frozenset(get_args(Scope))
BEARER = HTTPBearer(auto_error=False, description="a key that `ebb keys create` printed")
API_KEY = APIKeyHeader(name="x-api-key", auto_error=False, description="the same")

NamespaceHeader = Annotated[
    Annotated[str, WithJsonSchema(NAMESPACE_SCHEMA)] | None,
    Header(
        alias="X-Ebb-Namespace",
        description="The namespace if no key is used, or if the key has the scope `system`; other keys open their own. "
        "Default without keys: EBB_NAMESPACE.",
    ),
]

OF_TOKENS = "oauth:"


@dataclass(frozen=True, slots=True)
class Caller:
    """The caller of a request: one namespace, the scopes it has there, and when its key or token ends (epoch seconds).

    `key` is the key's id, or the token's subject after `oauth:`.
    """

    namespace: str
    scopes: frozenset[str]
    key: str | None = None
    ends: float | None = None

    @property
    def has_token(self) -> bool:
        """Return whether it has an access token instead of a key."""
        return self.key is not None and self.key.startswith(OF_TOKENS)

    def check(self, scope: Scope) -> None:
        """Raise `RefusedError` if the caller lacks this scope."""
        if scope not in self.scopes:
            has = ", ".join(sorted(self.scopes)) or "none"
            raise RefusedError(
                HTTPStatus.FORBIDDEN, f"This needs a key with the scope {scope!r}; yours has {has}.", scope
            )


async def caller(
    request: Request,
    bearer: Annotated[HTTPAuthorizationCredentials | None, Depends(BEARER)],
    api_key: Annotated[str | None, Depends(API_KEY)],
    namespace: NamespaceHeader = None,
) -> Caller:
    """Return the caller of a request; for routes of operations it is identified already."""
    known: Caller | None = getattr(request.state, "caller", None)
    if known is not None:
        return known
    return await to_thread.run_sync(identify, request, bearer.credentials if bearer else api_key, namespace)


def identify(request: Request, key: str | None, namespace: str | None, *, signed_in: str | None = None) -> Caller:
    """Return the caller by its key, or by the digest of a session's key.

    While no keys exist, every program on this machine is allowed.

    Raises:
        RefusedError: the key is missing, invalid or for another namespace, or two namespaces are named.
    """
    if len(set(request.headers.getlist("x-ebb-namespace"))) > 1:
        raise RefusedError(HTTPStatus.BAD_REQUEST, "X-Ebb-Namespace comes twice, with different names: send one.")
    door = door_of(request)
    if key and _is_token(key) and door.settings.oauth_issuers:
        granted = door.tokens.verify(key)
        subject = f"{OF_TOKENS}{granted.subject}"
        who = _within(Caller(granted.namespace, granted.scopes, subject, granted.ends), namespace)
        request.state.caller = who
        return who
    digest = key_ring.digest(key).hex() if key else signed_in if key is None else ""
    found = door.look_up(digest)
    if digest is not None and found.grant is None:
        raise RefusedError(
            HTTPStatus.UNAUTHORIZED, "This key is invalid, has expired or was revoked; see `ebb keys list`."
        )
    if found.grant is None:
        _check_local(request, any_key=found.any_key or bool(door.settings.oauth_issuers))
        who = Caller(namespace_name(door.settings.namespace if namespace is None else namespace), ALL_SCOPES)
    else:
        grant = found.grant
        who = _within(Caller(grant.namespace, frozenset(grant.scopes), grant.id, grant.ends), namespace)
    request.state.caller = who
    return who


def _within(who: Caller, namespace: str | None) -> Caller:
    """Return the caller in the namespace that it asks for: its own one, or any with the scope `system`."""
    if namespace in (None, who.namespace):
        return who
    if "system" not in who.scopes:
        raise RefusedError(
            HTTPStatus.FORBIDDEN,
            f"Your key opens only the namespace {who.namespace!r}; leave out X-Ebb-Namespace, name that, or use a key "
            "with the scope `system`.",
        )
    return replace(who, namespace=namespace_name(namespace))


def _check_local(request: Request, *, any_key: bool) -> None:
    """Accept requests without a key from this machine while no keys exist, but not from pages of other sites."""
    if any_key or not _is_local(request):
        raise RefusedError(
            HTTPStatus.UNAUTHORIZED,
            "Give a key as `Authorization: Bearer …` or `x-api-key`; `ebb keys create` makes one.",
        )
    if any(name in request.headers for name in OF_PROXIES):
        raise RefusedError(
            HTTPStatus.UNAUTHORIZED,
            "This request came through a proxy, so it may be anybody's: make a key with `ebb keys create`.",
        )
    if not is_loopback(_host(request)) or _is_of_another_site(request):
        raise RefusedError(
            HTTPStatus.FORBIDDEN,
            "Without keys, Ebb answers only programs and pages of its own machine, and only at 127.0.0.1 or localhost. "
            "For any other name, or another machine, make a key with `ebb keys create`.",
        )


def _is_local(request: Request) -> bool:
    """Return whether a request stays on this machine: both its ends are loopback addresses or sockets."""
    addresses = [request.scope.get(end) for end in ("server", "client")]
    return all(not address or address[1] is None or is_loopback(address[0]) for address in addresses)


def _host(request: Request) -> str:
    """Return the name that a request is addressed to, without its port; empty if it gives none or several."""
    hosts = request.headers.getlist("host")
    if len(hosts) != 1:
        return ""
    return hosts[0].rpartition(":")[0] if PORT.search(hosts[0]) else hosts[0]


def _is_of_another_site(request: Request) -> bool:
    """Return whether a page of another site sent a request; following a link to here is allowed."""
    if (origin := request.headers.get("origin")) is not None:
        try:
            return not is_loopback(urlsplit(origin).hostname or "")
        except ValueError:  # no URL, such as `http://[`
            return True
    return is_led_here(request) and request.headers.get("sec-fetch-mode") != "navigate"


def is_led_here(request: Request) -> bool:
    """Return whether a page of another site led a browser here, such as by a link or a frame; scripts say an origin."""
    return "origin" not in request.headers and request.headers.get("sec-fetch-site") == "cross-site"


def _is_token(key: str) -> bool:
    """Return whether a key looks like a JWT, which begins with a coded `{"` and has three parts."""
    return key.startswith("eyJ") and key.count(".") == 2  # noqa: PLR2004 - header, claims, signature
