"""The outbox: writes that were accepted without waiting, kept in Redis until they are committed."""

import json
from dataclasses import asdict, dataclass
from typing import Any

from redis import Redis

KEY = "ebb:outbox"
ACCEPTED = {"ebb_accepted": True}
"""The header of a message whose write stands in the outbox."""


MOST_DOUBLINGS = 9
"""What cannot be done is tried again ever more seldom, at last about once a day."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An accepted write: the task's id and name, its arguments, and when it was accepted (epoch seconds).

    Where its message was lost, when it was last sent again, and how often.
    """

    id: str
    task: str
    arguments: dict[str, Any]
    accepted_at: float
    sent_at: float | None = None
    tries: int = 0

    def overdue(self, now: float, patience: float) -> bool:
        """Return whether its message must be lost: more than `patience` seconds ago, and longer at each try.

        Or it was sent by a clock that was so far ahead, and set back since: it must not wait for that to come round.
        """
        sent_at = self.accepted_at if self.sent_at is None else self.sent_at
        longest = patience * float(2 ** min(self.tries, MOST_DOUBLINGS))
        return abs(now - sent_at) > longest


def put(redis: Redis, entry: Entry) -> None:
    """Keep a write until `remove`; putting it again changes nothing but its instants."""
    content = asdict(entry)
    redis.hset(KEY, content.pop("id"), json.dumps(content))


def remove(redis: Redis, task_id: str) -> None:
    """Forget a write that is committed, or was refused for good."""
    redis.hdel(KEY, task_id)


def size(redis: Redis) -> int:
    """Return how many writes are accepted and neither committed nor refused."""
    return int(redis.hlen(KEY))


def holds(redis: Redis, task_id: str) -> bool:
    """Return whether a write is accepted and neither committed nor refused."""
    return bool(redis.hexists(KEY, task_id))


def entries(redis: Redis) -> list[Entry]:
    """Return the writes that are accepted and neither committed nor refused."""
    return [Entry(task_id.decode(), **json.loads(content)) for task_id, content in redis.hscan_iter(KEY, count=500)]
