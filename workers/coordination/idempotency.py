"""Idempotency: answers by task id, owners of tasks, and verdicts of an LLM, kept for repeated requests."""

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID, uuid5

from redis import Redis

from workers.core.intent import Action, Intent

OWNER = "ebb:owner"
LATE = "ebb:late"
ANSWER = "ebb:answer"
QUOTING = "ebb:quoting"
QUOTED = ('"text": ', '"from": ')
"""One of them occurs in answers that quote facts or relations, such as those of consolidations."""

RECEIPT_SECONDS = 86_400
"""How long a request can be repeated with its key, and the state of an accepted write can be read."""


QUOTING_SECONDS = 7 * RECEIPT_SECONDS
"""How long the keys of answers and contexts that quote facts are listed: the maximum of EBB_LAST_CONTEXTS_HOURS."""


def id_of_member(batch: UUID, place: int, content: str) -> UUID:
    """Return the id of a member of a batch: the same for every delivery, and in the order of the batch."""
    own = uuid5(batch, content)
    return UUID(fields=(batch.time_low, place, *own.fields[2:]))


def note_owner(redis: Redis, task_id: str, namespace: str) -> None:
    """Record the namespace of a task whose id was returned to a client."""
    redis.set(f"{OWNER}:{task_id}", namespace, ex=RECEIPT_SECONDS)


def owner(redis: Redis, task_id: str) -> str | None:
    """Return the namespace of a task, if known."""
    found = redis.get(f"{OWNER}:{task_id}")
    return found.decode() if isinstance(found, bytes) else None


def note_late(redis: Redis, task_id: str, namespace: str) -> None:
    """Record that the caller no longer waits for a task that a worker may be running."""
    with redis.pipeline() as pipeline:
        pipeline.set(f"{OWNER}:{task_id}", namespace, ex=RECEIPT_SECONDS)
        pipeline.set(f"{LATE}:{task_id}", 1, ex=RECEIPT_SECONDS)
        pipeline.execute()


def is_late(redis: Redis, task_id: str) -> bool:
    """Return whether the caller no longer waits for a task."""
    return bool(redis.exists(f"{LATE}:{task_id}"))


def claim(redis: Redis, task_id: str, request: str, now: str | None) -> tuple[str, str | None]:
    """Return digest and instant of the first request under this task's id: this one, or an earlier one."""
    key = f"{ANSWER}:{task_id}:request"
    redis.set(key, json.dumps([request, now]), nx=True, ex=RECEIPT_SECONDS)
    found = redis.get(key)
    first: list[Any] = json.loads(found) if isinstance(found, bytes) else [request, now]
    return first[0], first[1]


def is_claimed(redis: Redis, task_id: str) -> bool:
    """Return whether a request with an idempotency key has this task."""
    return bool(redis.exists(f"{ANSWER}:{task_id}:request"))


def keep_answer(redis: Redis, task_id: str, answer: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Keep the first answer for repeated and concurrent requests, and return it."""
    key, encoded = f"{ANSWER}:{task_id}", json.dumps(answer)
    keep(redis, key, encoded, RECEIPT_SECONDS, namespace, nx=True)
    return kept_answer(redis, task_id) or answer


KEPT = "ebb:kept:"
"""Per namespace, a list of the sizes and keys of its kept answers, oldest first."""

KEPT_BYTES = "ebb:kept-bytes:"
"""Per namespace, their bytes."""

MOST_KEPT_BYTES = 67_108_864
"""Maximum bytes of the answers of a namespace: one of a batch of 10,000 facts may have millions."""

OVERHEAD = 256
"""Bytes that Redis needs for an answer beside its content."""

# What a Redis that evicts keys has lost is no longer counted.
KEEP = """
    if ARGV[3] == 'once' and redis.call('exists', KEYS[1]) == 1 then return end
    redis.call('set', KEYS[1], ARGV[1], 'ex', ARGV[2])
    local size = #ARGV[1] + tonumber(ARGV[5])
    if redis.call('rpush', KEYS[2], size .. ' ' .. KEYS[1]) == 1 then redis.call('del', KEYS[3]) end
    local held = redis.call('incrby', KEYS[3], size)
    while held > tonumber(ARGV[4]) do
        local freed, key = string.match(redis.call('lpop', KEYS[2]), '^(%d+) (.*)$')
        redis.call('del', key)
        held = redis.call('decrby', KEYS[3], freed)
    end
    redis.call('expire', KEYS[2], ARGV[6])
    redis.call('expire', KEYS[3], ARGV[6])
"""


def keep(redis: Redis, key: str, encoded: str, seconds: int, namespace: str = "", *, nx: bool) -> None:
    """Keep an answer (JSON) under a key, and drop the oldest ones of its namespace if they are too large together.

    If it quotes facts or relations, erasing facts drops it.
    """
    keys = key, f"{KEPT}{namespace}", f"{KEPT_BYTES}{namespace}"
    given = encoded, seconds, "once" if nx else "", MOST_KEPT_BYTES, OVERHEAD, RECEIPT_SECONDS
    with redis.pipeline() as pipeline:  # in one step: an erasure in between would drop the key from the list alone
        pipeline.eval(KEEP, len(keys), *keys, *map(str, given))
        if any(one in encoded for one in QUOTED):
            note_quoting(pipeline, key)
        pipeline.execute()


# With each new key, two random ones are checked and dropped if they have expired, so that the list does not grow.
NOTE_QUOTING = """
    redis.call('sadd', KEYS[1], ARGV[1])
    redis.call('expire', KEYS[1], ARGV[2])
    for _, key in ipairs(redis.call('srandmember', KEYS[1], 2)) do
        if redis.call('exists', key) == 0 then redis.call('srem', KEYS[1], key) end
    end
"""


def note_quoting(redis: Redis, key: str) -> None:
    """Record an existing key whose value quotes facts, so that erasing facts drops it."""
    redis.eval(NOTE_QUOTING, 1, QUOTING, key, str(QUOTING_SECONDS))


def drop_quotes(redis: Redis) -> list[str]:
    """Drop the answers that quote facts, after some were erased; return the ids of the tasks that gave them.

    Among the ids are names of namespaces whose last contexts were dropped. A repeated request runs again.
    """
    quoting = redis.smembers(QUOTING)
    if quoting:
        redis.srem(QUOTING, *quoting)  # first, so that an answer that is kept meanwhile is listed or dropped
        redis.delete(*quoting)
    return [key.decode().split(":", 2)[2] for key in quoting if isinstance(key, bytes)]


def kept_answer(redis: Redis, task_id: str) -> dict[str, Any] | None:
    """Return the answer to an earlier request, if any."""
    return read_json(redis, f"{ANSWER}:{task_id}")


def read_json(redis: Redis, key: str) -> dict[str, Any] | None:
    """Return the object kept under a key, if any."""
    found = redis.get(key)
    return json.loads(found) if isinstance(found, bytes) else None


KEY = "ebb:verdict"
KEPT_SECONDS = 3_600
"""As long as `signals.first_seen` keeps its instants."""


def verdicts(redis: Redis, namespace: str, ids: Sequence[UUID]) -> dict[UUID, Intent]:
    """Return the recent verdicts with these ids."""
    found = redis.mget([_key(namespace, id_) for id_ in ids]) if ids else []
    said = {id_: one.decode().partition(" ") for id_, one in zip(ids, found, strict=True) if isinstance(one, bytes)}
    return {id_: Intent(Action(action), UUID(target) if target else None) for id_, (action, _, target) in said.items()}


def keep_verdicts(redis: Redis, namespace: str, new: Mapping[UUID, Intent]) -> dict[UUID, Intent]:
    """Keep verdicts by id unless some are kept already; return those kept."""
    with redis.pipeline() as pipeline:
        for id_, intent in new.items():
            said = f"{intent.action} {intent.target or ''}"
            pipeline.set(_key(namespace, id_), said, nx=True, ex=KEPT_SECONDS)
        pipeline.execute()
    return {**new, **verdicts(redis, namespace, list(new))}


def _key(namespace: str, id_: UUID) -> str:
    return f"{KEY}:{namespace}:{id_}"
