"""Timings and usage: histograms of durations, and CPU time and memory of each worker, in Redis for the metrics."""

import json
import math
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from itertools import accumulate

import psutil
from redis import Redis

KEY = "ebb:timings"
BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, math.inf)
"""Upper bounds, in seconds."""

RECALL = "recall"
"""Prefix of the parts of a recall; the name of the part follows."""

WRITE = "write"
"""Time from sending a write until it can be read."""

Histogram = tuple[list[int], float]
"""Cumulative counts by bucket, as in Prometheus, and the sum of all observations."""

# One command, as the client takes longer for each command than Redis.
OBSERVE = """
for place = 1, #ARGV, 3 do
    redis.call('HINCRBY', KEYS[1], ARGV[place] .. '|' .. ARGV[place + 1], 1)
    redis.call('HINCRBYFLOAT', KEYS[1], ARGV[place] .. '|sum', ARGV[place + 2])
end
"""


def observe(redis: Redis, observations: Iterable[tuple[str, float]]) -> None:
    """Add observations of (name, seconds)."""
    given: list[str | int | float] = []
    for what, seconds in observations:
        taken = max(0.0, seconds)
        given += [what, bisect_left(BUCKETS, taken), taken]
    redis.eval(OBSERVE, 1, KEY, *given)


def read(redis: Redis) -> dict[str, Histogram]:
    """Return all histograms by name."""
    found: dict[bytes, bytes] = redis.hgetall(KEY)  # type: ignore[assignment]  # redis types answers for async too
    counts: dict[str, list[int]] = {}
    sums: dict[str, float] = {}
    for name, value in found.items():
        what, _, place = name.decode().rpartition("|")
        if place == "sum":
            sums[what] = float(value)
        else:
            counts.setdefault(what, [0] * len(BUCKETS))[int(place)] = int(value)
    return {what: (list(accumulate(each)), sums.get(what, 0.0)) for what, each in counts.items()}


def quantile(counts: list[int], share: float) -> float | None:
    """Return the given quantile, interpolated within its bucket; None without observations.

    Observations above the last finite bound count as that bound.
    """
    if not counts or not counts[-1]:
        return None
    wanted, below, begins = share * counts[-1], 0, 0.0
    for bound, count in zip(BUCKETS, counts, strict=True):
        if count >= wanted:
            return begins if math.isinf(bound) else begins + (bound - begins) * (wanted - below) / (count - below)
        below, begins = count, bound
    return begins


_laps: list[tuple[str, float]] = []
"""Timings of the task that this process is running."""


@contextmanager
def timed(part: str) -> Iterator[None]:
    """Record how long the block takes."""
    began = time.perf_counter()
    try:
        yield
    finally:
        _laps.append((part, time.perf_counter() - began))


def take() -> list[tuple[str, float]]:
    """Return (part, seconds) of everything timed since the last call, and reset."""
    taken = list(_laps)
    _laps.clear()
    return taken


USAGE = "ebb:usage"
NOTED_SECONDS = 15.0
"""Interval between measurements of a worker, which take some milliseconds."""

KNOWN_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Usage:
    """CPU seconds since a worker started, and bytes with shared memory counted once; `at` is in epoch seconds."""

    at: float
    cpu_seconds: float = 0.0
    memory_bytes: int = 0


def measure_usage(now: float) -> Usage:
    """Return the usage of this process and its children; CPU time of ended children counts."""
    cpu, memory = 0.0, 0
    own = psutil.Process()
    for process in (own, *own.children(recursive=True)):
        with suppress(psutil.Error):
            cpu += sum(process.cpu_times()[:4])  # user and system time, own and of ended children
            used = process.memory_full_info()
            memory += int(getattr(used, "pss", used.rss))
    return Usage(now, cpu, memory)


def note_usage(redis: Redis, node: str, used: Usage) -> None:
    """Record a worker's usage, and drop workers that have ended."""
    redis.hset(USAGE, node, json.dumps(asdict(used)))
    gone = [name for name, one in _usages(redis).items() if one.at < used.at - KNOWN_SECONDS]
    if gone:
        redis.hdel(USAGE, *gone)


def read_usage(redis: Redis, now: float) -> dict[str, Usage]:
    """Return the recent usage of each worker."""
    return {name: one for name, one in _usages(redis).items() if one.at > now - KNOWN_SECONDS}


def _usages(redis: Redis) -> dict[str, Usage]:
    found: dict[bytes, bytes] = redis.hgetall(USAGE)  # type: ignore[assignment]  # redis types answers for async too
    return {name.decode(): Usage(**json.loads(one)) for name, one in found.items()}
