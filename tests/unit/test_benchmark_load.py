"""The load of benchmarks: requests that fail end a measurement instead of going missing."""

import multiprocessing
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Event, Thread

import pytest

from tests.benchmarks import lanes, load


@contextmanager
def answering(status: int) -> Iterator[str]:
    """Run a server whose first answer is 200, and whose others have the status; yield its address.

    The others come after the client with the first one has asked again, and so counted it.
    """
    places, counted = count(), Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            place = next(places)
            if place == load.CLIENTS["allowed"]:
                counted.set()
            elif place:
                counted.wait()
            self.send_response(status if place else 200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        Thread(target=server.serve_forever).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def load_until_its_end(url: str) -> None:
    with load.running(url, "loud", "allowed", ["A text."]) as answered:
        assert answered.value == 1
        for process in multiprocessing.active_children():
            process.join(30)


def test_a_load_begins_with_an_answer_and_a_request_that_fails_ends_it() -> None:
    with answering(401) as url, pytest.raises(RuntimeError, match="'allowed' ended"):
        load_until_its_end(url)


def test_requests_that_fail_are_not_left_out_of_the_waits_under_load(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: str) -> None:
        raise LookupError

    monkeypatch.setattr(lanes, "LOAD_SECONDS", 0.1)
    with pytest.raises(LookupError):
        lanes._under_load({"recall": fail, "store": fail}, 100.0, ["Where?"])
