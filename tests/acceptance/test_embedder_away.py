"""Workers whose embedder does not answer: recall by words continues, all share the pause, and interfaces report it."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from live_api import serving
from live_system import LiveSystem, eventually
from stand_in import Handler, StandIn, silence
from stand_in import serving as standing_in

from workers.coordination.pause import EMBEDDER

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

PAUSED = EMBEDDER.keys[0]


def embed(handler: Handler) -> None:
    """Return the number of each vowel in each text."""
    texts = handler.request_json["input"]
    data = [{"index": i, "embedding": [float(1 + text.count(one)) for one in "aeiou"]} for i, text in enumerate(texts)]
    handler.send(200, json.dumps({"data": data}).encode())


@pytest.fixture
def embedder() -> Iterator[StandIn]:
    with standing_in(StandIn(embed)) as server:
        yield server


@pytest.fixture
def system(idle: LiveSystem, embedder: StandIn) -> LiveSystem:
    idle.settings |= {
        "EBB_EMBEDDER": "openai",
        "EBB_EMBEDDING_URL": embedder.url,
        "EBB_EMBEDDING_MODEL": "vowels",
        "EBB_EMBEDDING_QUERY_TIMEOUT": "0.5",
        "NO_PROXY": "127.0.0.1",
    }
    idle.start("all")
    return idle


def keep_paused(system: LiveSystem) -> None:
    """Extend the pause to the duration of the test."""
    assert system.own_keys.persist(PAUSED)


def test_a_hanging_embedder_is_asked_by_few_and_then_by_none_until_the_pause_is_over(
    system: LiveSystem, embedder: StandIn
) -> None:
    with system.client() as memory:
        memory.store("The dentist is in Mill Lane.", entity="dentist")
        assert memory.recall("the dentist")["by_meaning"] is True
        embedder.always = silence
        embedder.requests.clear()
        assert memory.recall("where is the dentist")["by_meaning"] is False
        keep_paused(system)
        asked = len(embedder.requests)
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
    assert (asked, len(embedder.requests)) == (1, 1)

    embedder.always = embed
    system.own_keys.delete(PAUSED)
    with system.client() as memory:
        eventually(lambda: memory.recall("the plumber")["by_meaning"], "meaning counts again")
        system.send("memory.embed_pending", {})
        eventually(lambda: memory.stats()["pending_embeddings"] == 0, "the plumber has a vector")


def test_every_interface_reports_the_pause(system: LiveSystem, embedder: StandIn) -> None:
    with serving(system) as api:
        system.ebb_json("store", "The dentist is in Mill Lane.")
        assert "embedder_pause_seconds 0.0" in api.get("/metrics").text
        assert system.ebb("recall", "the dentist").stderr == ""
        embedder.always = silence
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
        metrics = api.get("/metrics").text
        assert "ebb_embedder_failures 1.0" in metrics
        assert "embedder_pause_seconds 0.0" not in metrics
        assert api.post("/memory/recall", json={"query": "dentist"}).json()["by_meaning"] is False
        assert api.post("/memory/context", json={"query": "dentist"}).json()["by_meaning"] is False
