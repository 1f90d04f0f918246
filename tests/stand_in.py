"""Stand-in for external servers: a real HTTP server on loopback with replies set by the test."""

import json
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Reply = Callable[["Handler"], None]


class StandIn(ThreadingHTTPServer):
    """Sends the replies that a test has queued, one per request, and then always the same one."""

    daemon_threads = True

    def __init__(self, always: Reply) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.replies: deque[Reply] = deque()
        self.always = always
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.over = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: StandIn

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.request_json = json.loads(body)
        self.server.requests.append(self.request_json)
        self.server.headers.append({name.lower(): value for name, value in self.headers.items()})
        reply = self.server.replies.popleft() if self.server.replies else self.server.always
        with suppress(ConnectionError):
            reply(self)

    def log_message(self, *_: object) -> None:
        """Keep the tests' output clean."""

    def send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        headers = {"content-type": "application/json", "content-length": str(len(body))} | (headers or {})
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


def failure(status: int, message: str = "It failed.", code: str = "", **headers: str) -> Reply:
    body = json.dumps({"error": {"message": message, "type": "error", "param": None, "code": code}}).encode()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda handler: handler.send(status, body, named)


def raw(body: bytes, content_type: str = "application/json", status: int = 200) -> Reply:
    return lambda handler: handler.send(status, body, {"content-type": content_type})


def silence(handler: Handler) -> None:
    handler.server.over.wait()
    handler.close_connection = True


def drip(handler: Handler) -> None:
    handler.send(200, b"", {"content-length": "1000000"})
    while not handler.server.over.wait(0.02):
        handler.wfile.write(b" ")
    handler.close_connection = True


def drip_headers(handler: Handler) -> None:
    handler.send_response(200)
    handler.flush_headers()
    while not handler.server.over.wait(0.02):
        handler.wfile.write(b"X-Waiting: yes\r\n")
    handler.close_connection = True


def endless(handler: Handler) -> None:
    handler.send(200, b"", {"content-length": str(1 << 50)})
    while not handler.server.over.is_set():
        handler.wfile.write(b"[" * 0x10000)
    handler.close_connection = True


def broken_off(handler: Handler) -> None:
    handler.send(200, b'{"data": [', {"content-length": "1000"})
    handler.close_connection = True


@contextmanager
def serving(server: StandIn) -> Iterator[StandIn]:
    """Run a stand-in for the duration of the block."""
    with server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
            thread.join()
