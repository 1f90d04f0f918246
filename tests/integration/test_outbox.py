"""The outbox: when accepted writes are sent again, and its limits."""

import json
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from redis import Redis

from api.cli.doctor import _outbox
from api.client import Client
from workers.context import Context
from workers.coordination import outbox
from workers.coordination.outbox import Bounds, Entry
from workers.coordination.redis import own_keys
from workers.errors import BusyError, UnavailableError
from workers.queues import lists_of

NOW = 1_800_000_000.0
PATIENCE = 150.0
TURNS = lists_of("store")


@pytest.mark.parametrize(
    ("age", "overdue"), [(0, False), (149, False), (151, True), (-149, False), (-151, True), (-1e7, True)]
)
def test_what_was_accepted_long_ago_or_by_a_clock_far_ahead_is_sent_again(age: float, overdue: bool) -> None:
    assert Entry("1", "memory.store", {}, NOW - age).overdue(NOW, PATIENCE) == overdue


def test_what_cannot_be_done_is_sent_ever_more_seldom_but_never_given_up() -> None:
    entry = Entry("1", "memory.store", {}, NOW - 1e6, sent_at=NOW)
    waits = [
        next(wait for wait in range(0, 100_000, 75) if replace(entry, tries=tries).overdue(NOW + wait, PATIENCE))
        for tries in (0, 1, 2, 9, 100)
    ]
    assert waits == [225, 375, 675, 76_875, 76_875]


def written(id_: str, text: str = "", namespace: str = "mira") -> Entry:
    return Entry(id_, "memory.store", {"text": text}, NOW, namespace=namespace)


def test_an_entry_comes_back_as_it_was_put(redis_url: str) -> None:
    with own_keys(redis_url) as redis:
        entry = Entry("7", "memory.store", {"text": "The otter swims."}, NOW, NOW + 1, 3, "mira")
        outbox.put(redis, entry)
        assert outbox.find(redis, "mira", "7") == entry
        assert list(outbox.entries(redis)) == [entry]
        assert outbox.holds(redis, "mira", "7")
        assert not outbox.holds(redis, "ines", "7")
        outbox.remove(redis, "mira", "7")
        assert list(outbox.entries(redis)) == []


def test_a_namespace_with_too_many_waiting_writes_is_refused_and_others_go_on(redis_url: str) -> None:
    with own_keys(redis_url) as redis:
        outbox.publish_bounds(redis, Bounds(2, 10_000))
        for id_ in "ab":
            outbox.put(redis, written(id_))
        with pytest.raises(BusyError, match=r"2 writes .*'mira'.*EBB_MAX_OUTBOX_WRITES=2.*`wait=True`.*workers"):
            outbox.put(redis, written("c"))
        outbox.put(redis, written("a"))
        outbox.put(redis, written("c", namespace="ines"))
        outbox.remove(redis, "mira", "a")
        outbox.put(redis, written("c"))
        assert outbox.size(redis) == 3


def test_bytes_are_bounded_but_the_first_write_fits_whatever_its_size(redis_url: str) -> None:
    with own_keys(redis_url) as redis:
        outbox.publish_bounds(redis, Bounds(100, 1_000))
        outbox.put(redis, written("a", "x" * 2_000))
        with pytest.raises(BusyError, match=r"\d+ bytes .*'mira'.*EBB_MAX_OUTBOX_BYTES=1000 .*`wait=True`"):
            outbox.put(redis, written("b"))
        outbox.remove(redis, "mira", "a")
        outbox.put(redis, written("b"))


def test_writes_that_redis_evicted_are_no_longer_counted(redis_url: str) -> None:
    with own_keys(redis_url) as redis:
        outbox.put(redis, written("a", "x" * 1_000))
        redis.delete(outbox.WAITING + "mira")
        outbox.put(redis, written("b"))
        assert outbox.held_bytes(redis, "mira") == len(written("b").content())


def test_what_was_committed_meanwhile_is_not_put_again_by_a_sweep(redis_url: str) -> None:
    with own_keys(redis_url) as redis:
        outbox.put(redis, written("a"))
        assert outbox.renew(redis, replace(written("a"), sent_at=NOW, tries=1))
        outbox.remove(redis, "mira", "a")
        assert not outbox.renew(redis, replace(written("a"), sent_at=NOW, tries=2))
        assert outbox.size(redis) == 0


SWEEP = "from workers.tasks import store; store.sweep_outbox()"


def test_what_is_sent_again_takes_no_turn_before_others_than_when_it_was_accepted(redis_url: str) -> None:
    with own_keys(redis_url) as redis, Redis.from_url(redis_url) as broker:
        for number in range(100):
            outbox.put(redis, written(str(number)))
        outbox.put(redis, written("a", namespace="ines"))
        subprocess.run([sys.executable, "-c", SWEEP], env=os.environ | {"EBB_REDIS_URL": redis_url}, check=True)
        sent = {key: [json.loads(one)["headers"][outbox.HEADER] for one in broker.lrange(key, 0, -1)] for key in TURNS}
    assert sent == {TURNS[0]: ["ines"], TURNS[1]: [], TURNS[2]: [], TURNS[3]: ["mira"] * 100}


@examples(25)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["put", "renew", "remove"]), st.sampled_from("abc"), st.sampled_from(["x", "y"]), st.text()
        )
    )
)
def test_whatever_is_put_and_removed_the_bytes_of_each_namespace_are_counted_exactly(
    redis_url: str, steps: list[tuple[str, str, str, str]]
) -> None:
    with own_keys(redis_url) as redis:
        redis.flushdb()
        for what, id_, namespace, text in steps:
            entry = written(id_, text, namespace)
            if what == "remove":
                outbox.remove(redis, namespace, id_)
            else:
                (outbox.put if what == "put" else outbox.renew)(redis, entry)
        held: dict[bytes, int] = {}
        for entry in outbox.entries(redis):
            name = entry.namespace.encode()
            held[name] = held.get(name, 0) + len(entry.content().encode())
        assert {name: int(size) for name, size in redis.hgetall(outbox.BYTES).items()} == held  # type: ignore[union-attr]


def test_a_message_carries_the_id_of_a_write_and_none_of_its_text(redis_url: str) -> None:
    client = Client(redis_url, namespace="mira")
    accepted = client.store("The otter swims in the canal.", wait=False)
    with Redis.from_url(redis_url) as broker, own_keys(redis_url) as redis:
        (message,) = broker.lrange("store", 0, -1)
        entry = outbox.find(redis, "mira", accepted["task"])
        assert entry is not None
        assert entry.arguments["text"] == "The otter swims in the canal."
    assert b"otter" not in message
    sent = json.loads(message)
    assert sent["headers"]["id"] == accepted["task"]
    assert sent["headers"][outbox.HEADER] == "mira"
    client.close()


def test_a_write_that_ends_while_its_state_is_asked_for_has_not_failed(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = {"action": "added"}
    with Client(redis_url) as client, own_keys(redis_url) as redis:
        task = client.store("The otter swims in the canal.", wait=False)["task"]
        assert client.state(task) == {"state": "waiting"}

        def ending(*_: object) -> bool:
            client._app.backend.mark_as_done(task, answer)
            outbox.remove(redis, client.namespace, task)
            return False

        monkeypatch.setattr(outbox, "holds", ending)
        assert client.state(task) == {"state": "done", "result": answer}


def test_doctor_counts_accepted_writes_with_their_noun(context: Context) -> None:
    with own_keys(context.settings.redis_url) as redis, Client(context.settings.redis_url) as client:
        said = [_outbox(context.settings, client)]
        outbox.put(redis, replace(written("7"), accepted_at=client.seconds()))
        said.append(_outbox(context.settings, client))
        outbox.put(redis, written("8"))
        with pytest.raises(UnavailableError, match=r"^Accepted and not stored for [0-9]+ minutes and more: 1 write\. "):
            _outbox(context.settings, client)
    assert said == ["0 accepted writes under way", "1 accepted write under way"]


QUICK_SUCCESSOR = """
from types import SimpleNamespace
from celery.exceptions import Ignore
from workers.celery import app
from workers.coordination import signals
from workers.tasks.decay import answered
from workers.tasks.task import OnceTask, context

@app.task(bind=True, base=OnceTask)
def first(self):
    answered(SimpleNamespace(asked_by=self.request.id, namespace="mira"), {"restored": 2})  # as its successor does
    raise Ignore

first.apply(task_id="1")
print(signals.done_before(context.redis, "1"))
"""


def test_the_answer_of_a_successor_that_was_quicker_stays(redis_url: str) -> None:
    environment = os.environ | {"EBB_REDIS_URL": redis_url, "EBB_DATABASE_URL": "postgresql://unused/ebb"}
    done = subprocess.run(
        [sys.executable, "-c", QUICK_SUCCESSOR], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "{'restored': 2}\n", done.stderr


BUSY = """
from celery.app.trace import build_tracer
from workers.celery import app
from workers.clock import UNTIL
from workers.coordination import signals
from workers.tasks.task import OnceTask, context

@app.task(bind=True, base=OnceTask)
def second(self):
    return {}

with signals.try_lock(context.redis, "once:1", 60):
    request = {"id": "1", UNTIL: "2020-01-01T00:00:00+00:00", "delivery_info": {}, "retries": 0, "errbacks": None}
    build_tracer(second.name, second, app=app)("1", [], {}, request)
print(app.backend.get_task_meta("1")["status"])
"""


def test_a_delivery_whose_caller_has_gone_leaves_the_answer_to_the_one_at_work(redis_url: str) -> None:
    environment = os.environ | {"EBB_REDIS_URL": redis_url, "EBB_DATABASE_URL": "postgresql://unused/ebb"}
    done = subprocess.run([sys.executable, "-c", BUSY], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "PENDING\n", done.stderr
