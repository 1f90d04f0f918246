"""Storing known facts: lifetimes start now, given fields are applied, and each interface reports the lifetime."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
from live_api import serving
from live_system import LiveSystem

pytestmark = pytest.mark.acceptance

TEXT = "The spare key hangs behind the clock."


@pytest.fixture(scope="module")
def api(live: LiveSystem) -> Iterator[httpx2.Client]:
    with serving(live) as client:
        yield client


def imported(live: LiveSystem, namespace: str, lines: list[dict[str, Any]], file: Path, *options: str) -> Any:
    file.write_text("\n".join(json.dumps(line) for line in lines))
    return live.ebb_json("import", str(file), "--namespace", namespace, *options)


def test_memories_of_years_ago_are_recalled_and_survive_the_next_pass(
    live: LiveSystem, namespace: str, tmp_path: Path
) -> None:
    dates = [("2024-03-01T10:00:00Z", "Anselm bakes rye bread"), ("2025-02-01T10:00:00Z", "Mira sails a small boat")]
    memories = [
        {"id": str(i), "memory": text, "created_at": at, "updated_at": at} for i, (at, text) in enumerate(dates)
    ]
    assert imported(live, namespace, memories, tmp_path / "mem0.jsonl", "--from", "mem0")["added"] == 2
    with live.client(namespace) as client:
        client.decay()
        for _, text in dates:
            assert client.recall(text)["results"][0]["text"] == text
        assert {fact["created_at"] for fact in client.facts()["facts"]} == {at for at, _ in dates}


def test_a_long_conversation_is_imported_completely_and_facts_ended_at_once_are_counted(
    live: LiveSystem, namespace: str, tmp_path: Path
) -> None:
    lines: list[dict[str, Any]] = [
        {"text": f"Turn {i} of a talk.", "kind": "episodic", "session": "talk", "turn": i} for i in range(600)
    ]
    lines.append({"text": "Long over.", "decay_class": "stable", "last_seen_at": "2023-01-01"})
    done = imported(live, namespace, lines, tmp_path / "talk.jsonl")
    assert (done["added"], done["ended_at_once"]) == (601, 1)
    with live.client(namespace) as client:
        client.decay()
        assert client.stats()["facts"] == 600


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (("--category", "home", "--clear", "category"), "'category' is also given a value; leave out one of them."),
        (("--clear", "text"), "'text' is no field; give any of category, entity, key,"),
    ],
)
def test_a_field_is_either_removed_or_given_a_value(
    live: LiveSystem, namespace: str, options: Sequence[str], fault: str
) -> None:
    refused = live.ebb("edit", str(uuid4()), *options, "--namespace", namespace)
    assert (refused.returncode, fault in " ".join(refused.stderr.split())) == (2, True)


def test_the_command_line_says_how_long_a_fact_lives_and_changes_it(live: LiveSystem, namespace: str) -> None:
    def ebb(*arguments: str) -> Any:
        return live.ebb_json(*arguments, "--namespace", namespace)

    first = ebb("store", TEXT)
    assert (first["decay_class"], first["class_reason"], first["ends_for"]) == ("stable", "no rule matched", "faded")
    again = ebb("store", TEXT, "--decay-class", "permanent", "--tags", "home")
    assert (again["id"], again["action"], again["changed"]) == (first["id"], "updated", ["tags", "decay_class"])
    assert (again["decay_class"], again["class_reason"], again["ends_at"]) == ("permanent", "given", None)
    edited = ebb("edit", first["id"], "--decay-class", "session", "--tag", "keys", "--importance", "0.9")
    assert (edited["action"], edited["changed"]) == ("updated", ["tags", "importance", "decay_class"])
    assert ebb("edit", first["id"], "--clear", "decay-class")["decay_class"] == "stable"
    events = [event["details"] for event in ebb("history", first["id"])["events"] if event["what"] == "edited"]
    assert [one["was"].get("decay_class") for one in events] == ["stable", "permanent", "session"]
    shown = live.ebb("store", TEXT.upper(), "--namespace", namespace).stdout
    assert f"duplicate {first['id']}" in shown
    assert "stable (no rule matched), ends " in shown
    assert "ignored: case" in shown


def test_an_option_with_a_list_may_be_repeated(live: LiveSystem, namespace: str) -> None:
    stored = live.ebb_json("store", TEXT, "--tags", "home,kitchen", "--tags", "keys", "-n", namespace)["id"]
    (fact,) = live.ebb_json("list", "-n", namespace)["facts"]
    assert fact["tags"] == ["home", "kitchen", "keys"]
    live.ebb_json("edit", stored, "--tags", "a,b", "--tag", "c", "-n", namespace)
    (fact,) = live.ebb_json("list", "-n", namespace)["facts"]
    assert fact["tags"] == ["a", "b", "c"]
    other = f"other-{namespace[-6:]}"
    live.ebb_json("store", TEXT, "-n", other)
    found = live.ebb_json("recall", TEXT, "--namespaces", namespace, "--namespaces", other)["results"]
    assert {one["namespace"] for one in found} == {namespace, other}


def test_http_says_how_long_a_fact_lives_and_changes_it(api: httpx2.Client, namespace: str) -> None:
    api.headers["X-Ebb-Namespace"] = namespace
    added = api.post("/memory/facts", json={"text": TEXT})
    known = api.post("/memory/facts", json={"text": TEXT, "importance": 0.9})
    assert (added.status_code, known.status_code, known.json()["changed"]) == (201, 200, ["importance"])
    id_ = added.json()["id"]
    edited = api.patch(f"/memory/facts/{id_}", json={"decay_class": "short", "category": None, "tags": "a,b"})
    assert edited.json()["changed"] == ["tags", "decay_class"]
    end = edited.json()["ends_at"], "faded"
    many = api.post("/memory/facts/batch", json={"facts": [{"text": TEXT}], "touch": False}).json()["results"]
    read = [
        api.get(f"/memory/facts/{id_}").json(),
        api.get("/memory/facts").json()["facts"][0],
        api.get(f"/memory/facts/{id_}/history").json(),
        api.post("/memory/recall", json={"query": TEXT, "touch": False}).json()["results"][0],
        many[0],
    ]
    assert {(one["ends_at"], one["ends_for"]) for one in read} == {end}
    assert api.patch(f"/memory/facts/{id_}", json={}).status_code == 422
    assert api.patch("/memory/facts/0198c0de-0000-7000-8000-000000000003", json={"tags": []}).status_code == 404
