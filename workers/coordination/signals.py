"""Signals between processes, in Redis: who is busy, what was done lately, which namespaces grew."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from typing import Any
from uuid import UUID

from redis import Redis
from redis.exceptions import RedisError

from workers.coordination import idempotency
from workers.coordination.redis import RefusedError

ACTIVE = "ebb:active"
SKIPPED = "ebb:decay:skipped"
COOLDOWN = "ebb:decay:cooldown"
GROWN = "ebb:grown"
COUNTING = "ebb:counting"
REGENERATING = "ebb:regenerating"
FIRST_SEEN = "ebb:first-seen"
DONE = "ebb:done"
WORKING = "ebb:working"
BEGUN = "ebb:begun"
STARTED = f"{BEGUN}:start"
TIDIED = "ebb:tidied"
ALIVE = "ebb:alive"
EMBEDDER = "ebb:embedder"
MEASURED = "ebb:measured"
NOTICED = "ebb:noticed"
PROBE = "ebb:probe"

ACTIVE_SECONDS = 10
"""A recall that died leaves its mark no longer than this."""

COOLDOWN_SECONDS = 60
MOST_SKIPS = 3
REGENERATION_SECONDS = 60
FIRST_SEEN_SECONDS = 3_600
ALIVE_SECONDS = 15
"""Workers leave a mark every two seconds."""

EMBEDDER_SECONDS = 60
MEASURED_SECONDS = 600
STARTED_SECONDS = 60
"""Workers that start within this time start together."""


@contextmanager
def active(redis: Redis, who: str, now: float) -> Iterator[None]:
    """Mark that a user waits for an answer, for as long as the block lasts."""
    redis.zadd(ACTIVE, {who: now + ACTIVE_SECONDS})
    try:
        yield
    finally:
        redis.zrem(ACTIVE, who)


def users_wait(redis: Redis, now: float) -> bool:
    """Return whether any user waits for an answer."""
    redis.zremrangebyscore(ACTIVE, "-inf", now)
    return bool(redis.zcard(ACTIVE))


def may_pass(redis: Redis, now: float) -> bool:
    """Return whether a scheduled pass may begin: a minute after the last, and not while users wait.

    After three passes that yielded to users the fourth goes ahead, or a busy service would never decay.
    """
    if users_wait(redis, now) and int(redis.incr(SKIPPED)) <= MOST_SKIPS:
        return False
    redis.delete(SKIPPED)
    return bool(redis.set(COOLDOWN, 1, nx=True, ex=COOLDOWN_SECONDS))


def may_tidy(redis: Redis, namespace: str) -> bool:
    """Return whether a janitor may be sent because something was stored: a minute after the last of its namespace."""
    return bool(redis.set(f"{TIDIED}:{namespace}", 1, nx=True, ex=COOLDOWN_SECONDS))


def claim_regeneration(redis: Redis, namespace: str, ids: Sequence[UUID]) -> list[UUID]:
    """Return those facts that are not being regenerated yet, and mark them, however many hits arrive together."""
    with redis.pipeline(transaction=False) as pipeline:
        for id_ in ids:
            pipeline.set(f"{REGENERATING}:{namespace}:{id_}", 1, nx=True, ex=REGENERATION_SECONDS)
        claimed = pipeline.execute()
    return [id_ for id_, won in zip(ids, claimed, strict=True) if won]


def first_seen(redis: Redis, task_id: str, now: datetime) -> datetime:
    """Return when a task was first delivered, so that its second delivery does the same at the same instant."""
    key = f"{FIRST_SEEN}:{task_id}"
    with redis.pipeline(transaction=False) as pipeline:
        pipeline.set(key, now.isoformat(), nx=True, ex=FIRST_SEEN_SECONDS)
        pipeline.get(key)
        # a full Redis, which refuses the first, must not keep workers from working off what it holds
        _, stored = pipeline.execute(raise_on_error=False)
    if isinstance(stored, RedisError):
        raise stored
    return datetime.fromisoformat(stored.decode()) if isinstance(stored, bytes) else now


def note_done(redis: Redis, task_id: str, answer: dict[str, Any]) -> None:
    """Note what a task answered when it was done, so that its second delivery need not do it again."""
    key, told = f"{DONE}:{task_id}", json.dumps(answer)
    idempotency.note_quoting(redis, key, told)
    redis.set(key, told, ex=FIRST_SEEN_SECONDS)


def done_before(redis: Redis, task_id: str) -> dict[str, Any] | None:
    """Return what a task answered when it was done, if that was lately."""
    found = redis.get(f"{DONE}:{task_id}")
    answer: dict[str, Any] | None = json.loads(found) if isinstance(found, bytes) else None
    return answer


def try_write(redis: Redis) -> None:
    """Write a key that nothing reads; `RefusedError` where Redis takes no writes."""
    redis.set(PROBE, 1, ex=ACTIVE_SECONDS)


def first_of(redis: Redis, work: str, task_id: str, seconds: float) -> bool:
    """Return whether this task is the first for some work within that time; its second delivery is so again."""
    key = f"{BEGUN}:{work}"
    redis.set(key, task_id, nx=True, px=int(seconds * 1000))
    return bool(redis.get(key) == task_id.encode())


def noticed_until(redis: Redis, namespace: str) -> datetime | None:
    """Return until when the endings of a namespace's facts were in a notice, if any was."""
    noted = redis.hget(NOTICED, namespace)
    text = noted.decode() if isinstance(noted, bytes) else noted
    return None if text is None else datetime.fromisoformat(text)


def note_noticed(redis: Redis, namespace: str, until: datetime) -> None:
    """Note that a notice named the facts of a namespace that end until an instant."""
    redis.hset(NOTICED, namespace, until.isoformat())


def starts_first(redis: Redis, task_id: str) -> bool:
    """Return whether this task is the first of those that starting workers send; its second delivery is so again."""
    return first_of(redis, "start", task_id, STARTED_SECONDS)


@contextmanager
def only_one(redis: Redis, work: str, seconds: float) -> Iterator[bool]:
    """Give true to one caller at a time; the lock of one that died expires after `seconds`.

    A caller that took longer than that releases nothing: the lock is another's by then.
    """
    lock = redis.lock(f"{WORKING}:{work}", timeout=seconds)
    alone = lock.acquire(blocking=False)
    try:
        yield alone
    finally:
        if alone:
            with suppress(RedisError):
                lock.release()


def mark_grown(redis: Redis, namespace: str) -> None:
    """Note that a namespace has other facts than when its words were counted."""
    with suppress(RefusedError):  # as above; the next growth is noted again
        redis.sadd(GROWN, namespace)


def take_grown(redis: Redis) -> list[str]:
    """Return the namespaces whose words changed since they were counted; each stays taken until `note_counted`.

    Whoever dies before that leaves it to the next caller, or words of what was erased would stay.
    """
    with redis.pipeline() as pipeline:
        pipeline.sunionstore(COUNTING, [COUNTING, GROWN])
        pipeline.delete(GROWN)
        pipeline.smembers(COUNTING)
        *_, members = pipeline.execute()
    return sorted(name.decode() for name in members)


def note_counted(redis: Redis, namespace: str) -> None:
    """Note that a namespace's words are counted, as they were when it was taken or later."""
    redis.srem(COUNTING, namespace)


def note_alive(redis: Redis, node: str, queues: Iterable[str], now: float) -> None:
    """Note that a worker lives that takes from these queues."""
    redis.zadd(ALIVE, {f"{queue} {node}": now for queue in queues})
    redis.zremrangebyscore(ALIVE, "-inf", now - ALIVE_SECONDS)


def alive(redis: Redis, now: float) -> set[tuple[str, str]]:
    """Return (queue, worker) of all workers that lived a moment ago."""
    found: list[Any] = redis.zrangebyscore(ALIVE, now - ALIVE_SECONDS, "+inf")
    return {(queue, node) for queue, _, node in (member.decode().partition(" ") for member in found)}


def note_embedder(redis: Redis, said: str) -> None:
    """Note how the embedder is."""
    redis.set(EMBEDDER, said, ex=EMBEDDER_SECONDS)


def embedder_said(redis: Redis) -> str | None:
    """Return the state of the embedder, if it was asked recently."""
    found = redis.get(EMBEDDER)
    return found.decode() if isinstance(found, bytes) else None


def note_measured(redis: Redis, figures: dict[str, Any]) -> None:
    """Keep the database's figures for those who ask next."""
    redis.set(MEASURED, json.dumps(figures), ex=MEASURED_SECONDS)


def measured(redis: Redis) -> dict[str, Any] | None:
    """Return the database's figures as they were a moment ago, if they are known."""
    found = redis.get(MEASURED)
    figures: dict[str, Any] | None = json.loads(found) if isinstance(found, bytes) else None
    return figures


UNLINKED = "ebb:unlinked"

MOST = 100_000
"""While an embedder is ill for long, no more are noted: some seven megabytes."""


def note(redis: Redis, namespace: str, ids: Sequence[UUID]) -> None:
    """Note facts of a namespace that still have no vector."""
    if ids and redis.scard(UNLINKED) < MOST:
        redis.sadd(UNLINKED, *_members(namespace, ids))


def noted(redis: Redis) -> dict[str, list[UUID]]:
    """Return all that are noted, by the name of their namespace."""
    found = defaultdict[str, list[UUID]](list)
    members: Any = redis.smembers(UNLINKED)
    for member in members:
        id_, _, namespace = member.decode().partition(" ")
        found[namespace].append(UUID(id_))
    return found


def drop(redis: Redis, namespace: str, ids: Sequence[UUID]) -> None:
    """Forget about these facts of a namespace."""
    redis.srem(UNLINKED, *_members(namespace, ids))


def _members(namespace: str, ids: Sequence[UUID]) -> list[str]:
    return [f"{id_} {namespace}" for id_ in ids]
