"""Clocks and deadlines, which go by a server's clock: the clock of this machine dates nothing."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from redis.exceptions import RedisError

KEPT_SECONDS = 5.0
"""How long a reading is carried on before the server is asked again."""

# Unlike Python's monotonic clock it goes on while the machine is suspended.
_COUNTER = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

NEVER = datetime.min.replace(tzinfo=UTC)


def seconds_since_start() -> float:
    """Return the seconds since this machine was started; setting its clock does not change them."""
    return time.clock_gettime(_COUNTER)


@dataclass(slots=True)
class Clock:
    """A server's clock: `read` asks the server every few seconds, and the reading is carried on in between."""

    read: Callable[[], datetime]
    counter: Callable[[], float] = seconds_since_start
    shown: datetime = NEVER
    shown_at: float = float("-inf")

    def now(self) -> datetime:
        """Return the server's present instant, or raise what `read` raises."""
        passed = self.counter() - self.shown_at
        if not 0 <= passed <= KEPT_SECONDS:
            self.shown, self.shown_at, passed = self.read(), self.counter(), 0.0
        return self.shown + timedelta(seconds=passed)


UNTIL = "ebb_until"
"""The header that says until when a message is of use; ISO 8601."""


def with_deadline(options: Mapping[str, Any], clock: Clock) -> dict[str, Any]:
    """Return the options of a message that expires after so many seconds, with a header that says when that is."""
    seconds, headers = options.get("expires"), options.get("headers") or {}
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or UNTIL in headers:
        return {}
    try:
        until = clock.now() + timedelta(seconds=seconds)
    except RedisError:  # then nothing is sent either
        return {}
    return {"headers": headers | {UNTIL: until.isoformat()}}


def has_passed(until: Any, clock: Clock) -> bool:
    """Return whether the deadline of a message has passed; where Redis does not answer, that is not known."""
    try:
        return clock.now() > datetime.fromisoformat(until)
    except (RedisError, ValueError, TypeError):
        return False


MOST_AHEAD = 60.0
"""Clocks that are kept in step differ by less."""

MOST_BEHIND = timedelta(days=7).total_seconds()
"""An accepted write waits no longer than this for a worker, unless the system was off."""


def within_bounds(ahead: float) -> bool:
    """Return whether a write may be dated so many seconds ahead of the clock, or behind it if that is negative."""
    return -MOST_BEHIND <= ahead <= MOST_AHEAD
