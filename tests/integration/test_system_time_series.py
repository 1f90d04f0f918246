"""Time series of the system: the longest queues of each five minutes, and how quickly its writes could be read."""

import pytest
from memory import Memory, day
from redis import Redis

from workers.admin import stats, system
from workers.coordination import timings

MINUTE = 1 / 1440


def series(memory: Memory, at: float) -> dict[str, object]:
    return system.system_course(memory.context, 366, day(at))


def test_of_five_minutes_the_longest_queue_counts(memory: Memory) -> None:
    with Redis.from_url(memory.context.settings.redis_url) as broker:
        for minute, tasks in enumerate((2, 5, 0)):
            broker.delete("store")
            broker.rpush("store", *["task"] * tasks) if tasks else None
            system.note(memory.context, day(minute * MINUTE))
        system.note(memory.context, day(6 * MINUTE))
    found = series(memory, 1)
    assert found["at"] == [day(0).timestamp(), day(5 * MINUTE).timestamp()]
    assert found["waiting"] == {"recall": [0, 0], "store": [5, 0], "maintenance": [0, 0]}


def test_lag_is_that_of_the_writes_in_between_and_none_without_writes(memory: Memory) -> None:
    slow, quick = [("write", 0.4)] * 10, [("write", 0.004)] * 10
    for at, writes in enumerate((slow, quick, [], slow)):
        timings.observe(memory.context.redis, writes)
        system.note(memory.context, day(at))
    found = series(memory, 5)
    assert found["half"] == [None, pytest.approx(0.00375), None, pytest.approx(0.375)]
    assert found["most"] == [None, pytest.approx(0.004875), None, pytest.approx(0.4875)]


def test_an_emptied_redis_starts_again(memory: Memory) -> None:
    timings.observe(memory.context.redis, [("write", 0.4)] * 10)
    system.note(memory.context, day(0))
    memory.context.redis.flushdb()
    timings.observe(memory.context.redis, [("write", 0.004)])
    system.note(memory.context, day(1))
    assert series(memory, 2)["half"] == [None, pytest.approx(0.00375)]


def test_a_year_of_minutes_is_thinned_and_then_let_go(memory: Memory) -> None:
    for hour in range(24 * 30):
        system.note(memory.context, day(hour / 24))
        system.note(memory.context, day(hour / 24 + 10 * MINUTE))
    stats.thin(memory.context, day(30))
    instants = series(memory, 30)["at"]
    assert isinstance(instants, list)
    assert len(instants) == pytest.approx(16 + 13 * 24 + 2 * 24, abs=3)
    stats.thin(memory.context, day(30 + 367))
    assert memory.value("select count(*) from system_history") == 0
