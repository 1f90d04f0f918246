"""A clock that runs fast: what is stored, recalled and passed by it fades within minutes."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, slots=True)
class Clock:
    """An instant that moves on by so many days in a real minute, from the present on."""

    days_a_minute: float
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = field(default_factory=time.monotonic)

    def now(self) -> str:
        """Return the instant as tasks take it."""
        passed = time.monotonic() - self.started
        return (self.began + timedelta(days=self.days_a_minute * passed / 60)).isoformat()
