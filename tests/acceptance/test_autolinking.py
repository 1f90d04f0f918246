"""New facts are linked with similar ones, by real workers with that setting."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from live_system import LiveSystem, eventually

from workers.embedding.hashing import HashingEmbedder
from workers.settings import Settings

pytestmark = pytest.mark.acceptance

CATS = [f"Mira feeds her three cats at {hour} every day." for hour in ("six", "seven")]
LINKS = "select source::text, target::text, type, strength > 0.7 from links"


class Endpoint(ThreadingHTTPServer):
    """Embeds as OpenAI's endpoint does, with the vectors of the hashing embedder, unless it is ill."""

    daemon_threads = True
    ill = False


class Answering(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        texts = json.loads(self.rfile.read(int(self.headers["content-length"])))["input"]
        vectors = HashingEmbedder(Settings()).embed(texts).tolist()
        data = [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]
        body = b"" if self.server.ill else json.dumps({"data": data}).encode()
        self.send_response(400 if self.server.ill else 200)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Keep the tests' output clean."""


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    with Endpoint(("127.0.0.1", 0), Answering) as server:
        thread = Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def linked(system: LiveSystem) -> tuple[set[str], str, bool]:
    """Return which facts the one link joins, its type, and whether it is strong."""
    eventually(lambda: system.rows(LINKS), "the two facts are linked")
    system.settle()
    ((source, target, kind, strong),) = system.rows(LINKS)
    return {source, target}, kind, strong


def test_new_facts_are_linked_with_those_that_say_the_like_if_that_is_wanted(idle: LiveSystem) -> None:
    idle.settings["EBB_AUTO_LINK"] = "true"
    idle.start("worker", "maintenance")
    with idle.client() as client:
        ids = [client.store(text)["id"] for text in CATS]
        client.store("The tax office opens on Monday.")
        arguments = {"text": CATS[0], "id": ids[0]}
        assert client.call("memory.store", arguments, 30)["action"] == "unchanged"
    assert linked(idle) == (set(ids), "RELATED_TO", True)


def test_facts_stored_while_the_embedder_failed_are_linked_once_they_have_vectors(
    idle: LiveSystem, endpoint: Endpoint
) -> None:
    url = f"http://127.0.0.1:{endpoint.server_port}/v1"
    idle.settings |= {"EBB_AUTO_LINK": "true", "EBB_EMBEDDER": "openai", "EBB_EMBEDDING_URL": url}
    idle.settings["EBB_EMBEDDING_MODEL"] = "characters"
    idle.start("worker", "maintenance")
    endpoint.ill = True
    with idle.client() as client:
        stored = [client.store(text) for text in CATS]
    assert [one["embedded"] for one in stored] == [False, False]
    idle.send("memory.embed_pending", {})
    idle.settle()
    assert idle.rows(LINKS) == []
    endpoint.ill = False
    idle.send("memory.embed_pending", {})
    assert linked(idle) == ({one["id"] for one in stored}, "RELATED_TO", True)
