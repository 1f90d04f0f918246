"""Limits on how many facts of a namespace passes may end per day and week, and on gaps between passes."""

from collections.abc import Sequence
from dataclasses import dataclass

from workers.core.confidence import DAY

LEAST = 5
"""Facts that may end per day or week in the smallest namespace, unless the share is 0."""

WEEK = 7 * DAY

Ending = tuple[float, int, int]
"""When facts ended (epoch seconds), how many by decay, and how many by request."""


@dataclass(frozen=True, slots=True)
class Limit:
    """Shares of a namespace that may end by decay per day and per week; 0 allows none, 1 per day is no limit."""

    a_day: float = 0.2
    a_week: float = 0.5


def remaining(limit: Limit, live: int, spent: Sequence[Ending], now: float) -> int | None:
    """Return how many more facts may end at `now` (epoch seconds) with `live` ones left; None without a limit.

    The shares refer to what was live when the day or week began, so they stay the same while facts end.
    """
    if limit.a_day >= 1:
        return None
    left = _left(limit.a_day, live, spent, now - DAY)
    return left if limit.a_week >= 1 else min(left, _left(limit.a_week, live, spent, now - WEEK))


def _left(share: float, live: int, endings: Sequence[Ending], since: float) -> int:
    spent = [one for one in endings if one[0] > since]
    ended, asked = sum(facts for _, facts, _ in spent), sum(asked for _, _, asked in spent)
    return 0 if share <= 0 else max(max(int(share * (live + ended + asked)), LEAST) - ended, 0)


MOST_WHILE_UP = DAY
"""Passes run every few minutes: a longer gap while the database ran is a clock jump or a lack of workers."""

MOST_WHILE_OFF = 7 * DAY
"""After a week switched off, forgetting what ended meanwhile needs confirmation."""


def is_gap(last: float, now: float, server_started: float) -> bool:
    """Return whether forgetting what ended between the last pass and `now` needs confirmation.

    All instants are the database's. The start of its server shows whether it ran since the last pass.
    """
    return now - last > (MOST_WHILE_UP if server_started <= last else MOST_WHILE_OFF)


def is_set_back(last: float, now: float) -> bool:
    """Return whether the clock was set back since the last pass, which reverses an earlier jump ahead."""
    return last - now > MOST_WHILE_UP
