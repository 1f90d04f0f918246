"""Listings over HTTP are paged, each row once; settings of a namespace need keys with their scopes."""

from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from live_api import make_key, serving
from live_system import LiveSystem

pytestmark = pytest.mark.acceptance

FACTS = 7
TURNED = {
    "/memory/facts": "facts",
    "/memory/lookup?entity=ana": "results",
    "/memory/timeline?entity=ana&key=city": "statements",
    "/memory/contradictions": "contradictions",
    "/memory/facts/{id}/history": "events",
}


@pytest.fixture(scope="module")
def served(live: LiveSystem) -> Iterator[httpx2.Client]:
    with serving(live) as client:
        yield client


@pytest.fixture
def api(served: httpx2.Client, namespace: str) -> httpx2.Client:
    served.headers["X-Ebb-Namespace"] = namespace
    return served


def filled(api: httpx2.Client) -> str:
    """Fill a namespace; return the id of a fact with a history."""
    towns = [{"text": f"Ana lives in town {n}.", "entity": "Ana", "key": "city", "value": f"{n}"} for n in range(FACTS)]
    done = api.post("/memory/facts/batch", json={"facts": towns}).json()["results"]
    one, *others = [fact["id"] for fact in done]
    for other in others:
        api.post("/memory/links", json={"source": one, "target": other, "type": "RELATED_TO"}).raise_for_status()
        edge = {"from": "Ana & Co", "to": f"town {other}", "type": "lives in?"}
        api.post("/memory/graph/edges", json=edge).raise_for_status()
    return str(one)


def problem(answer: httpx2.Response, status: int) -> str:
    assert answer.status_code == status, answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    return str(answer.json()["detail"])


def whole(api: httpx2.Client, path: str, name: str) -> list[Any]:
    answer = api.get(path).json()
    assert answer["next"] is None
    return list(answer[name])


def test_each_listing_is_paged(api: httpx2.Client) -> None:
    id_ = filled(api)
    for template, name in TURNED.items():
        path = template.format(id=id_)
        rows, cursor, pages = [], None, 0
        while cursor or not pages:
            answer = api.get(asking(path, limit=3, cursor=cursor)).json()
            assert 0 < len(answer[name]) <= 3, path
            rows, cursor, pages = rows + answer[name], answer["next"], pages + 1
        everything = whole(api, path, name)
        assert len(everything) >= FACTS
        assert [_key(row) for row in rows] == [_key(row) for row in everything], path
        assert "`next`" in problem(api.get(asking(path, cursor="nonsense")), 422)


def asking(path: str, **given: Any) -> httpx2.URL:
    """Return a URL with additional query parameters."""
    return httpx2.URL(path).copy_merge_params({name: value for name, value in given.items() if value is not None})


def _key(row: dict[str, Any]) -> Any:
    return row.get("id") or row.get("facts") or row


def test_relations_have_the_next_cursor_in_a_header(api: httpx2.Client) -> None:
    filled(api)
    everything, rows = api.get("/memory/graph/edges"), []
    assert "next" not in everything.links
    address, seen = "/memory/graph/edges?limit=4&entity=ana%20%26%20co", 0
    while address:
        answer = api.get(address)
        rows += answer.json()
        address, seen = answer.links.get("next", {}).get("url", ""), seen + 1
    assert (seen, rows) == (2, everything.json())
    assert "`next`" in problem(api.get("/memory/graph/edges?cursor=AAAA"), 422)


def test_a_cursor_of_one_listing_is_refused_by_another(api: httpx2.Client) -> None:
    filled(api)
    cursor = api.get("/memory/facts?limit=1").json()["next"]
    problem(api.get("/memory/contradictions", params={"cursor": cursor}), 422)


def test_settings_of_a_namespace_are_read_set_and_unset(api: httpx2.Client) -> None:
    before = api.get("/memory/settings").json()
    assert (before["own"], before["changed"]) == ({}, False)
    half_life = "hygiene.confidenceDecay.halfLife"
    done = api.patch("/memory/settings", json={"set": {half_life: 60}}).json()
    assert done["own"] == {"hygiene": {"confidenceDecay": {"halfLife": 60}}}
    assert api.get("/memory/settings").json() == done | {"changed": False}
    assert problem(api.patch("/memory/settings", json={"set": {half_life: 0}}), 422) == (
        f"{half_life} must be > 0, got 0."
    )
    assert "known are hygiene" in problem(api.patch("/memory/settings", json={"unset": ["nonsense"]}), 422)
    problem(api.patch("/memory/settings", json={"sets": {}}), 422)
    assert api.patch("/memory/settings", json={"unset": [half_life]}).json()["settings"] == before["settings"]
    waiting = api.patch("/memory/settings?wait=false", json={"set": {"hygiene.schedule": "manual"}})
    assert waiting.status_code == 202


def test_the_scope_write_does_not_permit_changing_settings(
    live: LiveSystem, served: httpx2.Client, namespace: str
) -> None:
    writer = make_key(live, namespace, "read", "write")
    served.headers.pop("X-Ebb-Namespace", None)
    assert served.get("/memory/settings", headers=writer).status_code == 200
    assert "admin" in problem(served.patch("/memory/settings", json={}, headers=writer), 403)
