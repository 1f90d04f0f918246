"""How many facts of a namespace may end by themselves: a share of it within any day, and one within any week."""

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
