"""The bulk lane: large batches run in slices, one namespace after the other, so that children stay free for users.

A batch is a hash with its slices and their answers. Each namespace has a list of its batches, and a ring holds the
namespaces with batches. Only as many slices as there are slots are sent to the workers at once; the slot of a lost
slice is free again when its lease ends.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from redis import Redis

from workers.coordination import outbox
from workers.errors import BusyError

BATCH = "ebb:bulk:batch:"
WAITING = "ebb:bulk:waiting:"
"""Per namespace, the list of its batches that wait for a slot."""

RING = "ebb:bulk:ring"
RUNNING = "ebb:bulk:running"
"""Batches with a slice at the workers, by the end of its lease."""

BYTES = "ebb:bulk:bytes"
"""Hash from namespace to the bytes of its batches."""

SLOTS = "ebb:bulk:slots"
"""Hash from worker to its number of children, how many interactive work may need, and the time of the report."""

ASKED = "ebb:asked"
"""Exists while callers wait for interactive work, and shortly after."""

ASKED_MS = 2_000
LEASE_SECONDS = 75.0
"""Longer than the hard time limit of a task, so that no slice is sent again while it runs."""

MOST_TRIES = 6
MOST_AT_ONCE = 5
"""Slices run together where nothing else waits: one transaction each costs a quarter more."""

AT_ONCE_SECONDS = 2.0
"""Limit for slices run together, estimated from the batch's last one: a busy machine is near its time limit."""

WORKER_SECONDS = 15.0
RETRY_SECONDS = 5
PARTS = "parts"
JSON_FIELDS = ("arguments", "sent_at", "until", "outbox", "lsn", "trace")
FIELDS = ("task", "namespace", *JSON_FIELDS, "tries")


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch: its task, id, namespace, and arguments without the sliced content.

    `sent_at` is in epoch seconds. After `until` (ISO 8601) no caller waits for a batch that has not started. `outbox`
    is the namespace whose outbox holds the write: that of the client, which may write to others. `lsn` is
    the position in the log that a replica must have replayed for a recall. `trace` are the headers that carry on the
    caller's trace.
    """

    id: str
    task: str
    namespace: str
    arguments: dict[str, Any]
    sent_at: float | None = None
    until: str | None = None
    outbox: str | None = None
    lsn: str | None = None
    trace: dict[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """Slices of a batch that run together: index of the first, their content, number of attempts and of slices."""

    batch: Batch
    place: int
    content: list[Any]
    tries: int = 0
    count: int = 1


class Claimed(NamedTuple):
    """A claimed slot: namespace, batch, index of its next slice, how many slices run together, and its trace."""

    namespace: str
    batch: str
    place: int = 0
    slices: int = 1
    trace: dict[str, str] | None = None


# A Redis that evicts keys may have lost the list in which a known batch waits, or the mark that it runs.
JOIN = """
    if redis.call('exists', KEYS[1]) == 1 then
        local next, parts = unpack(redis.call('hmget', KEYS[1], 'next', 'parts'))
        local kept = redis.call('zscore', KEYS[6], ARGV[2]) or redis.call('lpos', KEYS[2], ARGV[2])
        local left = parts == '0' or tonumber(next) < tonumber(parts)
        if left and not kept and redis.call('rpush', KEYS[2], ARGV[2]) == 1 then
            redis.call('rpush', KEYS[3], ARGV[1])
        end
        return {'known', 0, 0}
    end
    local held = tonumber(redis.call('hget', KEYS[4], ARGV[1]) or 0)
    local size = tonumber(redis.call('hget', KEYS[5], 'size') or ARGV[5])
    if ARGV[4] == 'bounded' and held > 0 and held + ARGV[3] > size then return {'size', held, size} end
    redis.call('hset', KEYS[1], 'next', 0, 'tries', 0, 'bytes', ARGV[3], unpack(ARGV, 6))
    redis.call('hincrby', KEYS[4], ARGV[1], ARGV[3])
    if redis.call('rpush', KEYS[2], ARGV[2]) == 1 then redis.call('rpush', KEYS[3], ARGV[1]) end
    return {'put', 0, 0}
"""


def join(redis: Redis, batch: Batch, slices: Sequence[Sequence[Any]], *, bounded: bool = True) -> bool:
    """Append a batch to those of its namespace; return whether it is new. A known one keeps its place.

    If Redis has evicted the place of a known batch, it is appended again.

    Raises:
        BusyError: the namespace's batches exceed its limit in bytes; those of other namespaces do not count.
    """
    parts = {f"slice:{place}": json.dumps(list(content)) for place, content in enumerate(slices)}
    fields = {"task": batch.task, "namespace": batch.namespace, PARTS: str(len(parts))}
    fields |= {name: json.dumps(getattr(batch, name)) for name in JSON_FIELDS}
    flat = [one for pair in (fields | parts).items() for one in pair]
    keys = [BATCH + batch.id, WAITING + batch.namespace, RING, BYTES, outbox.BOUNDS, RUNNING]
    size = sum(map(len, parts.values()))
    how = "bounded" if bounded else "kept"
    given = [batch.namespace, batch.id, size, how, outbox.Bounds().size, *flat]
    answer: Any = redis.eval(JOIN, len(keys), *keys, *map(str, given))
    why, held, most = answer
    if why == b"size":
        raise BusyError(
            f"{held} bytes of batches of the namespace {batch.namespace!r} wait for the workers, and "
            f"EBB_MAX_OUTBOX_BYTES={most} allows no more; send more when they are stored.",
            RETRY_SECONDS,
        )
    return bool(why == b"put")


# A lease that ends after more than twice its time, or a report from the future, is void: the clock was set back since.
# Removing comes first: a full Redis still accepts the later writes of a script that has begun to write.
CLAIM = """
    local now, lease, running = tonumber(ARGV[1]), tonumber(ARGV[2]), redis.call('zrange', KEYS[2], 0, -1, 'withscores')
    for i = 1, #running, 2 do
        local left, id = running[i + 1] - now, running[i]
        if left <= 0 or left > 2 * lease then
            redis.call('zrem', KEYS[2], id)
            local name = redis.call('hget', ARGV[4] .. id, 'namespace')
            if name and redis.call('lpush', ARGV[5] .. name, id) == 1 then redis.call('rpush', KEYS[1], name) end
        end
    end
    local slots, reserved, found = 0, 0, redis.call('hgetall', KEYS[3])
    local waits = redis.call('exists', KEYS[4]) == 1
    for i = 2, #found, 2 do
        local children, kept, at = string.match(found[i], '(%d+) (%d+) ([%d.]+)')
        if math.abs(now - at) < tonumber(ARGV[3]) then
            slots, reserved = slots + children, reserved + kept
        else
            redis.call('hdel', KEYS[3], found[i - 1])
        end
    end
    local most, claimed = math.max(waits and slots - reserved or slots, 1), {}
    while redis.call('zcard', KEYS[2]) < most do
        local name = redis.call('lpop', KEYS[1])
        if not name then break end
        local id = redis.call('lpop', ARGV[5] .. name)
        if redis.call('llen', ARGV[5] .. name) > 0 then redis.call('rpush', KEYS[1], name) end
        if id and redis.call('exists', ARGV[4] .. id) == 1 then
            redis.call('zadd', KEYS[2], now + lease, id)
            local batch = ARGV[4] .. id
            if redis.call('hincrby', batch, 'tries', 1) == 1 then
                local others = redis.call('llen', KEYS[1]) - (redis.call('lindex', KEYS[1], -1) == name and 1 or 0)
                local short = redis.call('zcard', KEYS[2]) > slots - reserved
                local alone = not (waits or short or others > 0)
                redis.call('hset', batch, 'count', alone and redis.call('hget', batch, 'at_once') or 1)
            end
            local place, count, trace = unpack(redis.call('hmget', batch, 'next', 'count', 'trace'))
            table.insert(claimed, {name, id, place, count or 1, trace or 'null'})
        end
    end
    return claimed
"""


def claim(redis: Redis, now: float) -> list[Claimed]:
    """Return the slices to send now: free slots go to the namespaces in turn.

    While callers wait for interactive work, each worker keeps a child for it. If neither callers nor other namespaces
    wait, several slices run together, but not in children that interactive work may need. If they are lost, all of them
    are sent again and count as one attempt.
    """
    keys = [RING, RUNNING, SLOTS, ASKED]
    given = [now, LEASE_SECONDS, WORKER_SECONDS, BATCH, WAITING]
    claimed: Any = redis.eval(CLAIM, len(keys), *keys, *map(str, given))
    return [
        Claimed(name.decode(), id_.decode(), int(place), int(count), json.loads(trace))
        for name, id_, place, count, trace in claimed
    ]


def note_first(redis: Redis, batch: str) -> None:
    """Record that the batch's task runs the first slice itself: a redelivery does so again."""
    redis.hset(BATCH + batch, "first", 1)


def runs_first(redis: Redis, batch: str) -> bool:
    """Return whether the batch's task runs the first slice itself."""
    return bool(redis.hexists(BATCH + batch, "first"))


def find(redis: Redis, batch: str, place: int, count: int = 1) -> Slice | None:
    """Return up to `count` next slices of a batch; None if they are done already."""
    parts = [f"slice:{one}" for one in range(place, place + count)]
    found = _fields(redis, batch, "next", *parts)
    contents = [json.loads(found[part]) for part in parts if found[part] is not None]
    if found["next"] is None or int(found["next"]) != place or not contents:
        return None
    content = [one for each in contents for one in each]
    return Slice(_batch(batch, found), place, content, int(found["tries"]), len(contents))


def find_batch(redis: Redis, batch: str) -> Batch | None:
    """Return a batch of the lane, if it is there."""
    found = _fields(redis, batch)
    return None if found["task"] is None else _batch(batch, found)


def find_unsliced(redis: Redis, batch: str) -> Slice | None:
    """Return a batch that has no slices and runs as a whole; None if it has slices or is done."""
    found = _fields(redis, batch, PARTS)
    return Slice(_batch(batch, found), 0, [], int(found["tries"])) if found[PARTS] == b"0" else None


def _fields(redis: Redis, batch: str, *more: str) -> dict[str, Any]:
    named = (*FIELDS, *more)
    return dict(zip(named, redis.hmget(BATCH + batch, named), strict=True))


def _batch(id_: str, found: Mapping[str, Any]) -> Batch:
    known = [json.loads(found[name] or b"null") for name in JSON_FIELDS]
    return Batch(id_, found["task"].decode(), found["namespace"].decode(), *known)


# The batch becomes the first of its namespace, and the namespace the last of the ring. Deleting comes first, as above.
ADVANCE = """
    local after, now = ARGV[3] + ARGV[5], redis.call('hget', KEYS[1], 'next')
    if now ~= ARGV[3] then
        return now == tostring(after) and now == redis.call('hget', KEYS[1], 'parts') and 2 or 0
    end
    for place = ARGV[3], after - 1 do redis.call('hdel', KEYS[1], 'slice:' .. place) end
    redis.call('zrem', KEYS[4], ARGV[2])
    redis.call('hset', KEYS[1], 'next', after, 'tries', 0, 'at_once', ARGV[6], 'answer:' .. ARGV[3], ARGV[4])
    local left = redis.call('hget', KEYS[1], 'parts') - after
    if left > 0 and redis.call('lpush', KEYS[2], ARGV[2]) == 1 then redis.call('rpush', KEYS[3], ARGV[1]) end
    return left > 0 and 1 or 2
"""


def advance(redis: Redis, done: Slice, answers: Sequence[Any], seconds: float = 0.0) -> list[Any] | None:
    """Record the answers of slices that took `seconds`; return all answers after the last slice, else None.

    Again after the last slice, it returns the recorded answers.
    """
    batch = done.batch
    keys = [BATCH + batch.id, WAITING + batch.namespace, RING, RUNNING]
    at_once = max(1, min(MOST_AT_ONCE, int(AT_ONCE_SECONDS * done.count / max(seconds, 1e-3))))
    given = [batch.namespace, batch.id, done.place, json.dumps(list(answers)), done.count, at_once]
    if redis.eval(ADVANCE, len(keys), *keys, *map(str, given)) != 2:  # noqa: PLR2004 - nothing is left
        return None
    return _answers(redis, batch.id, done.place + done.count)


def finished(redis: Redis, batch: str) -> tuple[Batch, list[Any]] | None:
    """Return a batch whose slices are all done with their answers; None if it was dropped or is not done."""
    found = _fields(redis, batch, PARTS, "next")
    parts = int(found[PARTS] or 0)
    return (_batch(batch, found), _answers(redis, batch, parts)) if 0 < parts <= int(found["next"] or 0) else None


def _answers(redis: Redis, batch: str, slices: int) -> list[Any]:
    every: Any = redis.hmget(BATCH + batch, [f"answer:{place}" for place in range(slices)])
    return [one for part in every if part is not None for one in json.loads(part)]


DROP = """
    local size = redis.call('hget', KEYS[1], 'bytes')
    if size and redis.call('hincrby', KEYS[2], ARGV[1], -size) <= 0 then redis.call('hdel', KEYS[2], ARGV[1]) end
    redis.call('zrem', KEYS[3], ARGV[2])
    redis.call('del', KEYS[1])
"""


def drop(redis: Redis, batch: Batch) -> None:
    """Remove a batch that is done or failed."""
    redis.eval(DROP, 3, BATCH + batch.id, BYTES, RUNNING, batch.namespace, batch.id)


# A batch between its last answer and `drop` is not counted: for a minute at most the count is lower than the rest.
RECOUNT = """
    local bytes = {}
    local function count(ids)
        for _, id in ipairs(ids) do
            local name, size = unpack(redis.call('hmget', ARGV[1] .. id, 'namespace', 'bytes'))
            if name then bytes[name] = (bytes[name] or 0) + size end
        end
    end
    count(redis.call('zrange', KEYS[2], 0, -1))
    for _, name in ipairs(redis.call('hkeys', KEYS[1])) do
        local waiting = redis.call('lrange', ARGV[2] .. name, 0, -1)
        if #waiting > 0 and not redis.call('lpos', KEYS[3], name) then redis.call('rpush', KEYS[3], name) end
        count(waiting)
        if bytes[name] then
            redis.call('hset', KEYS[1], name, bytes[name])
        else
            redis.call('hdel', KEYS[1], name)
        end
    end
"""


def recount(redis: Redis) -> None:
    """Count the bytes of each namespace again, and put it into the ring: a Redis that evicts keys may lose both."""
    redis.eval(RECOUNT, 3, BYTES, RUNNING, RING, BATCH, WAITING)


def note_slots(redis: Redis, node: str, children: int, kept: int, now: float) -> None:
    """Record how many children a worker has, and how many of them interactive work may need."""
    redis.hset(SLOTS, node, f"{children} {kept} {now}")


def waiting(redis: Redis) -> Mapping[str, int]:
    """Return the number of batches in the lane and their bytes."""
    with redis.pipeline(transaction=False) as pipeline:
        pipeline.zcard(RUNNING)
        names: Any = redis.lrange(RING, 0, -1)
        for name in names:
            pipeline.llen(WAITING + name.decode())
        batches = sum(pipeline.execute())
    return {"batches": batches, "bytes": sum(map(int, redis.hvals(BYTES)))}


def held_bytes(redis: Redis, namespace: str) -> int:
    """Return the bytes of a namespace's batches."""
    return int(redis.hget(BYTES, namespace) or 0)
