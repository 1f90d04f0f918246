"""Problem details (RFC 9457) for all errors."""

import asyncio
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http import HTTPStatus
from typing import Any, get_args
from urllib.parse import quote

from ebb.contract.faults import MOST_FAULTS, UNKNOWN, fault, joined, show
from ebb.contract.operation import EXAMPLE_ID
from ebb.errors import OLDER_WORKERS
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, RedirectResponse, Response
from pydantic import BaseModel, ConfigDict, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import BaseRoute, Match
from starlette.types import Scope

from workers.errors import BusyError, EbbError, LateError, OlderWorkersError, UnavailableError

MEDIA_TYPE = "application/problem+json"
RETRY_SECONDS = 5
BUSY_SECONDS = 10
METADATA = "/.well-known/oauth-protected-resource"
"""Path of the metadata of the protected resource, which MCP clients read, also followed by the path of the tools."""

GONE = 499
"""Status in the log and in metrics of a request whose client disconnected before its body was complete."""

MCP = "/mcp"
"""Path of MCP's messages."""

SCOPES = ("read", "write")
"""Scopes of a key for all tools."""

NO_JSON = "body: is no JSON: it is no UTF-8, is nested without end, or has a number of thousands of digits."
ADDRESS = re.compile(
    r"""\S+:\d{2,5}\b|"[^"]*"(?:\ \([^)]*\))?(?:,\ port\ \d+)?|(?<=host\ )'[^']*'|(?<=socket:\ )\S+""", re.VERBOSE
)
"""Addresses, paths, users and databases in what PostgreSQL's and Redis' clients say of a failed connection."""

TITLES = {
    413: "Request Entity Too Large", 414: "Request-URI Too Long", 416: "Requested Range Not Satisfiable",
    422: "Unprocessable Entity",
}  # fmt: skip
"""The titles of those errors whose phrase Python 3.13 changed, as a problem's type is made of its title."""

SAID_BETTER = {"There was an error parsing the body": NO_JSON}
"""Longer messages for errors of the framework."""


class Problem(BaseModel):
    """A problem detail (RFC 9457)."""

    model_config = ConfigDict(extra="allow")

    type: str = Field(examples=["urn:ebb:problem:not-found"])
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(
        examples=[f"id: no live fact {EXAMPLE_ID} is in namespace 'default'; look for it with `recall`."]
    )
    instance: str | None = Field(None, examples=[f"/memory/facts/{EXAMPLE_ID}"])


class RefusedError(EbbError):
    """A request that is not allowed: the key is missing or does not allow it, or the origin is foreign."""

    def __init__(self, status: HTTPStatus, message: str, scope: str = "") -> None:
        super().__init__(message)
        self.status = status
        self.scope = scope
        """The scope that is missing, if that is why."""


class InvalidBodyError(RequestValidationError):
    """A body with invalid values: details of the first faults, and the number of the others."""

    def __init__(self, details: Sequence[Any], more: int) -> None:
        super().__init__(details)
        self.more = more


def task_of(request: Request) -> str:
    """Return the id of the task that a request has sent, if any."""
    return str(getattr(request.state, "task", ""))


@contextmanager
def until_stopped(request: Request) -> Iterator[None]:
    """Raise `LateError` when the server stops and has waited long enough for a request."""
    try:
        yield
    except asyncio.CancelledError:
        raise LateError(
            "Ebb is stopping, and this request was not done yet: try again when it runs.", task_of(request)
        ) from None


def without_addresses(said: str) -> str:
    """Return what is said of servers without their addresses, which are not for every caller."""
    return ADDRESS.sub("…", said)


def title_of(status: int) -> str:
    """Return the title of an error, which is the same on every version of Python."""
    return TITLES.get(status) or HTTPStatus(status).phrase


def answer(status: int, detail: str, request: Request | None = None, **more: Any) -> JSONResponse:
    """Return a problem with additional members."""
    title = title_of(status)
    content = Problem(
        type=more.pop("type", f"urn:ebb:problem:{title.lower().replace(' ', '-')}"),
        title=title,
        status=status,
        detail=detail,
        instance=request.url.path if request else None,
        **more,
    )
    headers = headers_of(status, request)
    if "retry_after" in more:
        headers["Retry-After"] = str(more["retry_after"])
    return JSONResponse(content.model_dump(exclude_none=True), status, headers, MEDIA_TYPE)


def responses(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the OpenAPI responses for these statuses."""
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": title_of(status), "content": content} for status in statuses}


def register(app: FastAPI) -> None:
    """Register the handlers that answer every error as a problem."""
    app.add_exception_handler(EbbError, _domain)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(ClientDisconnect, lambda _, __: Response(status_code=GONE))
    app.add_exception_handler(Exception, _unforeseen)


def _domain(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, EbbError)  # noqa: S101  it is registered for no other
    status = error.status
    more: dict[str, Any] = {"task": error.task} if isinstance(error, LateError) and error.task else {}
    if isinstance(error, OlderWorkersError):
        more["type"] = OLDER_WORKERS
    if isinstance(error, BusyError):
        more["retry_after"] = max(1, math.ceil(error.retry_after))
    said = without_addresses(str(error)) if isinstance(error, UnavailableError) else str(error)
    response = answer(status, said, request, **more)
    if isinstance(error, RefusedError) and error.scope:
        response.headers["WWW-Authenticate"] = _scope_challenge(request, error.scope)
    return response


def _scope_challenge(request: Request, scope: str) -> str:
    """Return the challenge for a missing scope (RFC 6750).

    To MCP clients it names all scopes, because they replace those that they have by the named ones.
    """
    start = 'Bearer realm="ebb", error="insufficient_scope"'
    if request.url.path == MCP:
        return f"{start}, {_for_mcp(request)}"
    return f'{start}, scope="{_prefix(request)}{scope}"'


def _prefix(request: Request) -> str:
    return request.app.state.door.settings.oauth_scope_prefix


def scopes(request: Request) -> str:
    """Return the scopes for all tools, as tokens have them."""
    return " ".join(f"{_prefix(request)}{scope}" for scope in SCOPES)


def _invalid(request: Request, error: Exception) -> JSONResponse:
    """Answer 422 with the first invalid values and the number of others, or 400 if the body is not JSON."""
    details = error.errors() if isinstance(error, RequestValidationError) else []
    more = max(len(details) - MOST_FAULTS, 0) + getattr(error, "more", 0)
    faults = list(_faults(details[:MOST_FAULTS], _fields(request)))
    no_json = any(detail["type"] == "json_invalid" for detail in details)
    status = HTTPStatus.BAD_REQUEST if no_json else HTTPStatus.UNPROCESSABLE_ENTITY
    return answer(
        status, joined(faults, more), request, errors=[*faults, *([f"and {more} more faults"] if more else [])]
    )


def _faults(details: Sequence[Any], known: Sequence[str]) -> Iterator[str]:
    """Yield the messages about invalid values or a body that is not JSON; known fields of the body are listed once."""
    for detail in details:
        if detail["type"] == "json_invalid":
            yield f"body: is no JSON at character {detail['loc'][-1]}: {detail['ctx']['error']}"
        elif known and detail["type"] == UNKNOWN and tuple(detail["loc"][:-1]) == ("body",):
            name = show(str(detail["loc"][-1]))[1:-1]
            yield f"body.{name}: is no field of this request; known are {', '.join(known)}"
            known = ()
        elif isinstance(detail.get("input"), bytes):
            yield "body: was not read, for it was not sent as JSON; say so by `Content-Type: application/json`"
        else:
            yield fault(detail)


def _fields(request: Request) -> list[str]:
    """Return the names of the fields that the body of a request may have, if its route takes an object."""
    body = getattr(request.scope.get("route"), "body_field", None)
    model = model_of(body.field_info.annotation) if body else None
    return list(model.model_json_schema().get("properties", ())) if model else []


def model_of(kind: Any) -> type[BaseModel] | None:
    """Return the model in the annotation of a body, which may be optional; None if it has none."""
    kinds = (one for one in (kind, *get_args(kind)) if isinstance(one, type))
    return next((one for one in kinds if issubclass(one, BaseModel)), None)


def _http(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else HTTPStatus.INTERNAL_SERVER_ERROR
    if status == HTTPStatus.NOT_FOUND and "route" not in request.scope and (place := without_slash(request)):
        return RedirectResponse(place)
    phrase = HTTPStatus(status).phrase
    said = error.detail if isinstance(error, HTTPException) else phrase
    nothing = f"{request.method} {request.url.path}: {title_of(status).lower()}; see /docs for what there is."
    response = answer(status, nothing if said == phrase else SAID_BETTER.get(said, said), request)
    response.headers.update(getattr(error, "headers", None) or {})
    if status == HTTPStatus.METHOD_NOT_ALLOWED:
        response.headers["Allow"] = ", ".join(_methods(request))
    return response


def without_slash(request: Request) -> str | None:
    """Return the address of a path without the slash at its end, if only that one is of a route.

    It is relative, as the client may know Ebb by another name, scheme or path of a proxy.
    """
    path = request.scope["path"]
    bare = path.removesuffix("/")
    scope = {**request.scope, "path": bare}
    if bare == path or not any(_matches(one, scope) for one in request.app.state.routes):
        return None
    query = f"?{request.url.query}" if request.url.query else ""
    return f"../{quote(bare.rpartition('/')[2])}{query}"


def _matches(route: BaseRoute, scope: Scope) -> bool:
    return route.matches(scope)[0] is not Match.NONE


def _methods(request: Request) -> list[str]:
    """Return the methods of a path; the framework knows only those of its first route."""
    matching = (route for route in request.app.state.routes if _matches(route, request.scope))
    methods = {method for route in matching for method in getattr(route, "methods", None) or ()}
    return sorted(methods | ({"HEAD"} if "GET" in methods else set()))


def _unforeseen(request: Request, error: Exception) -> JSONResponse:
    return answer(HTTPStatus.INTERNAL_SERVER_ERROR, f"{type(error).__name__}; the log of the API says more.", request)


def headers_of(status: int, request: Request | None = None) -> dict[str, str]:
    """Return the headers of an answer with this status."""
    if status == HTTPStatus.UNAUTHORIZED:
        return {"WWW-Authenticate": _challenge(request)}
    if status == HTTPStatus.TOO_MANY_REQUESTS:
        return {"Retry-After": str(BUSY_SECONDS)}
    return {"Retry-After": str(RETRY_SECONDS)} if status == HTTPStatus.SERVICE_UNAVAILABLE else {}


def _challenge(request: Request | None) -> str:
    """Return the `WWW-Authenticate` challenge (RFC 6750), with the metadata for MCP clients (RFC 9728)."""
    parts = ['Bearer realm="ebb"']
    if request is not None and request.url.path == MCP:
        parts.append(_for_mcp(request))
    if request is not None and "authorization" in request.headers:
        parts.append('error="invalid_token"')
    return ", ".join(parts)


def _for_mcp(request: Request) -> str:
    """Return the parameters of a challenge that lead MCP clients to the metadata and name the scopes."""
    where = f"{request.base_url}".rstrip("/") + f"{METADATA}{MCP}"
    return f'resource_metadata="{where}", scope="{scopes(request)}"'
