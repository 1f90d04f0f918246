"""Resource usage: CPU time and memory of each worker with its children, in Redis for the metrics."""

import json
from contextlib import suppress
from dataclasses import asdict, dataclass

import psutil
from redis import Redis

KEY = "ebb:usage"
NOTED_SECONDS = 15.0
"""Interval between measurements of a worker, which take some milliseconds."""

KNOWN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds since a worker started, and bytes with shared memory counted once; `at` is in epoch seconds."""

    at: float
    cpu_seconds: float = 0.0
    memory_bytes: int = 0


def measure(now: float) -> Usage:
    """Return the usage of this process and its children; CPU time of ended children counts."""
    cpu, memory = 0.0, 0
    own = psutil.Process()
    for process in (own, *own.children(recursive=True)):
        with suppress(psutil.Error):
            cpu += sum(process.cpu_times()[:4])  # user and system time, own and of ended children
            used = process.memory_full_info()
            memory += int(getattr(used, "pss", used.rss))
    return Usage(now, cpu, memory)


def note(redis: Redis, node: str, used: Usage) -> None:
    """Record a worker's usage, and drop workers that have ended."""
    redis.hset(KEY, node, json.dumps(asdict(used)))
    gone = [name for name, one in _all(redis).items() if one.at < used.at - KNOWN_SECONDS]
    if gone:
        redis.hdel(KEY, *gone)


def read(redis: Redis, now: float) -> dict[str, Usage]:
    """Return the recent usage of each worker."""
    return {name: one for name, one in _all(redis).items() if one.at > now - KNOWN_SECONDS}


def _all(redis: Redis) -> dict[str, Usage]:
    found: dict[bytes, bytes] = redis.hgetall(KEY)  # type: ignore[assignment]  # redis types answers for async too
    return {name.decode(): Usage(**json.loads(one)) for name, one in found.items()}
