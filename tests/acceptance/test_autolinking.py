"""Automatic links between similar facts, created by real workers with that setting."""

import json
from collections.abc import Iterator

import pytest
from live_system import LiveSystem, eventually
from stand_in import Handler, StandIn, failure, serving

from workers.embedding.hashing import HashingEmbedder
from workers.settings import Settings

pytestmark = pytest.mark.acceptance

CATS = [f"Mira feeds her three cats at {hour} every day." for hour in ("six", "seven")]
LINKS = "select source::text, target::text, type, strength > 0.7 from links"


def embed(handler: Handler) -> None:
    """Return embeddings as OpenAI's endpoint does, from the hashing embedder."""
    vectors = HashingEmbedder(Settings()).embed(handler.request_json["input"]).tolist()
    data = [{"index": place, "embedding": vector} for place, vector in enumerate(vectors)]
    handler.send(200, json.dumps({"data": data}).encode())


@pytest.fixture
def endpoint() -> Iterator[StandIn]:
    with serving(StandIn(embed)) as server:
        yield server


def linked(system: LiveSystem) -> tuple[set[str], str, bool]:
    """Return the facts joined by the only link, its type, and whether it is strong."""
    eventually(lambda: system.rows(LINKS), "the two facts are linked")
    system.settle()
    ((source, target, kind, strong),) = system.rows(LINKS)
    return {source, target}, kind, strong


def test_new_facts_are_linked_with_those_that_say_the_like_if_that_is_wanted(idle: LiveSystem) -> None:
    idle.settings["EBB_AUTO_LINK"] = "true"
    idle.start("all")
    with idle.client() as client:
        ids = [client.store(text)["id"] for text in CATS]
        client.store("The tax office opens on Monday.")
        arguments = {"text": CATS[0], "id": ids[0]}
        assert client.call("memory.store", arguments, 30)["action"] == "unchanged"
    assert linked(idle) == (set(ids), "RELATED_TO", True)


def test_facts_stored_while_the_embedder_failed_are_linked_once_they_have_vectors(
    idle: LiveSystem, endpoint: StandIn
) -> None:
    idle.settings |= {"EBB_AUTO_LINK": "true", "EBB_EMBEDDER": "openai", "EBB_EMBEDDING_URL": endpoint.url}
    idle.settings["EBB_EMBEDDING_MODEL"] = "characters"
    idle.start("all")
    endpoint.always = failure(400)
    with idle.client() as client:
        stored = [client.store(text) for text in CATS]
    assert [one["embedded"] for one in stored] == [False, False]
    idle.send("memory.embed_pending", {})
    idle.settle()
    assert idle.rows(LINKS) == []
    endpoint.always = embed
    idle.send("memory.embed_pending", {})
    assert linked(idle) == ({one["id"] for one in stored}, "RELATED_TO", True)
