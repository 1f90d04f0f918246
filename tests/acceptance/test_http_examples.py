"""Every route's documented example has the fields and types of a real answer."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from ebb.contract.operation import EXAMPLE_ID, EXAMPLE_OTHER_ID, operations
from jsonschema import Draft202012Validator
from live_api import serving
from live_system import FOLDER, LiveSystem

from tests.undeclared import undeclared

pytestmark = pytest.mark.acceptance

KEY = {
    "text": "The key hangs by the door.", "entity": "key", "key": "place", "value": "by the door", "tags": ["house"],
    "category": "home", "source": "chat", "session": "monday", "turn": 3, "decay_class": "stable",
}  # fmt: skip
OTHER = KEY | {"text": "The key lies under the pot.", "value": "under the pot", "id": EXAMPLE_OTHER_ID, "turn": 4}
EDGE = {"from": "Mira", "to": "Leipzig", "type": "lives_in", "weight": 0.8}

ARCHIVED = {
    "relation": {
        "source": "Mira", "target": "Anselm", "type": "knows", "initial_weight": 0.5,
        "last_observed": "2025-01-31T08:00:00Z", "created_at": "2025-01-31T08:00:00Z",
    }
}  # fmt: skip

USER = "mira-of-the-examples"
"""No other test writes to its namespace."""

WALK: dict[str, dict[str, Any]] = {
    "POST /memory/facts": {"json": KEY | {"id": EXAMPLE_ID}},
    "POST /memory/facts/batch": {"json": {"facts": [OTHER, {"text": " "}]}},
    "POST /memory/remember": {"json": {"messages": [{"role": "user", "content": "The key is gone."}]}},
    "POST /memory/links": {"json": {"source": EXAMPLE_ID, "target": EXAMPLE_OTHER_ID, "type": "RELATED_TO"}},
    "POST /memory/graph/edges": {"json": EDGE},
    "GET /memory/facts": {},
    "GET /memory/facts/{id}": {},
    "PATCH /memory/facts/{id}": {"json": {"tags": ["home"], "importance": 0.9}},
    "POST /memory/facts/{id}/reinforce": {"json": {"boost": 0.2}},
    "POST /memory/used": {"json": {"ids": [EXAMPLE_ID]}},
    "POST /memory/facts/{id}/pin": {},
    "DELETE /memory/facts/{id}/pin": {},
    "GET /memory/facts/{id}/history": {},
    "POST /memory/recall": {"json": {"query": "Where is the key?", "limit": 1, "explain": True}},
    "POST /memory/recall/batch": {"json": {"queries": [{"query": "Where is the key?", "limit": 1}, {"query": " "}]}},
    "GET /memory/lookup": {"params": {"entity": "key"}},
    "GET /memory/timeline": {"params": {"entity": "key", "key": "place"}},
    "POST /memory/context": {"json": {"query": "Where is the key?"}},
    "GET /memory/graph/edges": {},
    "GET /memory/relations": {},
    "GET /memory/facts/{id}/curve": {},
    "GET /memory/facts/{id}/neighbours": {},
    "PUT /memory/documents": {
        "json": {"path": "notes/boat.md", "chunks": [{"text": "The sail is red."}], "digest": "0" * 64}
    },
    "POST /memory/documents": {"json": {"path": "notes/boat.md", "text": "# Mast\n\nSpruce."}},
    "GET /memory/documents": {"params": {"name": "notes"}},
    "POST /memory/documents/unindex": {"json": {"paths": ["notes/boat.md"]}},
    "POST /memory/folders": {"json": {"path": str(FOLDER), "name": "notes"}},
    "GET /memory/folders": {},
    "DELETE /memory/folders": {"params": {"name": "notes"}},
    "PUT /memory/items": {"json": {"path": ["users", "mira"], "key": "drink", "document": "{}", "text": "green tea"}},
    "PUT /memory/items/batch": {"json": {"items": [{"path": ["users", "mira"], "key": "food", "document": "{}"}]}},
    "POST /memory/items/search": {"json": {"path": ["users"], "query": "tea"}},
    "POST /memory/items/search/batch": {"json": {"queries": [{"path": ["users"], "query": "tea"}]}},
    "GET /memory/items/paths": {},
    "POST /memory/graph/decay": {"json": {"dryRun": True}},
    "GET /memory/contradictions": {},
    "GET /memory/held": {},
    "POST /memory/held/let-go": {"json": {"ids": [EXAMPLE_ID]}},
    "POST /memory/held/keep": {"json": {"everything": True}},
    "POST /memory/decay": {},
    "POST /memory/prune": {"json": {"dry_run": True}},
    "POST /memory/backfill": {"json": {"dry_run": True}},
    "POST /memory/purge": {"json": {"dry_run": True}},
    "POST /memory/doctor": {},
    "GET /memory/time-series": {},
    "GET /namespaces": {},
    "GET /system/shards": {},
    "POST /memory/move": {"json": {"shard": 0}},
    "GET /system/time-series": {},
    "GET /memory/decay/runs": {},
    "POST /memory/consolidate": {},
    "POST /memory/janitor": {},
    "GET /memory/janitor": {},
    "POST /memory/branches": {"json": {"days": 365}},
    "GET /memory/branches": {},
    "DELETE /memory/branches": {},
    "PATCH /memory/settings": {"json": {"set": {"hygiene.schedule": "manual"}}},
    "GET /memory/settings": {},
    "GET /memory/stats": {},
    "GET /memory/forecast": {},
    "GET /tasks/{id}": {},
    "DELETE /memory/facts/{id}": {},
    "GET /memory/forgotten": {},
    "POST /memory/facts/{id}/restore": {},
    "POST /memory/restore": {"json": {"ids": [EXAMPLE_ID]}},
    "POST /memory/contradictions/resolve": {"json": {"ids": [EXAMPLE_ID, EXAMPLE_OTHER_ID], "keep": EXAMPLE_OTHER_ID}},
    "DELETE /memory/links": {"params": {"source": EXAMPLE_ID, "target": EXAMPLE_OTHER_ID}},
    "DELETE /memory/graph/edges": {"params": {"from": "Mira", "to": "Leipzig", "type": "lives_in"}},
    "POST /memory/items/drop": {"json": {"path": ["users", "mira"], "key": "drink"}},
    "POST /memory/import": {"json": {"records": [ARCHIVED]}},
    "POST /memory/forget": {"json": {"ids": [EXAMPLE_ID]}},
    "GET /health/live": {},
    "GET /health/ready": {},
    "GET /health": {},
    "GET /sectors": {},
    "POST /memory/add": {"json": {"content": "Mira sails to Zanzibar", "tags": ["travel"], "user_id": USER}},
    "POST /memory/query": {"json": {"query": "Where does Mira sail?", "user_id": USER}},
    "GET /memory/all": {"params": {"user_id": USER}},
    "GET /memory/{id}": {},
    "PATCH /memory/{id}": {"json": {"content": "Mira sails to Palermo"}},
    "POST /memory/reinforce": {"json": {"boost": 0.2}},
    "DELETE /memory/{id}": {},
    "GET /users/{user_id}/memories": {},
    "GET /users/{user_id}/summary": {},
    "POST /users/{user_id}/summary/regenerate": {},
    "DELETE /users/{user_id}/memories": {},
}
"""For each route with a JSON answer a request, ordered so that each has data to return."""


@pytest.fixture(scope="module")
def api(live: LiveSystem) -> Iterator[httpx2.Client]:
    with serving(live, EBB_OPENMEMORY_API="1") as client:
        client.headers["X-Ebb-Namespace"] = "examples"
        yield client


@pytest.fixture(scope="module")
def actual(api: httpx2.Client) -> dict[str, Any]:
    return dict(answers(api))


def answers(api: httpx2.Client) -> Iterator[tuple[str, Any]]:
    """Send a request to every route, and yield the answers."""
    task, memory = "", ""
    for route, given in WALK.items():
        method, path = route.split()
        own = memory if path in ("/memory/{id}", "/memory/reinforce") else task if "tasks" in path else EXAMPLE_ID
        if path == "/memory/reinforce":
            given["json"]["id"] = own
        filled = path.replace("{id}", own).replace("{user_id}", USER)
        if path.startswith("/tasks"):
            task = api.post("/memory/decay?wait=false").json()["task"]
            filled = f"/tasks/{task}"
        answer = api.request(method, filled, **given)
        while route == "GET /tasks/{id}" and answer.json()["state"] != "waiting":  # a worker was faster
            answer = api.get(f"/tasks/{api.post('/memory/decay?wait=false').json()['task']}")
        assert answer.status_code in (200, 201), (route, answer.text)
        memory = answer.json()["id"] if path == "/memory/add" else memory
        yield route, answer.json()


def unlike(one: Any, other: Any) -> bool:
    """Return whether two values differ in fields or types; null matches any type."""
    if one is None or other is None:
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() != other.keys() or any(unlike(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return bool(one) and bool(other) and unlike(one[0], other[0])
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    return not numbers and type(one) is not type(other)


def test_each_route_documents_a_real_answer(api: httpx2.Client, actual: dict[str, Any]) -> None:
    document = api.get("/openapi.json").json()
    shown = {
        f"{method.upper()} {path}": content["application/json"]
        for path, operations in document["paths"].items()
        for method, operation in operations.items()
        if "application/json" in (content := operation["responses"]["200"]["content"])
    }
    assert shown.keys() == WALK.keys()
    for route, content in shown.items():
        schema = content["schema"] | {"components": document["components"]}
        faults = [fault.message for fault in Draft202012Validator(schema).iter_errors(content["example"])]
        assert faults == [], route
    assert [route for route in WALK if unlike(actual[route], shown[route]["example"])] == []


def test_the_contract_declares_every_field_of_answers(actual: dict[str, Any]) -> None:
    declared = {one.route.partition("?")[0]: one.answer for one in operations().values()}
    fields = {route: set(undeclared(declared[route].model_validate(actual[route]))) for route in declared}

    assert {route: unknown for route, unknown in fields.items() if unknown} == {}
