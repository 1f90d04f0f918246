"""Workers whose embedder does not answer: recall goes on by words, all workers share the pause, every door says so."""

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from live_api import serving
from live_system import LiveSystem, eventually

from workers.coordination.embedder_pause import PAUSED

pytestmark = pytest.mark.acceptance


class Embedder(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.hangs = False
        self.asked: list[list[str]] = []
        self.over = threading.Event()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Embedder

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
        self.server.asked.append(texts)
        if self.server.hangs:
            self.server.over.wait()
        data = [
            {"index": i, "embedding": [float(1 + text.count(one)) for one in "aeiou"]} for i, text in enumerate(texts)
        ]
        body = json.dumps({"data": data}).encode()
        with suppress(ConnectionError):
            self.send_response(200)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the tests' output clean."""


@pytest.fixture
def embedder() -> Iterator[Embedder]:
    with Embedder() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.over.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def system(idle: LiveSystem, embedder: Embedder) -> LiveSystem:
    idle.settings |= {
        "EBB_EMBEDDER": "openai",
        "EBB_EMBEDDING_URL": f"http://127.0.0.1:{embedder.server_port}/v1",
        "EBB_EMBEDDING_MODEL": "vowels",
        "EBB_EMBEDDING_QUERY_TIMEOUT": "0.5",
        "NO_PROXY": "127.0.0.1",
    }
    idle.start("worker", "maintenance")
    return idle


def keep_paused(system: LiveSystem) -> None:
    """Let the pause last as long as the test."""
    assert system.own_keys.persist(PAUSED)


def test_a_hanging_embedder_is_asked_by_few_and_then_by_none_until_the_pause_is_over(
    system: LiveSystem, embedder: Embedder
) -> None:
    with system.client() as memory:
        memory.store("The dentist is in Mill Lane.", entity="dentist")
        assert memory.recall("the dentist")["by_meaning"] is True
        embedder.hangs = True
        embedder.asked.clear()
        assert memory.recall("where is the dentist")["by_meaning"] is False
        keep_paused(system)
        asked = len(embedder.asked)
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda number: memory.recall(f"dentist {number}"), range(24)))
        shown = memory.context("Who is my dentist?")
        stored = memory.store("The plumber is in Oak Street.", entity="plumber")
        known = memory.lookup("dentist")["results"]
    with system.client("another-tenant") as other:
        assert other.recall("anything at all")["by_meaning"] is False
    assert all(answer["results"] and not answer["by_meaning"] for answer in answers)
    assert "Mill Lane" in shown["context"]
    assert (shown["by_meaning"], stored["embedded"], len(known)) == (False, False, 1)
    assert (asked, len(embedder.asked)) == (1, 1)

    embedder.hangs = False
    system.own_keys.delete(PAUSED)
    with system.client() as memory:
        eventually(lambda: memory.recall("the plumber")["by_meaning"], "meaning counts again")
        system.send("memory.embed_pending", {})
        eventually(lambda: memory.stats()["pending_embeddings"] == 0, "the plumber has a vector")


def test_every_door_tells_of_the_pause(system: LiveSystem, embedder: Embedder) -> None:
    system.ebb_json("store", "The dentist is in Mill Lane.")
    assert "embedder_pause_seconds 0.0" in metrics(system)
    assert system.ebb("recall", "the dentist").stderr == ""
    embedder.hangs = True
    recalled = system.ebb("recall", "where is the dentist")
    assert "Mill Lane" in recalled.stdout
    assert "Only words were matched" in recalled.stderr
    keep_paused(system)
    system.own_keys.expire(PAUSED, 1_000)
    assert "Only words were matched" in system.ebb("context", "my dentist").stderr
    assert "Only words were matched" not in system.ebb("recall", "dentist", "--tag", "health").stderr
    diagnosis = json.loads(system.ebb("doctor", "--json").stdout)
    (check,) = [one for one in diagnosis["checks"] if one["name"] == "embedder"]
    assert (check["ok"], "words alone" in check["says"]) == (False, True)
    told_by_metrics = metrics(system)
    assert "ebb_embedder_failures 1.0" in told_by_metrics
    assert "embedder_pause_seconds 0.0" not in told_by_metrics
    with serving(system) as api:
        assert api.post("/memory/recall", json={"query": "dentist"}).json()["by_meaning"] is False
        assert api.post("/memory/context", json={"query": "dentist"}).json()["by_meaning"] is False


def metrics(system: LiveSystem) -> str:
    with serving(system) as api:
        return str(api.get("/metrics").text)
