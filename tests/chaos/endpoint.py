"""An embedding endpoint on loopback that answers like OpenAI's, or fails as chaos sets it to."""

import hashlib
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np

DIMS = 96
HANG_SECONDS = 4.0


class Endpoint(ThreadingHTTPServer):
    """Returns a reproducible vector for each text, or the failure that is set."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.failure = "none"
        self.failed_answers = 0
        self.over = threading.Event()

    @property
    def url(self) -> str:
        """Return the base URL."""
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Endpoint

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
        failure = self.server.failure
        self.server.failed_answers += failure != "none"
        with suppress(ConnectionError):
            FAILURES[failure](self, texts)

    def log_message(self, *_: object) -> None:
        """Log nothing."""

    def answer(self, vectors: list[list[float]], status: int = 200) -> None:
        """Send vectors."""
        data = [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]
        self.send_body(json.dumps({"data": data}).encode(), status)

    def send_body(self, body: bytes, status: int = 200, *, less: int = 0) -> None:
        """Send a body or its beginning."""
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) - less])
        self.close_connection = less > 0


def vector(text: str, dims: int = DIMS) -> list[float]:
    """Return the reproducible random vector of a text."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
    return [round(float(value), 6) for value in np.random.default_rng(seed).normal(size=dims)]


def _well(handler: _Handler, texts: list[str]) -> None:
    handler.answer([vector(text) for text in texts])


def _hang(handler: _Handler, _texts: list[str]) -> None:
    handler.server.over.wait(HANG_SECONDS)
    handler.close_connection = True


def _nan(handler: _Handler, texts: list[str]) -> None:
    handler.answer([[float("nan"), *vector(text)[1:]] for text in texts])


def _wrong_dims(handler: _Handler, texts: list[str]) -> None:
    handler.answer([vector(text, DIMS + 1) for text in texts])


def _zeros(handler: _Handler, texts: list[str]) -> None:
    handler.answer([[0.0] * DIMS for _ in texts])


def _too_few(handler: _Handler, texts: list[str]) -> None:
    handler.answer([vector(text) for text in texts[1:]])


def _fail(handler: _Handler, _texts: list[str]) -> None:
    handler.send_body(b'{"error": {"message": "It fails."}}', 500)


def _over_its_limit(handler: _Handler, _texts: list[str]) -> None:
    handler.send_body(b'{"error": {"message": "Rate limit reached."}}', 429)


def _cut_off(handler: _Handler, texts: list[str]) -> None:
    body = json.dumps({"data": [{"index": 0, "embedding": vector(text)} for text in texts]}).encode()
    handler.send_body(body, less=len(body) // 2)


FAILURES: dict[str, Callable[[_Handler, list[str]], None]] = {
    "none": _well,
    "hangs": _hang,
    "answers NaN": _nan,
    "answers wrong dimensions": _wrong_dims,
    "answers zeros": _zeros,
    "answers too few": _too_few,
    "fails": _fail,
    "breaks off": _cut_off,
    "is over its limit": _over_its_limit,
}


@contextmanager
def serving() -> Iterator[Endpoint]:
    """Run an endpoint for the duration of the block."""
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()
