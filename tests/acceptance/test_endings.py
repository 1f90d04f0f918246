"""Notices of facts that end soon: a Celery event and a webhook, whose request keeps the facts."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any

import pytest
from live_api import serving
from live_system import LiveSystem, eventually
from stand_in import StandIn

from workers.coordination import signals

pytestmark = pytest.mark.acceptance


@contextmanager
def listening(live: LiveSystem, kind: str) -> Iterator[Callable[[str], dict[str, Any]]]:
    """Yield a function that waits for the next Celery event of a kind about a namespace."""
    events: list[dict[str, Any]] = []
    with live.control.connection_for_read() as connection:
        receiver = live.control.events.Receiver(connection, handlers={kind: events.append})
        with receiver.consumer_context() as (consuming, _, _):

            def about(namespace: str) -> dict[str, Any]:
                while not (found := [one for one in events if one["namespace"] == namespace]):
                    consuming.drain_events()
                return found[0]

            with suppress(TimeoutError):  # draining subscribes
                consuming.drain_events(timeout=0.1)
            yield about


def test_facts_that_end_soon_are_in_an_event_and_a_request_and_the_call_that_both_name_keeps_them(
    live: LiveSystem, namespace: str, webhook: StandIn
) -> None:
    with live.client(namespace) as client, listening(live, "memory-ending") as event_about:
        stored = client.store("The plumber comes on Friday at nine.", decay_class="short")
        client.store("Mira lives in Leipzig.", decay_class="permanent")
        live.send("memory.notify_endings", {})
        event = event_about(namespace)
    notice = eventually(
        lambda: next((one for one in webhook.requests if one["namespace"] == namespace), None), "a notice"
    )
    assert [fact["id"] for fact in notice["facts"]] == [stored["id"]]
    assert {name: event[name] for name in notice} == notice
    keep = notice["keep"]
    with serving(live) as api:
        kept = api.request(keep["method"], keep["path"], headers=keep["headers"], json=keep["body"])
    assert kept.json() == {"decided": 1, "ids": [stored["id"]], "left": 0}
    ends = live.ebb_json("history", stored["id"], "-n", namespace)["ends_at"]
    assert datetime.fromisoformat(stored["ends_at"]) < datetime.fromisoformat(ends)


def test_notices_are_sent_by_one_task_at_a_time(live: LiveSystem, namespace: str, webhook: StandIn) -> None:
    def noticed() -> list[str]:
        return [one["namespace"] for one in webhook.requests if one["namespace"] == namespace]

    with live.client(namespace) as client:
        client.store("The plumber comes on Friday at nine.", decay_class="short")
    with signals.try_lock(live.own_keys, "notices", 60):
        live.send("memory.notify_endings", {})
        live.settle()
    assert noticed() == []
    live.send("memory.notify_endings", {})
    eventually(noticed, "a notice")
