"""Instants: writes are dated by the database's clock, and other clocks are accepted within bounds."""

from datetime import UTC, datetime, timedelta

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from api.cli.doctor import clocks
from api.http.dashboard.keys import end_in
from workers.clock import AFTER, KEPT_SECONDS, MOST_AHEAD, MOST_BEHIND, Clock, wait, with_start, within_bounds
from workers.core.confidence import DAY

CLOCK = datetime(2026, 11, 22, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("ahead", "allowed"),
    [
        (0.0, True),
        (MOST_AHEAD, True),
        (-300.0, True),
        (-MOST_BEHIND, True),
        (MOST_AHEAD + 1e-3, False),
        (-MOST_BEHIND - 1e-3, False),
        (365 * DAY, False),
        (-365 * DAY, False),
    ],
)
def test_a_write_may_be_dated_a_minute_ahead_and_a_week_behind(ahead: float, allowed: bool) -> None:
    assert within_bounds(ahead) == allowed


def test_a_reading_is_carried_on_and_renewed_after_some_seconds_or_a_restart_of_the_counter() -> None:
    counted, shown, readings = [100.0], [CLOCK], []

    def read() -> datetime:
        readings.append(counted[0])
        return shown[0]

    clock = Clock(read, lambda: counted[0])
    assert clock.now() == CLOCK
    shown[0] = CLOCK + timedelta(days=365)
    counted[0] += KEPT_SECONDS
    assert clock.now() == CLOCK + timedelta(seconds=KEPT_SECONDS)
    counted[0] += 0.1
    assert clock.now() == CLOCK + timedelta(days=365)
    counted[0] = 1.0
    assert clock.now() == CLOCK + timedelta(days=365)
    assert readings == [100.0, 105.1, 1.0]


def test_a_delayed_answer_of_the_server_is_asked_for_again_and_the_fastest_one_counts() -> None:
    counted, delays = [100.0], [(0.5, 1.0), (0.001, 0.003), (0.2, 0.2), (0.1, 0.4), (2.0, 1.0)]

    def read() -> datetime:
        there, back = delays.pop(0)
        counted[0] += there + back
        return CLOCK + timedelta(seconds=counted[0] - back)

    clock = Clock(read, lambda: counted[0])
    assert abs(clock.now() - CLOCK - timedelta(seconds=counted[0])) < timedelta(seconds=0.002)
    assert len(delays) == 3
    counted[0] += KEPT_SECONDS + 1
    assert abs(clock.now() - CLOCK - timedelta(seconds=counted[0])) < timedelta(seconds=1e-5)
    assert delays == []


def test_another_try_is_sent_with_its_instant_by_the_servers_clock() -> None:
    clock = Clock(lambda: CLOCK, lambda: 0.0)
    sent = with_start({"countdown": 3, "headers": {AFTER: "of the try before", "ebb_until": "kept"}}, clock)
    assert sent == {"headers": {AFTER: (CLOCK + timedelta(seconds=3)).isoformat(), "ebb_until": "kept"}}
    assert with_start({"headers": {AFTER: "of the try before"}}, clock) == {"headers": {}}


@pytest.mark.parametrize("eta", [CLOCK + timedelta(hours=1), CLOCK - timedelta(hours=1)])
def test_a_message_waits_until_the_instant_in_its_header_not_until_that_of_the_senders_clock(eta: datetime) -> None:
    clock = Clock(lambda: CLOCK, lambda: 0.0)
    assert wait(eta, (CLOCK + timedelta(seconds=3)).isoformat(), clock) == 3.0
    for unreadable in (None, "soon", 7):
        assert wait(eta, unreadable, clock) == (eta - CLOCK).total_seconds()


def test_without_redis_the_wait_is_unknown() -> None:
    def away() -> datetime:
        raise RedisConnectionError

    assert wait(CLOCK, None, Clock(away)) is None
    assert with_start({"countdown": 3}, Clock(away)) == {"headers": {}}


def test_the_doctor_warns_of_a_clock_that_differs_by_more_than_a_minute() -> None:
    shown = CLOCK.timestamp()
    alike = clocks(CLOCK, {"Redis'": shown + MOST_AHEAD, "this machine's": shown - 1})
    assert alike == "2026-11-22 12:00:00 UTC; Redis' is 60.0 s ahead, this machine's is 1.0 s behind"
    for redis, machine in ((-365 * DAY, 0.0), (3_600.0, 0.0), (0.0, -365 * DAY), (0.0, 3_600.0)):
        said = clocks(CLOCK, {"Redis'": shown + redis, "this machine's": shown + machine})
        assert said.startswith("warning: THE CLOCKS DIFFER: 2026-11-22 12:00:00 UTC; Redis' is ")


def test_the_end_of_a_key_is_reckoned_from_the_clock_of_keys_not_from_that_of_the_api() -> None:
    assert end_in("7", CLOCK.timestamp()) == (CLOCK + timedelta(days=7)).isoformat()
    assert end_in("", CLOCK.timestamp()) is None
