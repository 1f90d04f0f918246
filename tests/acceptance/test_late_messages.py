"""Messages redelivered late: after their effect was undone, or after their caller stopped waiting."""

import json
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import pytest
from live_system import FOLDER, LiveSystem, eventually

from api.client import Client
from api.http.callers import Caller
from api.http.dispatch import Session
from api.http.door import Door
from workers.clock import UNTIL
from workers.settings import Settings

pytestmark = pytest.mark.acceptance


def delivered_late(live: LiveSystem, task: str, arguments: dict[str, object], taken_back: str) -> None:
    """Run a task, undo its effect, and then redeliver the first message."""
    task_id = str(uuid4())
    names = ("source", "target", "type", "namespace")
    for what, own_id in ((task, task_id), (taken_back, str(uuid4())), (task, task_id)):
        given = arguments if what == task else {name: arguments[name] for name in names}
        result = live.send(what, given, own_id)
        result.get()
        result.forget()


def test_a_link_that_was_removed_does_not_come_back_with_a_late_message(
    live: LiveSystem, client: Client, namespace: str
) -> None:
    one, two = (client.store(text)["id"] for text in ("The otter swims.", "The river is deep."))
    given = {"source": one, "target": two, "type": "CAUSED_BY", "strength": 0.5, "namespace": namespace}
    delivered_late(live, "memory.link", given, "memory.unlink")
    assert live.rows("select count(*) from links where source = %s", [one]) == [(0,)]


def test_a_relation_that_was_removed_does_not_come_back_with_a_late_message(live: LiveSystem, namespace: str) -> None:
    given = {"source": f"Alex of {namespace}", "target": "Atlas", "type": "works on", "namespace": namespace}
    delivered_late(live, "memory.relate", given, "memory.unrelate")
    assert live.rows("select count(*) from relations where source = %s", [given["source"]]) == [(0,)]


def test_a_link_that_was_made_again_is_not_removed_by_a_late_message(
    live: LiveSystem, client: Client, namespace: str
) -> None:
    one, two = (client.store(text)["id"] for text in ("The anchor is heavy.", "The harbour is calm."))
    removal, task_id = {"source": one, "target": two, "type": "CAUSED_BY", "namespace": namespace}, str(uuid4())
    client.link(one, two, "CAUSED_BY")
    result = live.send("memory.unlink", removal, task_id)
    assert result.get() == {"removed": 1}
    result.forget()
    client.link(one, two, "CAUSED_BY", 0.8)
    live.send("memory.unlink", removal, task_id).get()
    assert live.rows("select strength from links where source = %s", [one]) == [(0.8,)]


def test_a_write_that_is_sent_again_after_its_message_expired_is_done(live: LiveSystem, namespace: str) -> None:
    """As the HTTP API sends it when a client repeats a request with the same idempotency key."""
    task_id, id_, an_hour_ago = str(uuid4()), str(uuid4()), datetime.now(UTC) - timedelta(hours=1)
    given = {"text": "The lantern is lit.", "namespace": namespace, "id": id_}
    headers = {UNTIL: an_hour_ago.isoformat()}
    live.control.send_task("memory.store", kwargs=given, task_id=task_id, expires=an_hour_ago, headers=headers)
    eventually(lambda: f"Discarding revoked task: memory.store[{task_id}]" in live.logs(), "the message is dropped")
    assert live.facts(namespace) == []
    assert live.send("memory.store", given, task_id).get()["action"] == "added"


def test_a_file_that_is_gone_does_not_come_back_with_a_late_message(live: LiveSystem, namespace: str) -> None:
    reading, task_id = read_file(namespace), str(uuid4())
    assert answer(live, "memory.index", reading, task_id)["added"] == 1
    assert answer(live, "memory.unindex", gone(namespace)) == {"removed": 1}
    assert answer(live, "memory.index", reading, task_id)["added"] == 1
    assert live.facts(namespace) == []
    assert live.rows("select count(*) from documents where folder = %s", [namespace]) == [(0,)]


def test_a_file_that_was_indexed_again_is_not_removed_by_a_late_message(live: LiveSystem, namespace: str) -> None:
    task_id = str(uuid4())
    answer(live, "memory.index", read_file(namespace))
    assert answer(live, "memory.unindex", gone(namespace), task_id) == {"removed": 1}
    answer(live, "memory.index", read_file(namespace))
    assert answer(live, "memory.unindex", gone(namespace), task_id) == {"removed": 1}
    assert [text for _, text in live.facts(namespace)] == ["The keel is oak."]


def test_an_item_that_was_put_again_is_not_removed_by_a_late_message(live: LiveSystem, namespace: str) -> None:
    place, task_id = {"path": ["sheds"], "key": "oats", "namespace": namespace}, str(uuid4())
    answer(live, "memory.put_item", place | {"document": json.dumps({"sacks": 1})})
    assert answer(live, "memory.drop_item", place, task_id) == {"dropped": True}
    answer(live, "memory.put_item", place | {"document": json.dumps({"sacks": 2})})
    assert answer(live, "memory.drop_item", place, task_id) == {"dropped": True}
    (item,) = answer(live, "memory.items", place)["items"]  # type: ignore[misc]
    assert json.loads(item["document"]) == {"sacks": 2}


def test_a_setting_does_not_come_back_with_a_late_message(live: LiveSystem, namespace: str) -> None:
    task_id = str(uuid4())
    limit: dict[str, object] = {"set": {"capacity.facts": 5}, "namespace": namespace}
    answer(live, "memory.settings", limit, task_id)
    answer(live, "memory.settings", {"unset": ["capacity.facts"], "namespace": namespace})
    answer(live, "memory.settings", limit, task_id)
    assert answer(live, "memory.settings", {"namespace": namespace})["own"] == {}


def test_an_expiry_that_was_removed_does_not_come_back_with_a_late_message(live: LiveSystem, namespace: str) -> None:
    task_id, key = str(uuid4()), live.ebb_json("keys", "create", "--namespace", namespace)
    never: dict[str, object] = {"id": key["id"], "namespace": namespace}
    ending = never | {"ends": "2999-01-01"}
    for given, own_id in ((ending, task_id), (never, None), (ending, task_id)):
        answer(live, "memory.change_key", given, own_id)
    assert live.rows("select expires_at from api_keys where id = %s", [key["id"]]) == [(None,)]
    live.ebb("keys", "revoke", key["id"], "--namespace", namespace)


def test_a_folder_that_was_unregistered_is_not_registered_by_a_late_message(live: LiveSystem, namespace: str) -> None:
    task_id, scope = str(uuid4()), {"namespace": namespace}
    registered = scope | {"path": str(FOLDER), "name": namespace}
    answer(live, "memory.register_folder", registered, task_id)
    assert answer(live, "memory.unregister_folder", scope | {"name": namespace}) == {"removed": True}
    answer(live, "memory.register_folder", registered, task_id)
    assert answer(live, "memory.folders", scope) == {"folders": []}


def test_an_edit_does_not_come_back_with_a_late_message(live: LiveSystem, client: Client, namespace: str) -> None:
    """The tags may have been changed since by something other than an edit, such as a consolidation."""
    id_, task_id = client.store("The otter swims.")["id"], str(uuid4())
    edit = {"id": id_, "tags": ["river"], "namespace": namespace}
    assert answer(live, "memory.edit", edit, task_id)["changed"] == ["tags"]
    live.rows("update facts set tags = %s where id = %s returning id", [["river", "animals"], id_])
    assert answer(live, "memory.edit", edit, task_id)["changed"] == ["tags"]
    assert live.rows("select tags from facts where id = %s", [id_]) == [(["river", "animals"],)]


def test_a_contradiction_is_not_settled_again_by_a_late_message(
    live: LiveSystem, client: Client, namespace: str
) -> None:
    old, new = (client.store(f"Ana lives in {city}.", entity="Ana", key="city", value=city)["id"] for city in "AB")
    settled, task_id = {"ids": [old], "keep": new, "namespace": namespace}, str(uuid4())
    answer(live, "memory.resolve", settled, task_id)
    client.restore([old])
    assert answer(live, "memory.resolve", settled, task_id) == {"kept": new, "superseded": [old]}
    assert live.rows("select superseded_by from facts where id = %s", [old]) == [(None,)]


def test_a_late_restore_revives_no_fact_that_ended_since(live: LiveSystem, client: Client, namespace: str) -> None:
    id_, task_id = client.store("The otter swims.", decay_class="checkpoint")["id"], str(uuid4())
    restore = {"ids": [id_], "namespace": namespace}
    (first,) = answer(live, "memory.restore", restore, task_id)["results"]  # type: ignore[misc]
    live.rows(
        "update activity set expires_at = now() - interval '1 hour', ends_at = now() - interval '1 hour', "
        "due_at = now() - interval '1 hour' where fact = %s returning fact",
        [id_],
    )
    client.decay()
    (second,) = answer(live, "memory.restore", restore, task_id)["results"]  # type: ignore[misc]
    assert (first["action"], second) == ("unchanged", first)
    assert live.rows("select forgotten_reason from facts where id = %s", [id_]) == [("expired",)]


def test_a_late_import_does_not_add_links_that_were_removed_since(
    live: LiveSystem, client: Client, namespace: str
) -> None:
    one, two = (client.store(text)["id"] for text in ("The otter swims.", "The river is deep."))
    link = {"source": one, "target": two, "type": "CAUSED_BY", "strength": 0.5, "created_at": "2026-01-01T00:00:00Z"}
    records, task_id = {"records": [{"link": link}], "namespace": namespace}, str(uuid4())
    first = answer(live, "memory.bring_back", records, task_id)
    client.unlink(one, two, "CAUSED_BY")
    assert answer(live, "memory.bring_back", records, task_id) == first
    assert live.rows("select count(*) from links where source = %s", [one]) == [(0,)]


def test_facts_are_not_linked_again_by_a_late_message(live: LiveSystem, client: Client, namespace: str) -> None:
    one = client.store("The otter swims in the river.")["id"]
    two = client.store("An otter swims in the river.")["id"]
    linking, task_id = {"ids": [one], "namespace": namespace}, str(uuid4())
    removed = []
    for _ in range(2):
        live.send("memory.autolink", linking, task_id)
        live.settle()
        removed.append(client.unlink(one, two)["removed"])
    assert removed == [1, 0]


def test_a_pin_that_found_no_fact_does_not_pin_it_with_a_late_message(
    live: LiveSystem, client: Client, namespace: str
) -> None:
    id_, task_id = client.store("The otter swims.")["id"], str(uuid4())
    client.forget([id_])
    for _ in range(2):
        with pytest.raises(Exception, match="no live fact"):
            answer(live, "memory.pin", {"id": id_, "namespace": namespace}, task_id)
        client.restore([id_])
    assert live.rows("select pinned_until from activity where fact = %s", [id_]) == [(None,)]


def answer(live: LiveSystem, task: str, arguments: dict[str, object], task_id: str | None = None) -> dict[str, object]:
    """Return a task's answer to this delivery, ignoring earlier ones."""
    result = live.send(task, arguments, task_id)
    answered: dict[str, object] = result.get()
    result.forget()
    return answered


def read_file(namespace: str) -> dict[str, object]:
    chunks = [{"section": "Boat", "text": "The keel is oak."}]
    document = {"path": "notes/boat.md", "chunks": chunks, "digest": "0" * 64, "folder": namespace}
    return document | {"namespace": namespace}


def gone(namespace: str) -> dict[str, object]:
    return {"paths": ["notes/boat.md"], "namespace": namespace}


def test_a_result_that_arrives_twice_is_not_the_answer_to_another_task_of_the_request(
    live: LiveSystem, namespace: str
) -> None:
    door = Door(Settings.from_environment(live.environment()))
    session = Session(door, Caller(namespace, frozenset({"read"})), timeout=None)
    with door.client:
        first = session.facts(entity="Mira")
        late, results = {"status": "SUCCESS", "task_id": session.task_id, "result": first}, session._app.backend
        results.client.set(results.get_key_for_task(session.task_id), results.encode(late))
        assert "edges" in session.relations()
