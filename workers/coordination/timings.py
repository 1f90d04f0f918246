"""Timings: histograms of durations, kept in Redis and summed over all workers."""

import math
import time
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import accumulate

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
