"""A process's view of a server's clock, so that the machine's own clock dates nothing."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

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
