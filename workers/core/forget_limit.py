"""How many facts of a namespace passes may end in a day and in a week, and which gaps between passes do not count."""

from collections.abc import Sequence
from dataclasses import dataclass

from workers.core.confidence import DAY

LEAST = 5
"""However small a namespace, so many of its facts may end within a day or a week, unless none at all may."""

WEEK = 7 * DAY

Ending = tuple[float, int, int]
"""When facts ended, in epoch seconds, how many by themselves, and how many because it was asked for."""


@dataclass(frozen=True, slots=True)
class Limit:
    """The shares of a namespace that may end by themselves; 0 is none at all, and a share of 1 a day no limit."""

    a_day: float = 0.2
    a_week: float = 0.5


def room(limit: Limit, live: int, spent: Sequence[Ending], now: float) -> int | None:
    """Return how many more facts may end at `now` (epoch seconds) while `live` ones are left; nothing without limit.

    The shares are of what lived when the day or the week began, so they stay the same while facts end.
    """
    if limit.a_day >= 1:
        return None
    left = _left(limit.a_day, live, [one for one in spent if one[0] > now - DAY])
    return (
        left
        if limit.a_week >= 1
        else min(left, _left(limit.a_week, live, [one for one in spent if one[0] > now - WEEK]))
    )


def _left(share: float, live: int, spent: Sequence[Ending]) -> int:
    ended, asked = sum(facts for _, facts, _ in spent), sum(asked for _, _, asked in spent)
    return 0 if share <= 0 else max(max(int(share * (live + ended + asked)), LEAST) - ended, 0)


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
