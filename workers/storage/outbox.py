"""The outbox: writes that were accepted without waiting, kept in Redis until they are committed."""

import json
from dataclasses import dataclass
from typing import Any

from redis import Redis

KEY = "ebb:outbox"
ACCEPTED = {"ebb_accepted": True}
"""The header of a message whose write stands in the outbox."""


@dataclass(frozen=True, slots=True)
class Entry:
    """An accepted write: the task's id and name, its arguments, and when it was accepted (epoch seconds)."""

    id: str
    task: str
    arguments: dict[str, Any]
    accepted_at: float


def put(redis: Redis, entry: Entry) -> None:
    """Keep a write until `remove`; putting it again changes nothing but the instant."""
    content = {"task": entry.task, "arguments": entry.arguments, "accepted_at": entry.accepted_at}
    redis.hset(KEY, entry.id, json.dumps(content))


def remove(redis: Redis, task_id: str) -> None:
    """Forget a write that is committed, or was refused for good."""
    redis.hdel(KEY, task_id)


def size(redis: Redis) -> int:
    """Return how many writes are accepted and neither committed nor refused."""
    return int(redis.hlen(KEY))


def holds(redis: Redis, task_id: str) -> bool:
    """Return whether a write is accepted and neither committed nor refused."""
    return bool(redis.hexists(KEY, task_id))


def overdue(redis: Redis, now: float, patience: float) -> list[Entry]:
    """Return the writes accepted more than `patience` seconds before `now` (epoch seconds): their messages may be lost.

    So may those be that were accepted by a clock so far ahead, which was set back since; they must not wait for it.
    """
    entries = [Entry(task_id.decode(), **json.loads(content)) for task_id, content in redis.hscan_iter(KEY, count=500)]
    return [entry for entry in entries if abs(now - entry.accepted_at) > patience]
