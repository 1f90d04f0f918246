"""Receipts: whose a task is, and what was answered to an idempotency key; in Redis, for a day."""

import json
from typing import Any

from redis import Redis

OWNER = "ebb:owner"
ANSWER = "ebb:answer"
RECEIPT_SECONDS = 86_400


def note_owner(redis: Redis, task_id: str, namespace: str) -> None:
    """Note that a task, whose id somebody is told, is a namespace's."""
    redis.set(f"{OWNER}:{task_id}", namespace, ex=RECEIPT_SECONDS)


def owner(redis: Redis, task_id: str) -> str | None:
    """Return whose a task is, if it is known."""
    found = redis.get(f"{OWNER}:{task_id}")
    return found.decode() if isinstance(found, bytes) else None


def claim(redis: Redis, task_id: str, request: str) -> str:
    """Return the digest of the request that came first under this task's id: this one, or another."""
    key = f"{ANSWER}:{task_id}:request"
    redis.set(key, request, nx=True, ex=RECEIPT_SECONDS)
    found = redis.get(key)
    return found.decode() if isinstance(found, bytes) else request


def remember(redis: Redis, task_id: str, answer: dict[str, Any]) -> None:
    """Keep what was answered, for whoever asks the same again."""
    redis.set(f"{ANSWER}:{task_id}", json.dumps(answer), ex=RECEIPT_SECONDS)


def answered(redis: Redis, task_id: str) -> dict[str, Any] | None:
    """Return what was answered before, if anything."""
    found = redis.get(f"{ANSWER}:{task_id}")
    answer: dict[str, Any] | None = json.loads(found) if isinstance(found, bytes) else None
    return answer
