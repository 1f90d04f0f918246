"""Clocks and deadlines by a server's clock; the clock of this machine is never used for dates."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from redis.exceptions import RedisError

KEPT_SECONDS = 5.0
"""Time for which a reading is extrapolated before the server is asked again."""

PROMPT_SECONDS, READINGS = 0.01, 3
"""A server is asked up to three times until it answers as fast as that: a busy machine delays single answers."""

# Unlike Python's monotonic clock, it continues while the machine is suspended.
_COUNTER = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)

NEVER = datetime.min.replace(tzinfo=UTC)


def seconds_since_start() -> float:
    """Return the seconds since this machine booted; unaffected by setting its clock."""
    return time.clock_gettime(_COUNTER)


@dataclass(slots=True)
class Clock:
    """A server's clock, read every few seconds and extrapolated in between."""

    read: Callable[[], datetime]
    counter: Callable[[], float] = seconds_since_start
    reading: tuple[datetime, float] = (NEVER, float("-inf"))
    """What the server's clock showed, and the counter then; one value, since threads share it."""

    def now(self) -> datetime:
        """Return the server's current time, or raise what `read` raises."""
        shown, at = self.reading
        if not 0 <= self.counter() - at <= KEPT_SECONDS:
            shown, at = self.reading = self._ask()
        return shown + timedelta(seconds=self.counter() - at)

    def _ask(self) -> tuple[datetime, float]:
        """Return the reading that took least; the server made it half-way between question and answer."""
        least, kept = float("inf"), self.reading
        for _ in range(READINGS):
            asked = self.counter()
            shown = self.read()
            took = self.counter() - asked
            if took < least:
                least, kept = took, (shown, asked + took / 2)
            if least <= PROMPT_SECONDS:
                break
        return kept


UNTIL = "ebb_until"
"""Header with the instant until which a message is useful; ISO 8601."""


def with_deadline(options: Mapping[str, Any], clock: Clock) -> dict[str, Any]:
    """Return the options of a message with `expires` in seconds, plus a header with the instant."""
    seconds, headers = options.get("expires"), options.get("headers") or {}
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or UNTIL in headers:
        return {}
    try:
        until = clock.now() + timedelta(seconds=seconds)
    except RedisError:  # then sending fails too
        return {}
    return {"headers": headers | {UNTIL: until.isoformat()}}


def has_passed(until: Any, clock: Clock, seconds: float = 0.0) -> bool:
    """Return whether the deadline of a message is over in so many seconds; false if Redis does not answer."""
    try:
        return clock.now() + timedelta(seconds=seconds) > datetime.fromisoformat(until)
    except (RedisError, ValueError, TypeError):
        return False


AFTER = "ebb_after"
"""Header with the instant before which a message is not processed; ISO 8601."""


def with_start(options: Mapping[str, Any], clock: Clock) -> dict[str, Any]:
    """Return the options of a message with a `countdown` in seconds, plus a header with the instant of its end.

    Celery reckons it by the clock of the sender; a worker with a later clock would wait for that as well.
    """
    headers = {name: value for name, value in (options.get("headers") or {}).items() if name != AFTER}
    countdown = options.get("countdown")
    if countdown is not None:
        with suppress(RedisError):  # then sending fails too
            headers[AFTER] = (clock.now() + timedelta(seconds=countdown)).isoformat()
    return {"headers": headers}


def wait(start: datetime, after: Any, clock: Clock) -> float | None:
    """Return the seconds until a message is due: at the instant of its header, if it has one, else at `start`.

    None if Redis does not answer.
    """
    due = start
    with suppress(ValueError, TypeError):
        due = datetime.fromisoformat(after)
    try:
        return (due - clock.now()).total_seconds()
    except (RedisError, TypeError):
        return None


MOST_AHEAD = 60.0
"""Synchronised clocks differ by less."""

MOST_BEHIND = timedelta(days=7).total_seconds()
"""An accepted write waits at most this long for a worker, unless the system was off."""


def within_bounds(ahead: float) -> bool:
    """Return whether a write may be dated `ahead` seconds ahead of the clock (negative: behind)."""
    return -MOST_BEHIND <= ahead <= MOST_AHEAD
