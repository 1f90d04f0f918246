"""An embedding endpoint on loopback that answers as OpenAI's does, until chaos tells it to be ill."""

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
    """Gives each text a vector of its own, the same at every request, or whatever its illness demands."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.illness = "none"
        self.ill_answers = 0
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
        illness = self.server.illness
        self.server.ill_answers += illness != "none"
        with suppress(ConnectionError):
            ILLNESSES[illness](self, texts)

    def log_message(self, *_: object) -> None:
        """Keep quiet."""

    def answer(self, vectors: list[list[float]], status: int = 200) -> None:
        """Send vectors."""
        data = [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]
        self.send_body(json.dumps({"data": data}).encode(), status)

    def send_body(self, body: bytes, status: int = 200, *, less: int = 0) -> None:
        """Send a body, all of it or less."""
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body[: len(body) - less])
        self.close_connection = less > 0


def vector(text: str, dims: int = DIMS) -> list[float]:
    """Return the vector of a text: random, but the same for the same text."""
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


ILLNESSES: dict[str, Callable[[_Handler, list[str]], None]] = {
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
    """Let an endpoint answer for as long as the block lasts."""
    with Endpoint() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()
