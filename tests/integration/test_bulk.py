"""The bulk lane: the order of slices, their number in progress, and lost slices."""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest
from redis import Redis

from workers.coordination import bulk, outbox, signals
from workers.coordination.bulk import Batch, Claimed
from workers.coordination.redis import own_keys
from workers.errors import BusyError

NOW = 1_800_000_000.0


@pytest.fixture
def redis(redis_url: str) -> Iterator[Redis]:
    with own_keys(redis_url) as redis:
        yield redis


def joined(redis: Redis, id_: str, namespace: str, slices: int = 3) -> Batch:
    batch = Batch(id_, "memory.store_many", namespace, {"touch": False})
    bulk.join(redis, batch, [[f"{id_} {place}"] for place in range(slices)])
    return batch


def do(redis: Redis, claimed: Claimed, seconds: float = 0.1) -> list[object] | None:
    part = bulk.find(redis, claimed.batch, claimed.place, claimed.slices)
    assert part is not None
    return bulk.advance(redis, part, [{"of": one} for one in part.content], seconds)


def test_namespaces_take_turns_and_each_finishes_its_first_batch_first(redis: Redis) -> None:
    for id_, namespace in (("a", "mira"), ("b", "mira"), ("c", "ines")):
        joined(redis, id_, namespace, 2)
    order = []
    while claimed := bulk.claim(redis, NOW):
        (one,) = claimed
        order.append(one[1:3])
        do(redis, one)
    assert order == [("a", 0), ("c", 0), ("a", 1), ("c", 1), ("b", 0), ("b", 1)]


def test_the_last_slice_returns_the_answers_of_all_in_order(redis: Redis) -> None:
    joined(redis, "a", "mira")
    answers = [do(redis, one) for _ in range(3) for one in bulk.claim(redis, NOW)]
    assert answers == [None, None, [{"of": "a 0"}, {"of": "a 1"}, {"of": "a 2"}]]


def test_the_last_slice_returns_the_answers_again_if_they_did_not_arrive(redis: Redis) -> None:
    joined(redis, "a", "mira", 1)
    (last,) = bulk.claim(redis, NOW)
    part = bulk.find(redis, "a", last.place)
    assert part is not None
    assert bulk.advance(redis, part, ["recorded"]) == ["recorded"]
    assert bulk.advance(redis, part, ["repeated"]) == ["recorded"]


def test_each_worker_keeps_a_child_only_while_callers_wait(redis: Redis) -> None:
    for id_ in "abcdef":
        joined(redis, id_, id_)
    bulk.note_slots(redis, "one", 3, 1, NOW)
    bulk.note_slots(redis, "two", 1, 0, NOW)
    bulk.note_slots(redis, "gone", 8, 0, NOW - 60)
    redis.set(bulk.ASKED, 1, px=bulk.ASKED_MS)
    assert len(bulk.claim(redis, NOW)) == 3
    redis.delete(bulk.ASKED)
    assert len(bulk.claim(redis, NOW)) == 1
    assert bulk.claim(redis, NOW) == []


def test_where_nothing_else_waits_slices_are_done_together_but_not_by_the_last_child(redis: Redis) -> None:
    bulk.note_slots(redis, "one", 2, 1, NOW)
    for id_ in "abc":
        joined(redis, id_, "mira", 14)
    for one in bulk.claim(redis, NOW):
        assert do(redis, one) is None
    first, second = bulk.claim(redis, NOW)
    assert (first, second) == (Claimed("mira", "b", 1, 5), Claimed("mira", "a", 1, 1))
    assert do(redis, second) is None
    assert do(redis, first) is None
    joined(redis, "d", "ines", 7)
    assert {one.slices for one in bulk.claim(redis, NOW)} == {1}


def test_as_many_slices_are_done_together_as_a_task_has_time_for(redis: Redis) -> None:
    bulk.note_slots(redis, "one", 1, 0, NOW)
    joined(redis, "a", "mira", 30)
    counts = []
    for seconds_of_one in (0.9, 0.3, 40.0, 0.1, 0.1):
        (one,) = bulk.claim(redis, NOW)
        counts.append(one.slices)
        do(redis, one, seconds_of_one * one.slices)
    assert counts == [1, 2, 5, 1, 5]


def test_of_slices_done_together_that_were_lost_as_many_are_sent_again(redis: Redis) -> None:
    bulk.note_slots(redis, "one", 1, 0, NOW)
    joined(redis, "a", "mira", 7)
    do(redis, *bulk.claim(redis, NOW))
    (lost,) = bulk.claim(redis, NOW)
    joined(redis, "b", "ines", 7)
    bulk.note_slots(redis, "one", 3, 1, NOW + bulk.LEASE_SECONDS)
    assert (lost.slices, lost in bulk.claim(redis, NOW + bulk.LEASE_SECONDS + 1)) == (5, True)


def test_the_answers_of_slices_done_together_are_those_of_each_in_order(redis: Redis) -> None:
    bulk.note_slots(redis, "one", 2, 1, NOW)
    joined(redis, "a", "mira", 7)
    answers = [do(redis, one) for _ in range(3) for one in bulk.claim(redis, NOW)]
    assert answers == [None, None, [{"of": f"a {place}"} for place in range(7)]]


def test_a_worker_with_one_child_does_interactive_work_and_slices_in_turn(redis: Redis) -> None:
    joined(redis, "a", "mira")
    bulk.note_slots(redis, "one", 1, 1, NOW)
    redis.set(bulk.ASKED, 1, px=bulk.ASKED_MS)
    assert bulk.claim(redis, NOW) == [Claimed("mira", "a", 0)]


def test_a_slice_that_was_lost_is_sent_again_and_its_late_message_finds_nothing_to_do(redis: Redis) -> None:
    joined(redis, "a", "mira")
    (lost,) = bulk.claim(redis, NOW)
    assert bulk.claim(redis, NOW + 1) == []
    assert bulk.claim(redis, NOW + bulk.LEASE_SECONDS + 1) == [lost]
    found = bulk.find(redis, "a", 0)
    assert found is not None
    assert found.tries == 2
    do(redis, lost)
    assert bulk.find(redis, "a", 0) is None
    assert bulk.advance(redis, found, [{"of": "the late one"}]) is None
    assert [do(redis, one) for _ in range(2) for one in bulk.claim(redis, NOW)][1] == [
        {"of": f"a {place}"} for place in range(3)
    ]


def test_what_was_noted_before_the_clock_was_set_back_holds_no_slot(redis: Redis) -> None:
    joined(redis, "a", "mira")
    bulk.note_slots(redis, "one", 1, 0, NOW)
    (lost,) = bulk.claim(redis, NOW)
    assert bulk.claim(redis, NOW - 600) == [lost]
    joined(redis, "b", "ines")
    assert bulk.claim(redis, NOW - 599) == []


def test_a_batch_that_is_there_already_stays_as_it_is(redis: Redis) -> None:
    batch = joined(redis, "a", "mira")
    do(redis, *bulk.claim(redis, NOW))
    assert not bulk.join(redis, batch, [["another"]])
    assert bulk.claim(redis, NOW) == [Claimed("mira", "a", 1)]


def test_batches_that_redis_evicted_are_no_longer_counted(redis: Redis) -> None:
    joined(redis, "a", "mira")
    joined(redis, "b", "mira")
    joined(redis, "c", "ines")
    kept = bulk.held_bytes(redis, "mira") // 2
    bulk.claim(redis, NOW)
    redis.delete(bulk.BATCH + "b", bulk.BATCH + "c")
    bulk.recount(redis)
    assert (bulk.held_bytes(redis, "mira"), bulk.held_bytes(redis, "ines")) == (kept, 0)


def test_batches_are_done_after_redis_evicted_the_ring(redis: Redis) -> None:
    joined(redis, "a", "mira")
    joined(redis, "b", "ines")
    redis.delete(bulk.RING)
    joined(redis, "c", "nora")
    bulk.recount(redis)
    assert sorted(redis.lrange(bulk.RING, 0, -1)) == [b"ines", b"mira", b"nora"]


@pytest.mark.parametrize("lost", [f"{bulk.WAITING}mira", bulk.RUNNING])
def test_a_batch_that_is_sent_again_is_done_after_redis_evicted_where_it_was(redis: Redis, lost: str) -> None:
    joined(redis, "a", "mira", 2)
    if lost == bulk.RUNNING:
        assert bulk.claim(redis, NOW)
    redis.delete(lost)
    assert not bulk.claim(redis, NOW)
    joined(redis, "a", "mira", 2)
    joined(redis, "a", "mira", 2)
    answers = [do(redis, one) for _ in range(2) for one in bulk.claim(redis, NOW)]
    assert answers == [None, [{"of": "a 0"}, {"of": "a 1"}]]
    joined(redis, "a", "mira", 2)
    assert not bulk.claim(redis, NOW)


def test_a_namespace_with_too_many_bytes_is_refused_and_others_go_on(redis: Redis) -> None:
    outbox.publish_bounds(redis, outbox.Bounds(10, 1_024))
    large = [["x" * 1_000]]
    first = Batch("a", "memory.store_many", "mira", {})
    bulk.join(redis, first, large)
    with pytest.raises(BusyError, match=r"1004 bytes .*'mira'.*EBB_MAX_OUTBOX_BYTES=1024") as refused:
        bulk.join(redis, Batch("b", "memory.store_many", "mira", {}), large)
    assert refused.value.retry_after == bulk.RETRY_SECONDS
    bulk.join(redis, Batch("c", "memory.store_many", "ines", {}), large)
    bulk.join(redis, Batch("d", "memory.store_many", "mira", {}), large, bounded=False)
    assert bulk.waiting(redis)["bytes"] == 3 * 1_004
    for id_, namespace in (("a", "mira"), ("c", "ines"), ("d", "mira")):
        bulk.drop(redis, Batch(id_, "memory.store_many", namespace, {}))
    assert bulk.waiting(redis)["bytes"] == 0
    assert bulk.claim(redis, NOW) == []


def run(program: str, redis_url: str) -> str:
    """Return the output of a program that uses the tasks."""
    environment = os.environ | {"EBB_REDIS_URL": redis_url, "EBB_DATABASE_URL": "postgresql://unused/ebb"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    return done.stdout


FIRST_SLICE = """
from workers.coordination.bulk import Batch
from workers.tasks import bulk
from workers.tasks.store import store_many

store_many.push_request(id="a")
print(bulk._first(store_many, Batch("a", "memory.store_many", "mira", {}), [["a 0"], ["a 1"], ["a 2"]]))
"""


def test_a_redelivered_batch_processes_the_slice_whose_slot_it_takes(redis: Redis, redis_url: str) -> None:
    joined(redis, "a", "mira")
    (first,) = bulk.claim(redis, NOW)
    assert do(redis, first) is None
    assert "place=1, content=['a 1']" in run(FIRST_SLICE, redis_url)


FAILED_SLICE = """
from workers.coordination.bulk import Batch, Slice
from workers.tasks.bulk import slice_of_batch

slice_of_batch.push_request(part=Slice(Batch("a", "memory.bring_back", "mira", {}), 0, ["a 0"]))
slice_of_batch.on_failure(ValueError(), "", (), {}, None)
"""


def test_a_batch_that_failed_is_done_when_it_is_sent_again(redis: Redis, redis_url: str) -> None:
    joined(redis, "a", "mira")
    signals.note_done(redis, "a", {"goes_on": True})
    run(FAILED_SLICE, redis_url)
    assert (signals.done_before(redis, "a"), bulk.waiting(redis)["bytes"]) == (None, 0)


def test_any_number_of_recalls_whose_callers_gave_up_are_dropped_at_once(redis: Redis, redis_url: str) -> None:
    for number in range(600):
        until = "2026-01-01T00:00:00+00:00"
        bulk.join(redis, Batch(str(number), "memory.recall", "mira", {}, until=until), [], bounded=False)
    run("from workers.tasks.bulk import send_slices; send_slices()", redis_url)
    assert bulk.waiting(redis)["batches"] == 0
