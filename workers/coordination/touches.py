"""Touches that wait: recalls add theirs, and one task records all of a namespace together.

A touch stays until it is recorded, so one that is taken twice has to count once. A namespace whose task was sent gets
no second one until all its touches are recorded, or the task is lost.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any

from redis import Redis

WAITING = "ebb:touches:"
"""Per namespace, a sorted set of its touches by their instants."""

SENT = "ebb:touches"
"""Namespaces whose task was sent, by when (epoch seconds)."""

MOST = 50
"""Touches that are recorded together."""

LOST_SECONDS = 30
"""Time after which a task counts as lost; one that only waits is sent again too, and finds nothing to do."""

ADD = """
    redis.call('zadd', KEYS[1], ARGV[1], ARGV[2])
    return redis.call('zadd', KEYS[2], 'nx', redis.call('time')[1], ARGV[3])
"""

FINISH = """
    for place = 2, #ARGV do redis.call('zrem', KEYS[1], ARGV[place]) end
    if redis.call('exists', KEYS[1]) == 1 then
        redis.call('zadd', KEYS[2], redis.call('time')[1], ARGV[1])
        return 1
    end
    redis.call('zrem', KEYS[2], ARGV[1])
    return 0
"""

CLAIM_LOST = """
    local now = redis.call('time')[1]
    local lost = redis.call('zrangebyscore', KEYS[1], '-inf', now - ARGV[1])
    for _, namespace in ipairs(lost) do redis.call('zadd', KEYS[1], now, namespace) end
    return lost
"""


@dataclass(frozen=True, slots=True)
class Waiting:
    """A touch: its id, the ids of the facts, the instant in ISO 8601, and the key of the question."""

    use: str
    ids: list[str]
    at: str
    question: int | None

    @property
    def instant(self) -> datetime:
        """Return the instant."""
        return datetime.fromisoformat(self.at)

    def content(self) -> str:
        """Return the touch as it is kept in Redis."""
        return json.dumps(asdict(self))


def add(redis: Redis, namespace: str, touch: Waiting) -> bool:
    """Add a touch; return whether its namespace needs a task."""
    given = (touch.instant.timestamp(), touch.content(), namespace)
    return bool(redis.eval(ADD, 2, WAITING + namespace, SENT, *map(str, given)))


def oldest(redis: Redis, namespace: str) -> list[Waiting]:
    """Return the oldest touches of a namespace, as many as are recorded together."""
    found: Any = redis.zrange(WAITING + namespace, 0, MOST - 1)
    return [Waiting(**json.loads(one)) for one in found]


def finish(redis: Redis, namespace: str, recorded: Sequence[Waiting]) -> bool:
    """Remove recorded touches; return whether the namespace needs another task."""
    given = [one.content() for one in recorded]
    return bool(redis.eval(FINISH, 2, WAITING + namespace, SENT, namespace, *given))


def claim_lost(redis: Redis) -> list[str]:
    """Return the namespaces whose task was lost, each to one caller."""
    found: Any = redis.eval(CLAIM_LOST, 1, SENT, str(LOST_SECONDS))
    return [name.decode() for name in found]
