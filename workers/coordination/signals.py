"""Signals between processes, in Redis: heartbeats, locks, recent work, and namespaces with pending work."""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from threading import Event, Thread
from typing import Any
from uuid import UUID

from redis import Redis
from redis.exceptions import LockNotOwnedError, RedisError
from redis.lock import Lock

from workers.coordination import idempotency
from workers.coordination.redis import RefusedError, insist

RECALLED = "ebb:recalled"
SKIPPED = "ebb:decay:skipped"
COOLDOWN = "ebb:decay:cooldown"
GROWN = "ebb:grown"
COUNTING = "ebb:counting"
COUNTED_LONG = "ebb:counted_long"
GROWTH_KNOWN = "ebb:growth_known"
REGENERATING = "ebb:regenerating"
FIRST_SEEN = "ebb:first-seen"
PROGRESS = "ebb:progress"
DONE = "ebb:done"
WORKING = "ebb:working"
BEGUN = "ebb:begun"
TIDIED = "ebb:tidied"
ANALYZED = "ebb:analyzed"
ALIVE = "ebb:alive"
DATABASES = "ebb:databases"
SETTINGS = "ebb:settings"
EMBEDDER = "ebb:embedder"
MEASURED = "ebb:measured"
NOTICED = "ebb:noticed"
PROBE = "ebb:probe"
BEAT = "ebb:beat"
AWAITED = "ebb:awaited"
FOLLOWING = "ebb:following"

RECALLED_MS = 2_000
"""Time after a recall during which users count as waiting."""

PROBE_SECONDS = 10

COOLDOWN_SECONDS = 60
MOST_SKIPS = 3
REGENERATION_SECONDS = 60
AWAITED_SECONDS = 86_400
FIRST_SEEN_SECONDS = 3_600
ALIVE_SECONDS = 15
"""Heartbeats come every two seconds."""

EMBEDDER_SECONDS = 60
MEASURED_SECONDS = 600
LOCK_POLL_SECONDS = 0.01
RENEWALS = 4
"""Number of times that a lock is renewed within its time: Redis may be away for some of them."""

STARTED_SECONDS = 60
"""Workers that start within this time count as starting together."""


def note_recall(redis: Redis) -> None:
    """Record that a user waits for an answer."""
    redis.set(RECALLED, 1, px=RECALLED_MS)


def users_wait(redis: Redis) -> bool:
    """Return whether a user waits for an answer, or did a moment ago."""
    return bool(redis.exists(RECALLED))


def may_start_pass(redis: Redis) -> bool:
    """Return whether a scheduled pass may start: a minute after the last, and not while users wait.

    After three skipped passes the next one runs anyway, so that a busy service still decays.
    """
    if users_wait(redis) and int(redis.incr(SKIPPED)) <= MOST_SKIPS:
        return False
    redis.delete(SKIPPED)
    return bool(redis.set(COOLDOWN, 1, nx=True, ex=COOLDOWN_SECONDS))


def may_start_janitor(redis: Redis, namespace: str) -> bool:
    """Return whether a store may trigger the janitor: at most once a minute per namespace."""
    return bool(redis.set(f"{TIDIED}:{namespace}", 1, nx=True, ex=COOLDOWN_SECONDS))


def may_analyze(redis: Redis, namespace: str) -> bool:
    """Return whether to have a namespace analyzed: at most once a minute, as each part of an import may ask for it."""
    return bool(redis.set(f"{ANALYZED}:{namespace}", 1, nx=True, ex=COOLDOWN_SECONDS))


@contextmanager
def regenerating(redis: Redis, namespace: str, ids: Sequence[UUID]) -> Iterator[list[UUID]]:
    """Yield the facts that are not marked as being regenerated, and mark them after the caller has sent that.

    A process that stops in between leaves no mark, so the redelivered task sends it again, which is harmless.
    """
    marks = {id_: f"{REGENERATING}:{namespace}:{id_}" for id_ in ids}
    marked = redis.mget(list(marks.values())) if marks else []
    wanted = [id_ for id_, mark in zip(marks, marked, strict=True) if mark is None]
    yield wanted
    with redis.pipeline(transaction=False) as pipeline:
        for id_ in wanted:
            pipeline.set(marks[id_], 1, ex=REGENERATION_SECONDS)
        pipeline.execute()


def first_seen(redis: Redis, task_id: str, now: datetime) -> datetime:
    """Return when a task was first delivered, so that a redelivery works with the same instant."""
    key = f"{FIRST_SEEN}:{task_id}"
    with redis.pipeline(transaction=False) as pipeline:
        pipeline.set(key, now.isoformat(), nx=True, ex=FIRST_SEEN_SECONDS)
        pipeline.get(key)
        # a full Redis refuses the first command; workers must still be able to process what it holds
        _, stored = pipeline.execute(raise_on_error=False)
    if isinstance(stored, RedisError):
        raise stored
    return datetime.fromisoformat(stored.decode()) if isinstance(stored, bytes) else now


def note_progress(redis: Redis, task_id: str, did: Mapping[str, int]) -> None:
    """Add to what the deliveries of a task have done so far, by name."""
    key = f"{PROGRESS}:{task_id}"

    def add() -> None:
        with redis.pipeline() as pipeline:
            for name, number in did.items():
                pipeline.hincrby(key, name, number)
            pipeline.expire(key, FIRST_SEEN_SECONDS)
            pipeline.execute()

    with suppress(RefusedError):  # as in `first_seen`; the count is lower then
        insist(add)


def progress(redis: Redis, task_id: str) -> dict[str, int]:
    """Return what all deliveries of a task have done so far, by name."""
    return counted(redis, f"{PROGRESS}:{task_id}")


def note_done(
    redis: Redis, task_id: str, answer: dict[str, Any], namespace: str = "", *, unless_done: bool = False
) -> None:
    """Record a finished task's answer, so that a redelivery, or a request with the same key, need not run it again."""
    key, encoded = f"{DONE}:{task_id}", json.dumps(answer)
    claimed = idempotency.is_claimed(redis, task_id)
    seconds = idempotency.RECEIPT_SECONDS if claimed else FIRST_SEEN_SECONDS
    idempotency.keep(redis, key, encoded, seconds, namespace, nx=unless_done)


def done_before(redis: Redis, task_id: str) -> dict[str, Any] | None:
    """Return the answer of a task that finished recently, if it did."""
    return idempotency.read_json(redis, f"{DONE}:{task_id}")


def drop_done(redis: Redis, task_id: str) -> None:
    """Delete what was recorded of a task, so that a redelivery, or a request with the same key, runs it again."""
    redis.delete(f"{DONE}:{task_id}")


def note_awaited(redis: Redis, task_id: str) -> None:
    """Record that a client waits for a task, for as long as the longest one."""
    redis.set(f"{AWAITED}:{task_id}", 1, ex=AWAITED_SECONDS)


def is_awaited(redis: Redis, task_id: str) -> bool:
    """Return whether this is still recorded; else Redis was emptied."""
    return bool(redis.exists(f"{AWAITED}:{task_id}"))


def drop_awaited(redis: Redis, task_id: str) -> None:
    """Remove the record of a client that has its answer, or waits no longer."""
    redis.delete(f"{AWAITED}:{task_id}")


def note_following(redis: Redis, task_id: str, following: Mapping[str, Any]) -> None:
    """Record what other programs want to follow a task that another task answers."""
    redis.set(f"{FOLLOWING}:{task_id}", json.dumps(following), ex=AWAITED_SECONDS)


def following(redis: Redis, task_id: str) -> dict[str, Any]:
    """Return what was recorded to follow a task."""
    return idempotency.read_json(redis, f"{FOLLOWING}:{task_id}") or {}


def take_following(redis: Redis, task_id: str, by: str) -> dict[str, Any]:
    """Return what was recorded to follow a task, to the first task that takes it and its redeliveries."""
    if not following(redis, task_id):
        return {}
    with suppress(RefusedError):
        if not first_of(redis, f"following:{task_id}", by, AWAITED_SECONDS):
            return {}
    return following(redis, task_id)  # the first may have sent and deleted it meanwhile


def drop_following(redis: Redis, task_id: str) -> None:
    """Delete what was recorded to follow a task."""
    redis.delete(f"{FOLLOWING}:{task_id}", f"{BEGUN}:following:{task_id}")


def try_write(redis: Redis) -> None:
    """Write a key that nothing reads; raise `RefusedError` if Redis refuses writes."""
    redis.set(PROBE, 1, ex=PROBE_SECONDS)


def first_of(redis: Redis, work: str, task_id: str, seconds: float) -> bool:
    """Return whether this task is the first for some work within `seconds`; its redelivery is so again."""
    key = f"{BEGUN}:{work}"
    redis.set(key, task_id, nx=True, px=int(seconds * 1000))
    return bool(redis.get(key) == task_id.encode())


def noticed(redis: Redis, namespace: str, now: datetime) -> set[UUID]:
    """Return the facts of a namespace that were in a notice, and have not passed the end that it named."""
    members: Any = redis.zrangebyscore(f"{NOTICED}:{namespace}", now.timestamp(), "+inf")
    return {UUID(member.decode()) for member in members}


def note_noticed(redis: Redis, namespace: str, ends: Mapping[UUID, datetime], now: datetime) -> None:
    """Record the facts that a notice named with their ends; ends that have passed are removed."""
    key = f"{NOTICED}:{namespace}"
    with redis.pipeline() as pipeline:
        pipeline.zadd(key, {str(id_): at.timestamp() for id_, at in ends.items()})
        pipeline.zremrangebyscore(key, "-inf", f"({now.timestamp()}")
        pipeline.zrange(key, 0, 0, desc=True, withscores=True)
        *_, last = pipeline.execute()
    for _, at in last:  # of earlier notices, too
        redis.expire(key, timedelta(seconds=at - now.timestamp(), days=1))


@contextmanager
def try_lock(
    redis: Redis, work: str, seconds: float, wait: float = 0.0, *, task_id: str | None = None, renew: bool = False
) -> Iterator[bool]:
    """Yield true to one caller at a time; the lock of a crashed one expires after `seconds`.

    Others wait up to `wait` seconds for it. With a `task_id`, a redelivery of this task gets the lock of its killed
    delivery at once; such a task must end before Redis delivers it again. A caller that exceeds its time releases
    nothing, since another may hold the lock by then. With `renew`, the caller may take longer than `seconds`.
    """
    # With one token for all threads: the thread that renews the lock needs that of the caller.
    lock = redis.lock(f"{WORKING}:{work}", timeout=seconds, sleep=LOCK_POLL_SECONDS, thread_local=False)
    alone = lock.acquire(blocking=wait > 0, blocking_timeout=wait or None, token=task_id)
    if not alone and task_id:
        lock.local.token = task_id.encode()
        with suppress(LockNotOwnedError):
            alone = lock.reacquire()
    ended = Event()
    try:
        if alone and renew:
            Thread(target=_renew, args=(lock, seconds / RENEWALS, ended), name="ebb-lock", daemon=True).start()
        yield alone
    finally:
        ended.set()
        if alone:
            with suppress(RedisError):
                lock.release()


def _renew(lock: Lock, every_seconds: float, ended: Event) -> None:
    """Renew a lock again and again until `ended` is set, as long as the caller holds it."""
    while not ended.wait(every_seconds):
        with suppress(RedisError):  # Redis is away, or another holds the lock, which this leaves alone
            lock.reacquire()


def mark_grown(redis: Redis, namespace: str) -> None:
    """Record that a namespace's facts changed since its words were counted."""
    with suppress(RefusedError):  # as in `first_seen`; the next change is recorded again
        insist(lambda: redis.sadd(GROWN, namespace))


def growth_is_known(redis: Redis) -> bool:
    """Return whether Redis has had the marks of `mark_grown` since `mark_all_grown`, or false if it lost its data."""
    return bool(redis.exists(GROWTH_KNOWN))


def mark_all_grown(redis: Redis, namespaces: Sequence[str]) -> None:
    """Mark these, which are all namespaces, as `mark_grown` does; from then on their growth is known."""
    with redis.pipeline() as pipeline:
        if namespaces:
            pipeline.sadd(GROWN, *namespaces)
        pipeline.set(GROWTH_KNOWN, 1)
        pipeline.execute()


def take_grown(redis: Redis) -> list[str]:
    """Return the namespaces whose words are to be counted; each stays taken until `note_counted`.

    After a crash the next caller gets them again, so that words of erased facts do not stay.
    """
    with redis.pipeline() as pipeline:
        pipeline.sunionstore(COUNTING, [COUNTING, GROWN])
        pipeline.delete(GROWN)
        pipeline.smembers(COUNTING)
        *_, members = pipeline.execute()
    return sorted(name.decode() for name in members)


def note_counted(redis: Redis, namespace: str) -> None:
    """Record that the words of a taken namespace are counted."""
    redis.srem(COUNTING, namespace)


def defer_count(redis: Redis, namespace: str, seconds: float) -> None:
    """Have `deferred_counts` name a namespace for the next seconds."""
    redis.set(f"{COUNTED_LONG}:{namespace}", 1, px=max(int(seconds * 1000), 1))


def deferred_counts(redis: Redis, namespaces: Sequence[str]) -> list[str]:
    """Return those of the namespaces whose words were counted lately, which took long."""
    marks = redis.mget([f"{COUNTED_LONG}:{name}" for name in namespaces]) if namespaces else []
    return [name for name, mark in zip(namespaces, marks, strict=True) if mark]


def note_heartbeat(redis: Redis, node: str, queues: Iterable[str], now: float, database: str = "") -> None:
    """Record the heartbeat of a worker that consumes these queues, and which database it uses."""
    redis.zadd(ALIVE, {f"{queue} {node}": now for queue in queues})
    redis.zremrangebyscore(ALIVE, "-inf", now - ALIVE_SECONDS)
    if database:
        redis.zadd(DATABASES, {database: now})
        redis.zremrangebyscore(DATABASES, "-inf", now - ALIVE_SECONDS)


def note_settings(redis: Redis, node: str, given: Mapping[str, Any]) -> None:
    """Record the settings of a worker that are not at their default, with its heartbeat."""
    redis.set(f"{SETTINGS}:{node}", json.dumps(given), ex=ALIVE_SECONDS)


def settings_of_workers(redis: Redis, now: float) -> dict[str, dict[str, Any]]:
    """Return the recorded settings of workers with a recent heartbeat."""
    nodes = sorted({node for _, node in live_workers(redis, now)})
    found: Any = redis.mget([f"{SETTINGS}:{node}" for node in nodes]) if nodes else []
    return {node: json.loads(given) for node, given in zip(nodes, found, strict=True) if given is not None}


def end_heartbeats(redis: Redis, node: str, database: str) -> None:
    """Remove a worker's settings, and the heartbeat of its database, when it ends; others renew that within seconds."""
    redis.zrem(DATABASES, database)
    redis.delete(f"{SETTINGS}:{node}")


def databases_of_workers(redis: Redis, now: float) -> dict[str, float]:
    """Return the databases that workers with a recent heartbeat use, each with the instant of the last heartbeat."""
    # a heartbeat further ahead comes from a wrong clock
    found: list[Any] = redis.zrangebyscore(DATABASES, now - ALIVE_SECONDS, now + ALIVE_SECONDS, withscores=True)
    return {database.decode(): at for database, at in found}


def live_workers(redis: Redis, now: float) -> set[tuple[str, str]]:
    """Return (queue, worker) for all workers with a recent heartbeat."""
    found: list[Any] = redis.zrangebyscore(ALIVE, now - ALIVE_SECONDS, "+inf")
    return {(queue, node) for queue, _, node in (member.decode().partition(" ") for member in found)}


def note_beat(redis: Redis, now: float) -> None:
    """Record when beat last sent a task, in epoch seconds."""
    redis.set(BEAT, now)


def beat_sent(redis: Redis) -> float | None:
    """Return when beat last sent a task, in epoch seconds, if it ever did."""
    found = redis.get(BEAT)
    return float(found) if isinstance(found, bytes) else None


def note_embedder(redis: Redis, said: str) -> None:
    """Record the state of the embedder."""
    redis.set(EMBEDDER, said, ex=EMBEDDER_SECONDS)


def embedder_state(redis: Redis) -> str | None:
    """Return the state of the embedder, if it was recorded recently."""
    found = redis.get(EMBEDDER)
    return found.decode() if isinstance(found, bytes) else None


def note_measured(redis: Redis, figures: dict[str, Any]) -> None:
    """Cache the database's figures."""
    redis.set(MEASURED, json.dumps(figures), ex=MEASURED_SECONDS)


def measured(redis: Redis) -> dict[str, Any] | None:
    """Return the cached figures of the database, if any."""
    return idempotency.read_json(redis, MEASURED)


UNLINKED = "ebb:unlinked"

MOST = 100_000
"""Limit while an embedder is away for long: some seven megabytes."""


def note_unlinked(redis: Redis, namespace: str, ids: Sequence[UUID]) -> None:
    """Record facts that need a vector before they can be linked."""
    if ids and redis.scard(UNLINKED) < MOST:
        redis.sadd(UNLINKED, *_members(namespace, ids))


def unlinked(redis: Redis) -> dict[str, list[UUID]]:
    """Return all recorded facts by the name of their namespace."""
    found = defaultdict[str, list[UUID]](list)
    members: Any = redis.smembers(UNLINKED)
    for member in members:
        id_, _, namespace = member.decode().partition(" ")
        found[namespace].append(UUID(id_))
    return found


def drop_unlinked(redis: Redis, namespace: str, ids: Sequence[UUID]) -> None:
    """Remove these facts from the record."""
    redis.srem(UNLINKED, *_members(namespace, ids))


def _members(namespace: str, ids: Sequence[UUID]) -> list[str]:
    return [f"{id_} {namespace}" for id_ in ids]


REGRETS = "ebb:regrets"
"""Questions, by namespace, whose best answer had already been forgotten by decay."""

FAILURES = "ebb:failures"
"""Tasks, by name, that failed for another reason than their input."""


def count(redis: Redis, what: str, label: str) -> None:
    """Increment the count of a label."""
    redis.hincrby(what, label)


def count_elsewhere(redis: Redis, what: str, label: str) -> None:
    """Move the count of a label to the empty one, so that the sum of a metric never falls."""
    number = int(redis.hget(what, label) or 0)
    with redis.pipeline() as pipeline:
        pipeline.hincrby(what, "", number)
        pipeline.hdel(what, label)
        pipeline.execute()


def counted(redis: Redis, what: str) -> dict[str, int]:
    """Return the counts of regrets or failures by label."""
    found: dict[bytes, bytes] = redis.hgetall(what)  # type: ignore[assignment]  # redis types answers for async too
    return {label.decode(): int(number) for label, number in found.items()}
