"""Shares: how many requests of each namespace are under way, so that one with many waits behind all others."""

from typing import Any

from redis import Redis

from workers.coordination import bulk
from workers.coordination.outbox import BOUNDS, Bounds
from workers.errors import BusyError

UNDER_WAY = "ebb:requests:"
"""Of each namespace the requests that wait for an answer, by until when they do (epoch seconds)."""

SHARES = (4, 16, 64)
"""With so many requests under way the next one of the namespace goes one class further back."""

CLASSES = (0, 3, 6, 9)
"""The priorities that messages have: Celery on Redis takes the lowest number first."""

RETRY_SECONDS = 1

# Deleting comes first: a full Redis takes what follows from a script that has begun to write.
ENTER = """
    redis.call('zremrangebyscore', KEYS[1], '-inf', ARGV[1])
    local most = tonumber(redis.call('hget', KEYS[2], 'requests') or ARGV[4])
    local held = redis.call('zcard', KEYS[1])
    if held >= most then return {held, most} end
    redis.call('zadd', KEYS[1], ARGV[2], ARGV[3])
    redis.call('expireat', KEYS[1], math.ceil(ARGV[2]) + 60)
    if ARGV[5] ~= '0' then redis.call('set', KEYS[3], 1, 'px', ARGV[5]) end
    return {held, 0}
"""


def enter(redis: Redis, namespace: str, task_id: str, now: float, seconds: float, *, interactive: bool) -> int:
    """Note a request that waits for its answer so many seconds; return how many the namespace has beside it.

    While interactive ones wait, the bulk lane leaves children to them.

    Raises:
        BusyError: the namespace has as many as it may; those of others do not count.
    """
    keys = [_key(namespace), BOUNDS, bulk.ASKED]
    given = [now, now + seconds, task_id, Bounds().requests, bulk.ASKED_MS if interactive else 0]
    answer: Any = redis.eval(ENTER, len(keys), *keys, *map(str, given))
    held, most = map(int, answer)
    if most:
        raise BusyError(
            f"{held} requests of the namespace {namespace!r} wait for answers, and EBB_MAX_REQUESTS={most} allows no "
            f"more; ask again in {RETRY_SECONDS} s, with fewer at the same time.",
            RETRY_SECONDS,
        )
    return held


def leave(redis: Redis, namespace: str, task_id: str) -> None:
    """Note that a request is answered, or that its caller no longer waits."""
    redis.zrem(_key(namespace), task_id)


def _key(namespace: str) -> str:
    return UNDER_WAY + namespace.encode(errors="replace").decode()  # what is no name is refused by the task


def priority(others: int) -> int:
    """Return the priority of a message whose namespace has so many others under way: the more, the further back."""
    return CLASSES[sum(others >= share for share in SHARES)]
