"""Deadlines: until when an answer is waited for, by Redis' clock, so that no machine's own clock has a say in it."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from redis.exceptions import RedisError

from workers.clock import Clock

UNTIL = "ebb_until"
"""The header that says until when a message is of use; ISO 8601."""


def stamped(options: Mapping[str, Any], clock: Clock) -> dict[str, Any]:
    """Return the options of a message that expires after so many seconds, with a header that says when that is."""
    seconds, headers = options.get("expires"), options.get("headers") or {}
    if isinstance(seconds, bool) or not isinstance(seconds, int | float) or UNTIL in headers:
        return {}
    try:
        until = clock.now() + timedelta(seconds=seconds)
    except RedisError:  # then nothing is sent either
        return {}
    return {"headers": headers | {UNTIL: until.isoformat()}}


def is_over(until: Any, clock: Clock) -> bool:
    """Return whether the deadline of a message has passed; where Redis does not answer, that is not known."""
    try:
        return clock.now() > datetime.fromisoformat(until)
    except (RedisError, ValueError, TypeError):
        return False
