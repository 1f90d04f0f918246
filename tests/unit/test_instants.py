"""Instants: writes are dated by the database's clock, and other clocks are accepted within bounds."""

from datetime import UTC, datetime, timedelta

import pytest

from workers.clock import KEPT_SECONDS, MOST_AHEAD, MOST_BEHIND, Clock, within_bounds
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
