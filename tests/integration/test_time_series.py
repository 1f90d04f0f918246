"""Time series of a namespace and of the system: recorded with the tallies, listed, and thinned with age."""

from typing import Any

import pytest
from ebb.contract.admin import ShowSystemTimeSeries
from ebb.contract.reports import ShowTimeSeries
from hypothesis import given
from hypothesis import strategies as st
from made_up import examples
from memory import Memory, day
from redis import Redis

from workers.admin import stats
from workers.coordination import timings

MINUTE = 1 / 1440


def series(memory: Memory, at: float, *, days: int = 366, namespace: str = "default") -> dict[str, Any]:
    return stats.counts_over_time(memory.context, ShowTimeSeries(namespace=namespace, days=days), day(at))


def settled(memory: Memory, at: float) -> None:
    stats.settle_tallies(memory.context, day(at))


def test_a_time_series_has_the_values_of_each_instant(memory: Memory) -> None:
    memory.add("The brook is low.", decay_class="stable")
    settled(memory, 0)
    memory.add("The tide is out.", at=1, decay_class="permanent")
    settled(memory, 1)
    found = series(memory, 2)
    assert found["at"] == [day(at).timestamp() for at in (0, 1, 2)]
    assert found["tiers"]["warm"] == [1, 2, 2]
    assert found["fidelity"]["full"] == [1, 2, 2]
    assert found["classes"] == {"permanent": [0, 1, 1], "stable": [1, 1, 1]}


def test_what_was_forgotten_is_counted_by_its_reason(memory: Memory) -> None:
    id_ = memory.add("The brook is low.")
    settled(memory, 0)
    memory.forget(id_, at=1)
    settled(memory, 1)
    found = series(memory, 2)
    assert found["forgotten"] == {"asked": [0, 1, 1]}
    assert found["tiers"] == {"hot": [0, 0, 0], "warm": [1, 0, 0], "cold": [0, 0, 0]}


def test_the_present_is_reported_before_it_is_settled(memory: Memory) -> None:
    memory.add("The brook is low.")
    found = series(memory, 1)
    assert (found["at"], found["tiers"]["warm"]) == ([day(1).timestamp()], [1])


def test_changes_within_five_minutes_are_one_and_the_last_one_counts(memory: Memory) -> None:
    for minute in range(5):
        memory.add(f"It is {minute} past.", at=minute * MINUTE)
        settled(memory, minute * MINUTE)
    assert memory.value("select count(*) from tally_history") == 1
    assert series(memory, 1)["tiers"]["warm"] == [5, 5]


def test_settling_when_nothing_changed_notes_nothing(memory: Memory) -> None:
    memory.add("The brook is low.")
    for at in range(5):
        settled(memory, at)
    assert memory.value("select count(*) from tally_history") == 1


def test_what_is_due_is_counted_from_its_minute_until_a_pass(memory: Memory) -> None:
    for number in range(3):
        memory.add(f"Ticket {number}.", decay_class="session")
    settled(memory, 0)
    settled(memory, 2)
    memory.decay(3)
    settled(memory, 3)
    found = series(memory, 4)
    assert (found["at"], found["due"]) == ([day(at).timestamp() for at in (0, 2, 3, 4)], [0, 3, 0, 0])
    assert found["tiers"]["warm"] == [3, 3, 0, 0]


def test_what_is_due_is_noted_only_where_it_has_changed(memory: Memory) -> None:
    memory.add("A ticket.", decay_class="session", namespace="theirs")
    memory.add("The brook is low.", decay_class="permanent")
    for at in (2, 3, 4):
        settled(memory, at)
    noted = "select count(*) from tally_history join namespaces on id = namespace where name = %s"
    assert (memory.value(noted, "theirs"), memory.value(noted, "default")) == (1, 1)
    assert series(memory, 5, namespace="theirs")["due"] == [1, 1]


def test_a_course_begins_with_how_it_was_then(memory: Memory) -> None:
    memory.add("The brook is low.")
    settled(memory, 0)
    found = series(memory, 100, days=7)
    assert found["at"] == [day(93).timestamp(), day(100).timestamp()]
    assert found["tiers"]["warm"] == [1, 1]


def test_a_course_is_that_of_its_own_namespace(memory: Memory) -> None:
    memory.add("The brook is low.")
    memory.add("The tide is out.", namespace="other", decay_class="session")
    settled(memory, 0)
    assert series(memory, 1)["classes"] == {"none": [1, 1]}
    assert series(memory, 1, namespace="unknown")["at"] == []


@examples(15)
@given(moments=st.lists(st.floats(0, 400), min_size=2, max_size=40, unique=True))
def test_thinning_keeps_the_last_state_of_each_time_and_the_one_before_all(
    memory: Memory, moments: list[float]
) -> None:
    memory.rows("truncate namespaces, facts, tallies, tally_changes, tally_history cascade")
    for number, at in enumerate(sorted(moments)):
        memory.add(f"Number {number}.", at=at)
        settled(memory, at)
    before = dict(zip(series(memory, 400)["at"], series(memory, 400)["tiers"]["warm"], strict=True))
    first = series(memory, 400)["tiers"]["warm"][0]
    stats.thin_time_series(memory.context, day(400))
    assert stats.thin_time_series(memory.context, day(400)) == 0
    after = series(memory, 400)
    assert set(after["at"]) <= set(before) | {day(34).timestamp()}
    assert all(before[at] == hot for at, hot in zip(after["at"], after["tiers"]["warm"], strict=True) if at in before)
    assert after["tiers"]["warm"][-1] == len(moments)
    if min(moments) < 34:
        assert after["tiers"]["warm"][0] == first
    hours = [int(at // 3600) for at in after["at"][:-1] if day(34).timestamp() < at < day(399).timestamp()]
    assert len(hours) == len(set(hours))
    dates = [int(at // 86_400) for at in after["at"][:-1] if day(34).timestamp() < at < day(386).timestamp()]
    assert len(dates) == len(set(dates))


MINUTE = 1 / 1440


def system_series(memory: Memory, at: float) -> dict[str, object]:
    return stats.load_over_time(memory.context, ShowSystemTimeSeries(days=366), day(at))


def test_of_five_minutes_the_longest_queue_counts(memory: Memory) -> None:
    with Redis.from_url(memory.context.settings.redis_url) as broker:
        for minute, tasks in enumerate((2, 5, 0)):
            broker.delete("store")
            broker.rpush("store", *["task"] * tasks) if tasks else None
            stats.record_load(memory.context, day(minute * MINUTE))
        stats.record_load(memory.context, day(6 * MINUTE))
    found = system_series(memory, 1)
    assert found["at"] == [day(0).timestamp(), day(5 * MINUTE).timestamp()]
    assert found["waiting"] == {"recall": [0, 0], "store": [5, 0], "maintenance": [0, 0]}


def test_lag_is_that_of_the_writes_in_between_and_none_without_writes(memory: Memory) -> None:
    slow, quick = [("write", 0.4)] * 10, [("write", 0.004)] * 10
    for at, writes in enumerate((slow, quick, [], slow)):
        timings.observe(memory.context.redis, writes)
        stats.record_load(memory.context, day(at))
    found = system_series(memory, 5)
    assert found["half"] == [None, pytest.approx(0.00375), None, pytest.approx(0.375)]
    assert found["most"] == [None, pytest.approx(0.004875), None, pytest.approx(0.4875)]


def test_an_emptied_redis_starts_again(memory: Memory) -> None:
    timings.observe(memory.context.redis, [("write", 0.4)] * 10)
    stats.record_load(memory.context, day(0))
    memory.context.redis.flushdb()
    timings.observe(memory.context.redis, [("write", 0.004)])
    stats.record_load(memory.context, day(1))
    assert system_series(memory, 2)["half"] == [None, pytest.approx(0.00375)]


def test_a_series_of_minutes_is_thinned_by_age_and_then_let_go(memory: Memory) -> None:
    for hour in range(24):
        for number in (0, 3, 9, 17):
            stats.record_load(memory.context, day(number + hour / 24))
            stats.record_load(memory.context, day(number + hour / 24 + 10 * MINUTE))
    stats.thin_time_series(memory.context, day(18))
    instants = system_series(memory, 18)["at"]
    assert isinstance(instants, list)
    assert len(instants) == pytest.approx(2 + 24 + 2 * 24, abs=3)
    stats.thin_time_series(memory.context, day(18 + 367))
    assert memory.value("select count(*) from system_history") == 0
