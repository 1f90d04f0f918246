"""Workers with a reranker: every interface has its order, and says so where it does not answer."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from live_api import serving
from live_system import LiveSystem
from stand_in import Handler, StandIn, failure
from stand_in import serving as standing_in

from workers.coordination.pause import RERANKER

pytestmark = [pytest.mark.acceptance, pytest.mark.slow]

QUERY = "Where does the key of the shed hang?"
NEAR, FAR = "The key of the shed hangs behind the door.", "Ada has the key of the shed."


def shortest_first(handler: Handler) -> None:
    documents = handler.request_json["documents"]
    ranks = [{"index": place, "relevance_score": -len(text)} for place, text in enumerate(documents)]
    handler.send(200, json.dumps({"results": ranks}).encode())


@pytest.fixture
def reranker() -> Iterator[StandIn]:
    with standing_in(StandIn(shortest_first)) as server:
        yield server


@pytest.fixture
def system(idle: LiveSystem, reranker: StandIn, tmp_path: Path) -> LiveSystem:
    (tmp_path / "key").write_text("sesame\n")
    idle.settings |= {
        "EBB_RERANK_URL": reranker.url,
        "EBB_RERANK_KEY_FILE": str(tmp_path / "key"),
        "NO_PROXY": "127.0.0.1",
    }
    idle.start("all")
    idle.ebb_json("store", NEAR)
    idle.ebb_json("store", FAR)
    return idle


def test_every_interface_has_the_order_of_the_reranker(system: LiveSystem, reranker: StandIn) -> None:
    with serving(system) as api:
        found = api.post("/memory/recall", json={"query": QUERY, "explain": True}).json()
        assert ([one["text"] for one in found["results"]], found["reranked"]) == ([FAR, NEAR], True)
        assert found["results"][0]["explain"]["rerank_score"] == -len(FAR)
        shown = api.post("/memory/context", json={"query": QUERY, "limit": 1}).json()
        assert (FAR in shown["context"], NEAR in shown["context"], shown["reranked"]) == (True, False, True)
        many = api.post("/memory/recall/batch", json={"queries": [{"query": QUERY, "limit": 1}] * 2}).json()
        assert [one["results"][0]["text"] for one in many["answers"]] == [FAR, FAR]
        assert "reranked" in api.get("/dashboard/recall", params={"query": QUERY}).text
    recalled = system.ebb("recall", QUERY, "--explain")
    assert recalled.stdout.index("Ada") < recalled.stdout.index("hangs")
    assert recalled.stderr == ""
    assert {one["authorization"] for one in reranker.headers} == {"Bearer sesame"}


def test_every_interface_says_that_the_reranker_does_not_answer(system: LiveSystem, reranker: StandIn) -> None:
    reranker.always = failure(503)
    recalled = system.ebb("recall", QUERY)
    assert recalled.stdout.index("hangs") < recalled.stdout.index("Ada")
    assert "The reranker does not answer" in recalled.stderr
    assert system.own_keys.expire(RERANKER.keys[0], 1_000)
    assert "The reranker does not answer" in system.ebb("context", QUERY).stderr
    with serving(system) as api:
        metrics = api.get("/metrics").text
        assert "ebb_reranker_failures 1.0" in metrics
        assert "ebb_reranker_pause_seconds 0.0" not in metrics
        assert api.post("/memory/recall", json={"query": QUERY}).json()["reranked"] is False
        assert "The reranker does not answer" in api.get("/dashboard/recall", params={"query": QUERY}).text
    found = diagnosis(system)
    assert (found["ok"], "results stand in their own order" in str(found["says"])) == (False, True)


def test_the_doctor_has_the_reranker_order_two_texts(system: LiveSystem, reranker: StandIn) -> None:
    first = diagnosis(system)
    assert first["ok"]
    assert "warning: for 'Where is the spare key?' it does not prefer" in str(first["says"])
    reranker.always = lambda handler: handler.send(
        200, json.dumps([{"index": 0, "score": 0.9}, {"index": 1, "score": 0.1}]).encode()
    )
    assert diagnosis(system)["says"] == f"{reranker.url}/rerank orders the first 30 results of a question"
    reranker.always = failure(401)
    assert "Check EBB_RERANK_KEY." in str(diagnosis(system)["says"])


def diagnosis(system: LiveSystem) -> dict[str, object]:
    """Return what the doctor says of the reranker."""
    (check,) = [one for one in json.loads(system.ebb("doctor", "--json").stdout)["checks"] if one["name"] == "reranker"]
    return check
