"""Forgotten facts can be restored through every interface, for any reason and at any time, on real workers."""

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import anyio
import httpx2
import pytest
from live_api import make_key, serving
from live_system import LiveSystem
from mcp import Client as McpClient
from mcp.client.streamable_http import streamable_http_client

from api.client import Client

pytestmark = pytest.mark.acceptance

TEXTS = [f"Note {number} says where the spare key hangs." for number in range(30)]
YEARS_LATER = "2100-01-01T00:00:00Z"

SUPERSEDED = """
    select facts.id from facts join namespaces on namespaces.id = facts.namespace
    where name = %s and superseded_at is not null
"""


@pytest.fixture(scope="module")
def api(live: LiveSystem) -> Iterator[httpx2.Client]:
    with serving(live) as client:
        yield client


@pytest.fixture
def client(live: LiveSystem, namespace: str) -> Iterator[Client]:
    with live.client(namespace) as client:
        client.store_many([{"text": text, "decay_class": "stable"} for text in TEXTS])
        yield client


def texts(client: Client) -> list[str]:
    return sorted(fact["text"] for fact in client.facts(1_000)["facts"])


def test_facts_forgotten_by_a_pass_in_the_future_are_restored_by_time_and_by_an_earlier_export(
    live: LiveSystem, client: Client, tmp_path: Path
) -> None:
    own = ("--namespace", client.namespace)
    before = live.rows("select now()")[0][0].isoformat()
    backup = tmp_path / "backup.jsonl"
    assert live.ebb("export", str(backup), *own).returncode == 0
    client.decay(now=YEARS_LATER, force=True, everywhere=False)
    assert texts(client) == []
    found = live.ebb_json("forgotten", "--since", before, "--limit", "10", *own)
    assert len(found["facts"]) == 10
    (run,) = {one["run"] for one in found["facts"]}
    shown = live.ebb("forgotten", "--since", before, "--limit", "10", *own).stdout
    assert [one["id"] for one in found["facts"] if one["id"] not in shown] == []
    assert f"10 of these by one run: ebb restore -n {client.namespace} --run {run}" in shown
    assert live.ebb("restore", "--since", before, *own).returncode == 2
    assert live.ebb_json("restore", "--since", before, "--dry-run", *own) == {"matching": 30}
    assert live.ebb_json("restore", "--since", before, "--yes", *own) == {
        "restored": 30, "pinned": 0, "unchanged": 0, "refused": 0, "errors": [],
    }  # fmt: skip
    assert texts(client) == sorted(TEXTS)
    client.decay(now=YEARS_LATER, force=True, everywhere=False)
    assert live.ebb_json("import", str(backup), *own)["restored"] == 30
    assert texts(client) == sorted(TEXTS)


def test_import_again_restores_facts_forgotten_on_request(live: LiveSystem, client: Client, tmp_path: Path) -> None:
    own, backup = ("--namespace", client.namespace), tmp_path / "backup.jsonl"
    assert live.ebb("export", str(backup), *own).returncode == 0
    client.forget([fact["id"] for fact in client.facts(5)["facts"]])
    assert live.ebb_json("import", str(backup), *own)["forgotten"] == 5
    assert len(texts(client)) == 25
    assert live.ebb_json("import", str(backup), "--again", *own)["restored"] == 5
    assert texts(client) == sorted(TEXTS)


def test_import_again_leaves_superseded_facts_as_they_were(live: LiveSystem, client: Client, tmp_path: Path) -> None:
    backup, others = tmp_path / "backup.jsonl", f"{client.namespace}-again"
    old = client.store("Ana lives in Rome.")["id"]
    client.store("Ana lives in Bonn.", supersedes=old)
    assert live.ebb("export", str(backup), "--namespace", client.namespace).returncode == 0
    with live.client(others) as copy:
        for namespace, own, count in [(client.namespace, client, {}), (others, copy, {"kept": 1}), (others, copy, {})]:
            done = live.ebb_json("import", str(backup), "--again", "--namespace", namespace)
            assert (done["rejected"], done["errors"], done["restored"]) == (0, [], 0)
            assert done["kept"] == count.get("kept", 0)
            assert texts(own) == sorted([*TEXTS, "Ana lives in Bonn."])
            assert live.rows(SUPERSEDED, [namespace]) == [(UUID(old),)]


def test_a_selection_is_restored_over_http_and_by_a_tool(client: Client, api: httpx2.Client) -> None:
    headers = {"X-Ebb-Namespace": client.namespace}
    asked = client.facts(1)["facts"][0]["id"]
    client.forget([asked])
    client.decay(now=YEARS_LATER, force=True, everywhere=False)
    found = api.get("/memory/forgotten", params={"reason": "asked"}, headers=headers).json()["facts"]
    assert [one["id"] for one in found] == [asked]
    run = api.get("/memory/forgotten", params={"limit": 1}, headers=headers).json()["facts"][0]["run"]
    assert api.post("/memory/restore", json={"run": run, "dry_run": True}, headers=headers).json()["matching"] == 29
    assert api.post("/memory/restore", json={"run": run}, headers=headers).json()["restored"] == 29
    assert api.post("/memory/restore", json={}, headers=headers).status_code == 422

    async def by_tool() -> tuple[object, object]:
        async with (
            httpx2.AsyncClient(timeout=None, headers=headers) as http,
            McpClient(streamable_http_client(f"{api.base_url}/mcp", http_client=http)) as tools,
        ):
            listed = await tools.call_tool("forgotten", {"reason": "asked"})
            done = await tools.call_tool("restore", {"reason": "asked"})
            return listed.content[0], done.content[0]

    listed, done = anyio.run(by_tool)
    assert asked in str(listed)
    assert '"restored":1' in str(done)
    assert texts(client) == sorted(TEXTS)


def test_a_superseded_fact_is_reopened_by_its_id(live: LiveSystem, client: Client) -> None:
    city = {"entity": "Ana", "key": "city"}
    old = client.store("Ana lives in Rome.", value="Rome", **city)["id"]
    new = client.store("Ana lives in Bonn.", value="Bonn", supersedes=old, **city)["id"]
    assert live.ebb("restore", old, "--namespace", client.namespace).returncode == 0
    (pair,) = client.contradictions()["contradictions"]
    assert {fact["id"] for fact in pair["facts"]} == {old, new}


def test_what_is_forgotten_by_ids_has_a_run_by_which_all_of_it_is_restored(live: LiveSystem, client: Client) -> None:
    gone, own = [one["id"] for one in client.facts(3)["facts"]], ("--namespace", client.namespace)
    run = client.forget(gone[:2])["run"]
    client.forget(gone[2:])
    listed = live.ebb("forgotten", *own).stdout
    assert [line for line in listed.splitlines() if "by one run" in line] == [
        f"2 of these by one run: ebb restore -n {client.namespace} --run {run} --reason asked"
    ]
    assert live.ebb_json("restore", "--run", run, "--reason", "asked", "--yes", *own)["restored"] == 2
    assert {one["id"] for one in client.forgotten()["facts"]} == {gone[2]}


def test_a_restore_of_many_that_is_delivered_twice_restores_each_once(live: LiveSystem, client: Client) -> None:
    client.decay(now=YEARS_LATER, force=True, everywhere=False)
    live.delivered("memory.restore", {"namespace": client.namespace, "since": "2020-01-01"}, 2)
    assert texts(client) == sorted(TEXTS)
    events = "select count(*) from events join namespaces on id = namespace where what = 'restored' and name = %s"
    assert live.rows(events.replace("on id", "on namespaces.id"), [client.namespace]) == [(30,)]


def test_a_read_only_key_does_not_see_facts_forgotten_on_request(
    live: LiveSystem, client: Client, api: httpx2.Client
) -> None:
    secret, ended = client.facts(2)["facts"]
    client.forget([secret["id"]])
    live.rows("update facts set forgotten_at = now(), forgotten_reason = 'faded' where id = %s", [ended["id"]])
    reader = make_key(live, client.namespace, "read")
    writer = make_key(live, client.namespace, "read", "write")
    shown = [one["id"] for one in api.get("/memory/forgotten", headers=reader).json()["facts"]]
    assert shown == [ended["id"]]
    assert api.get("/memory/forgotten", params={"reason": "asked"}, headers=reader).status_code == 422
    assert api.post("/memory/restore", json={"since": "2020-01-01"}, headers=reader).status_code == 403
    assert len(api.get("/memory/forgotten", headers=writer).json()["facts"]) == 2
