"""A fast clock, by which facts fade within minutes."""

import time
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta


@dataclass(frozen=True, slots=True)
class Clock:
    """A clock that starts at the present and advances by a number of days per real minute."""

    days_a_minute: float
    began: datetime = field(default_factory=lambda: datetime.now(UTC))
    started: float = field(default_factory=time.monotonic)

    def now(self) -> str:
        """Return the current instant in ISO 8601, as tasks take it."""
        passed = time.monotonic() - self.started
        return (self.began + timedelta(days=self.days_a_minute * passed / 60)).isoformat()
