"""Slow clients of the API: neither the head of a request nor its body nor its reader may take too long."""

import asyncio
import json
import socket
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from fastapi import FastAPI, Request, Response
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import Message
from uvicorn.server import ServerState

from api.http import limits, mcp
from api.http.callers import Caller
from api.http.dashboard import rendering, visitors
from workers.errors import BusyError
from workers.settings import Settings

END = b"\r\n\r\n"
HOLDS_NOTHING = limits._Held(limits.Turns(1, 1), {})
HEAD = b"GET / HTTP/1.1\r\nHost: x" + END


async def _answer(_scope: Any, _receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


async def _serve(app: Any, state: ServerState) -> asyncio.Server:
    config = uvicorn.Config(app, log_config=None, ws="none", timeout_keep_alive=3600)
    config.load()
    loop = asyncio.get_running_loop()
    return await loop.create_server(lambda: limits.PatientProtocol(config, state, {}), "127.0.0.1", 0)


async def _received(*sent: bytes) -> bytes:
    """Return the answer after the last complete request, sent bit by bit, until the connection closes."""
    server = await _serve(_answer, ServerState())
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
    with closing(server), closing(writer):
        for part in sent:
            writer.write(part)
            if part.endswith(END):
                await reader.readuntil(b"ok")
        return await reader.read()


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "HEAD_SECONDS", 0.2)
    monkeypatch.setattr(limits, "BODY_SECONDS", 0.0)


@pytest.mark.parametrize("sent", [(), (b"GET / HTTP/1.1\r\n", b"Host: x\r\n")])
def test_a_head_that_never_ends_is_answered_408(sent: tuple[bytes, ...]) -> None:
    answered = asyncio.run(_received(*sent))
    assert answered.startswith(b"HTTP/1.1 408 Request Timeout\r\n")
    assert _problem(answered)["title"] == "Request Timeout"


@pytest.mark.parametrize(
    "request_",
    [
        b"nonsense" + END,
        b"GET / HTTP/1.1\r\nHost: x\r\nX-A: \0" + END,
        b"GET / HTTP/1.1\r\nHost: x\r\nContent-Length: 1, 2" + END,
        b"GET / HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 70_000,
    ],
)
def test_what_is_no_http_is_answered_with_a_problem(request_: bytes) -> None:
    answered = asyncio.run(_received(request_[:-1], request_[-1:]))
    assert answered.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert _problem(answered)["type"] == "urn:ebb:problem:bad-request"


def _problem(answered: bytes) -> dict[str, Any]:
    head, _, body = answered.partition(END)
    assert b"content-type: application/problem+json" in head
    assert f"content-length: {len(body)}".encode() in head
    found: dict[str, Any] = json.loads(body)
    return found


def test_bytes_after_an_answer_do_not_keep_a_connection_open() -> None:
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100" + END
    assert asyncio.run(_received(head, b"a")) == b""


def test_one_connection_too_many_is_answered_with_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "MOST_CONNECTIONS", 1)

    async def answers() -> tuple[bytes, bytes]:
        server = await _serve(_answer, ServerState())
        address = server.sockets[0].getsockname()
        with closing(server):
            (first, to_first), (second, to_second) = [await asyncio.open_connection(*address) for _ in range(2)]
            to_second.write(HEAD)
            refused = await second.read()
            to_first.write(HEAD)
            with closing(to_first), closing(to_second):
                return refused, await first.readuntil(b"ok")

    refused, answered = asyncio.run(answers())
    assert refused.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"retry-after: 5\r\n" in refused
    assert "connections" in _problem(refused)["detail"]
    assert answered.startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize(("size", "reads"), [(32 << 20, True), (32 << 20, False), (60_000, False)])
def test_a_client_that_reads_nothing_of_an_answer_is_disconnected(
    monkeypatch: pytest.MonkeyPatch, size: int, *, reads: bool
) -> None:
    monkeypatch.setattr(limits, "READ_SECONDS", 0.5)

    async def answer(_scope: Any, _receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % size)]})
        await send({"type": "http.response.body", "body": b"x" * size})

    async def connections() -> int:
        state = ServerState()
        server = await _serve(answer, state)
        client = socket.socket()
        for one, buffer in ((server.sockets[0], socket.SO_SNDBUF), (client, socket.SO_RCVBUF)):
            one.setsockopt(socket.SOL_SOCKET, buffer, 4_096)  # which hold less than the short answer
        client.connect(server.sockets[0].getsockname())
        reader, writer = await asyncio.open_connection(sock=client, limit=1_024)
        with closing(server), closing(writer):
            writer.write(HEAD)
            if reads:
                await reader.readuntil(END)
                for _ in range(8):  # more slowly than the limit would permit for all of it
                    await reader.readexactly(size // 8)
                    await asyncio.sleep(0.1)
            else:
                for begins in (True, False):
                    while bool(state.connections) != begins:  # noqa: ASYNC110 - uvicorn has no event for it
                        await asyncio.sleep(0.01)
            return len(state.connections)

    assert asyncio.run(connections()) == int(reads)


def _holds_no_turn(app: FastAPI, turns: limits.Turns) -> None:
    """Take the only turn while a client reads nothing of the answer."""

    async def hold() -> None:
        begun = asyncio.Event()

        async def send(_: Message) -> None:
            begun.set()
            await asyncio.Event().wait()

        scope = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
        task = asyncio.create_task(app(scope, lambda: asyncio.Event().wait(), send))  # type: ignore[arg-type]
        await begun.wait()
        async with turns.turn("mira"):
            task.cancel()

    asyncio.run(hold())


def test_an_agent_that_reads_nothing_of_an_answer_holds_no_thread() -> None:
    turns, app = limits.Turns(most_requests=1, most_bytes=1), FastAPI()

    manager: Any = SimpleNamespace(handle_request=_answer)

    @app.get("/")
    async def tools(request: Request) -> Response:
        return await mcp._answered(request, manager, turns, "mira", b"")

    _holds_no_turn(app, turns)


def test_a_visitor_that_reads_nothing_of_a_page_holds_no_thread() -> None:
    turns, app, routes = limits.Turns(most_requests=1, most_bytes=1), FastAPI(), rendering.router()
    client = SimpleNamespace(is_served=lambda _: True, _app=None, _clock=None)
    door = SimpleNamespace(turns=turns, client=client, settings=SimpleNamespace(redis_url=""), redis=None)
    door.of = lambda _: door
    app.state.door = door
    app.dependency_overrides[visitors.visitor] = lambda: Caller("mira", frozenset({"read"}))

    @routes.get("/")
    def page(memory: visitors.Reading) -> Response:
        return Response(memory.namespace)

    app.include_router(routes)
    _holds_no_turn(app, turns)


def test_an_agent_that_left_before_its_turn_gets_no_answer() -> None:
    async def answer(*_: Any) -> None:
        """Answer nothing, as the session manager does to a stream whose client has left."""

    turns, manager = limits.Turns(most_requests=1, most_bytes=1), SimpleNamespace(handle_request=answer)
    request: Any = Request({"type": "http"})
    with pytest.raises(ClientDisconnect):
        asyncio.run(mcp._answered(request, manager, turns, "mira", b""))  # type: ignore[arg-type]  # a stand-in


def test_a_body_that_never_comes_is_refused() -> None:
    async def never() -> Message:
        await asyncio.Event().wait()
        raise AssertionError

    async def read() -> None:
        await limits._limited(never, 100, HTTPException(413), HOLDS_NOTHING)()

    with pytest.raises(HTTPException, match="did not arrive"):
        asyncio.run(read())


def test_a_client_that_waits_for_the_end_of_a_connection_is_not_hurried() -> None:
    async def read() -> list[str]:
        messages = [{"type": "http.disconnect"}, {"type": "http.request", "body": b"a", "more_body": False}]

        async def receive() -> Message:
            return messages.pop()

        limited = limits._limited(receive, 100, HTTPException(413), HOLDS_NOTHING)
        return [(await limited())["type"], (await limited())["type"]]

    assert asyncio.run(read()) == ["http.request", "http.disconnect"]


def _limited_app(turns: limits.Turns, answer: bytes) -> Any:
    """Return an app that reads the body of a namespace's request, whose bytes are limited, and answers."""
    app = FastAPI()
    app.state.door = SimpleNamespace(turns=turns, settings=Settings())

    async def own(scope: Any, receive: Any, send: Any) -> None:
        request = Request(scope, receive)
        request.state.caller = Caller(scope["path"], frozenset({"write"}))
        await request.body()
        await Response(answer)(scope, receive, send)

    limited = limits.BodyLimit(own)
    return lambda scope, *others: limited({**scope, "app": app}, *others)


def _asked(namespace: str) -> dict[str, Any]:
    return {"type": "http", "method": "POST", "path": namespace, "headers": [], "query_string": b""}


@pytest.mark.parametrize("waits", ["body", "answer"])
def test_bodies_and_answers_of_a_namespace_that_wait_for_its_clients_are_limited(waits: str) -> None:
    """The first client sends only half of its body, or reads only the first part of its answer."""
    size = 3 * limits.PORTION
    turns = limits.Turns(most_requests=9, most_bytes=size)
    app = _limited_app(turns, b"a" * (size if waits == "answer" else 1))
    sent: list[bytes] = []

    async def run() -> None:
        stopped, parts = asyncio.Event(), [size if waits == "body" else 1]

        async def receive() -> Message:
            if parts:
                return {"type": "http.request", "body": b"a" * parts.pop(), "more_body": waits == "body"}
            stopped.set()
            await asyncio.Event().wait()
            raise AssertionError

        async def whole() -> Message:
            return {"type": "http.request", "body": b"a", "more_body": False}

        async def send(message: Message) -> None:
            if message.get("body"):
                stopped.set()
                await asyncio.Event().wait()

        async def read(message: Message) -> None:
            sent.append(message.get("body", b""))

        task = asyncio.create_task(app(_asked("mira"), receive, send))
        await stopped.wait()
        with pytest.raises(BusyError, match=f"EBB_MAX_OUTBOX_BYTES={size}"):
            await app(_asked("mira"), whole, read)
        await app(_asked("ines"), whole, read)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await app(_asked("mira"), whole, read)

    asyncio.run(run())
    assert b"".join(sent) == 2 * (b"a" * (size if waits == "answer" else 1))
    assert all(len(one) <= limits.PORTION for one in sent)
    assert not turns._bytes
