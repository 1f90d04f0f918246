"""The route of MCP: tools for agents on other machines, with the same keys, namespaces and limits as the other routes.

Each message is answered by itself, so that any number of API processes may stand behind one address.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.types import Receive, Scope, Send

from api.http.callers import Caller, caller
from api.http.dispatch import Session
from api.http.door import door_of
from api.mcp import server
from api.mcp.tool import Opened
from api.mcp.tool import Scope as Wish

# Who may ask from where is settled for every route alike, before this one.
SETTLED = TransportSecuritySettings(enable_dns_rebinding_protection=False)


@asynccontextmanager
async def _running(app: FastAPI) -> AsyncIterator[None]:
    """Run the server as long as the app runs."""
    own = server.make_server(_open)
    own.streamable_http_app(stateless_http=True, json_response=True, transport_security=SETTLED)
    async with own.session_manager.run():
        app.state.mcp = own.session_manager
        yield


class _Handover(Response):
    """An answer that the session manager gives."""

    def __init__(self, manager: StreamableHTTPSessionManager) -> None:
        super().__init__()
        self._manager = manager

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let the session manager read the request and answer it."""
        await self._manager.handle_request(scope, receive, send)


routes = APIRouter(lifespan=_running)


@routes.api_route("/mcp", methods=["POST"], include_in_schema=False)
def messages(request: Request, _: Annotated[Caller, Depends(caller)]) -> Response:
    """Answer messages of MCP's streamable HTTP transport, which keeps neither sessions nor streams open here."""
    return _Handover(request.app.state.mcp)


def _open(request: Request | None, scope: Wish) -> Opened:
    """Open the memory of whoever sent the request, if this scope is open to them."""
    assert request is not None  # noqa: S101  over HTTP there is one
    who: Caller = request.state.caller
    who.check(scope)
    writes = "write" in who.scopes
    return Opened(Session(door_of(request), who, timeout=None), touches=writes, writes=writes)
