"""OpenMemory's clients: their requests as they send them, with and without nulls."""

import time
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import httpx2
import pytest
from live_api import make_key, serving
from live_system import LiveSystem, eventually

from api.http import openmemory

pytestmark = pytest.mark.acceptance

MATCH = {"id", "content", "score", "sectors", "primary_sector", "path", "salience", "last_seen_at"}
ITEM = {
    "id", "content", "tags", "metadata", "created_at", "updated_at", "last_seen_at", "salience", "decay_lambda",
    "primary_sector", "user_id",
}  # fmt: skip


@pytest.fixture(scope="module")
def api(live: LiveSystem) -> Iterator[httpx2.Client]:
    with serving(live, EBB_OPENMEMORY_API="1") as client:
        yield client


@pytest.fixture
def user() -> str:
    return f"user-{uuid4()}"


def posted(api: httpx2.Client, path: str, body: Any, **options: Any) -> dict[str, Any]:
    answer = api.post(path, json=body, **options)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def added(api: httpx2.Client, content: str, user: str | None, **fields: Any) -> str:
    return str(posted(api, "/memory/add", {"content": content, "user_id": user, **fields})["id"])


def matched(api: httpx2.Client, query: str, user: str | None, **fields: Any) -> list[dict[str, Any]]:
    return list(posted(api, "/memory/query", {"query": query, "user_id": user, **fields})["matches"])


def test_a_memory_is_added_found_strengthened_and_deleted(api: httpx2.Client, user: str) -> None:
    began = time.time() * 1000
    first = posted(
        api,
        "/memory/add",
        {"content": "Mira sails to Zanzibar", "tags": ["travel"], "metadata": {"from": {"chat": 7}}, "user_id": user},
    )
    again = posted(api, "/memory/add", {"content": "Mira sails to Zanzibar", "user_id": user})
    found = posted(api, "/memory/query", {"query": "Where does Mira sail?", "k": 3, "user_id": user})
    strengthened = posted(api, "/memory/reinforce", {"id": first["id"], "boost": 0.3})
    shown = api.get(f"/memory/{first['id']}").json()
    deleted = api.delete(f"/memory/{first['id']}")

    assert first == {
        "id": first["id"], "primary_sector": "semantic", "sectors": ["semantic"], "chunks": 1,
    }  # fmt: skip
    assert again == {
        "id": first["id"], "primary_sector": "semantic", "sectors": ["semantic"], "deduplicated": True,
    }  # fmt: skip
    assert found["query"] == "Where does Mira sail?"
    assert [match.keys() for match in found["matches"]] == [MATCH]
    assert found["matches"][0]["id"] == first["id"]
    assert strengthened == {"ok": True}
    assert shown.keys() == ITEM | {"sectors"}
    assert shown["metadata"] == {"from": {"chat": 7}}
    assert shown["tags"] == ["travel"]
    assert began - 1000 < shown["created_at"] <= shown["last_seen_at"] < time.time() * 1000 + 1000
    assert deleted.json() == {"ok": True}
    assert api.get(f"/memory/{first['id']}").status_code == 404
    assert api.delete(f"/memory/{first['id']}").status_code == 404
    assert matched(api, "Where does Mira sail?", user) == []


def test_a_known_memory_with_other_tags_or_metadata_is_deduplicated(api: httpx2.Client, user: str) -> None:
    id_ = added(api, "An otter", user, metadata={"sector": "emotional"})
    for given in ({"tags": ["animals"]}, {"metadata": {"cup": 1}}):
        again = posted(api, "/memory/add", {"content": "An otter", "user_id": user, **given})
        assert (again["id"], again.get("deduplicated"), again["primary_sector"]) == (id_, True, "emotional"), given


def test_the_user_of_the_filters_comes_first(api: httpx2.Client, user: str) -> None:
    other = f"{user}-other"
    added(api, "An otter of one", user)
    added(api, "An otter of another", other)
    found = matched(api, "otter", user, filters={"user_id": other})
    assert [one["content"] for one in found] == ["An otter of another"]


def test_nulls_and_fields_of_older_clients_are_taken(api: httpx2.Client, user: str) -> None:
    nothing = dict.fromkeys(("tags", "metadata", "salience", "decay_lambda"))
    id_ = posted(api, "/memory/add", {"content": "An otter", "user_id": user, **nothing})["id"]
    filters = dict.fromkeys(("sector", "min_score", "user_id", "startTime", "endTime"))

    assert [one["id"] for one in matched(api, "otter", user, k=None, filters=filters)] == [id_]
    assert [one["id"] for one in matched(api, "otter", user, filters=None, startTime=None)] == [id_]
    assert posted(api, "/memory/reinforce", {"id": id_, "boost": None}) == {"ok": True}


def test_a_deleted_memory_may_be_added_again(api: httpx2.Client, user: str) -> None:
    api.delete(f"/memory/{added(api, 'An otter', user)}")
    id_ = added(api, "An otter", user)

    assert [one["id"] for one in matched(api, "otter", user)] == [id_]


def test_an_update_keeps_the_id_and_what_it_does_not_name(api: httpx2.Client, user: str) -> None:
    id_ = added(api, "Mira lives in Leipzig", user, tags=["home"], metadata={"a": 1})
    for content in ("Mira lives in Halle", "Mira lives in Jena"):
        assert api.patch(f"/memory/{id_}", json={"content": content, "tags": None}).json() == {
            "id": id_,
            "updated": True,
        }
    changed = api.patch(f"/memory/{id_}", json={"metadata": {"b": 2, "sector": "emotional"}})
    shown = api.get(f"/memory/{id_}").json()

    assert changed.json()["updated"] is True
    assert api.patch(f"/memory/{id_}", json={"content": None}).json()["updated"] is False
    assert (shown["content"], shown["tags"]) == ("Mira lives in Jena", ["home"])
    assert (shown["metadata"], shown["primary_sector"]) == ({"b": 2, "sector": "emotional"}, "emotional")
    assert [one["content"] for one in matched(api, "Where does Mira live?", user)] == ["Mira lives in Jena"]
    assert api.delete(f"/memory/{id_}").json() == {"ok": True}
    assert matched(api, "Where does Mira live?", user) == []


def test_an_update_keeps_what_other_doors_gave_a_memory(api: httpx2.Client, user: str) -> None:
    headers = {"X-Ebb-Namespace": user}
    item = {"path": ["boats"], "key": "mira", "document": '{"boat": 1}', "text": "Mira has a boat"}
    assert api.put("/memory/items", json=item, headers=headers).status_code == 200
    given = {"kind": "episodic", "session": "s", "turn": 0, "importance": 0.0, "confidence": 0.4}
    given |= {"decay_class": "durable", "decay_class_source": "auto", "valid_until": "2100-01-01T00:00:00Z"}
    stored = api.post("/memory/facts", json={"text": "Mira sold her car"} | given, headers=headers)
    assert stored.status_code == 201, stored.text
    for one in api.get("/memory/all", params={"user_id": user}).json()["items"]:
        assert api.patch(f"/memory/{one['id']}", json={"tags": ["new"]}).json()["updated"] is True

    (fact,) = api.get("/memory/facts", params={"kind": "episodic"}, headers=headers).json()["facts"]
    assert {name: fact[name] for name in (*given, "tags")} == given | {"tags": ["new"]}
    (kept,) = posted(api, "/memory/items/search", {"path": ["boats"]}, headers=headers)["items"]
    assert (kept["key"], kept["document"]) == ("mira", item["document"])


def test_an_update_keeps_source_date_and_summary(api: httpx2.Client, user: str) -> None:
    headers, said = {"X-Ebb-Namespace": user}, "2024-05-01T00:00:00Z"
    given = {"text": "Mira sold her car", "source_date": said, "summary": "a car"}
    assert api.post("/memory/facts", json=given, headers=headers).status_code == 201

    def patched(**change: Any) -> dict[str, Any]:
        (one,) = api.get("/memory/all", params={"user_id": user}).json()["items"]
        assert api.patch(f"/memory/{one['id']}", json=change).json()["updated"] is True
        (fact,) = api.get("/memory/facts", headers=headers).json()["facts"]
        return dict(fact)

    tagged = patched(tags=["cars"], content="Mira sold her car")
    assert (tagged["source_date"], tagged["summary"], tagged["tags"]) == (said, "a car", ["cars"])
    changed = patched(content="Mira sold her bicycle")
    assert (changed["source_date"], changed["summary"], changed["tags"]) == (said, None, ["cars"])
    past = {"query": "What did Mira sell?", "as_of": "2024-06-01"}
    (before,) = posted(api, "/memory/recall", past, headers=headers)["results"]
    assert before["text"] == "Mira sold her car"


def test_a_memory_that_was_true_until_some_time_gets_another_content(api: httpx2.Client, user: str) -> None:
    headers, until = {"X-Ebb-Namespace": user}, "2025-01-01T00:00:00Z"
    given = {"text": "Mira rents a flat", "source_date": "2024-05-01T00:00:00Z", "valid_until": until}
    assert api.post("/memory/facts", json=given, headers=headers).status_code == 201
    (one,) = api.get("/memory/all", params={"user_id": user}).json()["items"]
    assert api.patch(f"/memory/{one['id']}", json={"content": "Mira rents a house"}).json()["updated"] is True
    (fact,) = api.get("/memory/facts", headers=headers).json()["facts"]
    assert (fact["text"], fact["valid_until"]) == ("Mira rents a house", until)


def test_an_update_to_the_content_of_another_memory_changes_neither(api: httpx2.Client, user: str) -> None:
    one = added(api, "Mira drinks tea", user, metadata={"cup": 1})
    other = added(api, "Mira drinks coffee", user, metadata={"cup": 2})
    answer = api.patch(f"/memory/{one}", json={"content": "Mira drinks coffee", "metadata": {"cup": 3}})
    assert answer.status_code == 422
    assert other.partition("~")[0] in answer.json()["detail"]
    left = api.get("/memory/all", params={"user_id": user}).json()["items"]
    assert [(item["id"], item["metadata"]) for item in left] == [(other, {"cup": 2}), (one, {"cup": 1})]
    assert api.patch(f"/memory/{one}", json={"content": "mira  drinks TEA"}).json()["updated"] is True
    assert api.delete(f"/memory/{one}").json() == {"ok": True}
    assert api.get(f"/memory/{other}").json()["metadata"] == {"cup": 2}


def test_filters_hold(api: httpx2.Client, user: str) -> None:
    added(api, "An otter was sad", user, metadata={"sector": "emotional"}, tags=["Animals"])
    time.sleep(0.01)
    between = time.time() * 1000
    added(api, "An otter eats fish", user)

    def texts(**filters: Any) -> list[str]:
        return sorted(one["content"] for one in matched(api, "otter", user, filters=filters))

    assert texts(sector="emotional") == ["An otter was sad"]
    assert texts(sector="semantic") == ["An otter eats fish"]
    assert texts(sectors=["semantic", "emotional"]) == ["An otter eats fish", "An otter was sad"]
    assert texts(tags=["ANIMALS"]) == ["An otter was sad"]
    assert texts(startTime=between) == ["An otter eats fish"]
    assert texts(endTime=between) == ["An otter was sad"]
    assert texts(min_score=50) == []
    assert len(matched(api, "otter", user, k=1)) == 1


def test_memories_are_listed_newest_first_by_either_names(api: httpx2.Client, user: str) -> None:
    ids = [added(api, f"Otter number {number}", user) for number in range(5)][::-1]

    def listed(path: str, **parameters: Any) -> list[str]:
        answer = api.get(path, params=parameters)
        assert answer.status_code == 200, answer.text
        assert all(one.keys() == ITEM for one in answer.json()["items"])
        return [one["id"] for one in answer.json()["items"]]

    assert listed("/memory/all", user_id=user) == ids
    assert listed("/memory/all", user_id=user, l=2, u=1) == ids[1:3]
    assert listed("/memory/all", user_id=user, limit=2, offset=3) == ids[3:]
    assert listed(f"/users/{user}/memories", l=3) == ids[:3]
    assert api.get(f"/users/{user}/memories").json()["user_id"] == user
    assert listed("/memory/all", user_id=user, sector="emotional") == []
    assert listed("/memory/all", user_id=user, l=0) == []


def test_all_memories_of_a_user_can_be_deleted_and_of_no_other(api: httpx2.Client, user: str) -> None:
    for number in range(3):
        added(api, f"Otter number {number}", user)
    other = f"{user}-other"
    kept = added(api, "Otter of another", other)

    assert api.delete(f"/users/{user}/memories").json() == {"ok": True, "deleted": 3}
    assert api.get(f"/users/{user}/memories").json()["items"] == []
    assert [one["id"] for one in api.get(f"/users/{other}/memories").json()["items"]] == [kept]


def test_memories_that_are_too_large_for_one_answer_are_found_counted_and_deleted(
    live: LiveSystem, api: httpx2.Client, user: str
) -> None:
    ids = [added(api, f"Guest {number} has tea.", user).partition(openmemory.MARK)[0] for number in range(40)]
    filler = "update facts set metadata = jsonb_build_object('plan', repeat('x', 1000000)) where id = any(%s::uuid[])"
    live.rows(f"{filler} returning 1", [ids])
    assert len(matched(api, "Who has tea?", user, k=40)) == 40
    (sector,) = api.get("/sectors", params={"user_id": user}).json()["stats"]
    assert (sector["sector"], sector["count"]) == ("semantic", 40)
    assert api.get(f"/users/{user}/summary").json()["summary"].startswith("40 memories (40 semantic). Most salient: Gu")
    assert api.delete(f"/users/{user}/memories").json() == {"ok": True, "deleted": 40}


def test_a_path_without_a_user_is_not_of_the_callers_own_memory(api: httpx2.Client) -> None:
    own = posted(api, "/memory/add", {"content": "Mira rows at the weekend"})["id"]
    for route in ("DELETE memories", "GET memories", "GET summary", "POST summary/regenerate"):
        method, path = route.split()
        assert api.request(method, f"/users//{path}").status_code == 422, route
    assert api.get(f"/memory/{own}").status_code == 200


def test_users_see_nothing_of_each_other(api: httpx2.Client, user: str) -> None:
    id_ = added(api, "Mira sails to Zanzibar", user)
    other, bare = f"{user}-other", id_.partition("~")[0]

    assert matched(api, "Who sails to Zanzibar?", other) == []
    assert api.get(f"/memory/{bare}").status_code == 404
    for named in (bare, id_):
        assert api.get(f"/memory/{named}", params={"user_id": other}).status_code == 404
        assert api.delete(f"/memory/{named}", params={"user_id": other}).status_code == 404
        assert api.patch(f"/memory/{named}", json={"content": "x", "user_id": other}).status_code == 404
    assert api.get(f"/memory/{id_}", params={"user_id": user}).status_code == 200
    assert api.post("/memory/reinforce", json={"id": bare}).status_code == 404
    assert [one["id"] for one in matched(api, "Who sails to Zanzibar?", user)] == [id_]


@pytest.mark.parametrize("name", ["auth0|{}", "Ana Lee {}", "team/{}", "u::{}", "安娜{}", "100% {}?#"])
def test_users_keep_the_names_they_had(api: httpx2.Client, name: str) -> None:
    who = name.format(uuid4().hex[:8])
    id_ = added(api, "Mira sails to Zanzibar", who)
    path = f"/users/{quote(who, safe='')}/memories"

    assert [one["id"] for one in matched(api, "Who sails?", who)] == [id_]
    assert matched(api, "Who sails?", f"{who} ") == []
    assert api.get(f"/memory/{id_}").json()["user_id"] == who, "clients put ids into paths as they are"
    assert [one["user_id"] for one in api.get("/memory/all", params={"user_id": who}).json()["items"]] == [who]
    assert api.get(path).json()["user_id"] == who
    assert api.delete(path).json() == {"ok": True, "deleted": 1}


def test_health_and_sectors_answer(api: httpx2.Client) -> None:
    assert api.get("/health").json()["ok"] is True
    assert "semantic" in api.get("/sectors").json()["sectors"]


SAID = {
    "episodic": "Yesterday Mira went to Leipzig and met Ana.",
    "procedural": "How to deploy: first install the wheel, then run the migration.",
    "emotional": "Mira feels sad and is worried about the exam.",
    "reflective": "Looking back, I learned a lesson from this.",
    "semantic": "Leipzig is in Saxony.",
}


def test_words_decide_the_sector_and_stats_and_the_summary_count_them(api: httpx2.Client, user: str) -> None:
    for text in SAID.values():
        added(api, text, user)
    items = api.get(f"/users/{user}/memories").json()["items"]
    assert {item["primary_sector"]: item["content"] for item in items} == SAID
    stats = api.get("/sectors", params={"user_id": user}).json()["stats"]
    assert {one["sector"]: one["count"] for one in stats} == dict.fromkeys(SAID, 1)
    assert all(0 < one["avg_salience"] <= 1 for one in stats)
    found = api.get(f"/users/{user}/summary").json()
    assert found["summary"].startswith("5 memories (1 episodic, 1 semantic, 1 procedural, 1 emotional, 1 reflective).")
    assert posted(api, f"/users/{user}/summary/regenerate", {}) == {"ok": True} | found
    assert api.get(f"/users/{user}-new/summary").json()["summary"] == "No memories yet."


def test_invalid_requests_are_refused_and_missing_memories_reported(api: httpx2.Client) -> None:
    assert api.post("/memory/add", json={"content": ""}).status_code == 422
    assert api.post("/memory/query", json={"query": "x", "k": 0}).status_code == 422
    no_number = b'{"query": "x", "filters": {"min_score": NaN}}'
    headers = {"content-type": "application/json"}
    assert api.post("/memory/query", content=no_number, headers=headers).status_code == 422
    assert api.post("/memory/add", json={"content": "x", "user_id": "安" * 20}).status_code == 422
    assert api.get("/memory/no-such-id").status_code == 404
    assert api.get(f"/memory/{uuid4()}").status_code == 404
    assert api.get("/memory/stats").json()["facts"] >= 0, "Ebb's own routes come first"


def test_without_the_setting_the_routes_do_not_exist(live: LiveSystem) -> None:
    with serving(live) as plain:
        assert plain.post("/memory/add", json={"content": "An otter"}).status_code in (404, 405)
        assert plain.get("/sectors").status_code == 404


SECRET = "Zanzibar"


def test_facts_excluded_by_a_filter_are_not_strengthened(live: LiveSystem, api: httpx2.Client, user: str) -> None:
    wanted = added(api, "Mira sails to Zanzibar", user, metadata={"sector": "episodic"}).partition("~")[0]
    other = added(api, "Mira sails to Palermo", user).partition("~")[0]
    found = matched(api, "Where does Mira sail?", user, filters={"sector": "episodic"})
    assert [match["id"].partition("~")[0] for match in found] == [wanted]
    with live.client(user) as memory:
        eventually(lambda: memory.fact(wanted)["recall_count"] == 1, "what was found is strengthened")
        live.settle()
        assert memory.fact(other)["recall_count"] == 0


ROUTES: dict[str, Callable[[str, str], dict[str, Any]]] = {
    "GET /health": lambda _user, _id: {},
    "GET /sectors": lambda user, _id: {"params": {"user_id": user}},
    "POST /memory/add": lambda user, _id: {"json": {"content": "An otter", "user_id": user}},
    "POST /memory/query": lambda user, _id: {"json": {"query": "Who sails?", "filters": {"user_id": user}}},
    "POST /memory/reinforce": lambda _user, id_: {"json": {"id": id_}},
    "GET /memory/all": lambda user, _id: {"params": {"user_id": user}},
    "GET /memory/{id}": lambda user, _id: {"params": {"user_id": user}},
    "PATCH /memory/{id}": lambda user, _id: {"json": {"content": "An otter", "user_id": user}},
    "DELETE /memory/{id}": lambda user, _id: {"params": {"user_id": user}},
    "GET /users/{user_id:path}/memories": lambda _user, _id: {},
    "DELETE /users/{user_id:path}/memories": lambda _user, _id: {},
    "GET /users/{user_id:path}/summary": lambda _user, _id: {},
    "POST /users/{user_id:path}/summary/regenerate": lambda _user, _id: {},
}
"""For each route a request by which a stranger would try to reach another's memory; add a line for a new route."""


def test_no_route_gives_a_key_access_to_another_users_memory(live: LiveSystem, api: httpx2.Client, user: str) -> None:
    """One of the last tests: once a key exists, every request needs one."""
    with live.client(user) as owner:
        id_ = owner.store(f"Mira sails to {SECRET}")["id"]
    key, before = make_key(live, f"{user}-stranger", "read", "write"), live.state()["facts"]

    assert ROUTES.keys() == {f"{method} {one.path}" for one in openmemory.routes.routes for method in one.methods}  # type: ignore[attr-defined]
    for route, reach in ROUTES.items():
        method, path = route.split()
        for named in (id_, f"{id_}~{user}"):
            url = path.replace("{id}", named).replace("{user_id:path}", user)
            answer = api.request(method, url, headers=key, **reach(user, named))
            assert SECRET not in answer.text, route
            assert answer.status_code in (403, 404) or route == "GET /health", route
    assert live.state()["facts"] == before


def test_no_user_takes_the_name_of_a_branch(live: LiveSystem, api: httpx2.Client, user: str) -> None:
    """Near the end: once a key exists, every request needs one."""
    every = make_key(live, f"{user}-service", "read", "write", "system")
    taken = f"{user}-older-365d"
    refused = api.post("/memory/add", json={"content": "Mira sails", "user_id": taken}, headers=every)
    assert (refused.status_code, "is the name of a branch" in refused.json()["detail"]) == (403, True)
    assert api.get(f"/users/{taken}/memories", headers=every).status_code == 403
    own = make_key(live, taken, "read", "write")
    posted(api, "/memory/add", {"content": "Mira sails"}, headers=own)


def test_a_key_for_all_namespaces_opens_the_memory_of_each_user(
    live: LiveSystem, api: httpx2.Client, user: str
) -> None:
    """Near the end: once a key exists, every request needs one."""
    every = make_key(live, f"{user}-service", "read", "write", "system")
    posted(api, "/memory/add", {"content": "Mira sails to Zanzibar", "user_id": user}, headers=every)
    assert len(api.get(f"/users/{user}/memories", headers=every).json()["items"]) == 1
    assert api.get("/memory/all", headers=every).json()["items"] == []


def test_a_key_opens_only_its_own_memory(live: LiveSystem, api: httpx2.Client, user: str) -> None:
    """The last test: once a key exists, every request needs one."""
    key = make_key(live, user, "read", "write")["x-api-key"]
    for headers in ({"x-api-key": key}, {"authorization": f"Bearer {key}"}):
        own = posted(api, "/memory/add", {"content": "Mira sails"}, headers=headers)["id"]
        assert "~" not in own
        assert posted(api, "/memory/query", {"query": "Mira", "user_id": user}, headers=headers)["matches"]
        for stranger in ({"json": {"content": "x", "user_id": "another"}, "url": "/memory/add"},):
            assert api.post(**stranger, headers=headers).status_code == 403
        assert api.get(f"/memory/{own}~another", headers=headers).status_code == 403
        assert api.get("/users/another/memories", headers=headers).status_code == 403
        assert api.delete("/users/another/memories", headers=headers).status_code == 403
    assert api.post("/memory/add", json={"content": "x"}).status_code == 401


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("GET", "/memory/{id}", None),
        ("PATCH", "/memory/{id}", {"tags": []}),
        ("DELETE", "/memory/{id}", None),
        ("POST", "/memory/reinforce", {"id": "none"}),
    ],
)
def test_that_a_memory_is_not_there_is_a_documented_answer(
    api: httpx2.Client, live: LiveSystem, user: str, method: str, path: str, body: Any
) -> None:
    key = make_key(live, user, "read", "write")
    assert api.request(method, path.replace("{id}", "none"), json=body, headers=key).status_code == 404
    assert "404" in api.get("/openapi.json").json()["paths"][path][method.lower()]["responses"]
