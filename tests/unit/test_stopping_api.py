"""A request that the API still waits for when it stops."""

import asyncio
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import APIRouter, FastAPI, Request, Response

from api.http import mcp, problems, route
from api.http.dashboard import rendering
from api.http.limits import Turns

WRITE = "01a21f69-2b8b-70a8-b6d7-b1f2a21ad78f"


async def _cancelled(app: FastAPI, begun: asyncio.Event) -> list[Any]:
    """Return what is sent in answer to a request that is cancelled after it has begun, as uvicorn does."""
    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    scope = {
        "type": "http", "method": "GET", "path": "/", "raw_path": b"/", "headers": [], "server": ("ebb", 80),
        "query_string": b"timeout=60", "scheme": "http", "http_version": "1.1", "root_path": "",
    }  # fmt: skip
    task = asyncio.create_task(app(scope, receive, send))
    await begun.wait()
    task.cancel()
    await task
    return sent


def test_a_request_that_outlasts_the_api_is_answered_504_with_its_task(monkeypatch: pytest.MonkeyPatch) -> None:
    begun = asyncio.Event()
    app, router = FastAPI(), APIRouter(route_class=route.Route)
    app.state.door = SimpleNamespace(turns=Turns(most_requests=1, most_bytes=1))
    problems.register(app)
    monkeypatch.setattr(
        route, "_identify", lambda request: setattr(request.state, "caller", SimpleNamespace(namespace="mira"))
    )

    @router.get("/")
    async def answer(request: Request) -> None:
        request.state.task = WRITE
        begun.set()
        await asyncio.Event().wait()

    app.include_router(router)
    start, body = asyncio.run(_cancelled(app, begun))
    assert start["status"] == 504
    assert b"Ebb is stopping" in body["body"]
    assert WRITE.encode() in body["body"]


@pytest.mark.parametrize("door", ["page", "tools"])
def test_a_page_or_a_tool_that_outlasts_the_api_is_answered_504(door: str) -> None:
    begun, app = asyncio.Event(), FastAPI()
    router = rendering.router() if door == "page" else APIRouter()
    problems.register(app)

    async def wait(*_: Any) -> None:
        begun.set()
        await asyncio.Event().wait()

    manager: Any = SimpleNamespace(handle_request=wait)

    @router.get("/")
    async def answer(request: Request) -> Response:
        if door == "page":
            await wait()
        return await mcp._answered(request, manager, Turns(most_requests=1, most_bytes=1), "mira", b"")

    app.include_router(router)
    start, body = asyncio.run(_cancelled(app, begun))
    assert start["status"] == 504
    assert b"Ebb is stopping" in body["body"]
