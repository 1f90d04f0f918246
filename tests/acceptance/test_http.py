"""Memory over HTTP, with a real API process and real workers; no key is needed on this machine."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from live_api import serving
from live_system import LiveSystem, eventually

pytestmark = pytest.mark.acceptance

NOBODYS = "00000000-0000-4000-8000-000000000000"
"""An id that no fact and no task has."""

TEXT = "The spare key hangs behind the kitchen clock."


@pytest.fixture(scope="module")
def served(live: LiveSystem) -> Iterator[httpx2.Client]:
    with serving(live, EBB_MAX_BODY="200000") as client:
        yield client


@pytest.fixture
def api(served: httpx2.Client, namespace: str) -> httpx2.Client:
    served.headers["X-Ebb-Namespace"] = namespace
    return served


def stored(api: httpx2.Client, text: str = TEXT, **fact: Any) -> str:
    answer = api.post("/memory/facts", json={"text": text, **fact})
    assert answer.status_code == 201, answer.text
    return str(answer.json()["id"])


def problem(answer: httpx2.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    told = answer.json()
    assert told["status"] == status
    assert told["instance"] == answer.request.url.path
    return str(told["detail"])


def test_a_fact_is_stored_recalled_reinforced_forgotten_and_restored(api: httpx2.Client) -> None:
    first = api.post("/memory/facts", json={"text": TEXT, "tags": ["home"]})
    assert first.status_code == 201
    id_ = first.json()["id"]
    assert first.headers["location"] == f"/memory/facts/{id_}"
    assert api.post("/memory/facts", json={"text": TEXT}).json() == {
        "id": id_, "action": "duplicate", "embedded": True,
    }  # fmt: skip
    found = api.post("/memory/recall", json={"query": "Where is the other key?"}).json()["results"]
    assert [(one["id"], one["text"]) for one in found] == [(id_, TEXT)]
    assert api.get(f"/memory/facts/{id_}").json()["tags"] == ["home"]
    assert api.post(f"/memory/facts/{id_}/reinforce").json()["salience"] > 0.5
    assert api.delete(f"/memory/facts/{id_}").json()["action"] == "forgotten"
    assert "history" in problem(api.get(f"/memory/facts/{id_}"), 404)
    assert api.post("/memory/recall", json={"query": "Where is the other key?"}).json()["results"] == []
    assert api.post(f"/memory/facts/{id_}/restore").json()["action"] == "restored"
    events = [one["what"] for one in api.get(f"/memory/facts/{id_}/history").json()["events"]]
    assert events[0] == "stored"
    assert "restored" in events


def test_many_facts_are_answered_one_by_one(api: httpx2.Client) -> None:
    answer = api.post("/memory/facts/batch", json={"facts": [{"text": "A meadow."}, {"text": ""}, {"txt": "x"}]})
    assert answer.status_code == 200
    added, empty, unknown = answer.json()["results"]
    assert added["action"] == "added"
    assert "empty" in empty["error"]
    assert "txt: is no field of a fact" in unknown["error"]


def test_pins_end_and_what_is_pinned_says_so(api: httpx2.Client) -> None:
    id_ = stored(api)
    assert api.post(f"/memory/facts/{id_}/pin", json={"until": "2100-01-01"}).json()["until"] == "2100-01-01T00:00:00Z"
    assert api.get(f"/memory/facts/{id_}").json()["pinned"] is True
    assert api.delete(f"/memory/facts/{id_}/pin").json()["pinned"] is False


def test_what_the_namespace_holds_and_what_will_come_of_it(api: httpx2.Client) -> None:
    stored(api)
    assert api.get("/memory/stats").json()["facts"] == 1
    assert len(api.get("/memory/forecast", params={"days": 3}).json()["days"]) == 3


def test_contradictions_are_listed_and_settled(api: httpx2.Client) -> None:
    old = stored(api, "Mira's phone is 111", entity="Mira", key="phone", value="111")
    new = stored(api, "Mira's phone is 222", entity="Mira", key="phone", value="222")
    assert api.get("/memory/contradictions").json()["total"] == 1
    assert api.post("/memory/contradictions/resolve", json={"ids": [old], "keep": new}).json()["kept"] == new
    assert api.get("/memory/contradictions").json()["total"] == 0


def test_edges_are_written_listed_and_decayed_as_documented(api: httpx2.Client) -> None:
    given = {"from": "CoreAuthModule", "to": "JWTLibrary", "type": "depends_on", "weight": 1.0, "pinned": True}
    assert api.post("/memory/graph/edges", json=given).status_code == 200
    faint = {"from": "Alex", "to": "ProjectAlpha", "type": "works_on", "weight": 0.08}
    assert api.post("/memory/graph/edges", json=faint).status_code == 200
    today = datetime.now(UTC).date().isoformat()
    assert api.get("/memory/graph/edges", params={"decayed": True}).json() == [{**faint, "lastObserved": today}]
    assert [edge["to"] for edge in api.get("/memory/graph/edges").json()] == ["JWTLibrary"]
    preview = api.post("/memory/graph/decay", json={"dryRun": True}).json()
    assert (preview["processed"], preview["belowMinimum"], preview["pinned"]) == (2, 1, 1)
    done = api.post("/memory/graph/decay", json={"dryRun": False}).json()
    assert list(done) == ["processed", "decayed", "belowMinimum", "pinned"]


def test_facts_are_linked(api: httpx2.Client) -> None:
    one, two = stored(api, "A meadow."), stored(api, "A brook.")
    link = {"source": one, "target": two, "type": "CAUSED_BY"}
    assert api.post("/memory/links", json=link).json()["strength"] == 1.0
    problem(api.post("/memory/links", json=link | {"target": str(uuid4())}), 404)


def test_all_about_an_entity_is_looked_up(api: httpx2.Client) -> None:
    id_ = stored(api, "Mira's phone is 111", entity="Mira", key="phone", value="111", tags=["home"])
    stored(api, "Mira's eyes are green", entity="Mira", key="eyes", value="green")
    assert len(api.get("/memory/lookup", params={"entity": "mira"}).json()["results"]) == 2
    for narrow in ({"key": "phone"}, {"tag": "home"}):
        (found,) = api.get("/memory/lookup", params={"entity": "Mira", **narrow}).json()["results"]
        assert (found["id"], found["value"]) == (id_, "111")
    assert api.get("/memory/lookup", params={"entity": "Mira", "as_of": "2020-01-01"}).json()["results"] == []
    problem(api.get("/memory/lookup"), 422)


def test_a_context_fits_its_budget(api: httpx2.Client) -> None:
    stored(api)
    told = api.post("/memory/context", json={"query": "Where is the spare key?", "max_tokens": 100}).json()
    assert TEXT.rstrip(".") in told["context"]
    assert 0 < told["tokens"] <= 100


def test_a_pass_takes_the_own_namespace_and_is_told_afterwards(api: httpx2.Client) -> None:
    stored(api)
    done = api.post("/memory/decay", json={"now": "2100-01-01", "dry_run": True}).json()
    assert done["processed"] == 1
    runs = api.get("/memory/decay/runs", params={"limit": 1}).json()
    assert runs["runs"][0]["processed"] == 1
    assert api.get("/memory/decay/runs", params={"limit": 1, "before": runs["next"]}).status_code == 200


def test_near_duplicates_are_told_and_merged_and_the_janitor_tells_what_it_culled(api: httpx2.Client) -> None:
    first, second = (stored(api, f"Mira {how} to Leipzig and rents a flat there") for how in ("moved", "has moved"))
    (group,) = api.post("/memory/consolidate").json()["groups"]
    assert (group["keep"]["id"], [one["id"] for one in group["merge"]]) == (first, [second])
    assert api.post("/memory/consolidate", json={"apply": True}).json()["merged"] == 1
    assert api.get("/memory/janitor").json()["totalRuns"] == 0
    told = api.post("/memory/janitor").json()
    assert (told["totalRuns"], told["lastCulledFactIds"]) == (1, [])
    assert api.get("/memory/janitor").json() == told


def test_an_accepted_write_is_done_and_its_task_says_so(api: httpx2.Client) -> None:
    answer = api.post("/memory/facts", params={"wait": False}, json={"text": TEXT})
    assert answer.status_code == 202
    told = answer.json()
    assert answer.headers["location"] == f"/tasks/{told['task']}"
    eventually(lambda: api.get(f"/tasks/{told['task']}").json()["state"] == "done", "the write is done")
    assert api.get(f"/tasks/{told['task']}").json()["result"]["id"] == told["id"]
    assert api.get(f"/memory/facts/{told['id']}").status_code == 200


def test_every_write_can_be_accepted_without_waiting(live: LiveSystem, api: httpx2.Client) -> None:
    id_ = stored(api)
    answer = api.delete(f"/memory/facts/{id_}", params={"wait": "false"})
    assert answer.status_code == 202
    task = answer.json()["task"]
    eventually(lambda: api.get(f"/tasks/{task}").json()["state"] == "done", "it is forgotten")
    assert api.get(f"/memory/facts/{id_}").status_code == 404
    eventually(lambda: not live.own_keys.hexists("ebb:outbox", task), "it has left the outbox")


def test_an_accepted_write_that_cannot_be_says_why_and_leaves_the_outbox(live: LiveSystem, api: httpx2.Client) -> None:
    unknown = uuid4()
    task = api.post(f"/memory/facts/{unknown}/reinforce", params={"wait": "false"}).json()["task"]
    told = eventually(
        lambda: (now := api.get(f"/tasks/{task}").json())["state"] == "failed" and now, "the task has failed"
    )
    assert str(unknown) in told["error"]
    eventually(lambda: not live.own_keys.hexists("ebb:outbox", task), "it has left the outbox")


def test_an_idempotency_key_does_a_write_once_and_answers_the_same_again(api: httpx2.Client) -> None:
    key = {"Idempotency-Key": f"order-{uuid4()}"}
    first = api.post("/memory/facts", json={"text": TEXT}, headers=key)
    again = api.post("/memory/facts", json={"text": TEXT}, headers=key)
    assert again.status_code == 201
    assert again.json() == first.json()
    assert "another request" in problem(api.post("/memory/facts", json={"text": "Else."}, headers=key), 422)


def test_an_idempotency_key_is_its_namespaces_own(api: httpx2.Client) -> None:
    key = {"Idempotency-Key": "one"}
    first = api.post("/memory/facts", json={"text": TEXT}, headers=key)
    elsewhere = {"X-Ebb-Namespace": f"test-{uuid4()}"}
    second = api.post("/memory/facts", json={"text": TEXT}, headers=key | elsewhere)
    assert second.status_code == 201
    assert second.json()["id"] != first.json()["id"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("POST", "/memory/facts", {"text": ""}, 422, "empty"),
        ("POST", "/memory/facts", {"text": "A", "txt": "B"}, 422, "is no field"),
        ("POST", "/memory/facts", {"text": "A" * 70_000}, 422, "EBB_MAX_TEXT"),
        ("POST", "/memory/recall", {"query": "   "}, 422, "blank"),
        ("POST", "/memory/recall", {"query": "a", "limit": 0}, 422, "limit"),
        ("GET", "/memory/facts/nonsense", None, 422, "UUID"),
        ("GET", "/memory/forecast?days=0", None, 422, "days"),
        ("GET", f"/memory/facts/{NOBODYS}", None, 404, "no live fact"),
        ("DELETE", f"/memory/facts/{NOBODYS}", None, 404, "no fact"),
        ("POST", f"/memory/facts/{NOBODYS}/restore", None, 404, "no fact"),
        ("POST", f"/memory/facts/{NOBODYS}/reinforce", None, 404, "no live fact"),
        ("GET", f"/memory/facts/{NOBODYS}/history", None, 404, "no fact"),
        ("POST", f"/memory/facts/{NOBODYS}/pin", {}, 404, "no live fact"),
        ("GET", f"/tasks/{NOBODYS}", None, 404, "no task"),
        ("GET", "/nowhere", None, 404, "/docs"),
        ("PUT", "/memory/facts", None, 405, "/docs"),
        ("POST", "/memory/facts/batch", {"facts": [{"text": "A" * 300_000}]}, 413, "EBB_MAX_BODY"),
    ],
)
def test_every_error_is_a_problem_that_says_what_is_wrong(
    api: httpx2.Client, method: str, path: str, body: Any, status: int, words: str
) -> None:
    assert words in problem(api.request(method, path, json=body), status)


def test_a_body_that_is_no_json_is_a_bad_request(api: httpx2.Client) -> None:
    kind = {"content-type": "application/json"}
    problem(api.post("/memory/facts", content="{", headers=kind), 400)


def test_a_body_without_length_is_cut_off_at_the_limit(api: httpx2.Client) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'{"text": "'
        for _ in range(100):
            yield b"a" * 10_000

    answer = api.post("/memory/facts", content=pieces(), headers={"content-type": "application/json"})
    assert "EBB_MAX_BODY" in problem(answer, 413)


def test_namespaces_are_apart(api: httpx2.Client) -> None:
    id_ = stored(api)
    other = {"X-Ebb-Namespace": f"test-{uuid4()}"}
    assert api.get(f"/memory/facts/{id_}", headers=other).status_code == 404
    assert api.post("/memory/recall", json={"query": "key"}, headers=other).json()["results"] == []
    assert "is no name" in problem(api.get("/memory/stats", headers={"X-Ebb-Namespace": "a b"}), 422)


def test_ready_says_of_each_part_that_it_is_well(served: httpx2.Client) -> None:
    answer = served.get("/health/ready")
    assert answer.json() == {
        "status": "ready",
        "checks": dict.fromkeys(("recall", "store", "maintenance", "database", "embedder", "redis"), "ok"),
    }


def test_pages_from_elsewhere_are_refused(api: httpx2.Client) -> None:
    assert "this machine" in problem(api.get("/memory/stats", headers={"origin": "https://evil.example"}), 403)
    assert "this machine" in problem(api.get("/memory/stats", headers={"host": "evil.example"}), 403)
    here = {"origin": f"http://localhost:{api.base_url.port}"}
    assert api.get("/memory/stats", headers=here).status_code == 200


def test_whoever_comes_by_way_of_a_proxy_from_elsewhere_needs_a_key(api: httpx2.Client) -> None:
    assert "key" in problem(api.get("/memory/stats", headers={"X-Forwarded-For": "203.0.113.5"}), 401)


def test_the_document_is_openapi_3_1_and_each_body_has_an_example(served: httpx2.Client) -> None:
    document = served.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    schemas = document["components"]["schemas"]
    bodies = [name for name in schemas if name.endswith("Request")]
    assert len(bodies) >= 6
    assert [name for name in bodies if not schemas[name].get("examples")] == []
    assert "Problem" in schemas
