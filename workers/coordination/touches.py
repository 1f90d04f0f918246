"""Touches that wait: recalls add theirs, and one task records all of a namespace together, about once a second.

A touch is removed after it was recorded. It may be recorded twice, so it has an id by which it counts once. The task is
sent with the first touch. Touches of the next second wait for a later touch, or for a worker's heartbeat.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from redis import Redis

WAITING = "ebb:touches:"
"""Per namespace, a sorted set of its touches by their instants."""

SENT = "ebb:touches"
"""Namespaces with touches, by when their task was sent (epoch seconds), or 0 if it is still to be sent."""

RESTING = "ebb:touched:"
"""Per namespace, exists for a short time after its last task, in which no other one is sent."""

REST_MS = 1_000
"""Milliseconds between two tasks of a namespace."""

MOST = 50
"""Maximum of touches that are recorded together."""

CLAIMED = 100
"""Maximum of tasks that one heartbeat sends."""

LOST_SECONDS = 30
"""Time after which a task counts as lost and is sent again; if it was only late, the second one finds nothing to do."""

# A time in the future was written by another server, before a failover.
ADD = """
    redis.call('zadd', KEYS[1], ARGV[1], ARGV[2])
    local now, sent = tonumber(redis.call('time')[1]), tonumber(redis.call('zscore', KEYS[2], ARGV[3]) or 0)
    if sent > 0 and sent <= now then return 0 end
    local rests = redis.call('exists', KEYS[3]) == 1
    redis.call('zadd', KEYS[2], rests and 0 or now, ARGV[3])
    return rests and 0 or 1
"""

# If another task has removed these touches, that one continues.
FINISH = """
    local removed = 0
    for place = 4, #ARGV do removed = removed + redis.call('zrem', KEYS[1], ARGV[place]) end
    local left = redis.call('zcard', KEYS[1])
    if left == 0 then redis.call('zrem', KEYS[2], ARGV[1]) end
    if removed == 0 then return 0 end
    if left >= tonumber(ARGV[2]) then
        redis.call('zadd', KEYS[2], redis.call('time')[1], ARGV[1])
        return 1
    end
    redis.call('set', KEYS[3], 1, 'px', ARGV[3])
    if left > 0 then redis.call('zadd', KEYS[2], 0, ARGV[1]) end
    return 0
"""

CLAIM = """
    local now = redis.call('time')[1]
    local due = redis.call('zrangebyscore', KEYS[1], '-inf', now - ARGV[1], 'limit', 0, ARGV[2])
    for _, namespace in ipairs(due) do redis.call('zadd', KEYS[1], now, namespace) end
    return due
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


FIELDS = [one.name for one in fields(Waiting)]


def add(redis: Redis, namespace: str, touch: Waiting) -> bool:
    """Add a touch; return whether to send the task of its namespace now."""
    given = (touch.instant.timestamp(), touch.content(), namespace)
    return bool(redis.eval(ADD, 3, *_keys(namespace), *map(str, given)))


def oldest(redis: Redis, namespace: str) -> dict[bytes, Waiting]:
    """Return the oldest touches of a namespace, as many as are recorded together, by how they are kept."""
    found: Any = redis.zrange(WAITING + namespace, 0, MOST - 1)
    kept = {one: json.loads(one) for one in found}  # possibly with what a later version has added
    return {one: Waiting(**{name: touch[name] for name in FIELDS}) for one, touch in kept.items()}


def finish(redis: Redis, namespace: str, recorded: Iterable[bytes]) -> bool:
    """Remove recorded touches; return whether so many are left that the next task is to be sent now."""
    return bool(redis.eval(FINISH, 3, *_keys(namespace), namespace, str(MOST), str(REST_MS), *recorded))


def claim(redis: Redis) -> list[str]:
    """Return the namespaces whose task is to be sent, or was lost, each to one caller."""
    found: Any = redis.eval(CLAIM, 1, SENT, str(LOST_SECONDS), str(CLAIMED))
    return [name.decode() for name in found]


def _keys(namespace: str) -> tuple[str, str, str]:
    return WAITING + namespace, SENT, RESTING + namespace
