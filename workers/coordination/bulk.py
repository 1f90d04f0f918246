"""The bulk lane: large batches in slices, of each namespace in turn, so that interactive work always finds a child.

A batch is a hash with its slices and their answers. Each namespace has a list of its batches, and a ring has the
namespaces that have any. Only as many slices as there are slots are sent to the workers at the same time; the slot of
one that was lost is free again when its lease ends.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from redis import Redis

from workers.coordination import outbox, signals
from workers.errors import BusyError

BATCH = "ebb:bulk:batch:"
WAITING = "ebb:bulk:waiting:"
"""Of each namespace the list of its batches that wait for a slot."""

RING = "ebb:bulk:ring"
RUNNING = "ebb:bulk:running"
"""Batches with a slice at the workers, by when its lease ends."""

BYTES = "ebb:bulk:bytes"
"""A hash from each namespace with batches to how many bytes they are."""

SLOTS = "ebb:bulk:slots"
"""A hash from each worker to its children, how many of them interactive work may need, and when it said so."""

ASKED = "ebb:asked"
"""Is there while callers wait for interactive work, or did a moment ago."""

ASKED_MS = 2_000
LEASE_SECONDS = 75.0
"""Longer than the hard limit of a task, so that no slice is sent again while it runs."""

MOST_TRIES = 6
MOST_AT_ONCE = 5
"""So many slices are done at once where nothing else waits: one transaction for each costs a quarter more."""

AT_ONCE_SECONDS = 2.0
"""What slices done at once may take, by what the batch's last one took: on a busy machine a task's limit is near."""

WORKER_SECONDS = 15.0
RETRY_SECONDS = 5
PARTS = "parts"
FIELDS = ("task", "namespace", "arguments", "sent_at", "until", "outbox", "tries")


@dataclass(frozen=True, slots=True)
class Batch:
    """The task that a batch was given to, its id and namespace, and its arguments without what the slices have.

    `sent_at` is in epoch seconds; after `until`, ISO 8601, no caller waits for a batch that was not begun. `outbox` is
    the namespace of whose accepted writes it is one: that of its client, which may write to others.
    """

    id: str
    task: str
    namespace: str
    arguments: dict[str, Any]
    sent_at: float | None = None
    until: str | None = None
    outbox: str | None = None


@dataclass(frozen=True, slots=True)
class Slice:
    """Slices of a batch that are done at once: the place of the first, how many, their content, and how often sent."""

    batch: Batch
    place: int
    content: list[Any]
    tries: int = 0
    count: int = 1


class Claimed(NamedTuple):
    """What has a slot: the namespace, the batch, the place of its next slice, and how many are to be done at once."""

    namespace: str
    batch: str
    place: int = 0
    slices: int = 1


JOIN = """
    if redis.call('exists', KEYS[1]) == 1 then return {'known', 0, 0} end
    local held = tonumber(redis.call('hget', KEYS[4], ARGV[1]) or 0)
    local size = tonumber(redis.call('hget', KEYS[5], 'size') or ARGV[5])
    if ARGV[4] == 'bounded' and held > 0 and held + ARGV[3] > size then return {'size', held, size} end
    redis.call('hset', KEYS[1], 'next', 0, 'tries', 0, 'bytes', ARGV[3], unpack(ARGV, 6))
    redis.call('hincrby', KEYS[4], ARGV[1], ARGV[3])
    if redis.call('rpush', KEYS[2], ARGV[2]) == 1 then redis.call('rpush', KEYS[3], ARGV[1]) end
    return {'put', 0, 0}
"""


def join(redis: Redis, batch: Batch, slices: Sequence[Sequence[Any]], *, bounded: bool = True) -> bool:
    """Put a batch behind the others of its namespace; return whether it was not there yet, or else leave it as it is.

    Raises:
        BusyError: the batches of the namespace have more bytes than it may have; those of others do not count.
    """
    parts = {f"slice:{place}": json.dumps(list(content)) for place, content in enumerate(slices)}
    fields = {
        "task": batch.task,
        "namespace": batch.namespace,
        "arguments": json.dumps(batch.arguments),
        "sent_at": json.dumps(batch.sent_at),
        "until": json.dumps(batch.until),
        "outbox": json.dumps(batch.outbox),
        PARTS: str(len(parts)),
    }
    flat = [one for pair in (fields | parts).items() for one in pair]
    keys = [BATCH + batch.id, WAITING + batch.namespace, RING, BYTES, outbox.BOUNDS]
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


CLAIM = """
    local now = tonumber(ARGV[1])
    for _, id in ipairs(redis.call('zrangebyscore', KEYS[2], '-inf', now)) do
        local name = redis.call('hget', ARGV[4] .. id, 'namespace')
        if name then
            if redis.call('lpush', ARGV[5] .. name, id) == 1 then redis.call('rpush', KEYS[1], name) end
        end
        redis.call('zrem', KEYS[2], id)
    end
    local slots, reserved, found = 0, 0, redis.call('hgetall', KEYS[3])
    local waits = redis.call('exists', KEYS[4]) == 1
    for i = 2, #found, 2 do
        local children, kept, at = string.match(found[i], '(%d+) (%d+) ([%d.]+)')
        if now - tonumber(at) < tonumber(ARGV[3]) then
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
            redis.call('zadd', KEYS[2], now + ARGV[2], id)
            local batch = ARGV[4] .. id
            if redis.call('hincrby', batch, 'tries', 1) == 1 then
                local others = redis.call('llen', KEYS[1]) - (redis.call('lindex', KEYS[1], -1) == name and 1 or 0)
                local short = redis.call('zcard', KEYS[2]) > slots - reserved
                local alone = not (waits or short or others > 0)
                redis.call('hset', batch, 'count', alone and redis.call('hget', batch, 'at_once') or 1)
            end
            local place, count = unpack(redis.call('hmget', batch, 'next', 'count'))
            table.insert(claimed, {name, id, place, count or 1})
        end
    end
    return claimed
"""


def claim(redis: Redis, now: float) -> list[Claimed]:
    """Return what is to be sent now: the slots that are free go to namespaces in turn.

    While callers wait for interactive work, each worker keeps a child for it. Where neither they nor other namespaces
    wait, several slices are done at once, but not by the children that interactive work may need; if these are lost,
    as many are sent again, for they count as one use.
    """
    keys = [RING, RUNNING, SLOTS, ASKED]
    given = [now, LEASE_SECONDS, WORKER_SECONDS, BATCH, WAITING]
    claimed: Any = redis.eval(CLAIM, len(keys), *keys, *map(str, given))
    return [Claimed(name.decode(), id_.decode(), int(place), int(count)) for name, id_, place, count in claimed]


def note_first(redis: Redis, batch: str) -> None:
    """Note that the task of the batch does its first slice itself: its second delivery does so again."""
    redis.hset(BATCH + batch, "first", 1)


def does_first(redis: Redis, batch: str) -> bool:
    """Return whether the task of a batch does its first slice itself."""
    return bool(redis.hexists(BATCH + batch, "first"))


def find(redis: Redis, batch: str, place: int, count: int = 1) -> Slice | None:
    """Return up to so many slices that are next in their batch; none where they were done before."""
    parts = [f"slice:{one}" for one in range(place, place + count)]
    named = (*FIELDS, "next", *parts)
    found: dict[str, Any] = dict(zip(named, redis.hmget(BATCH + batch, named), strict=True))
    contents = [json.loads(found[part]) for part in parts if found[part] is not None]
    if found["next"] is None or int(found["next"]) != place or not contents:
        return None
    content = [one for each in contents for one in each]
    return Slice(_batch(batch, found), place, content, int(found["tries"]), len(contents))


def whole(redis: Redis, batch: str) -> Slice | None:
    """Return a task that is done as a whole, with no slices; none where the batch has some, or is done."""
    named = (*FIELDS, PARTS)
    found: dict[str, Any] = dict(zip(named, redis.hmget(BATCH + batch, named), strict=True))
    return Slice(_batch(batch, found), 0, [], int(found["tries"])) if found[PARTS] == b"0" else None


def _batch(id_: str, found: Mapping[str, Any]) -> Batch:
    known = [json.loads(found[name] or b"null") for name in ("arguments", "sent_at", "until", "outbox")]
    return Batch(id_, found["task"].decode(), found["namespace"].decode(), *known)


# The batch goes on before the others of its namespace, and its namespace behind all others. Deleting comes first: a
# full Redis takes what follows from a script that has begun to write.
ADVANCE = """
    if redis.call('hget', KEYS[1], 'next') ~= ARGV[3] then return 0 end
    local after = ARGV[3] + ARGV[5]
    for place = ARGV[3], after - 1 do redis.call('hdel', KEYS[1], 'slice:' .. place) end
    redis.call('zrem', KEYS[4], ARGV[2])
    redis.call('hset', KEYS[1], 'next', after, 'tries', 0, 'at_once', ARGV[6], 'answer:' .. ARGV[3], ARGV[4])
    local left = redis.call('hget', KEYS[1], 'parts') - after
    if left > 0 and redis.call('lpush', KEYS[2], ARGV[2]) == 1 then redis.call('rpush', KEYS[3], ARGV[1]) end
    return left > 0 and 1 or 2
"""


def advance(redis: Redis, done: Slice, answers: Sequence[Any], seconds: float = 0.0) -> list[Any] | None:
    """Note the answers of slices, which took so long; return those of the whole batch after its last one, else none."""
    batch = done.batch
    keys = [BATCH + batch.id, WAITING + batch.namespace, RING, RUNNING]
    at_once = max(1, min(MOST_AT_ONCE, int(AT_ONCE_SECONDS * done.count / max(seconds, 1e-3))))
    given = [batch.namespace, batch.id, done.place, json.dumps(list(answers)), done.count, at_once]
    if redis.eval(ADVANCE, len(keys), *keys, *map(str, given)) != 2:  # noqa: PLR2004 - nothing is left
        return None
    return _answers(redis, batch.id, done.place + done.count)


def finished(redis: Redis, batch: str) -> tuple[Batch, list[Any]] | None:
    """Return a batch whose slices are all done, and their answers, if it was not dropped: its caller has none yet."""
    named = (*FIELDS, PARTS, "next")
    found: dict[str, Any] = dict(zip(named, redis.hmget(BATCH + batch, named), strict=True))
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
    """Forget a batch, which is done or failed."""
    redis.eval(DROP, 3, BATCH + batch.id, BYTES, RUNNING, batch.namespace, batch.id)


def note_slots(redis: Redis, node: str, children: int, kept: int, now: float) -> None:
    """Note how many children a worker has, and how many of them interactive work may need."""
    redis.hset(SLOTS, node, f"{children} {kept} {now}")


def known_to_all(redis: Redis, queue: str, now: float) -> bool:
    """Return whether all workers of a queue know slices: one of an earlier version offers no slots, and drops them."""
    nodes = {node for name, node in signals.alive(redis, now) if name == queue}
    offering: Any = redis.hkeys(SLOTS)
    return nodes <= {node.decode() for node in offering}


def note_asked(redis: Redis) -> None:
    """Note that a caller waits for interactive work."""
    redis.set(ASKED, 1, px=ASKED_MS)


def waiting(redis: Redis) -> Mapping[str, int]:
    """Return how many batches are in the lane, and how many bytes they have."""
    with redis.pipeline(transaction=False) as pipeline:
        pipeline.zcard(RUNNING)
        names: Any = redis.lrange(RING, 0, -1)
        for name in names:
            pipeline.llen(WAITING + name.decode())
        batches = sum(pipeline.execute())
    return {"batches": batches, "bytes": sum(map(int, redis.hvals(BYTES)))}
