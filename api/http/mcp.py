"""The route of MCP, with the same keys, namespaces and limits as the other routes.

It is stateless, so that any number of API processes may share one address.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import anyio
from anyio.abc import TaskGroup, TaskStatus
from fastapi import APIRouter, Depends, FastAPI, Request, Response
from starlette.types import Receive, Scope, Send

from api.http.callers import Caller, caller
from api.http.dispatch import Session
from api.http.door import door_of
from api.http.problems import METADATA, scopes

if TYPE_CHECKING:
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    from api.mcp.tool import Opened
    from api.mcp.tool import Scope as Wish


class _Server:
    """The MCP server, created at the first message, which saves 25 MiB and time at the start."""

    def __init__(self, group: TaskGroup) -> None:
        self._group = group
        self._lock = anyio.Lock()
        self._manager: StreamableHTTPSessionManager | None = None

    async def manager(self) -> "StreamableHTTPSessionManager":
        """Return the session manager, which answers messages."""
        async with self._lock:
            if self._manager is None:
                self._manager = await self._group.start(_serve)
        return self._manager


async def _serve(*, task_status: "TaskStatus[StreamableHTTPSessionManager]") -> None:
    manager = await anyio.to_thread.run_sync(_make_manager)
    async with manager.run():
        task_status.started(manager)
        await anyio.sleep_forever()


def _make_manager() -> "StreamableHTTPSessionManager":
    from mcp.server.transport_security import TransportSecuritySettings  # noqa: PLC0415

    from api.mcp import server  # noqa: PLC0415

    # Origins are checked for all routes before this one.
    settled = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    own = server.make_server(_open)
    own.streamable_http_app(stateless_http=True, json_response=True, transport_security=settled)
    return own.session_manager


@asynccontextmanager
async def _running(app: FastAPI) -> AsyncIterator[None]:
    """Run the server during the lifespan of the app."""
    async with anyio.create_task_group() as group:
        app.state.mcp = _Server(group)
        yield
        group.cancel_scope.cancel()


class _Handover(Response):
    """A response that the session manager writes."""

    def __init__(self, server: _Server) -> None:
        super().__init__()
        self._server = server

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the session manager read the request and answer it."""
        manager = await self._server.manager()
        await manager.handle_request(scope, receive, send)


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


@routes.api_route("/mcp", methods=["POST"], include_in_schema=False)
def messages(request: Request, _: Annotated[Caller, Depends(caller)]) -> Response:
    """Answer messages of MCP's streamable HTTP transport, without sessions and open streams."""
    return _Handover(request.app.state.mcp)


def _open(request: Request | None, scope: "Wish") -> "Opened":
    """Return the memory of the caller, if it has this scope."""
    from api.mcp.tool import Opened  # noqa: PLC0415

    assert request is not None  # noqa: S101  always given over HTTP
    who: Caller = request.state.caller
    who.check(scope)
    writes = "write" in who.scopes
    return Opened(Session(door_of(request), who, timeout=None), touches=writes, writes=writes)
