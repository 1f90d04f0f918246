"""The HTTP API with a real process and real workers; on loopback no key is needed."""

import asyncio
import gzip
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import httpx2
import psycopg
import pytest
from databases import ON_ONE_SHARD
from ebb.broker import RESULTS_AFTER
from ebb.contract.operation import EXAMPLE_ID, EXAMPLE_OTHER_ID
from live_api import serving
from live_system import FOLDER, LiveSystem, eventually

from api.http import make_app
from workers.coordination import signals
from workers.coordination.redis import open_redis

pytestmark = pytest.mark.acceptance

NOBODYS = "00000000-0000-4000-8000-000000000000"
"""An id without fact or task."""

WAYS: tuple[dict[str, bool], ...] = ({}, {"wait": False})
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
    found = answer.json()
    assert found["status"] == status
    assert found["instance"] == answer.request.url.path
    return str(found["detail"])


def over_a_day(live: LiveSystem) -> None:
    """Simulate the day after which receipts have expired, and results long before."""
    live.own_keys.delete(*live.own_keys.keys("ebb:answer:*"))
    with open_redis(live.redis_url, RESULTS_AFTER) as results:
        results.flushdb()


def test_a_fact_is_stored_recalled_reinforced_forgotten_and_restored(api: httpx2.Client) -> None:
    first = api.post("/memory/facts", json={"text": TEXT, "tags": ["home"]})
    assert first.status_code == 201
    id_ = first.json()["id"]
    assert first.headers["location"] == f"/memory/facts/{id_}"
    again = api.post("/memory/facts", json={"text": TEXT}).json()
    assert (again["id"], again["action"], again["embedded"]) == (id_, "duplicate", True)
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
    facts = [{"text": "A meadow."}, {"text": ""}, {"txt": "x"}, 5, None]
    answer = api.post("/memory/facts/batch", json={"facts": facts})
    assert answer.status_code == 200
    added, empty, unknown, *others = answer.json()["results"]
    assert added["action"] == "added"
    assert "empty" in empty["error"]
    assert "txt: is no field of a fact" in unknown["error"]
    assert [(one["index"], one["error"].split(";")[0]) for one in others] == [
        (3, "A fact is a JSON object with at least a `text`"), (4, "A fact is a JSON object with at least a `text`"),
    ]  # fmt: skip


def test_many_questions_are_answered_one_by_one(api: httpx2.Client) -> None:
    asked = api.post("/memory/recall/batch", json={"queries": ["A meadow.", 5, None]})
    assert asked.status_code == 200
    found, *others = asked.json()["answers"]
    assert found["results"] == []
    assert [one["index"] for one in others] == [1, 2]
    assert all(one["error"].startswith("A question is a text, or an object with `query`") for one in others)


@pytest.mark.parametrize("headers", [{}, {"Idempotency-Key": "a batch"}])
def test_facts_of_one_batch_are_listed_in_its_order(api: httpx2.Client, headers: dict[str, str]) -> None:
    texts = [f"Meadow {name}." for name in ("one", "two", "three", "four", "five", "six")]
    assert api.post("/memory/facts/batch", json={"facts": texts}, headers=headers).status_code == 200
    assert [one["text"] for one in api.get("/memory/facts").json()["facts"]] == texts[::-1]


@pytest.mark.parametrize("number", ["1e999", "NaN"])
def test_a_number_that_json_cannot_have_is_refused_and_not_taken_for_null(api: httpx2.Client, number: str) -> None:
    def asked(path: str, body: str) -> httpx2.Response:
        return api.post(path, content=body.replace("NUMBER", number), headers={"content-type": "application/json"})

    facts = (
        '{"facts": [{"text": "A meadow.", "metadata": {"size": NUMBER}}, {"text": "A wood.", "importance": NUMBER}]}'
    )
    meadow, wood = asked("/memory/facts/batch", facts).json()["results"]
    assert "metadata: must be JSON, without NaN or infinity" in meadow["error"]
    assert "importance: input should be a finite number" in wood["error"]
    question = '{"queries": [{"query": "meadow", "min_relevance": NUMBER}]}'
    (found,) = asked("/memory/recall/batch", question).json()["answers"]
    assert "min_relevance: input should be a finite number" in found["error"]
    wanted = '{"path": [], "filter": {"size": {"$lt": NUMBER}}}'
    for path, body in (("search", wanted), ("search/batch", f'{{"queries": [{wanted}]}}')):
        assert "filter: must be JSON, without NaN or infinity" in problem(asked(f"/memory/items/{path}", body), 422)


def test_answers_for_many_items_are_refused_once_they_are_too_large_together(api: httpx2.Client) -> None:
    document = f'{{"text": "{"a" * 190_000}"}}'
    for key in "abcde":
        given = {"path": ["a"], "key": key, "document": document}
        api.put("/memory/items/batch", json={"items": [given]}).raise_for_status()
    asked = api.post("/memory/items/search/batch", json={"queries": [{"path": ["a"]}] * 100})
    assert "The answer has 33 MiB, and one may have 32 MiB" in problem(asked, 422)


def test_pins_end_and_pinned_facts_are_marked(api: httpx2.Client) -> None:
    id_ = stored(api)
    assert api.post(f"/memory/facts/{id_}/pin", json={"until": "2100-01-01"}).json()["until"] == "2100-01-01T00:00:00Z"
    assert api.get(f"/memory/facts/{id_}").json()["pinned"] is True
    assert api.delete(f"/memory/facts/{id_}/pin").json()["pinned"] is False


def test_statistics_and_forecast_of_a_namespace(api: httpx2.Client) -> None:
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
    assert list(done) == ["processed", "decayed", "belowMinimum", "newlyBelow", "pinned"]


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
    answered = api.post("/memory/context", json={"query": "Where is the spare key?", "max_tokens": 100}).json()
    assert TEXT.rstrip(".") in answered["context"]
    assert 0 < answered["tokens"] <= 100


def test_a_pass_takes_the_own_namespace_and_is_listed_afterwards(api: httpx2.Client) -> None:
    stored(api)
    done = api.post("/memory/decay", json={"now": "2100-01-01", "dry_run": True}).json()
    assert done["processed"] == 1
    runs = api.get("/memory/decay/runs", params={"limit": 1}).json()
    assert runs["runs"][0]["processed"] == 1
    assert api.get("/memory/decay/runs", params={"limit": 1, "before": runs["next"]}).status_code == 200


def test_near_duplicates_are_listed_and_merged_and_the_janitor_lists_what_it_culled(api: httpx2.Client) -> None:
    first, second = (stored(api, f"Mira {how} to Leipzig and rents a flat there") for how in ("moved", "has moved"))
    (group,) = api.post("/memory/consolidate").json()["groups"]
    assert (group["keep"]["id"], [one["id"] for one in group["merge"]]) == (first, [second])
    assert api.post("/memory/consolidate", json={"apply": True}).json()["merged"] == 1
    assert api.get("/memory/janitor").json()["totalRuns"] == 0
    answered = api.post("/memory/janitor").json()
    assert (answered["totalRuns"], answered["lastCulledFactIds"]) == (1, [])
    assert api.get("/memory/janitor").json() == answered


def test_an_accepted_write_is_done_and_its_task_says_so(api: httpx2.Client) -> None:
    answer = api.post("/memory/facts", params={"wait": False}, json={"text": TEXT})
    assert answer.status_code == 202
    answered = answer.json()
    assert answer.headers["location"] == f"/tasks/{answered['task']}"
    eventually(lambda: api.get(f"/tasks/{answered['task']}").json()["state"] == "done", "the write is done")
    assert api.get(f"/tasks/{answered['task']}").json()["result"]["id"] == answered["id"]
    assert api.get(f"/memory/facts/{answered['id']}").status_code == 200


def test_what_is_new_is_found_behind_a_proxy_that_serves_a_part_of_its_paths(
    live: LiveSystem, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in live.environment().items():
        monkeypatch.setenv(name, value)
    app = make_app()

    async def locations() -> list[str]:
        within = httpx2.ASGITransport(app, root_path="/ebb")
        async with app.router.lifespan_context(app), httpx2.AsyncClient(transport=within, timeout=None) as client:
            url, headers = "http://127.0.0.1/ebb/memory/facts", {"X-Ebb-Namespace": namespace}
            stored = [await client.post(url, params=wait, json={"text": TEXT}, headers=headers) for wait in WAYS]
        assert [one.status_code for one in stored] == [201, 202]
        return [one.headers["location"] for one in stored]

    fact, task = asyncio.run(locations())
    assert fact.startswith("/ebb/memory/facts/")
    assert task.startswith("/ebb/tasks/")


def test_a_text_that_says_nothing_is_refused_before_it_is_accepted(api: httpx2.Client) -> None:
    answer = api.post("/memory/facts", params={"wait": False}, json={"text": " "})
    assert answer.status_code == 422
    assert "body.text: cannot store empty fact text" in answer.json()["detail"]


def test_every_write_can_be_accepted_without_waiting(live: LiveSystem, api: httpx2.Client) -> None:
    id_ = stored(api)
    answer = api.delete(f"/memory/facts/{id_}", params={"wait": "false"})
    assert answer.status_code == 202
    task = answer.json()["task"]
    eventually(lambda: api.get(f"/tasks/{task}").json()["state"] == "done", "it is forgotten")
    assert api.get(f"/memory/facts/{id_}").status_code == 404
    eventually(lambda: not live.accepted(task), "it has left the outbox")


def test_an_accepted_write_that_is_refused_reports_why_and_leaves_the_outbox(
    live: LiveSystem, api: httpx2.Client
) -> None:
    unknown = uuid4()
    task = api.post(f"/memory/facts/{unknown}/reinforce", params={"wait": "false"}).json()["task"]
    failed = eventually(
        lambda: (now := api.get(f"/tasks/{task}").json())["state"] == "failed" and now, "the task has failed"
    )
    assert str(unknown) in failed["error"]
    eventually(lambda: not live.accepted(task), "it has left the outbox")


@pytest.mark.parametrize(
    "fact", [{"text": " "}, {"text": "x", "durability": "permanent"}, {"text": "x", "kind": "item"}]
)
def test_a_write_that_no_memory_could_take_is_refused_before_it_is_accepted(
    api: httpx2.Client, fact: dict[str, str]
) -> None:
    waited, accepted = (api.post("/memory/facts", params={"wait": wait}, json=fact) for wait in ("true", "false"))
    assert problem(accepted, 422) == problem(waited, 422)


def test_a_failure_of_a_worker_quotes_nothing_of_its_data(idle: LiveSystem) -> None:
    idle.start("worker")
    with serving(idle) as api:
        stored(api)
        idle.rows("update namespaces set settings = %s::jsonb", ['{"hygiene": "zebra"}'])
        answer = api.get("/memory/settings")
    assert problem(answer, 500) == "The worker failed: TypeError. Its log says more; try again."


def test_an_idempotency_key_does_a_write_once_and_answers_the_same_again(api: httpx2.Client) -> None:
    key = {"Idempotency-Key": f"order-{uuid4()}"}
    first = api.post("/memory/facts", json={"text": TEXT}, headers=key)
    again = api.post("/memory/facts", json={"text": TEXT}, headers=key)
    assert again.status_code == 201
    assert again.json() == first.json()
    assert "another request" in problem(api.post("/memory/facts", json={"text": "Else."}, headers=key), 422)


def test_an_idempotency_key_of_a_pass_is_not_for_a_pass_at_another_instant(api: httpx2.Client) -> None:
    key, wish = {"Idempotency-Key": f"order-{uuid4()}"}, {"dry_run": True, "now": "2026-01-01"}
    stored(api)
    first = api.post("/memory/decay", json=wish, headers=key)
    assert api.post("/memory/decay", json=wish, headers=key).json() == first.json()
    for other in (wish | {"now": "2099-01-01"}, {"dry_run": True}):
        assert "another request" in problem(api.post("/memory/decay", json=other, headers=key), 422)


def test_concurrent_requests_with_one_idempotency_key_have_equal_answers(api: httpx2.Client) -> None:
    key = {"Idempotency-Key": f"order-{uuid4()}"}
    id_ = stored(api)
    with ThreadPoolExecutor(8) as threads:
        answers = list(
            threads.map(
                lambda _: api.post(f"/memory/facts/{id_}/reinforce", json={"boost": 0.1}, headers=key), range(8)
            )
        )
    assert [answer.status_code for answer in answers] == [200] * 8
    assert len({answer.text for answer in answers}) == 1


def test_an_idempotency_key_may_come_with_another_fact_when_its_day_is_over(
    live: LiveSystem, api: httpx2.Client
) -> None:
    key = {"Idempotency-Key": f"daily-{uuid4()}"}
    first = api.post("/memory/facts", json={"text": TEXT}, headers=key).json()
    over_a_day(live)
    second = api.post("/memory/facts", json={"text": "Mira found it."}, headers=key)
    assert second.status_code == 201, second.text
    assert second.json()["id"] != first["id"]


def test_a_write_that_is_repeated_hours_later_has_no_further_effect(live: LiveSystem, api: httpx2.Client) -> None:
    """Workers have forgotten the task by then; the request's own instant identifies the repeat."""
    key, id_ = {"Idempotency-Key": f"order-{uuid4()}"}, stored(api)
    path, wish = f"/memory/facts/{id_}/reinforce?wait=false", {"boost": 0.1}
    task = api.post(path, json=wish, headers=key).json()["task"]
    eventually(lambda: not live.accepted(task), "it is done")
    strength = api.get(f"/memory/facts/{id_}").json()["strength"]
    for kept in set(live.own_keys.keys(f"*{task}*")) - {f"ebb:answer:{task}:request".encode()}:
        live.own_keys.delete(kept)
    api.post(path, json=wish, headers=key)
    eventually(lambda: not live.accepted(task), "it is done again")
    assert api.get(f"/memory/facts/{id_}").json()["strength"] == strength


def test_a_write_with_a_key_that_nothing_waits_for_is_known_for_a_day(live: LiveSystem, api: httpx2.Client) -> None:
    key, pair = {"Idempotency-Key": f"order-{uuid4()}"}, {"source": stored(api), "target": stored(api, "Mira has it.")}
    wish = pair | {"type": "RELATED_TO"}
    keyed = api.post("/memory/links?wait=false", json=wish, headers=key).json()["task"]
    without = api.post("/memory/links?wait=false", json=wish).json()["task"]
    eventually(lambda: not live.accepted(keyed) and not live.accepted(without), "they are done")
    assert live.own_keys.ttl(f"{signals.DONE}:{keyed}") > 86_000
    assert 0 < live.own_keys.ttl(f"{signals.DONE}:{without}") <= 3_600


@ON_ONE_SHARD
def test_a_late_write_that_a_worker_is_running_is_not_reported_as_failed(live: LiveSystem, api: httpx2.Client) -> None:
    id_ = stored(api)
    path = f"/memory/facts/{id_}/reinforce"
    with psycopg.connect(live.database_url) as db:
        db.execute("lock table activity in exclusive mode")
        answer = api.post(path, params={"timeout": 1.5})
        problem(answer, 504)
        task = f"/tasks/{answer.json()['task']}"
        assert api.get(task).json()["state"] == "late"
        db.rollback()
    eventually(lambda: api.get(task).json()["state"] == "done", "the task is done")
    assert api.get(task).json()["result"]["id"] == id_


def test_idempotency_keys_are_separate_by_namespace(api: httpx2.Client) -> None:
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
        ("POST", "/memory/facts", {"text": "A", "txt": "B"}, 422, "txt: is no field of this request; known are text"),
        ("POST", "/memory/facts/batch", {"facts": [], "fcts": []}, 422, "known are facts"),
        ("POST", "/memory/graph/edges", {"last_observed": 1}, 422, "from, to, type, weight, pinned, lastObserved"),
        ("POST", "/memory/decay", {"foo": 1}, 422, "foo: is no field of this request; known are dry_run"),
        ("POST", "/memory/facts", {"text": "A" * 70_000}, 422, "EBB_MAX_TEXT"),
        ("POST", "/memory/recall", {"query": "   "}, 422, "blank"),
        ("POST", "/memory/recall", {"query": "a", "limit": 0}, 422, "limit"),
        ("GET", "/memory/facts/nonsense", None, 422, "UUID"),
        ("GET", "/memory/forecast?days=0", None, 422, "days"),
        ("GET", "/memory/facts?tag=%C3%A9%FF", None, 422, "query: is no UTF-8 at %FF"),
        ("GET", f"/memory/facts/{NOBODYS}", None, 404, "no live fact"),
        ("DELETE", f"/memory/facts/{NOBODYS}", None, 404, "no fact"),
        ("POST", f"/memory/facts/{NOBODYS}/restore", None, 404, "no fact"),
        ("POST", f"/memory/facts/{NOBODYS}/restore", {}, 404, "no fact"),
        ("DELETE", "/memory/branches", {"days": 5}, 422, "body: is not taken here; give parameters in the query."),
        ("GET", "/memory/facts", {"tag": "home"}, 422, "body: is not taken here"),
        ("POST", f"/memory/facts/{NOBODYS}/reinforce", None, 404, "no live fact"),
        ("GET", f"/memory/facts/{NOBODYS}/history", None, 404, "no fact"),
        ("POST", f"/memory/facts/{NOBODYS}/pin", {}, 404, "no live fact"),
        ("GET", f"/tasks/{NOBODYS}", None, 404, "no task"),
        ("GET", "/unknown", None, 404, "/docs"),
        ("PUT", "/memory/facts", None, 405, "/docs"),
        ("POST", "/memory/facts/batch", {"facts": [{"text": "A" * 300_000}]}, 413, "EBB_MAX_BODY"),
        ("PUT", "/memory/documents", {"path": "notes/a.md", "chunks": [], "digest": "x" + "0" * 64}, 422, "digest"),
        ("PUT", "/memory/documents", {"path": "notes/a.md", "chunks": [], "digest": "0" * 65}, 422, "digest"),
    ],
)
def test_every_error_is_a_problem_that_says_what_is_wrong(
    api: httpx2.Client, method: str, path: str, body: Any, status: int, words: str
) -> None:
    assert words in problem(api.request(method, path, json=body), status)


@pytest.mark.parametrize(
    ("content", "kind", "status", "words"),
    [
        (b'{"text":', "application/json", 400, "body: is no JSON at character 8: Expecting value"),
        (b'{"text": "\xff"}', "application/json", 400, "UTF-8"),
        (b"[" * 150_000, "application/json", 400, "nested without end"),
        (b'{"text": "A"}', "text/plain", 422, "Content-Type: application/json"),
        (b"[]", "application/json", 422, "input should be an object"),
        (b'{"text": "A", "metadata": {"a": %s}}' % (b"[" * 400 + b"]" * 400), "application/json", 422, "100 levels"),
    ],
)
def test_an_unreadable_body_is_refused_with_the_reason(
    api: httpx2.Client, content: bytes, kind: str, status: int, words: str
) -> None:
    assert words in problem(api.post("/memory/facts", content=content, headers={"content-type": kind}), status)


def test_a_compressed_body_is_refused_with_what_to_do(api: httpx2.Client) -> None:
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    answer = api.post("/memory/facts", content=gzip.compress(b'{"text": "A"}'), headers=headers)
    assert "send it uncompressed" in problem(answer, 422)
    headers["content-encoding"] = "identity"
    assert api.post("/memory/facts", content=b'{"text": "A"}', headers=headers).status_code == 201


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/memory/facts/batch", '{"facts": [{"text": "A", "metadata": {"a": NESTED}}]}'),
        ("PATCH", "/memory/settings", '{"set": {"hygiene.episodicTTL": NESTED}}'),
        ("POST", "/memory/remember", '{"messages": [NESTED]}'),
        ("POST", "/memory/import", '{"records": [NESTED]}'),
        ("POST", "/memory/items/search", '{"filter": {"a": NESTED}}'),
    ],
)
def test_arbitrary_json_is_limited_in_depth(api: httpx2.Client, method: str, path: str, body: str) -> None:
    content = body.replace("NESTED", "[" * 400 + "]" * 400)
    answer = api.request(method, path, content=content, headers={"content-type": "application/json"})
    assert "100 levels" in problem(answer, 422)


@pytest.mark.parametrize(
    ("path", "name"), [("/memory/facts", "limit"), ("/memory/lookup?entity=a", "touch"), ("/memory/stats", "timeout")]
)
def test_a_parameter_that_is_nested_without_end_is_refused(api: httpx2.Client, path: str, name: str) -> None:
    answer = api.get(httpx2.URL(path).copy_add_param(name, "[" * 5_000))
    assert problem(answer, 422).startswith(f"query.{name}: ")


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/memory/facts?tags=home"),
        ("GET", "/memory/stats?tag=home"),
        ("DELETE", "/memory/branches?older=5"),
        ("POST", "/memory/decay?all=true"),
        ("GET", "/memory/stats?wait=false"),
    ],
)
def test_a_parameter_that_the_route_does_not_have_is_refused(api: httpx2.Client, method: str, path: str) -> None:
    name, _, given = path.partition("?")[2].partition("=")
    said = problem(api.request(method, path), 422)
    assert said.startswith(f"query.{name}: is no parameter of this route; known are ")
    assert said.endswith(f"timeout{', wait' * (method != 'GET')}; given {given!r}.")


def test_a_question_has_nothing_to_be_accepted_without_waiting(api: httpx2.Client) -> None:
    said = problem(api.post("/memory/recall?wait=false", json={"query": "key"}), 422)
    assert said == "query.wait: is no parameter of this route; known are timeout; given 'false'."


def test_a_parameter_that_is_no_list_is_given_once(api: httpx2.Client) -> None:
    said = problem(api.get("/memory/facts?tag=home&tag=work&limit=1"), 422)
    assert said == "query.tag: is given twice; give it once; given 'work'."
    assert api.get(f"/memory/facts?ids={NOBODYS}&ids={NOBODYS}").json()["facts"] == []


@pytest.mark.parametrize(
    ("path", "place", "whole"),
    [
        ("/memory/facts/?limit=1", "../facts?limit=1", "/memory/facts?limit=1"),
        (f"/memory/facts/{NOBODYS}/", f"../{NOBODYS}", f"/memory/facts/{NOBODYS}"),
        ("/help/", "../help", "/help"),
        ("/dashboard/facts/?tag=home", "../facts?tag=home", "/dashboard/facts?tag=home"),
    ],
)
def test_a_slash_at_the_end_leads_to_the_address_without_it_under_whatever_name_the_client_knows(
    api: httpx2.Client, path: str, place: str, whole: str
) -> None:
    answer = api.get(path, headers={"Host": "ebb.example"})
    assert (answer.status_code, answer.headers["location"]) == (307, place)
    assert str(api.get(path, follow_redirects=True).url).endswith(f"{api.base_url.netloc.decode()}{whole}")


def test_a_slash_after_a_path_that_is_not_there_leads_nowhere(api: httpx2.Client) -> None:
    for path in ("/unknown/", "/memory/facts//", "//ebb.example/"):
        assert "/docs" in problem(api.request("GET", f"{str(api.base_url).rstrip('/')}{path}"), 404)


def test_a_wrong_method_is_answered_with_the_allowed_ones(api: httpx2.Client) -> None:
    assert api.put("/memory/facts").headers["allow"] == "GET, HEAD, POST"


def test_a_body_without_length_is_cut_off_at_the_limit(api: httpx2.Client) -> None:
    def pieces() -> Iterator[bytes]:
        yield b'{"text": "'
        for _ in range(100):
            yield b"a" * 10_000

    answer = api.post("/memory/facts", content=pieces(), headers={"content-type": "application/json"})
    assert "EBB_MAX_BODY" in problem(answer, 413)


def test_namespaces_are_separate(api: httpx2.Client) -> None:
    id_ = stored(api)
    other = {"X-Ebb-Namespace": f"test-{uuid4()}"}
    assert api.get(f"/memory/facts/{id_}", headers=other).status_code == 404
    assert api.post("/memory/recall", json={"query": "key"}, headers=other).json()["results"] == []
    assert "is no name" in problem(api.get("/memory/stats", headers={"X-Ebb-Namespace": "a b"}), 422)


def test_readiness_reports_each_part_as_healthy(served: httpx2.Client) -> None:
    answer = served.get("/health/ready")
    assert answer.json() == {
        "status": "ready",
        "checks": dict.fromkeys(("recall", "store", "maintenance", "database", "embedder", "redis"), "ok"),
    }


def test_who_asks_for_the_head_alone_is_answered_as_for_the_whole(api: httpx2.Client) -> None:
    for path in (
        "/health/live",
        "/health/ready",
        "/memory/settings",
        "/memory/nothing",
        "/help",
        "/dashboard/static/ebb.css",
    ):
        head, whole = api.head(path), api.get(path)
        assert (head.status_code, head.content) == (whole.status_code, b""), path
        assert head.headers["content-length"] == str(len(whole.content)), path


def test_pages_from_elsewhere_are_refused(api: httpx2.Client) -> None:
    for origin in ("https://evil.example", "http://[", "null", "127.0.0.1"):
        assert "its own machine" in problem(api.get("/memory/stats", headers={"origin": origin}), 403), origin
    for host in ("evil.example", "127.0.0.1@evil.example", "evil.example:127.0.0.1", "localhost:x", "127.0.0.1 x", ""):
        assert "its own machine" in problem(api.get("/memory/stats", headers={"host": host}), 403), host
    for host in ("localhost", "LOCALHOST:5556", "127.0.0.1:1", "[::1]:5556", "[::1]"):
        assert api.get("/memory/stats", headers={"host": host}).status_code == 200, host
    for passed_on in ("X-Forwarded-For", "Forwarded", "Via", "X-Real-IP", "X-Forwarded-Host"):
        assert "proxy" in problem(api.get("/memory/stats", headers={passed_on: "127.0.0.1"}), 401), passed_on
    elsewhere = {"sec-fetch-site": "cross-site"}
    fact = {"text": "A page of another site stored this."}
    assert "its own machine" in problem(api.post("/memory/facts", json=fact, headers=elsewhere), 403)
    assert api.get("/memory/stats", headers=elsewhere | {"sec-fetch-mode": "navigate"}).status_code == 200
    assert "its own machine" in problem(api.get("/memory/stats", headers={"host": "evil.example"}), 403)
    here = {"origin": f"http://localhost:{api.base_url.port}"}
    assert api.get("/memory/stats", headers=here).status_code == 200
    page = api.get("/dashboard/facts", headers={"host": "ebb.example"})
    assert page.status_code == 403
    assert "make a key with" in page.text
    assert "open the dashboard at" not in page.text, "127.0.0.1 may be another machine for who reads this"


def test_what_a_page_of_another_site_links_to_does_not_count_as_use(api: httpx2.Client) -> None:
    linked, asked = ({"entity": f"Mira {uuid4()}"} for _ in range(2))
    stated = (about | {"text": f"{about['entity']} likes tea."} for about in (linked, asked))
    facts = [api.post("/memory/facts", json=fact).json() for fact in stated]
    link = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    assert api.get("/memory/lookup", params=linked, headers=link).json()["results"]
    assert "'write'" in problem(api.get("/memory/lookup", params=linked | {"touch": True}, headers=link), 403)
    assert api.get("/memory/lookup", params=asked).json()["results"]
    of_linked, of_asked = (f"/memory/facts/{fact['id']}/history" for fact in facts)
    eventually(lambda: "recalled" in api.get(of_asked).text, "the question after it counts")
    assert "recalled" not in api.get(of_linked).text
    page = {"origin": "http://localhost:3000", "sec-fetch-site": "cross-site", "sec-fetch-mode": "cors"}
    assert api.post("/memory/facts", json={"text": "A page of here."}, headers=page).status_code == 201


def test_a_client_behind_a_proxy_from_another_machine_needs_a_key(api: httpx2.Client) -> None:
    assert "key" in problem(api.get("/memory/stats", headers={"X-Forwarded-For": "203.0.113.5"}), 401)


def test_the_document_is_openapi_3_1_and_each_body_has_an_example(served: httpx2.Client) -> None:
    document = served.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    schemas = document["components"]["schemas"]
    bodies = [name for name in schemas if name.endswith("Request")]
    assert len(bodies) >= 6
    assert [name for name in bodies if not schemas[name].get("examples")] == []
    assert "Problem" in schemas


def test_that_a_namespace_to_move_is_not_there_is_a_documented_answer(api: httpx2.Client) -> None:
    problem(api.post("/memory/move", json={"shard": 0}, headers={"X-Ebb-Namespace": f"none-{uuid4()}"}), 404)

    assert "404" in api.get("/openapi.json").json()["paths"]["/memory/move"]["post"]["responses"]


def test_every_example_of_the_document_works(api: httpx2.Client) -> None:
    document = api.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    stored(api, id=EXAMPLE_ID)
    stored(api, "The key hangs by the door.", id=EXAMPLE_OTHER_ID)
    for path, operations in document["paths"].items():
        for method, operation in operations.items():
            # resolving ends a fact that others need; the folder of the example is on another machine;
            # a namespace with branches is not moved
            if path not in ("/memory/contradictions/resolve", "/memory/folders", "/memory/move"):
                for example in examples_of(operation, schemas):
                    answer = api.request(method, path.replace("{id}", EXAMPLE_ID), json=example)
                    assert answer.status_code in (200, 201), (method, path, example, answer.text)
    for example in schemas["ResolveRequest"]["examples"]:
        assert api.post("/memory/contradictions/resolve", json=example).status_code == 200
    assert api.delete("/memory/branches").status_code == 200
    for example in examples_of(document["paths"]["/memory/move"]["post"], schemas):
        assert api.post("/memory/move", json=example).status_code == 200
    for example in schemas["RegisterFolderRequest"]["examples"]:
        assert api.post("/memory/folders", json=example | {"path": str(FOLDER)}).status_code == 200


def examples_of(operation: dict[str, Any], schemas: dict[str, Any]) -> list[Any]:
    """Return the examples of what is sent to a route."""
    body = operation.get("requestBody", {"content": {"application/json": {"schema": {}}}})
    schema = body["content"]["application/json"]["schema"]
    names = [one["$ref"].rpartition("/")[2] for one in [schema, *schema.get("anyOf", [])] if "$ref" in one]
    return [example for name in names for example in schemas[name]["examples"]]
