"""Idempotency: the answer to a key, the owner of a task, and what an LLM answered, each kept for repeats."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from redis import Redis

from workers.core.intent import Action, Intent

OWNER = "ebb:owner"
LATE = "ebb:late"
ANSWER = "ebb:answer"
QUOTING = "ebb:quoting"
TEXT = '"text": '
"""What stands in an answer that quotes facts, as that to a consolidation does."""

RECEIPT_SECONDS = 86_400


def note_owner(redis: Redis, task_id: str, namespace: str) -> None:
    """Record to which namespace a task belongs, whose id a client was given."""
    redis.set(f"{OWNER}:{task_id}", namespace, ex=RECEIPT_SECONDS)


def owner(redis: Redis, task_id: str) -> str | None:
    """Return whose a task is, if it is known."""
    found = redis.get(f"{OWNER}:{task_id}")
    return found.decode() if isinstance(found, bytes) else None


def note_late(redis: Redis, task_id: str, namespace: str) -> None:
    """Record that the caller no longer waits for a task, which a worker may be running."""
    with redis.pipeline() as pipeline:
        pipeline.set(f"{OWNER}:{task_id}", namespace, ex=RECEIPT_SECONDS)
        pipeline.set(f"{LATE}:{task_id}", 1, ex=RECEIPT_SECONDS)
        pipeline.execute()


def is_late(redis: Redis, task_id: str) -> bool:
    """Return whether the caller no longer waits for a task."""
    return bool(redis.exists(f"{LATE}:{task_id}"))


def claim(redis: Redis, task_id: str, request: str, now: str | None) -> tuple[str, str | None]:
    """Return the digest and the instant of the request that came first under this task's id: this one, or another."""
    key = f"{ANSWER}:{task_id}:request"
    redis.set(key, json.dumps([request, now]), nx=True, ex=RECEIPT_SECONDS)
    found = redis.get(key)
    first: list[Any] = json.loads(found) if isinstance(found, bytes) else [request, now]
    return first[0], first[1]


def remember(redis: Redis, task_id: str, answer: dict[str, Any]) -> dict[str, Any]:
    """Keep what was answered first, and return that, for callers who ask the same again or at the same time."""
    key, encoded = f"{ANSWER}:{task_id}", json.dumps(answer)
    note_quoting(redis, key, encoded)
    redis.set(key, encoded, nx=True, ex=RECEIPT_SECONDS)
    return answered(redis, task_id) or answer


def note_quoting(redis: Redis, key: str, encoded: str) -> None:
    """Note the key of an answer, as JSON, that quotes facts, so that it goes with what is erased of them."""
    if TEXT in encoded:
        redis.sadd(QUOTING, key)
        redis.expire(QUOTING, RECEIPT_SECONDS)


def drop_quotes(redis: Redis) -> None:
    """Forget the answers that quote facts, of which some are erased; a repeated request runs again."""
    quoting = redis.smembers(QUOTING)
    if quoting:
        redis.delete(*quoting)
        redis.srem(QUOTING, *quoting)


def answered(redis: Redis, task_id: str) -> dict[str, Any] | None:
    """Return what was answered before, if anything."""
    found = redis.get(f"{ANSWER}:{task_id}")
    answer: dict[str, Any] | None = json.loads(found) if isinstance(found, bytes) else None
    return answer


KEY = "ebb:verdict"
PAUSED = "ebb:llm-paused"
KEPT_SECONDS = 3_600
"""As long as signals keep when a task was first delivered."""

PAUSE_SECONDS = 30


def read(redis: Redis, namespace: str, ids: Sequence[UUID]) -> dict[UUID, Intent]:
    """Return what was said of these facts lately."""
    found = redis.mget([_key(namespace, id_) for id_ in ids]) if ids else []
    return {id_: _parsed(said) for id_, said in zip(ids, found, strict=True) if isinstance(said, bytes)}


def keep(redis: Redis, namespace: str, verdicts: Mapping[UUID, Intent]) -> dict[UUID, Intent]:
    """Keep what was said of facts, unless something was kept before; return what is kept now."""
    with redis.pipeline() as pipeline:
        for id_, intent in verdicts.items():
            said = f"{intent.action} {intent.target or ''}"
            pipeline.set(_key(namespace, id_), said, nx=True, ex=KEPT_SECONDS)
        pipeline.execute()
    return {**verdicts, **read(redis, namespace, list(verdicts))}


def pause(redis: Redis) -> None:
    """Note that the LLM does not answer, so that not everybody waits for it until it does."""
    redis.set(PAUSED, 1, ex=PAUSE_SECONDS)


def paused(redis: Redis) -> bool:
    """Return whether the LLM did not answer lately."""
    return bool(redis.exists(PAUSED))


def _key(namespace: str, id_: UUID) -> str:
    return f"{KEY}:{namespace}:{id_}"


def _parsed(said: bytes) -> Intent:
    action, _, target = said.decode().partition(" ")
    return Intent(Action(action), UUID(target) if target else None)
