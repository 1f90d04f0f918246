"""A result is stored once it succeeded, sent to its listeners, and expires; a later one does not replace it."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from typing import Any

import pytest
from celery import Celery
from celery.app.task import Context
from celery.exceptions import ChordError, SoftTimeLimitExceeded, TimeLimitExceeded
from celery.states import FAILURE, RETRY, SUCCESS
from redis import Redis

from api import transport as sending
from api.client import Client
from api.transport import LostError
from workers.clock import UNTIL, Clock
from workers.coordination import transport
from workers.coordination.redis import drop_results, open_redis
from workers.core.cost import MOST_BYTES
from workers.errors import InvalidInputError, LateError
from workers.queues import configuration, length_of


@pytest.fixture
def app(redis_url: str) -> Iterator[Celery]:
    with Celery("results", set_as_current=False) as app:
        app.loader.override_backends = transport.BACKENDS
        app.conf.update(configuration(redis_url))
        yield app
        app.backend.result_consumer.stop()
        app.backend.client.connection_pool.disconnect()


def stored(app: Celery, task_id: str) -> dict[str, Any]:
    found = app.backend.client.get(app.backend.get_key_for_task(task_id))
    return dict(json.loads(found))


def test_workers_store_results_by_this_backend(app: Celery) -> None:
    assert isinstance(app.backend, transport.Backend)


def test_a_result_is_read_by_celery_and_expires(app: Celery) -> None:
    app.backend.store_result("one", {"id": 1}, SUCCESS)
    assert app.AsyncResult("one").get() == {"id": 1}
    assert 0 < app.backend.client.ttl(app.backend.get_key_for_task("one")) <= app.conf.result_expires


def test_a_success_stays_when_the_task_runs_again(app: Celery) -> None:
    for answer, state in (("added", SUCCESS), ("duplicate", SUCCESS), (ValueError("late"), FAILURE)):
        app.backend.store_result("one", answer, state)
    assert stored(app, "one")["result"] == "added"


def test_an_answer_that_is_too_large_is_an_error_that_says_what_to_do(app: Celery) -> None:
    app.backend.store_result("one", {"text": "a" * MOST_BYTES}, SUCCESS)
    with pytest.raises(InvalidInputError, match="33 MiB, and one may have 32 MiB: ask for fewer"):
        app.AsyncResult("one").get()


@pytest.mark.parametrize(
    ("task", "size", "until", "is_kept"),
    [
        ("memory.facts", transport.MOST_LATE_BYTES, "2020-01-01T00:00:00+00:00", False),
        ("memory.facts", transport.MOST_LATE_BYTES, "2120-01-01T00:00:00+00:00", True),
        ("memory.facts", transport.MOST_LATE_BYTES, None, True),
        ("memory.facts", 1, "2020-01-01T00:00:00+00:00", True),
        ("memory.restore", transport.MOST_LATE_BYTES, "2020-01-01T00:00:00+00:00", True),
    ],
)
def test_a_large_answer_is_dropped_if_it_was_read_for_a_caller_who_no_longer_waits(
    app: Celery, task: str, size: int, until: str | None, is_kept: bool
) -> None:
    app.server_clock = Clock(lambda: datetime.now(UTC))
    app.backend.store_result("one", {"text": "a" * size}, SUCCESS, request=Context(task=task, **{UNTIL: until}))
    assert app.backend.client.exists(app.backend.get_key_for_task("one")) == is_kept


def test_a_failure_and_a_retry_are_replaced(app: Celery) -> None:
    for answer, state in ((ValueError("first"), RETRY), (ValueError("second"), FAILURE), ("done", SUCCESS)):
        app.backend.store_result("one", answer, state)
        assert stored(app, "one")["status"] == state
    assert stored(app, "one")["result"] == "done"


def test_listeners_are_notified_once(app: Celery) -> None:
    key = app.backend.get_key_for_task("one").decode()
    with Redis.from_url(app.backend.url) as redis, redis.pubsub(ignore_subscribe_messages=True) as listener:
        listener.subscribe(key)
        listener.get_message(timeout=5)
        for _ in range(2):
            app.backend.store_result("one", "done", SUCCESS)
        redis.publish(key, "end")
        received = [listener.get_message(timeout=5) for _ in range(2)]
    assert json.loads(received[0]["data"])["result"] == "done"
    assert received[1]["data"] == b"end"


def test_a_result_is_taken_once_and_leaves_nothing(app: Celery) -> None:
    app.backend.store_result("one", {"id": 1}, SUCCESS)
    found = transport.take_result(app.backend, "one", 5)
    assert found is not None
    assert (found["status"], found["result"]) == (SUCCESS, {"id": 1})
    assert app.backend.client.exists(app.backend.get_key_for_task("one"), transport.READY + "one") == 0
    assert transport.take_result(app.backend, "one", 0.01) is None


def test_a_result_is_waited_for(app: Celery) -> None:
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(transport.take_result, app.backend, "one", 60)
        app.backend.store_result("one", ValueError("not yet"), RETRY)
        app.backend.store_result("one", "done", SUCCESS)
        found = waiting.result()
    assert found is not None
    assert found["result"] == "done"


def shared(app: Celery, seconds: float = 60.0) -> dict[str, Any] | None:
    return transport.take_result(app.backend, "one", seconds, is_shared=True)


def test_callers_that_share_a_task_all_get_its_result_which_then_expires(app: Celery) -> None:
    with ThreadPoolExecutor(8) as others:
        waiting = [others.submit(shared, app) for _ in range(8)]
        app.backend.store_result("one", "done", SUCCESS)
        found = [one.result() for one in waiting]
    app.backend.store_result("one", "duplicate", SUCCESS)
    assert {one and one["result"] for one in [*found, shared(app)]} == {"done"}
    for key in (app.backend.get_key_for_task("one"), transport.READY + "one"):
        assert 0 < app.backend.client.ttl(key) <= app.conf.result_expires


def test_a_shared_task_that_failed_or_whose_result_was_dropped_is_waited_for_again(app: Celery) -> None:
    app.backend.store_result("one", ValueError("first"), FAILURE)
    failed = shared(app)
    assert failed is not None
    assert failed["status"] == FAILURE
    assert shared(app, 0.01) is None
    app.backend.store_result("one", "done", SUCCESS)
    app.backend.client.delete(app.backend.get_key_for_task("one"))
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(shared, app)
        while app.backend.client.exists(transport.READY + "one"):
            pass
        app.backend.store_result("one", "again", SUCCESS)
        again = waiting.result()
    assert again is not None
    assert again["result"] == "again"


def test_answers_that_a_chord_keeps_are_dropped_with_all_others_and_it_fails(app: Celery, redis_url: str) -> None:
    body = app.signature("memory.stats", immutable=True, task_id="body")
    parts = [Context(id=f"part-{n}", group="chord", group_index=n, chord=body) for n in range(3)]
    app.backend.set_chord_size("chord", len(parts))
    key = app.backend.get_key_for_group("chord", ".j")
    for part in parts[:2]:
        app.backend.on_chord_part_return(part, SUCCESS, {"text": 'The "quokka"'})
        drop_results(redis_url)
    assert b"quokka" not in b"".join(app.backend.client.zrange(key, 0, -1))
    assert app.backend.expires < app.backend.client.ttl(key)
    app.backend.on_chord_part_return(parts[2], SUCCESS, {"text": "Any"})
    with pytest.raises(ChordError, match=r"part-0 .*dropped by `ebb purge --scrub`; send the chord again"):
        app.AsyncResult("body").get(timeout=5)


def test_a_result_of_an_earlier_version_is_found_without_its_mark(app: Celery) -> None:
    app.backend.store_result("one", "done", SUCCESS)
    app.backend.client.delete(transport.READY + "one")
    found = transport.take_result(app.backend, "one", 60)
    assert found is not None
    assert found["result"] == "done"


@pytest.mark.parametrize("limit", [SoftTimeLimitExceeded(), TimeLimitExceeded(12)])
def test_a_task_that_met_its_time_limit_is_late_and_says_what_to_do(
    app: Celery, redis_url: str, limit: Exception
) -> None:
    app.backend.store_result("one", limit, FAILURE)
    with Client(redis_url) as client, pytest.raises(LateError, match="Ask for less at once") as late:
        client.call("memory.recall_many", {"namespace": "default", "queries": []}, 60.0, task_id="one")
    assert late.value.task == "one"


class Sharing(Client):
    """A client that shares its tasks, as requests with the same idempotency key do."""

    _shares_tasks = True


def test_who_sends_a_task_again_does_not_get_the_error_of_its_first_delivery(app: Celery, redis_url: str) -> None:
    app.backend.store_result("one", InvalidInputError("supersedes: no such fact"), FAILURE)
    with Sharing(redis_url) as client, pytest.raises(LateError):  # no worker runs it again
        client.call("memory.store", {"text": "Mira sails."}, 0.1, task_id="one")


def test_one_of_two_callers_that_gives_up_leaves_the_other_waiting(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(sending, "EMPTIED_SECONDS", 0.1)
    with Sharing(redis_url) as one, Sharing(redis_url) as other:
        asked = [client.ask("memory.index", {}, task_id="one") for client in (one, other)]
        for client, result, seconds in zip((one, other), asked, (0.1, 3.0), strict=True):
            with pytest.raises(LateError):
                client.wait(result, seconds)


def test_a_caller_that_may_wait_for_long_is_told_that_redis_was_emptied(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "LOOK_SECONDS", 0.05)
    monkeypatch.setattr(sending, "EMPTIED_SECONDS", 0.1)
    with Client(redis_url) as client, ThreadPoolExecutor() as pool, open_redis(redis_url) as queues:
        called = pool.submit(client.call, "memory.store_many", {"namespace": "default", "facts": []}, 60.0)
        asked = pool.submit(lambda: client.wait(client.ask("memory.index", {}), 60.0))
        while length_of(queues, "store") < 2:
            pass
        queues.flushall()
        for caller in (called, asked):
            with pytest.raises(LostError, match=r"^Redis was emptied.* Send it again"):
                caller.result()
