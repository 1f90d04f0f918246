"""Touches that wait in Redis: none is lost, and a namespace has one task for all of them."""

import json
from uuid import uuid4

from memory import Memory, day
from redis import Redis

from workers.coordination import touches
from workers.coordination.touches import Waiting


def waiting(at: float, question: int | None = None) -> Waiting:
    return Waiting(str(uuid4()), [str(uuid4())], day(at).isoformat(), question)


def oldest(redis: Redis, namespace: str) -> list[Waiting]:
    return list(touches.oldest(redis, namespace).values())


def test_the_first_touch_has_a_task_sent_and_the_rest_wait_for_it_oldest_first(memory: Memory) -> None:
    redis, (late, early, middle) = memory.context.redis, (waiting(3), waiting(1, 7), waiting(2))
    assert [touches.add(redis, "ann", one) for one in (late, early, middle)] == [True, False, False]
    assert oldest(redis, "ann") == [early, middle, late]
    assert oldest(redis, "ben") == []
    assert touches.add(redis, "ben", early)


def test_a_touch_that_is_added_again_waits_once(memory: Memory) -> None:
    redis, one = memory.context.redis, waiting(1)
    touches.add(redis, "ann", one)
    touches.add(redis, "ann", one)
    assert oldest(redis, "ann") == [one]


def test_what_came_while_others_were_recorded_waits_for_a_heartbeat(memory: Memory) -> None:
    redis, (one, two) = memory.context.redis, (waiting(1), waiting(2))
    touches.add(redis, "ann", one)
    taken = touches.oldest(redis, "ann")
    assert not touches.add(redis, "ann", two)
    assert not touches.finish(redis, "ann", taken)
    assert oldest(redis, "ann") == [two]
    assert touches.claim(redis) == ["ann"]
    assert touches.claim(redis) == []
    assert not touches.finish(redis, "ann", touches.oldest(redis, "ann"))
    assert touches.claim(redis) == []


def test_the_touches_of_the_next_second_wait_for_the_first_one_after_it(memory: Memory) -> None:
    redis, (one, two, three) = memory.context.redis, (waiting(1), waiting(2), waiting(3))
    touches.add(redis, "ann", one)
    touches.finish(redis, "ann", touches.oldest(redis, "ann"))
    assert not touches.add(redis, "ann", two)
    redis.delete(touches.RESTING + "ann")  # as after the second
    assert touches.add(redis, "ann", three)
    assert oldest(redis, "ann") == [two, three]


def test_as_many_are_taken_as_one_transaction_should_record_and_as_many_more_need_the_next_task(
    memory: Memory,
) -> None:
    redis = memory.context.redis
    for number in range(2 * touches.MOST):
        touches.add(redis, "ann", waiting(number))
    taken = touches.oldest(redis, "ann")
    assert len(taken) == touches.MOST
    assert touches.finish(redis, "ann", taken)
    assert not touches.finish(redis, "ann", touches.oldest(redis, "ann"))
    assert oldest(redis, "ann") == []


def test_of_two_tasks_with_the_same_touches_one_goes_on(memory: Memory) -> None:
    redis = memory.context.redis
    for number in range(3 * touches.MOST):
        touches.add(redis, "ann", waiting(number))
    taken = touches.oldest(redis, "ann")
    assert [touches.finish(redis, "ann", taken) for _ in range(2)] == [True, False]
    assert not touches.finish(redis, "ann", {})


def test_a_lost_task_is_sent_again_once(memory: Memory) -> None:
    redis = memory.context.redis
    touches.add(redis, "ann", waiting(1))
    touches.add(redis, "ben", waiting(1))
    assert touches.claim(redis) == []
    redis.zincrby(touches.SENT, -touches.LOST_SECONDS - 1, "ann")
    assert touches.claim(redis) == ["ann"]
    assert touches.claim(redis) == []


def test_after_a_failover_to_a_server_whose_clock_is_behind_tasks_are_sent(memory: Memory) -> None:
    redis = memory.context.redis
    touches.add(redis, "ann", waiting(1))
    redis.zincrby(touches.SENT, 600, "ann")
    assert touches.add(redis, "ann", waiting(2))


def test_a_touch_of_a_later_version_is_read_and_removed(memory: Memory) -> None:
    redis, one = memory.context.redis, waiting(1)
    kept = json.dumps(json.loads(one.content()) | {"place": 7})
    redis.zadd(touches.WAITING + "ann", {kept: 1})
    assert oldest(redis, "ann") == [one]
    touches.finish(redis, "ann", touches.oldest(redis, "ann"))
    assert oldest(redis, "ann") == []
