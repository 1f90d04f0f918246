"""The route of MCP, with the same keys, namespaces and limits as the other routes.

It is stateless, so that any number of API processes may share one address.
"""

import json
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated, Any

import anyio
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message

from api.http.callers import Caller, caller
from api.http.dispatch import Session
from api.http.door import door_of
from api.http.limits import Turns
from api.http.problems import MCP, METADATA, SCOPES, scopes, until_stopped
from api.http.route import check_parts

if TYPE_CHECKING:
    from anyio.abc import TaskStatus
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from api.mcp.tools import Opened
    from api.mcp.tools import Scope as Wish


async def _serve(*, task_status: "TaskStatus[StreamableHTTPSessionManager]") -> None:
    manager = await anyio.to_thread.run_sync(_make_manager)
    async with manager.run():
        task_status.started(manager)
        await anyio.sleep_forever()


def _make_manager() -> "StreamableHTTPSessionManager":
    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415 - the SDK is slow to load

    from api.mcp import server  # noqa: PLC0415 - it loads the SDK

    # Origins and the sizes of bodies are checked for all routes before this one.
    settled = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    own = server.make_server(_open)
    own.streamable_http_app(
        stateless_http=True, json_response=True, transport_security=settled, max_request_body_size=sys.maxsize
    )
    return own.session_manager


@asynccontextmanager
async def _running(app: FastAPI) -> AsyncIterator[None]:
    """Run the server during the lifespan of the app, from the first message on, which saves 25 MiB and time."""
    lock, made = anyio.Lock(), list[Any]()

    async def manager() -> "StreamableHTTPSessionManager":
        async with lock:
            if not made:
                made.append(await group.start(_serve))
        return made[0]

    async with anyio.create_task_group() as group:
        app.state.mcp_manager = manager
        yield
        group.cancel_scope.cancel()


async def _answered(
    request: Request, manager: "StreamableHTTPSessionManager", turns: Turns, namespace: str, body: bytes
) -> Response:
    """Return the session manager's answer to a body, made when it is the turn of its namespace at the threads.

    It is sent after the turn, which a client that does not read it would keep.

    Raises:
        BusyError: too many requests of this namespace wait.
        ClientDisconnect: the client has left, for which the session manager may make no answer.
    """
    read: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]
    said: list[Message] = []

    async def receive() -> Message:
        return read.pop() if read else await request.receive()

    async def send(message: Message) -> None:
        said.append(message)

    with until_stopped(request):
        async with turns.turn(namespace):
            await manager.handle_request(request.scope, receive, send)
    if not said:
        raise ClientDisconnect
    response = Response(b"".join(message.get("body", b"") for message in said), said[0]["status"])
    response.raw_headers = said[0]["headers"]
    return response


routes = APIRouter(lifespan=_running)


@routes.get(METADATA, include_in_schema=False)
@routes.get(f"{METADATA}/mcp", include_in_schema=False)
def protected_resource(request: Request) -> dict[str, Any]:
    """Return what clients must know before they have a key or a token (RFC 9728)."""
    settings = door_of(request).settings
    servers = {"authorization_servers": settings.oauth_issuer_urls} if settings.oauth_issuers else {}
    return servers | {
        "resource": settings.oauth_audience or f"{request.base_url}mcp",
        "resource_name": "Ebb",
        "scopes_supported": scopes(request).split(),
        "bearer_methods_supported": ["header"],
        "resource_documentation": f"{request.base_url}help/mcp",
    }


@routes.api_route(MCP, methods=["POST"], include_in_schema=False)
async def messages(request: Request, who: Annotated[Caller, Depends(caller)]) -> Response:
    """Answer messages of MCP's streamable HTTP transport, without sessions and open streams.

    A call for which an access token lacks the scope is refused with 403: its client then asks its user for more.
    With a key the tool's answer says so, because an agent has no other way to learn it.

    The body is read here, because the session manager answers 500 to one that ends early. It parses on the event loop,
    and quotes a list in full before it refuses it.
    """
    body = await request.body()
    check_parts(body)
    if body.lstrip().startswith(b"["):
        raise HTTPException(HTTPStatus.BAD_REQUEST, "body: is a list; send one message at a time.")
    if who.has_token and not who.scopes.issuperset(SCOPES):
        scope = await anyio.to_thread.run_sync(_scope_of, body)
        if scope is not None:
            who.check(scope)
    manager = await request.app.state.mcp_manager()
    return await _answered(request, manager, door_of(request).turns, who.namespace, body)


def _scope_of(body: bytes) -> "Wish | None":
    """Return the scope that a message needs; none for one that calls no known tool and reads no resource."""
    from api.mcp.tools import BY_NAME  # noqa: PLC0415 - loads the SDK

    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        return None  # the session manager answers it
    match message:
        case {"method": "resources/read"}:
            return "read"
        case {"method": "tools/call", "params": {"name": str(name)}} if name in BY_NAME:
            return BY_NAME[name].scope
    return None


def _open(request: Request | None, scope: "Wish") -> "Opened":
    """Return the memory of the caller, if it has this scope."""
    from api.mcp.tools import Opened  # noqa: PLC0415 - it loads the SDK

    assert request is not None  # noqa: S101  always given over HTTP
    who: Caller = request.state.caller
    who.check(scope)
    return Opened(Session(door_of(request), who, timeout=None), writes="write" in who.scopes)
