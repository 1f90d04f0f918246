"""The outbox: writes accepted without waiting, kept in Redis until they are committed.

A write is stored once, with its arguments; its message only has its id. Each namespace has its own hash, so it can be
bounded on its own.
"""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

from redis import Redis

from workers.errors import BusyError

WAITING = "ebb:outbox:waiting:"
"""Per namespace, a hash from task id to write."""

BYTES = "ebb:outbox:bytes"
"""Hash from namespace to the bytes of its writes."""

BOUNDS = "ebb:outbox:bounds"
HEADER = "ebb_outbox"
"""Header of a message with the namespace whose outbox holds its write."""

MOST_DOUBLINGS = 9
"""Retries of a failing write get rarer, down to about one a day."""

PORTION = 100
DEFAULT = "default"
FULL_SHARE = 0.9
"""Share of Redis' memory above which writes are refused: workers need the rest to process what it holds."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Limits of a namespace: writes in the outbox, their bytes, and open requests."""

    writes: int = 100_000
    size: int = 67_108_864
    requests: int = 256


@dataclass(frozen=True, slots=True)
class Entry:
    """An accepted write: task id and name, arguments, and time of acceptance (epoch seconds).

    If its message was lost, `sent_at` is when it was last sent again, and `tries` how often. `trace` are the headers
    that carry on the caller's trace.
    """

    id: str
    task: str
    arguments: dict[str, Any]
    accepted_at: float
    sent_at: float | None = None
    tries: int = 0
    namespace: str = DEFAULT
    trace: dict[str, str] = field(default_factory=dict)

    def overdue(self, now: float, patience: float) -> bool:
        """Return whether its message must be lost: sent more than `patience` seconds ago, doubled at each try.

        An instant that far ahead also counts: the clock was set back since.
        """
        sent_at = self.accepted_at if self.sent_at is None else self.sent_at
        longest = patience * float(2 ** min(self.tries, MOST_DOUBLINGS))
        return abs(now - sent_at) > longest

    def content(self) -> str:
        """Return what is stored under its namespace and id."""
        fields = asdict(self)
        del fields["id"], fields["namespace"]
        return json.dumps(fields)


# A write is stored and counted in one step. The first one is accepted at any size, or it never could be. What a Redis
# that evicts keys has lost is no longer counted.
PUT = """
    local before = redis.call('hstrlen', KEYS[1], ARGV[2])
    if redis.call('exists', KEYS[1]) == 0 then redis.call('hdel', KEYS[2], ARGV[1]) end
    local held = tonumber(redis.call('hget', KEYS[2], ARGV[1]) or 0)
    if ARGV[4] == 'renew' then
        if before == 0 then return {'gone', 0, 0} end
    else
        local writes = tonumber(redis.call('hget', KEYS[3], 'writes') or ARGV[5])
        local size = tonumber(redis.call('hget', KEYS[3], 'size') or ARGV[6])
        if before == 0 and redis.call('hlen', KEYS[1]) >= writes then
            return {'writes', redis.call('hlen', KEYS[1]), writes}
        elseif held > before and held - before + #ARGV[3] > size then
            return {'size', held, size}
        end
        local info = redis.pcall('info', 'memory')
        if type(info) == 'string' then
            local used = tonumber(string.match(info, 'used_memory:(%d+)') or 0)
            local most = tonumber(string.match(info, 'maxmemory:(%d+)') or 0)
            if most > 0 and used > most * tonumber(ARGV[7]) then return {'memory', used, most} end
        end
    end
    redis.call('hset', KEYS[1], ARGV[2], ARGV[3])
    redis.call('hincrby', KEYS[2], ARGV[1], #ARGV[3] - before)
    return {'put', 0, 0}
"""

# Deleting comes first: a full Redis still accepts the later writes of a script that has begun to write.
REMOVE = """
    local size = redis.call('hstrlen', KEYS[1], ARGV[2])
    if redis.call('hdel', KEYS[1], ARGV[2]) == 0 then return 0 end
    if redis.call('hlen', KEYS[1]) == 0 then
        redis.call('hdel', KEYS[2], ARGV[1])
    else
        redis.call('hincrby', KEYS[2], ARGV[1], -size)
    end
    return 1
"""


def message(entry: Entry) -> dict[str, Any]:
    """Return the arguments of a write's message, which workers replace by those in the outbox.

    One that does not refuses `in_outbox` as unknown, instead of running the task without its arguments.
    """
    return {"namespace": entry.namespace, "in_outbox": True}


def put(redis: Redis, entry: Entry) -> None:
    """Keep a write until `remove`; a repeated put only changes its instants.

    Raises:
        BusyError: the namespace is at its limit of writes or bytes, or Redis is nearly full; nothing was kept.
    """
    own = Bounds()
    why, held, most = _put(redis, entry, "new", own.writes, own.size, FULL_SHARE)
    if why != b"put":
        raise BusyError(REFUSALS[why].format(namespace=entry.namespace, held=held, most=most, share=FULL_SHARE))


def renew(redis: Redis, entry: Entry) -> bool:
    """Record that a write was sent again; return whether it is still there."""
    return bool(_put(redis, entry, "renew")[0] == b"put")


def _put(redis: Redis, entry: Entry, *options: object) -> Any:
    keys = [WAITING + entry.namespace, BYTES, BOUNDS]
    return redis.eval(PUT, len(keys), *keys, entry.namespace, entry.id, entry.content(), *map(str, options))


REFUSALS = {
    b"writes": "{held} writes of the namespace {namespace!r} were accepted without waiting and are not stored yet, and "
    "EBB_MAX_OUTBOX_WRITES={most} allows no more; send more when they are stored, wait for each one (`wait=True`), "
    "or start more workers for the queue `store`.",
    b"size": "{held} bytes of writes of the namespace {namespace!r} were accepted without waiting and are not stored "
    "yet, and EBB_MAX_OUTBOX_BYTES={most} allows no more; send more when they are stored, wait for each one "
    "(`wait=True`), or start more workers for the queue `store`.",
    b"memory": "Redis uses {held} of the {most} bytes that its `maxmemory` allows, more than {share:.0%}, which leaves "
    "too little to accept writes without waiting; send more when the workers have caught up, or raise `maxmemory`.",
}


def remove(redis: Redis, namespace: str, task_id: str) -> None:
    """Remove a write that is committed or rejected."""
    redis.eval(REMOVE, 2, WAITING + namespace, BYTES, namespace, task_id)


def publish_bounds(redis: Redis, bounds: Bounds) -> None:
    """Publish these bounds to all senders."""
    fields: dict[Any, Any] = asdict(bounds)
    redis.hset(BOUNDS, mapping=fields)


def held(redis: Redis, namespace: str) -> int:
    """Return the number of a namespace's pending writes."""
    return int(redis.hlen(WAITING + namespace))


def held_bytes(redis: Redis, namespace: str) -> int:
    """Return the bytes of a namespace's pending writes."""
    return int(redis.hget(BYTES, namespace) or 0)


def find(redis: Redis, namespace: str, task_id: str) -> Entry | None:
    """Return a pending write."""
    found = redis.hget(WAITING + namespace, task_id)
    return Entry(task_id, **json.loads(found), namespace=namespace) if isinstance(found, bytes) else None


def holds(redis: Redis, namespace: str, task_id: str) -> bool:
    """Return whether a write is pending."""
    return bool(redis.hexists(WAITING + namespace, task_id))


def size(redis: Redis) -> int:
    """Return the number of pending writes."""
    with redis.pipeline(transaction=False) as pipeline:
        for namespace in _namespaces(redis):
            pipeline.hlen(WAITING + namespace)
        return sum(map(int, pipeline.execute()))


def entries(redis: Redis) -> Iterator[Entry]:
    """Yield all pending writes, read in portions."""
    for namespace in _namespaces(redis):
        for task_id, content in redis.hscan_iter(WAITING + namespace, count=PORTION):
            yield Entry(task_id.decode(), **json.loads(content), namespace=namespace)


def _namespaces(redis: Redis) -> list[str]:
    names: Any = redis.hkeys(BYTES)
    return sorted(name.decode() for name in names)
