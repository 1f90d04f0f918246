"""Gaps between passes: time in which nothing could be used, for a clock jumped or the system was off. Epoch seconds."""

from workers.core.confidence import DAY

MOST_WHILE_UP = DAY
"""Passes come every few minutes: a longer gap while the database ran is a clock that jumped, or a lack of workers."""

MOST_WHILE_OFF = 7 * DAY
"""A system that was switched off for longer than a week asks before it forgets what ended meanwhile."""


def is_gap(last: float, now: float, server_started: float) -> bool:
    """Return whether what ended between the last pass and `now` must be confirmed before it is forgotten.

    All three instants are the database's: by when its server was started it says whether it ran since the last pass.
    """
    return now - last > (MOST_WHILE_UP if server_started <= last else MOST_WHILE_OFF)


def is_set_back(last: float, now: float) -> bool:
    """Return whether the clock was set back since the last pass, which takes a jump ahead of it back."""
    return last - now > MOST_WHILE_UP
