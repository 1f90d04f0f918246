"""Limits of requests: the time for the head, the size and time of the body, and turns of namespaces at the threads."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus
from typing import Any, TypeAlias

from ebb.contract.admin import IMPORT
from ebb.contract.documents import INDEX, PUT_ITEM, PUT_ITEMS
from ebb.contract.facts import REMEMBER, STORE, STORE_MANY
from ebb.contract.values import LONGEST_METADATA
from fastapi import Request
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from api.http.problems import MCP, answer, title_of
from workers.coordination.shares import RETRY_SECONDS
from workers.errors import BusyError
from workers.settings import Settings

HEAD_SECONDS = 10.0
"""Seconds from the first byte of a request, or from the connection, until its head is complete."""

LONGEST_HEAD = 131_072
"""Bytes of the head of a request. Its address may have as many ids as a list takes, or a long search."""

READ_SECONDS = 60.0
"""Seconds in which a client must read some of what waits for it."""

MOST_CONNECTIONS = 1_000
CROWDED = answer(
    HTTPStatus.SERVICE_UNAVAILABLE,
    f"There are more than {MOST_CONNECTIONS} connections, the most of one process: use fewer, or start more processes.",
)
CROWDED.headers["connection"] = "close"


def _closing(status: int, detail: str) -> bytes:
    """Return the bytes of a problem that ends a connection, for what does not reach the app."""
    problem = answer(status, detail)
    fields = [(b"connection", b"close"), *problem.raw_headers]
    head = [f"HTTP/1.1 {status} {title_of(status)}".encode(), *(name + b": " + value for name, value in fields)]
    return b"\r\n".join([*head, b"", bytes(problem.body)])


LATE = _closing(HTTPStatus.REQUEST_TIMEOUT, "The head of the request came too slowly; send it at once.")
INVALID = _closing(
    HTTPStatus.BAD_REQUEST,
    f"This is no HTTP/1.1 request: its head has more than {LONGEST_HEAD >> 10} KiB or an invalid line, or its body is "
    "not as it says.",
)


class PatientProtocol(H11Protocol):
    """HTTP/1.1 protocol that closes connections whose client sends the head of a request, or reads, too slowly."""

    _deadline: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # asyncio gives a Transport
        """Start the timer for the first request, which is refused if there are too many connections."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(0)  # so that `pause_writing` is called for short answers too
        if len(self.connections) > MOST_CONNECTIONS:
            self.app = CROWDED
            self.logger.warning("Refused a connection: there are %d, the most.", MOST_CONNECTIONS)
        self._expect()

    def data_received(self, data: bytes) -> None:
        """Receive bytes: the first byte of a request starts the timer, the end of its head stops it."""
        self._expect()
        super().data_received(data)
        if not self._is_idle():
            self._stop()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        self._stop()
        super().connection_lost(exc)
        self.resume_writing()

    def pause_writing(self) -> None:
        """Watch whether the client reads what waits for it."""
        super().pause_writing()
        self._watch(0)

    def resume_writing(self) -> None:
        """Stop watching."""
        super().resume_writing()
        if self._reading is not None:
            self._reading.cancel()

    def _watch(self, before: int) -> None:
        """End the connection if its client has read none of the bytes that waited before."""
        waiting = self.transport.get_write_buffer_size()
        if waiting == before:
            self.transport.abort()
        else:
            self._reading = self.loop.call_later(READ_SECONDS, self._watch, waiting)

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002 - uvicorn's message, which names nothing
        """Answer what is no HTTP with a problem, unless an answer has begun, and close the connection."""
        if self._is_idle() or not self.cycle.response_started:
            self.transport.write(INVALID)
        self.transport.close()

    def _is_idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _expect(self) -> None:
        if self._deadline is None and self._is_idle():
            self._deadline = self.loop.call_later(HEAD_SECONDS, self._give_up)

    def _stop(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self, *_: Any) -> None:
        self._deadline = None
        if self._is_idle() and not self.transport.is_closing():
            if self.cycle is None:
                self.transport.write(LATE)
            self.transport.close()


BATCHES = frozenset(one.route.split()[1] for one in (STORE_MANY, REMEMBER, IMPORT, INDEX, PUT_ITEMS)) | {MCP}
"""Paths with large bodies; agents send conversations and files to that of MCP."""

ESCAPED = 8
"""Allowed bytes of JSON for each byte of text, other fields included."""

FORM = "/dashboard/"
LONGEST_FORM = 131_072
"""Bytes of a form: the longest value of a fact in any language, and the other fields."""

BODY_SECONDS = 30.0
"""Time limit for receiving a body."""

BATCH_OF = {
    STORE.route.split()[1]: ("facts", STORE_MANY),
    PUT_ITEM.route.split()[1]: ("items", PUT_ITEMS),
}
"""What is stored at paths that take one at a time, and the operation for many."""


def _longest_body(path: str, settings: Settings) -> tuple[int, HTTPException]:
    """Return the maximum bytes of a body, enough for one fact or EBB_MAX_BODY for a batch, and the error beyond it."""
    most, advice = LONGEST_METADATA + ESCAPED * settings.max_text, "Shorten it; a text has at most EBB_MAX_TEXT bytes."
    if path in BATCHES:
        most, advice = settings.max_body, "Send it in pieces, or raise EBB_MAX_BODY."
    elif path in BATCH_OF:
        what, batch = BATCH_OF[path]
        advice = (
            f"Many {what} go to {batch.route}, which takes up to EBB_MAX_BODY bytes: send more than that in pieces. "
            "Text beyond EBB_MAX_TEXT must be split."
        )
    elif path.startswith(FORM):
        most, advice = LONGEST_FORM, "Shorten what the form sends."
    most = min(most, settings.max_body)
    said = f"The body has more than {most} bytes, the most here. {advice}"
    return most, HTTPException(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, said)


TWO_LENGTHS = "A request has either Content-Length or Transfer-Encoding: with both, a proxy may see another end of it."


PORTION = 262_144
"""Bytes of an answer that are sent at once; the next follow when the client has read them."""


class BodyLimit:
    """Middleware that answers 413 to a body that is too long, before or while it is read, and 408 to a slow one.

    It counts the bytes of bodies that are read, and of large answers until clients have read them: 429 if the namespace
    has too many. Both would fill the memory of the process.

    A request that states the length of its body in two ways is refused, and its connection closed (RFC 9112, 6.1):
    what a proxy takes for the body could otherwise be read as the next request.
    """

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on with a limited receiver."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        door = request.app.state.door
        (most, too_long), held = _longest_body(scope["path"], door.settings), _Held(door.turns, scope)
        said = request.headers.get("content-length", "")
        if said and "transfer-encoding" in request.headers:
            refused = answer(HTTPStatus.BAD_REQUEST, TWO_LENGTHS, request)
            refused.headers["connection"] = "close"
            await refused(scope, receive, send)
        elif said.isdigit() and int(said) > most:
            await answer(too_long.status_code, too_long.detail, request)(scope, receive, send)
        else:
            try:
                await self.app(scope, _limited(receive, most, too_long, held), _in_portions(send, held))
            finally:
                held.release()


class _Held:
    """The bytes that a request of a known caller holds."""

    def __init__(self, turns: "Turns", scope: Scope) -> None:
        self._turns = turns
        self._scope = scope
        self._of: dict[str, int] = {}

    def add(self, size: int, *, refuse: bool) -> None:
        """Count bytes of a body, which are refused if there are too many, or of an answer."""
        if (caller := self._scope.get("state", {}).get("caller")) is not None:
            own = self._of.get(caller.namespace, 0)
            self._turns.hold(caller.namespace, size, own if refuse else None)
            self._of[caller.namespace] = own + size

    def release(self) -> None:
        """Count them no longer."""
        for namespace, size in self._of.items():
            self._turns.release(namespace, size)


def _in_portions(send: Send, held: _Held) -> Send:
    """Return a sender that sends a large answer in portions, and counts its bytes."""

    async def portioned(message: Message) -> None:
        body = message.get("body", b"")
        if len(body) <= PORTION:
            await send(message)
            return
        held.add(len(body), refuse=False)
        for start in range(0, len(body), PORTION):
            more = start + PORTION < len(body) or message.get("more_body", False)
            await send({**message, "body": body[start : start + PORTION], "more_body": more})

    return portioned


def _limited(receive: Receive, most: int, too_long: HTTPException, held: _Held) -> Receive:
    """Return a receiver that raises when the body is too large or too slow, or the namespace has too many bytes."""
    seen, complete, deadline = 0, False, asyncio.get_running_loop().time() + BODY_SECONDS

    async def limited() -> Message:
        nonlocal seen, complete
        if complete:
            return await receive()
        try:
            async with asyncio.timeout_at(deadline):
                message = await receive()
        except TimeoutError:
            said = f"The body did not arrive within {BODY_SECONDS:g} s; send it in pieces."
            raise HTTPException(HTTPStatus.REQUEST_TIMEOUT, said) from None
        seen += len(message.get("body", b""))
        complete = not message.get("more_body", False)
        if seen > most:
            raise too_long
        held.add(len(message.get("body", b"")), refuse=True)
        return message

    return limited


THREADS = 64
"""Maximum number of requests that wait for workers at the same time."""

SHARE = THREADS // 2
"""Maximum number of them for one namespace."""

SPARE = 4
"""Threads reserved for requests without a namespace, such as health checks and metrics."""


def _busy(what: str) -> BusyError:
    return BusyError(
        f"{what} allows no more; ask again in {RETRY_SECONDS} s, with fewer at the same time.", RETRY_SECONDS
    )


Waiting: TypeAlias = "deque[asyncio.Future[None]]"


class Turns:
    """The queue for threads; used only on the event loop."""

    def __init__(self, most_requests: int, most_bytes: int) -> None:
        self._most_requests = most_requests
        self._most_bytes = most_bytes
        self._free = THREADS - SPARE
        self._held = Counter[str]()
        self._bytes = Counter[str]()
        self._waiting: OrderedDict[str, Waiting] = OrderedDict()

    @asynccontextmanager
    async def turn(self, namespace: str) -> AsyncIterator[None]:
        """Wait for the turn of a request, and hold a thread during the block.

        Raises:
            BusyError: too many requests of this namespace wait.
        """
        waiting = len(self._waiting.get(namespace, ()))
        if waiting + self._held[namespace] >= self._most_requests:
            raise _busy(
                f"{waiting} requests of the namespace {namespace!r} wait, and EBB_MAX_REQUESTS={self._most_requests}"
            )
        await self._enter(namespace)
        try:
            yield
        finally:
            self._leave(namespace)

    def hold(self, namespace: str, size: int, own: int | None = None) -> None:
        """Count bytes of a request until `release`; `own` are those that it holds already, None if it is never refused.

        Raises:
            BusyError: with those of the namespace's other requests they are too many.
        """
        held = self._bytes[namespace]
        if own is not None and held > own and held + size > self._most_bytes:
            raise _busy(
                f"{held} bytes of the namespace {namespace!r} wait, and EBB_MAX_OUTBOX_BYTES={self._most_bytes}"
            )
        self._bytes[namespace] += size

    def release(self, namespace: str, size: int) -> None:
        """Count bytes no longer."""
        self._bytes[namespace] -= size
        if not self._bytes[namespace]:
            del self._bytes[namespace]

    @property
    def waiting(self) -> int:
        """Return the number of waiting requests."""
        return sum(map(len, self._waiting.values()))

    async def _enter(self, namespace: str) -> None:
        if self._free and self._held[namespace] < SHARE:
            self._take(namespace)
            return
        turn = asyncio.get_running_loop().create_future()
        waiting = self._waiting.setdefault(namespace, deque())
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it had got its turn already
                self._leave(namespace)
            elif turn in waiting:  # it would count until those before it have had their turn
                waiting.remove(turn)
            raise

    def _take(self, namespace: str) -> None:
        self._free -= 1
        self._held[namespace] += 1

    def _leave(self, namespace: str) -> None:
        self._free += 1
        self._held[namespace] -= 1
        if not self._held[namespace]:
            del self._held[namespace]
        self._grant()

    def _grant(self) -> None:
        """Assign free threads to waiting namespaces in turn; cancelled requests are skipped."""
        for namespace, waiting in list(self._waiting.items()):
            while waiting and waiting[0].cancelled():
                waiting.popleft()
            if waiting and self._free and self._held[namespace] < SHARE:
                self._take(namespace)
                waiting.popleft().set_result(None)
                self._waiting.move_to_end(namespace)
            if not waiting:
                del self._waiting[namespace]
