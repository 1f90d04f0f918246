"""Shares: requests in progress per namespace, so that a namespace with many queues behind all others."""

from typing import Any

from redis import Redis

from workers.coordination import bulk
from workers.coordination.outbox import BOUNDS, Bounds
from workers.errors import BusyError

UNDER_WAY = "ebb:requests:"
"""Per namespace, a sorted set of requests waiting for an answer, by deadline (epoch seconds)."""

SHARES = (4, 16, 64)
"""Numbers of requests in progress at which the next one gets a lower priority."""

CLASSES = (0, 3, 6, 9)
"""Message priorities: Celery on Redis takes the lowest number first."""

RETRY_SECONDS = 1

# Deleting comes first: a full Redis still accepts the later writes of a script that has begun to write.
ENTER = """
    redis.call('zremrangebyscore', KEYS[1], '-inf', ARGV[1])
    local most = tonumber(redis.call('hget', KEYS[2], 'requests') or ARGV[4])
    local held = redis.call('zcard', KEYS[1])
    if held >= most then return {held, most} end
    redis.call('zadd', KEYS[1], ARGV[2], ARGV[3])
    local last = redis.call('zrange', KEYS[1], -1, -1, 'withscores')[2]
    redis.call('expireat', KEYS[1], math.ceil(last) + 60)
    if ARGV[5] ~= '0' then redis.call('set', KEYS[3], 1, 'px', ARGV[5]) end
    return {held, 0}
"""


def enter(redis: Redis, namespace: str, task_id: str, now: float, seconds: float, *, interactive: bool) -> int:
    """Register a request that waits `seconds` for its answer; return how many others its namespace has.

    While interactive requests wait, the bulk lane leaves child processes to them.

    Raises:
        BusyError: the namespace is at its limit; requests of other namespaces do not count.
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
    """Remove a request that is answered, or whose caller no longer waits."""
    redis.zrem(_key(namespace), task_id)


def held(redis: Redis, namespace: str, now: float) -> int:
    """Return the number of a namespace's requests in progress."""
    return int(redis.zcount(_key(namespace), now, "+inf"))


def _key(namespace: str) -> str:
    return UNDER_WAY + namespace.encode(errors="replace").decode()  # the task refuses invalid names


def priority(others: int) -> int:
    """Return the priority of a message whose namespace has that many other requests in progress."""
    return CLASSES[sum(others >= share for share in SHARES)]
