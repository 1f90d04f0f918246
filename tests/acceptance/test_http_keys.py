"""Keys over HTTP: their scopes, and that no route gives one namespace access to another."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx2
import psycopg
import pytest
from ebb.contract.reports import FACTS
from live_api import make_key, serving
from live_system import LiveSystem, eventually

from api.http import app
from api.http.callers import ALL_SCOPES, Caller
from api.http.dispatch import Session
from api.http.door import Door
from api.http.problems import RefusedError
from workers.coordination import key_ring
from workers.settings import Settings

pytestmark = pytest.mark.acceptance

OPEN = {"/openapi.json", "/docs", "/health/live", "/health/ready"} | {
    "/dashboard/static/{path:path}", "/dashboard/sign-in", "/dashboard/sign-out", "/dashboard/{path:path}",
    "/dashboard", "/dashboard/", "/help", "/help/{name:path}", "/help/images/{path:path}",
    "/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp",
}  # fmt: skip
"""Public routes, which show no memory."""

MARK = "zebra"
"""A word that occurs in every secret of the owner."""

ITEM = {"path": ["users"], "key": "drink", "document": "{{}}"}
WALK: dict[tuple[str, str], tuple[str, str, Any]] = {
    ("POST", "/memory/facts"): ("write", "/memory/facts", {"text": "A brook.", "supersedes": "{fact}"}),
    ("POST", "/memory/remember"): ("write", "/memory/remember", {"messages": ["A brook."], "session": "{fact}"}),
    ("GET", "/memory/facts"): ("read", "/memory/facts?limit=1000", None),
    ("GET", "/memory/facts/{id}"): ("read", "/memory/facts/{fact}", None),
    ("PATCH", "/memory/facts/{id}"): ("write", "/memory/facts/{fact}", {"tags": ["taken"]}),
    ("GET", "/memory/facts/{id}/curve"): ("read", "/memory/facts/{fact}/curve", None),
    ("GET", "/memory/facts/{id}/neighbours"): ("read", "/memory/facts/{fact}/neighbours", None),
    ("POST", "/memory/forget"): ("write", "/memory/forget", {"ids": ["{fact}"]}),
    ("DELETE", "/memory/facts/{id}"): ("write", "/memory/facts/{fact}?purge=true", None),
    ("POST", "/memory/facts/{id}/restore"): ("write", "/memory/facts/{gone}/restore", None),
    ("GET", "/memory/forgotten"): ("read", "/memory/forgotten?limit=1000", None),
    ("POST", "/memory/restore"): ("write", "/memory/restore", {"reason": "asked"}),
    ("POST", "/memory/facts/{id}/reinforce"): ("write", "/memory/facts/{fact}/reinforce", {"boost": 1}),
    ("POST", "/memory/used"): ("write", "/memory/used", {"ids": ["{fact}"]}),
    ("GET", "/memory/facts/{id}/history"): ("read", "/memory/facts/{fact}/history", None),
    ("POST", "/memory/facts/{id}/pin"): ("write", "/memory/facts/{fact}/pin", {}),
    ("DELETE", "/memory/facts/{id}/pin"): ("write", "/memory/facts/{pinned}/pin", None),
    # before the stranger's own questions, which the page shows
    ("GET", "/dashboard/contexts"): ("read", "/dashboard/contexts", None),
    ("POST", "/memory/recall"): ("read", "/memory/recall", {"query": "Where is the zebra?", "explain": True}),
    ("POST", "/memory/recall/batch"): (
        "read", "/memory/recall/batch", {"queries": [{"query": "Where is the zebra?", "explain": True}]},
    ),
    ("GET", "/memory/lookup"): ("read", "/memory/lookup?entity=zebra&key=name", None),
    ("GET", "/memory/timeline"): ("read", "/memory/timeline?entity=zebra&key=name", None),
    ("POST", "/memory/context"): ("read", "/memory/context", {"query": "Where is the zebra?", "explain": True}),
    ("POST", "/memory/links"): (
        "write", "/memory/links", {"source": "{fact}", "target": "{pinned}", "type": "RELATED_TO"},
    ),
    ("DELETE", "/memory/links"): ("write", "/memory/links?source={fact}&target={pinned}", None),
    ("GET", "/memory/relations"): ("read", "/memory/relations?entity=zebra", None),
    ("DELETE", "/memory/graph/edges"): ("write", "/memory/graph/edges?from=zebra&to=stable&type=in", None),
    ("GET", "/memory/graph/edges"): ("read", "/memory/graph/edges?entity=zebra", None),
    ("GET", "/dashboard/relations"): ("read", "/dashboard/relations?show=all", None),
    ("POST", "/memory/graph/edges"): ("write", "/memory/graph/edges", {"from": "zebra", "to": "stable", "type": "in"}),
    ("POST", "/memory/graph/decay"): ("admin", "/memory/graph/decay", {"dryRun": False}),
    ("POST", "/memory/decay"): ("admin", "/memory/decay", {"now": "2100-01-01", "force": True}),
    ("POST", "/memory/prune"): ("admin", "/memory/prune", {}),
    ("POST", "/memory/backfill"): ("admin", "/memory/backfill", {"prune": True}),
    ("POST", "/memory/purge"): ("admin", "/memory/purge", {}),
    ("POST", "/memory/doctor"): ("admin", "/memory/doctor", {"mend": True}),
    ("POST", "/memory/import"): ("write", "/memory/import", {"records": [{"own": {}}]}),
    ("GET", "/memory/documents"): ("read", "/memory/documents?name=notes", None),
    ("PUT", "/memory/documents"): (
        "write", "/memory/documents", {"path": "notes/boat.md", "chunks": [], "digest": "0" * 64},
    ),
    ("POST", "/memory/documents"): ("write", "/memory/documents", {"path": "notes/boat.md", "text": "A brook."}),
    ("POST", "/memory/documents/unindex"): ("write", "/memory/documents/unindex", {"paths": ["notes/boat.md"]}),
    ("GET", "/memory/folders"): ("read", "/memory/folders", None),
    ("PUT", "/memory/items"): ("write", "/memory/items", ITEM),
    ("PUT", "/memory/items/batch"): ("write", "/memory/items/batch", {"items": [ITEM]}),
    ("POST", "/memory/items/search"): ("read", "/memory/items/search", {"query": "zebra"}),
    ("POST", "/memory/items/search/batch"): (
        "read", "/memory/items/search/batch", {"queries": [{"query": "zebra"}, {"path": ["users"]}]},
    ),
    ("GET", "/memory/items/paths"): ("read", "/memory/items/paths", None),
    ("POST", "/memory/items/drop"): ("write", "/memory/items/drop", {"path": ["users"], "key": "drink"}),
    ("GET", "/memory/time-series"): ("read", "/memory/time-series", None),
    ("GET", "/memory/decay/runs"): ("read", "/memory/decay/runs?limit=1000", None),
    ("GET", "/memory/stats"): ("read", "/memory/stats", None),
    ("GET", "/memory/forecast"): ("read", "/memory/forecast?days=366&shown=100", None),
    ("GET", "/memory/contradictions"): ("read", "/memory/contradictions", None),
    ("GET", "/memory/held"): ("read", "/memory/held", None),
    ("POST", "/memory/held/let-go"): ("write", "/memory/held/let-go", {"everything": True}),
    ("POST", "/memory/held/keep"): ("write", "/memory/held/keep", {"everything": True}),
    ("POST", "/memory/contradictions/resolve"): (
        "write", "/memory/contradictions/resolve", {"ids": ["{one}"], "keep": "{two}"},
    ),
    ("POST", "/memory/consolidate"): ("admin", "/memory/consolidate", {"apply": True}),
    ("GET", "/memory/janitor"): ("read", "/memory/janitor", None),
    ("POST", "/memory/janitor"): ("admin", "/memory/janitor", None),
    ("GET", "/memory/branches"): ("read", "/memory/branches", None),
    ("POST", "/memory/branches"): ("admin", "/memory/branches", {"days": 365}),
    ("DELETE", "/memory/branches"): ("admin", "/memory/branches", None),
    ("POST", "/memory/move"): ("admin", "/memory/move", {"shard": 0}),
    ("GET", "/memory/settings"): ("read", "/memory/settings", None),
    ("PATCH", "/memory/settings"): ("admin", "/memory/settings", {"set": {"hygiene.schedule": "manual"}}),
    ("GET", "/tasks/{id}"): ("read", "/tasks/{task}", None),
    ("GET", "/"): ("read", "/?days=366", None),
    ("GET", "/dashboard/facts/{id}"): ("read", "/dashboard/facts/{fact}", None),
    ("GET", "/dashboard/facts"): ("read", "/dashboard/facts", None),
    ("GET", "/dashboard/timeline"): ("read", "/dashboard/timeline?entity=stable&key=name", None),
    ("GET", "/dashboard/recall"): ("read", "/dashboard/recall?query=stable&why={fact}", None),
    ("GET", "/dashboard/forecast"): ("read", "/dashboard/forecast?days=366", None),
    ("GET", "/dashboard/runs"): ("read", "/dashboard/runs", None),
    ("GET", "/dashboard/namespaces"): ("read", "/dashboard/namespaces?prefix=owner", None),
    ("POST", "/dashboard/namespaces"): ("read", "/dashboard/namespaces", {}),
    ("GET", "/dashboard/forgotten"): ("read", "/dashboard/forgotten", None),
    ("GET", "/dashboard/contradictions"): ("read", "/dashboard/contradictions", None),
    # last, since the stranger then has a fact of the same id
    ("POST", "/memory/facts/batch"): ("write", "/memory/facts/batch", {"facts": [{"text": "A", "id": "{fact}"}]}),
}  # fmt: skip
"""Each route's scope, and a request by which a stranger would try to reach the owner's memory."""


@dataclass(frozen=True)
class Owner:
    """The namespace that a stranger tries to reach, its ids and its key."""

    namespace: str
    key: dict[str, str]
    ids: dict[str, str]


SYSTEM = {
    ("GET", "/metrics"),
    ("GET", "/namespaces"),
    ("GET", "/system/shards"),
    ("GET", "/system/time-series"),
    ("POST", "/memory/folders"),
    ("DELETE", "/memory/folders"),
}
"""Routes that concern all namespaces and need a scope of their own."""


FORMS = {
    ("POST", "/dashboard/facts/{id}/{action}"), ("POST", "/dashboard/edit/{id}"),
    ("POST", "/dashboard/contradictions"), ("GET", "/dashboard/keys"), ("POST", "/dashboard/keys"),
    ("POST", "/dashboard/keys/{id}/{action}"),
}  # fmt: skip
"""Forms that also need a page's token, and the page of keys a second scope; tested with the dashboard."""

TOOLS = {("POST", "/mcp")}
"""MCP tools, which are tested with a stranger's key to each in the tests of MCP."""


def routes() -> Iterator[tuple[str, str]]:
    """Yield the method and path of each route, including undocumented ones."""
    for route in app.routes:
        included = getattr(route, "original_router", None)
        for own in [route] if included is None else included.routes:
            for method in sorted(getattr(own, "methods", None) or {"ANY"}):
                yield method, own.path


def secret(route: tuple[str, str]) -> bool:
    return route[1] not in OPEN


@pytest.fixture(scope="module")
def served(live: LiveSystem) -> Iterator[httpx2.Client]:
    with serving(live) as client:
        yield client


@pytest.fixture(scope="module")
def owner(live: LiveSystem, served: httpx2.Client) -> Owner:
    """Return an owner with memory of every kind."""
    name = f"owner-{uuid4()}"
    key = make_key(live, name, "read", "write", "admin")

    def post(path: str, body: Any = None, **query: str) -> Any:
        answer = served.post(path, json=body, headers=key, params=query)
        assert answer.is_success, answer.text
        return answer.json()

    texts = {"fact": "The zebra is in the stable.", "pinned": "The zebra eats hay.", "gone": "The zebra is ill."}
    ids = {place: post("/memory/facts", {"text": text})["id"] for place, text in texts.items()}
    about = {"entity": "zebra", "key": "name"}
    ids |= {
        place: post("/memory/facts", {"text": f"The zebra's name is {value}.", "value": value, **about})["id"]
        for place, value in {"one": "Zoe", "two": "Zed"}.items()
    }
    post(f"/memory/facts/{ids['pinned']}/pin")
    served.delete(f"/memory/facts/{ids['gone']}", headers=key).raise_for_status()
    post("/memory/links", {"source": ids["fact"], "target": ids["pinned"], "type": "RELATED_TO"})
    post("/memory/graph/edges", {"from": "zebra", "to": "meadow", "type": "lives_on"})
    post("/memory/decay", {"now": "2030-01-01", "dry_run": True})
    ids["task"] = post("/memory/facts", {"text": "The zebra sleeps."}, wait="false")["task"]
    eventually(lambda: served.get(f"/tasks/{ids['task']}", headers=key).json()["state"] == "done", "it is stored")
    live.settle()
    return Owner(name, key, ids)


@pytest.fixture(scope="module")
def stranger(live: LiveSystem) -> dict[str, str]:
    """Return a key with all scopes of another namespace."""
    return make_key(live, f"stranger-{uuid4()}", "read", "write", "admin")


def filled(value: Any, ids: dict[str, str]) -> Any:
    """Return a path or body with the owner's ids filled in."""
    if isinstance(value, dict):
        return {name: filled(one, ids) for name, one in value.items()}
    if isinstance(value, list):
        return [filled(one, ids) for one in value]
    return value.format(**ids) if isinstance(value, str) else value


def call(served: httpx2.Client, route: tuple[str, str], owner: Owner, headers: dict[str, str]) -> httpx2.Response:
    _, path, body = WALK[route]
    return served.request(route[0], filled(path, owner.ids), json=filled(body, owner.ids), headers=headers)


def state(live: LiveSystem, namespace: str) -> list[tuple[Any, ...]]:
    """Return all table rows of a namespace's memory."""
    tables = ("facts", "activity", "events", "links", "relations", "contradictions", "forgotten_hashes")
    return [
        row
        for table in tables
        for row in live.rows(
            f"select row_::text from {table} as row_ join namespaces on namespaces.id = row_.namespace "
            "where name = %s order by 1",
            [namespace],
        )
    ]


def test_the_walk_knows_every_route() -> None:
    """A new route must be added to the walk, with an attempt to reach another namespace."""
    assert {route for route in routes() if secret(route)} == set(WALK) | SYSTEM | TOOLS | FORMS


def test_the_owner_has_access_to_everything(served: httpx2.Client, owner: Owner) -> None:
    for route, (_, path, _) in WALK.items():
        if route[0] == "GET":
            answer = served.get(filled(path, owner.ids), headers=owner.key)
            assert answer.status_code == 200, (route, answer.text)
    assert MARK in served.get(filled("/memory/facts/{fact}", owner.ids), headers=owner.key).text


def test_no_route_gives_a_stranger_access(
    live: LiveSystem, served: httpx2.Client, owner: Owner, stranger: dict[str, str]
) -> None:
    before = state(live, owner.namespace)
    assert len(before) > 10
    for route in WALK:
        answer = call(served, route, owner, stranger)
        assert answer.status_code < 500, (route, answer.text)
        said = answer.text.replace(str(answer.request.url.path), "")
        if route != ("POST", "/memory/graph/edges"):
            assert MARK not in said.lower(), route
    live.settle()
    assert state(live, owner.namespace) == before
    assert served.get("/memory/stats", headers=stranger).json()["facts"] <= 3
    counted = served.get("/memory/decay/runs", headers=stranger).json()["runs"]
    assert all(run["processed"] is None or run["namespace"].startswith("stranger") for run in counted)


def test_no_route_answers_without_a_valid_key(served: httpx2.Client, owner: Owner) -> None:
    for headers in ({}, {"x-api-key": "ebb_none"}, {"authorization": "Bearer ebb_none"}):
        for route in WALK:
            answer = call(served, route, owner, headers)
            assert answer.status_code == 401, route
            assert answer.headers["www-authenticate"].startswith("Bearer")
        for method, path in SYSTEM | TOOLS:
            assert served.request(method, path, headers=headers).status_code == 401, path


def test_no_route_lets_a_key_name_another_namespace(
    served: httpx2.Client, owner: Owner, stranger: dict[str, str]
) -> None:
    for route in WALK:
        answer = call(served, route, owner, stranger | {"X-Ebb-Namespace": owner.namespace})
        assert answer.status_code == 403, route


@pytest.mark.parametrize("scope", ["read", "write", "admin"])
def test_a_key_opens_the_routes_of_its_scope_alone(
    live: LiveSystem, served: httpx2.Client, owner: Owner, scope: str
) -> None:
    key = make_key(live, f"scoped-{uuid4()}", scope)
    for route, (needed, _, _) in WALK.items():
        status = call(served, route, owner, key).status_code
        assert (status == 403) == (needed != scope or "purge=" in WALK[route][1]), route


def test_routes_on_all_namespaces_need_a_scope_of_their_own(
    live: LiveSystem, served: httpx2.Client, stranger: dict[str, str]
) -> None:
    system = make_key(live, f"system-{uuid4()}", "read", "admin", "system")
    dry = {"dry_run": True}
    for key, status in ((stranger, 403), (system, 200)):
        for path in [path for method, path in SYSTEM if method == "GET"]:
            assert served.get(path, headers=key).status_code == status
        assert served.post("/memory/prune", json=dry | {"everywhere": True}, headers=key).status_code == status
        assert served.get("/memory/decay/runs?everywhere=true", headers=key).status_code == status
        assert served.post("/memory/decay?everywhere=true", json=dry, headers=key).status_code == status


def test_a_key_for_all_namespaces_works_in_the_one_that_is_named(
    live: LiveSystem, served: httpx2.Client, owner: Owner, stranger: dict[str, str]
) -> None:
    every, there = make_key(live, f"every-{uuid4()}", "read", "system"), {"x-ebb-namespace": owner.namespace}
    path = f"/memory/facts/{owner.ids['fact']}"
    assert served.get(path, headers=every).status_code == 404
    assert served.get(path, headers=every | there).json()["namespace"] == owner.namespace
    assert served.post("/memory/facts", json={"text": "A brook."}, headers=every | there).status_code == 403
    assert served.get(path, headers=every | {"x-ebb-namespace": "a b"}).status_code == 422
    twice = [*every.items(), *there.items(), ("x-ebb-namespace", "other")]
    assert "comes twice" in served.get(path, headers=twice).json()["detail"]
    refused = served.get(path, headers=stranger | there)
    assert (refused.status_code, MARK in refused.text) == (403, False)


@pytest.mark.parametrize("other", ["other", None])
def test_a_request_calls_no_task_for_another_namespace(live: LiveSystem, other: str | None) -> None:
    door = Door(Settings(redis_url=live.redis_url))
    session = Session(door, Caller("mine", ALL_SCOPES), timeout=None)
    with pytest.raises(RefusedError, match="for the namespace 'mine' only"):
        session.edit(str(uuid4()), tags=["taken"], namespace=other)
    with pytest.raises(RefusedError):
        session.perform(FACTS, {"namespace": other})
    door.close()


def test_items_that_a_key_reads_are_used_only_if_it_may_write(
    live: LiveSystem, served: httpx2.Client, namespace: str
) -> None:
    reader, writer = make_key(live, namespace, "read"), make_key(live, namespace, "read", "write")
    item = {"path": ["users"], "key": "drink", "document": "{}", "ttl": 60}
    served.put("/memory/items", json=item, headers=writer).raise_for_status()
    uses = "select recall_count from activity where namespace = (select id from namespaces where name = %s)"

    def used(key: dict[str, str]) -> int:
        one = {"path": ["users"]}
        for path, body in (("search", one | {"refresh": True}), ("search", one), ("search/batch", {"queries": [one]})):
            answer = served.post(f"/memory/items/{path}", json=body, headers=key)
            assert "drink" in answer.text
        live.settle()
        ((count,),) = live.rows(uses, [namespace])
        return int(count)

    assert used(reader) == 0
    assert used(writer) > 0


def test_settings_in_an_archive_need_the_scope_admin(live: LiveSystem, served: httpx2.Client, namespace: str) -> None:
    own = {"salt": str(uuid4()), "settings": {"lifetimes": "documented"}}
    records = {"records": [{"namespace": namespace, "own": own}]}
    writer, admin = make_key(live, namespace, "read", "write"), make_key(live, namespace, "read", "write", "admin")
    assert served.post("/memory/import", json=records, headers=writer).status_code == 403
    assert served.get("/memory/settings", headers=writer).json()["own"] == {}
    assert served.post("/memory/import", json=records, headers=admin).json() == {"results": [{"action": "settled"}]}
    assert served.get("/memory/settings", headers=writer).json()["own"] == {"lifetimes": "documented"}


def test_only_a_key_that_may_write_registers_folders_in_a_namespace(
    live: LiveSystem, served: httpx2.Client, owner: Owner
) -> None:
    there = {"x-ebb-namespace": owner.namespace}
    for scopes, status in ((("read", "system"), 403), (("write", "system"), 422)):
        key = make_key(live, f"every-{uuid4()}", *scopes)
        answer = served.post("/memory/folders", json={"path": "/elsewhere"}, headers=key | there)
        assert answer.status_code == status, answer.text
    reader = make_key(live, f"every-{uuid4()}", "read", "system")
    assert served.delete("/memory/folders?name=notes", headers=reader | there).status_code == 403


def test_a_bearer_token_is_accepted_and_a_revoked_key_is_refused_at_once(
    live: LiveSystem, served: httpx2.Client, namespace: str
) -> None:
    made = live.ebb_json("keys", "create", "--namespace", namespace, "--label", "Mira's laptop")
    bearer = {"authorization": f"Bearer {made['key']}"}
    assert served.get("/memory/stats", headers=bearer).status_code == 200
    assert live.ebb_json("keys", "revoke", made["id"], "--namespace", namespace)["action"] == "revoked"
    assert served.get("/memory/stats", headers=bearer).status_code == 401
    (listed,) = live.ebb_json("keys", "list", "--namespace", namespace)["keys"]
    assert (listed["label"], listed["scopes"]) == ("Mira's laptop", ["read", "write"])
    assert listed["revoked_at"]
    assert live.ebb("keys", "revoke", str(uuid4()), "--namespace", namespace).returncode == 1
    assert live.ebb("keys", "list", "--namespace", f"{namespace}-2").stdout == f"No key opens '{namespace}-2'.\n"


def test_a_label_is_as_long_at_the_command_line_as_in_the_dashboard(live: LiveSystem, namespace: str) -> None:
    label = "x" * key_ring.LONGEST_LABEL
    for more in (1, 2_000):
        refused = live.ebb("keys", "create", "--namespace", namespace, "--label", label + "x" * more)
        said = f"label: has {256 + more} characters, more than the limit of 256."
        assert (refused.returncode, said in " ".join(refused.stderr.split())) == (1, True), refused.stderr
    live.ebb_json("keys", "create", "--namespace", namespace, "--label", label)
    assert [one["label"] for one in live.ebb_json("keys", "list", "--namespace", namespace)["keys"]] == [label]


def test_a_label_of_several_lines_is_listed_on_one(live: LiveSystem, namespace: str) -> None:
    live.ebb_json("keys", "create", "--namespace", namespace, "--label", "mine\nanother read")
    (line,) = live.ebb("keys", "list", "--namespace", namespace).stdout.splitlines()
    assert "mine another read" in line


def test_the_list_of_keys_says_to_the_minute_when_one_expires(live: LiveSystem, namespace: str) -> None:
    live.ebb("keys", "create", "--namespace", namespace, "--expires", "2099-05-01T12:30:00+02:00")
    assert live.ebb("keys", "list", "--namespace", namespace).stdout.endswith(" until 2099-05-01T10:30Z\n")


def test_the_key_itself_is_not_kept(live: LiveSystem, namespace: str) -> None:
    key = make_key(live, namespace, "read")["x-api-key"]
    rows = live.rows("select api_keys::text from api_keys")
    assert rows
    assert not any(key in row for (row,) in rows)
    ring = live.own_keys.hgetall("ebb:keys")
    assert not any(key.encode() in one for pair in ring.items() for one in pair)


def test_a_redis_that_lost_the_keys_gives_no_access_and_gets_them_back(
    live: LiveSystem, served: httpx2.Client, owner: Owner
) -> None:
    live.own_keys.delete("ebb:keys")
    assert served.get("/memory/stats").status_code == 401
    assert served.get("/memory/stats", headers=owner.key).status_code == 200


def test_no_cache_keeps_what_a_key_was_answered(served: httpx2.Client, owner: Owner) -> None:
    for path in ("/memory/facts", f"/memory/facts/{owner.ids['fact']}", "/memory/facts/unknown", "/dashboard/facts"):
        assert served.get(path, headers=owner.key).headers.get_list("cache-control") == ["no-store"]
    assert "cache-control" not in served.get("/openapi.json").headers


def test_reading_with_a_read_only_key_does_not_count_as_use(
    live: LiveSystem, served: httpx2.Client, owner: Owner
) -> None:
    reader = make_key(live, owner.namespace, "read")
    before = state(live, owner.namespace)
    ask = {"query": "Where is the zebra?"}
    assert served.post("/memory/recall", json=ask, headers=reader).json()["results"]
    assert served.post("/memory/recall", json=ask | {"touch": True}, headers=reader).status_code == 403
    live.settle()
    assert state(live, owner.namespace) == before


def test_what_was_forgotten_on_request_is_shown_only_to_keys_that_may_restore_it(
    live: LiveSystem, served: httpx2.Client, owner: Owner
) -> None:
    reader = make_key(live, owner.namespace, "read")
    gone = served.post("/memory/facts", json={"text": "The zebra bites."}, headers=owner.key).json()["id"]
    served.delete(f"/memory/facts/{gone}", headers=owner.key).raise_for_status()
    read = {"method": "resources/read", "params": {"uri": f"ebb://fact/{gone}"}}
    history = {"method": "tools/call", "params": {"name": "history", "arguments": {"id": gone}}}
    forgotten = {"method": "tools/call", "params": {"name": "forgotten", "arguments": {}}}

    def doors(key: dict[str, str]) -> Iterator[str]:
        for path in (f"/memory/facts/{gone}/history", f"/dashboard/facts/{gone}", "/memory/forgotten?limit=1000"):
            yield served.get(path, headers=key).text
        for message in (read, history, forgotten):
            body = {"jsonrpc": "2.0", "id": 1, **message}
            yield served.post("/mcp", json=body, headers=key | {"accept": "application/json"}).text

    assert all("zebra bites" in shown for shown in doors(owner.key))
    assert not any("zebra bites" in shown for shown in doors(reader))
    assert served.get(f"/memory/facts/{gone}/history", headers=reader).status_code == 403

    asked = {"query": "Does the zebra bite?", "explain": True}
    explained = {
        "/memory/recall": asked,
        "/memory/context": asked,
        "/memory/recall/batch": {"queries": [asked]},
    }
    for path, body in explained.items():
        assert gone in served.post(path, json=body, headers=owner.key).text
        assert gone not in served.post(path, json=body, headers=reader).raise_for_status().text
    assert served.post("/memory/recall", json=asked | {"why": gone}, headers=owner.key).status_code == 200
    assert served.post("/memory/recall", json=asked | {"why": gone}, headers=reader).status_code == 403


@pytest.mark.slow
def test_the_result_of_a_late_question_shows_no_more_than_its_answer_would(
    live: LiveSystem, served: httpx2.Client, owner: Owner
) -> None:
    reader = make_key(live, owner.namespace, "read")
    gone = served.post("/memory/facts", json={"text": "The zebra bites."}, headers=owner.key).json()["id"]
    served.delete(f"/memory/facts/{gone}", headers=owner.key).raise_for_status()
    asked = {"query": "Does the zebra bite?", "explain": True}
    late = {"/memory/recall": asked, "/memory/recall/batch": {"queries": [asked]}, "/memory/context": asked}
    tasks = [_late(live, served, path, reader, body) for path, body in late.items()]
    history = _late(live, served, f"/memory/facts/{gone}/history", reader)
    for task in (*tasks, history, _late(live, served, "/memory/forgotten", owner.key)):
        assert gone in served.get(task, headers=owner.key).raise_for_status().text
        assert gone not in served.get(task, headers=reader).text


def test_the_task_that_forgot_a_subject_shows_no_text_to_a_key_that_may_not_restore_it(
    live: LiveSystem, served: httpx2.Client, owner: Owner
) -> None:
    fact = {"text": "The okapi hides.", "tags": ["okapi"]}
    served.post("/memory/facts", json=fact, headers=owner.key).raise_for_status()
    wish = {"tag": "okapi", "dry_run": False}
    accepted = served.post("/memory/forget", params={"wait": False}, json=wish, headers=owner.key).raise_for_status()
    task = f"/tasks/{accepted.json()['task']}"
    eventually(lambda: served.get(task, headers=owner.key).json()["state"] == "done", "it is forgotten")
    assert fact["text"] in served.get(task, headers=owner.key).text
    shown = served.get(task, headers=make_key(live, owner.namespace, "read")).raise_for_status()
    assert fact["text"] not in shown.text
    assert shown.json()["result"]["done"] == 1


def _late(live: LiveSystem, served: httpx2.Client, path: str, key: dict[str, str], body: Any = None) -> str:
    """Return the address of the task of a request that was answered too late, once it is done."""
    with psycopg.connect(live.database_url) as db:
        db.execute("lock table facts")
        method = "GET" if body is None else "POST"
        answer = served.request(method, path, params={"timeout": 1.5}, json=body, headers=key)
        db.rollback()
    assert answer.status_code == 504
    task = f"/tasks/{answer.json()['task']}"
    eventually(lambda: '"late"' not in served.get(task, headers=key).text, "the task is done")
    return task


def test_a_key_that_may_not_read_is_shown_no_text_of_what_it_would_forget_or_merge(
    live: LiveSystem, served: httpx2.Client, owner: Owner
) -> None:
    writer, own = make_key(live, owner.namespace, "write", "admin"), owner.key
    for text in ("The zebra drinks from the long brook.", "The zebra drinks from the long brook!"):
        served.post("/memory/facts", json={"text": text}, headers=own).raise_for_status()
    forget = {"query": "zebra", "dry_run": True}
    for path, body in {"/memory/forget": forget, "/memory/consolidate": {}}.items():
        for more in ({}, {"Idempotency-Key": f"{uuid4()}"}):
            shown, hidden = (served.post(path, json=body, headers=key | more).json() for key in (own, writer))
            assert MARK in str(shown)
            assert MARK not in str(hidden)
            assert str(shown).count("'id'") == str(hidden).count("'id'")


@pytest.mark.parametrize("form", ["list", "text"])
def test_a_question_to_several_namespaces_needs_a_key_that_opens_each(
    live: LiveSystem, served: httpx2.Client, owner: Owner, stranger: dict[str, str], form: str
) -> None:
    every = make_key(live, f"every-{uuid4()}", "read", "write", "admin", "system")
    crossing = served.post("/memory/facts", json={"text": "A zebra crossing."}, headers=stranger).json()
    name = live.rows(
        "select name from namespaces join facts on namespace = namespaces.id where facts.id = %s", [crossing["id"]]
    )
    both = [owner.namespace, name[0][0]]
    asked = {"query": "Where is the zebra?", "namespaces": both if form == "list" else ",".join(both)}
    paths = {"/memory/recall": asked, "/memory/context": asked, "/memory/recall/batch": {"queries": [asked]}}
    for path, body in paths.items():
        for key in (stranger, owner.key):
            refused = served.post(path, json=body, headers=key)
            assert refused.status_code == 403
            assert MARK not in refused.text
    found = served.post("/memory/recall", json=asked, headers=every).json()["results"]
    assert {one["namespace"] for one in found} == set(both)
    (answer,) = served.post("/memory/recall/batch", json={"queries": [asked]}, headers=every).json()["answers"]
    assert {one["namespace"] for one in answer["results"]} == set(both)
    missing = served.post("/memory/recall", json=asked | {"namespaces": [*both, "nobody"]}, headers=every)
    assert missing.status_code == 404
    assert "nobody" in missing.text
    own = asked | {"namespaces": both[1:] if form == "list" else both[1]}
    mine = served.post("/memory/recall", json=own, headers=stranger).json()
    (among_many,) = served.post("/memory/recall/batch", json={"queries": [own]}, headers=stranger).json()["answers"]
    assert {one["namespace"] for one in mine["results"]} == {one["namespace"] for one in among_many["results"]}
    assert {one["namespace"] for one in mine["results"]} == {both[1]}


def test_what_several_namespaces_answered_is_strengthened_in_each(live: LiveSystem, served: httpx2.Client) -> None:
    every = make_key(live, f"every-{uuid4()}", "read", "write", "admin", "system")
    names, ids = [f"one-{uuid4()}", f"two-{uuid4()}"], []
    for name in names:
        key = make_key(live, name, "read", "write")
        ids.append(served.post("/memory/facts", json={"text": f"The otter of {name}"}, headers=key).json()["id"])
    served.post("/memory/recall", json={"query": "otter", "namespaces": names}, headers=every).raise_for_status()
    live.settle()
    assert live.rows("select recall_count from activity where fact = any(%s::uuid[])", [ids]) == [(1,), (1,)]
