"""How far the date of a write may lie from the database's clock. Seconds."""

from workers.core.confidence import DAY

MOST_AHEAD = 60.0
"""Clocks that are kept in step differ by less."""

MOST_BEHIND = 7 * DAY
"""An accepted write waits no longer than this for a worker, unless the system was off."""


def within_bounds(ahead: float) -> bool:
    """Return whether a write may be dated so many seconds ahead of the clock, or behind it if that is negative."""
    return -MOST_BEHIND <= ahead <= MOST_AHEAD
