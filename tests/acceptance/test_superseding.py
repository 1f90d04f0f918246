"""Superseding facts through the client, the command line and imports, on real workers."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from live_system import LiveSystem

from api import archive_import
from workers.errors import InvalidInputError

pytestmark = pytest.mark.acceptance

PORTO, LISBON = "Ana lives in Porto.", "Ana lives in Lisbon."
ASKED = "Where does Ana live?"


def recalled(live: LiveSystem, namespace: str, *options: str) -> list[str]:
    found = live.ebb_json("recall", ASKED, "--namespace", namespace, *options)
    return [one["text"] for one in found["results"]]


def test_the_command_line_supersedes_and_looks_back(live: LiveSystem, namespace: str) -> None:
    week_ago, month_ago = (
        (datetime.now(UTC) - timedelta(days=days)).date().isoformat() for days in (7, 30)
    )  # fmt: skip
    with live.client(namespace) as client:
        old = client.store(PORTO, created_at=month_ago)["id"]
    stored = live.ebb_json(
        "store", LISBON, "--supersedes", old, "--source-date", week_ago, "--namespace", namespace
    )  # fmt: skip
    assert stored.items() >= {"id": stored["id"], "action": "updated", "embedded": True}.items()
    assert recalled(live, namespace) == [LISBON]
    assert recalled(live, namespace, "--as-of", month_ago) == [PORTO]
    assert recalled(live, namespace, "--as-of", week_ago) == [LISBON]
    assert recalled(live, namespace, "--known-as-of", week_ago) == [PORTO]
    before = live.rows("select recall_count from activity where fact = %s", [old])
    live.settle()
    assert live.rows("select recall_count from activity where fact = %s", [old]) == before


def test_superseding_a_missing_fact_is_an_error_at_every_interface(live: LiveSystem, namespace: str) -> None:
    unknown = str(uuid4())
    done = live.ebb("store", LISBON, "--supersedes", unknown, "--namespace", namespace, "--json")
    assert done.returncode == 1
    assert f"no fact {unknown} is in this namespace" in json.loads(done.stdout)["error"]["message"]
    with live.client(namespace) as client:
        with pytest.raises(InvalidInputError, match="no fact"):
            client.store(LISBON, supersedes=unknown)
        answers = client.store_many([{"text": LISBON, "supersedes": unknown}, {"text": PORTO}])["results"]
    assert [one.get("action", "refused") for one in answers] == ["refused", "added"]


def test_a_message_that_supersedes_and_comes_twice_does_so_once_and_answers_the_same(
    live: LiveSystem, namespace: str
) -> None:
    with live.client(namespace) as client:
        old = client.store(PORTO)["id"]
    arguments = {"text": LISBON, "supersedes": old, "namespace": namespace}
    first, *others = live.delivered("memory.store", arguments, 3)
    assert first["action"] == "updated"
    assert others == [first] * 2
    linked = "select superseded_by::text, supersedes_id::text from facts where id = any(%s::uuid[])"
    assert set(live.rows(linked, [[old, first["id"]]])) == {(first["id"], None), (None, old)}


def test_an_imported_history_is_superseded_across_all_its_batches(
    live: LiveSystem, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archive_import, "WINDOW", 50)
    ids = [str(uuid4()) for _ in range(260)]
    start = datetime.now(UTC) - timedelta(days=2)
    history: list[dict[str, Any]] = [
        {"id": id_, "text": f"The lighthouse {number % 130} shines {'green' if number < 130 else 'red'}."}
        | {"created_at": (start + timedelta(seconds=number)).isoformat()}
        | ({} if number < 130 else {"supersedes": ids[number - 130]})
        for number, id_ in enumerate(ids)
    ]
    file = tmp_path / "history.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in history))
    counts = live.ebb_json("import", str(file), "--namespace", namespace)
    assert (counts["added"], counts["updated"], counts["rejected"]) == (130, 130, 0)
    with live.client(namespace) as client:
        assert client.stats()["facts"] == 130
        found = client.recall("lighthouse 7 shines", as_of=(start + timedelta(seconds=8)).isoformat())["results"]
    assert "The lighthouse 7 shines green." in {one["text"] for one in found}
    assert live.ebb_json("import", str(file), "--namespace", namespace)["updated"] == 130


def test_a_superseded_line_of_an_export_stays_superseded(live: LiveSystem, namespace: str, tmp_path: Path) -> None:
    with live.client(namespace) as client:
        old = client.store(PORTO)["id"]
        client.store(LISBON, supersedes=old)
    file = tmp_path / "export.jsonl"
    assert live.ebb("export", str(file), "--namespace", namespace).returncode == 0
    counts = live.ebb_json("import", str(file), "--namespace", f"{namespace}-again")
    assert (counts["added"], counts["kept"], counts["rejected"]) == (1, 1, 0)
    assert recalled(live, f"{namespace}-again") == [LISBON]
