"""`ebb import --from`: memories of other products, with counts and reasons, each once however often it is run."""

import json
from pathlib import Path

import pytest
from live_system import LiveSystem

pytestmark = pytest.mark.acceptance


def test_an_export_of_mem0_is_imported_once_with_counts_and_reasons(
    live: LiveSystem, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "mem0.json"
    memories = [
        {"id": "1", "memory": "Mira sails to Zanzibar", "user_id": namespace, "categories": ["travel"]},
        {"id": "2", "memory": "", "user_id": namespace},
        {"id": "3", "memory": "Anselm bakes", "user_id": "two words"},
        {"id": "4", "memory": "Mira rents a flat", "user_id": namespace, "expiration_date": "2020-01-01"},
        {"id": "5", "memory": "Anselm bakes", "user_id": namespace, "metadata": {"a": [1, None, {"b": 2.5}]}},
    ]
    file.write_text(json.dumps({"results": memories}))

    first = live.ebb("import", str(file), "--from", "mem0", "--json")
    again = live.ebb("import", str(file), "--from", "mem0", "--json")
    with live.client(namespace) as client, live.client("u::two+20words") as other:
        stored = {fact["text"]: fact for fact in client.facts()["facts"]}
        theirs = [fact["text"] for fact in other.facts()["facts"]]

    assert first.returncode == again.returncode == 1, "some were rejected"
    counts, repeated = json.loads(first.stdout), json.loads(again.stdout)
    assert (counts["lines"], counts["added"], counts["rejected"]) == (5, 3, 2)
    assert (repeated["added"], repeated["unchanged"]) == (0, 3)
    assert theirs == ["Anselm bakes"]
    reasons = {error["line"]: error["error"] for error in counts["errors"]}
    assert "empty fact text" in reasons[2]
    assert "forgotten at 2020-01-01" in reasons[4]
    assert stored["Mira sails to Zanzibar"]["tags"] == ["travel"]
    assert stored["Anselm bakes"]["metadata"] == {"a": [1, None, {"b": 2.5}]}
    assert stored["Anselm bakes"]["decay_class"] is None


def test_an_export_of_openmemory_goes_into_the_given_namespace(
    live: LiveSystem, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "openmemory.json"
    item = {"id": "1", "content": "An otter", "user_id": "a-user", "salience": 0.9, "last_seen_at": 1_790_000_000_000}
    file.write_text(json.dumps({"items": [item]}))

    assert live.ebb_json("import", str(file), "--from", "openmemory", "--namespace", namespace)["added"] == 1
    with live.client(namespace) as client:
        (fact,) = client.facts()["facts"]
    assert fact["strength"] == pytest.approx(0.9)
    assert fact["last_seen_at"].startswith("2026-09-21")


def test_an_unknown_product_is_wrong_usage(live: LiveSystem, tmp_path: Path) -> None:
    done = live.ebb("import", str(tmp_path / "x"), "--from", "zep")

    assert done.returncode == 2
    assert "openmemory" in done.stderr
